/* From the hand to the client: output files, and what is kept of a compile. The hand runs with the run's id, so what it
 * says is believed no more than the program: every length is bounded here and every path is checked again. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static uint8_t block[PAYLOAD_MAX];

/* 1: all of it; 0: the end of the pipe before the first byte. A torn item ends the box. */
static int read_all(struct front *front, void *to, size_t size)
{
    uint8_t *at = to;
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(front->hand_fd, at + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || (got == 0 && have > 0))
            front_fatal(front, FATAL_SYSTEM, errno, "the hand stopped in the middle");
        if (got == 0)
            return 0;
        have += (size_t)got;
    }
    return 1;
}

static void read_rest(struct front *front, void *to, size_t size)
{
    if (size > 0 && !read_all(front, to, size))
        front_fatal(front, FATAL_SYSTEM, 0, "the hand stopped in the middle");
}

static void relay_file(struct front *front, const struct hand_item *item)
{
    uint8_t head[32];
    if (item->index >= front->request.field[Q_FILEC] || item->content_bytes > front->request.field[Q_COLLECT_FILE])
        front_fatal(front, FATAL_SYSTEM, 0, "the hand sent a file that was not asked for");
    memset(head, 0, sizeof head);
    put32(head, item->index);
    head[4] = item->status;
    head[5] = item->file_kind;
    put32(head + 8, item->mode);
    put32(head + 12, item->error);
    put64(head + 16, item->size);
    put64(head + 24, item->allocated);
    front_frame(front, B_FILE, front->run_id, head, sizeof head, NULL, 0);
    for (uint64_t left = item->content_bytes; left > 0;) {
        size_t part = left < sizeof block ? (size_t)left : sizeof block;
        read_rest(front, block, part);
        front_frame(front, B_FILE_DATA, front->run_id, NULL, 0, block, part);
        left -= part;
    }
}

static void write_kept(int fd, size_t size, uint32_t *error)
{
    for (size_t at = 0; at < size && *error == 0;) {
        ssize_t written = write(fd, block + at, size - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            *error = written < 0 ? (uint32_t)errno : ENOSPC;
        else
            at += (size_t)written;
    }
}

/* One kept file goes to two places: into /submission by way of the core, and to the client if it asked for it. Whether all
 * could be written is said by KEPT. */
static void relay_kept(struct front *front, const struct hand_item *item, const uint8_t *path, int *incomplete)
{
    uint32_t step, error = 0;
    uint8_t head[16];
    int to_client = (front->request.field[Q_OPTIONS] & OPTION_SEND_KEPT) != 0;
    int fd = front_open(front, 0, item->executable, path, item->path_bytes, &step, &error);
    if (fd < 0)
        *incomplete = 1;
    memset(head, 0, sizeof head);
    head[0] = item->executable ? 1 : 0;
    put64(head + 8, item->content_bytes);
    front_frame(front, B_KEPT_FILE, front->run_id, head, sizeof head, path, item->path_bytes);
    for (uint64_t left = item->content_bytes; left > 0;) {
        size_t part = left < sizeof block ? (size_t)left : sizeof block;
        read_rest(front, block, part);
        if (fd >= 0)
            write_kept(fd, part, &error);
        if (to_client)
            front_frame(front, B_KEPT_DATA, front->run_id, NULL, 0, block, part);
        left -= part;
    }
    if (error != 0)
        *incomplete = 1;
    if (fd >= 0)
        close(fd);
}

static void relay_skipped(struct front *front, const struct hand_item *item, const uint8_t *path)
{
    uint8_t head[8];
    memset(head, 0, sizeof head);
    head[0] = item->file_kind;
    put32(head + 4, item->error);
    front_frame(front, B_KEPT_SKIPPED, front->run_id, head, sizeof head, path, item->path_bytes);
}

/* Called once the hand has begun; reads until it has closed its end. Everything of the run is dead by then, so nothing
 * waits for us but the client. The core bounds how long the hand may take. */
void relay_hand(struct front *front)
{
    uint8_t path[PATH_BYTES_MAX];
    uint64_t kept_bytes = 0, kept_files = 0, skipped = 0;
    int incomplete = 0;
    struct hand_item item;
    while (read_all(front, &item, sizeof item)) {
        if (item.path_bytes > sizeof path)
            front_fatal(front, FATAL_SYSTEM, 0, "the hand sent too long a path");
        read_rest(front, path, item.path_bytes);
        switch (item.kind) {
        case HAND_FILE:
            relay_file(front, &item);
            break;
        case HAND_KEPT:
            kept_bytes += item.content_bytes;
            if (item.content_bytes > CONTENT_TOTAL_MAX || kept_bytes > front->request.field[Q_KEEP_BYTES] || ++kept_files > front->request.field[Q_KEEP_FILES])
                front_fatal(front, FATAL_SYSTEM, 0, "the hand kept more than was asked for");
            relay_kept(front, &item, path, &incomplete);
            break;
        case HAND_SKIPPED:
            if (++skipped > SKIPPED_MAX)
                front_fatal(front, FATAL_SYSTEM, 0, "the hand named too many");
            relay_skipped(front, &item, path);
            break;
        case HAND_KEPT_DONE: {
            uint8_t summary[32];
            put64(summary, item.status != 0 && !incomplete ? 1 : 0);
            put64(summary + 8, item.files);
            put64(summary + 16, item.bytes);
            put64(summary + 24, item.size);
            front_frame(front, B_KEPT, front->run_id, summary, sizeof summary, NULL, 0);
            break;
        }
        default:
            front_fatal(front, FATAL_SYSTEM, 0, "the hand sent an unknown item");
        }
    }
    close(front->hand_fd);
    front->hand_fd = -1;
}
