/* stdin in, stdout and stderr out, while a run is on. Nothing here waits for the program or for the client. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define READ_AT_ONCE 65536u
#define ROUNDS 16             /* of one stream before the others have their turn */
#define TELL_ROOM (1u << 20)  /* how much must have gone before the client is told */
#define GIVE_BACK (256u << 10) /* memory above this goes back to the box after a run */

static uint8_t scratch[READ_AT_ONCE];

static void stream_reset(struct stream *stream, uint64_t keep, uint64_t kill)
{
    if (stream->kept_bytes > GIVE_BACK)
        madvise(stream->kept, KEEP_STREAM_MAX, MADV_DONTNEED);
    stream->keep = keep;
    stream->kill = kill;
    stream->kept_bytes = stream->total = 0;
    stream->hashing = stream->closed_early = stream->told = 0;
    stream->ended_ns = 0;
    atomic_store(stream->shared_total, 0);
}

void streams_open(struct front *front)
{
    const uint64_t *q = front->request.field;
    stream_reset(&front->stdout_stream, q[Q_STDOUT_KEEP], q[Q_STDOUT_KILL]);
    stream_reset(&front->stderr_stream, q[Q_STDERR_KEEP], q[Q_STDERR_KILL]);
    atomic_store(&front->options->page->stdin_starved_ns, 0);
    front->feed.starving = 0;
    front->feed.checked_ns = now_ns();
}

/* What does not fit into the kept prefix is counted and hashed. The hash starts with the prefix, and only then: of a
 * stream that is kept whole the client makes the digest itself. */
static void beyond_kept(struct stream *stream, const uint8_t *data, size_t size)
{
    if (!stream->hashing) {
        sha256_begin(&stream->hash);
        sha256_add(&stream->hash, stream->kept, (size_t)stream->kept_bytes);
        stream->hashing = 1;
    }
    sha256_add(&stream->hash, data, size);
}

/* Whether main is still on its way and not just ending, which closes its descriptors before anyone is told. */
static int main_goes_on(const struct front *front)
{
    char path[48], text[1024];
    uint64_t pid = atomic_load(&front->options->page->main_pid);
    if (pid == 0 || front->ended)
        return 0;
    snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0)
        return 0;
    text[got] = 0;
    const char *behind_name = strrchr(text, ')'); /* the name may hold anything */
    unsigned flags;
    if (behind_name == NULL || sscanf(behind_name, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
        return 0;
    return (flags & 0x4u /* PF_EXITING */) == 0;
}

/* Most streams end because main does, and then the core says so within a moment. Only if it does not is it asked for. */
void stream_watch(struct front *front, struct stream *stream)
{
    if (stream->ended_ns == 0 || now_ns() - stream->ended_ns < NS_PER_MS)
        return;
    stream->closed_early = main_goes_on(front);
    stream->ended_ns = 0;
}

void stream_drain(struct front *front, struct stream *stream, int index)
{
    struct front_page *page = front->options->page;
    for (int round = 0; round < ROUNDS && stream->fd >= 0; round++) {
        uint64_t room = stream->keep - stream->kept_bytes;
        uint8_t *to = room > 0 ? stream->kept + stream->kept_bytes : scratch;
        size_t most = room > 0 && room < READ_AT_ONCE ? (size_t)room : READ_AT_ONCE;
        atomic_fetch_add(&page->turn, 1);
        ssize_t got = read(stream->fd, to, most);
        int error = errno;
        if (got > 0) {
            stream->total += (uint64_t)got;
            atomic_store(stream->shared_total, stream->total);
        }
        atomic_fetch_add(&page->turn, 1);
        if (got < 0 && error == EINTR)
            continue;
        if (got < 0 && error == EAGAIN)
            return;
        if (got <= 0) { /* every copy of the writing end is closed */
            close(stream->fd);
            stream->fd = -1;
            stream->ended_ns = front->ended ? 0 : now_ns();
            return;
        }
        if (room > 0)
            stream->kept_bytes += (uint64_t)got;
        else
            beyond_kept(stream, scratch, (size_t)got);
        if (stream->total > stream->kill && !stream->told) {
            struct message message = {.kind = M_KILL, .number = index == 1 ? KILL_STDOUT : KILL_STDERR};
            front_ask(front, &message, NULL, 0);
            stream->told = 1;
        }
    }
}

static void send_kept(struct front *front, const struct stream *stream, uint8_t index)
{
    for (uint64_t at = 0; at < stream->kept_bytes;) {
        uint64_t left = stream->kept_bytes - at, part = left < PAYLOAD_MAX - 1 ? left : PAYLOAD_MAX - 1;
        front_frame(front, B_STREAM_DATA, front->run_id, &index, 1, stream->kept + at, (size_t)part);
        at += part;
    }
}

void streams_send(struct front *front)
{
    send_kept(front, &front->stdout_stream, 1);
    send_kept(front, &front->stderr_stream, 2);
}

/* ---- stdin ---- */

void feed_add(struct front *front, const uint8_t *data, size_t size)
{
    struct feed *feed = &front->feed;
    if (size > STDIN_BUFFER - (feed->received - feed->taken))
        front_fatal(front, FATAL_PROTOCOL, 0, "more stdin than there is room for");
    if (front->state == FRONT_RUNNING && feed->fd < 0) { /* the program has closed it: thrown away */
        feed->received += size;
        feed->taken = feed->received;
        feed_watch(front);
        return;
    }
    size_t at = (size_t)(feed->received % STDIN_BUFFER), first = STDIN_BUFFER - at < size ? STDIN_BUFFER - at : size;
    memcpy(feed->ring + at, data, first);
    memcpy(feed->ring, data + first, size - first);
    feed->received += size;
    if (front->state == FRONT_RUNNING)
        feed_write(front);
}

void feed_close(struct front *front)
{
    struct feed *feed = &front->feed;
    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
}

void feed_reset(struct front *front)
{
    struct feed *feed = &front->feed;
    feed_close(front);
    if (feed->received > GIVE_BACK)
        madvise(feed->ring, STDIN_BUFFER, MADV_DONTNEED);
    *feed = (struct feed){.fd = -1, .ring = feed->ring};
}

/* Nobody reads it any more, which is the program's right. What comes is taken and thrown away. */
void feed_abandon(struct front *front)
{
    feed_close(front);
    front->feed.taken = front->feed.received;
}

void feed_write(struct front *front)
{
    struct feed *feed = &front->feed;
    while (feed->fd >= 0 && feed->taken < feed->received) {
        size_t at = (size_t)(feed->taken % STDIN_BUFFER);
        uint64_t left = feed->received - feed->taken;
        size_t part = STDIN_BUFFER - at < left ? STDIN_BUFFER - at : (size_t)left;
        ssize_t written = write(feed->fd, feed->ring + at, part);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written < 0) {
            feed_abandon(front);
            return;
        }
        feed->taken += (uint64_t)written;
        feed->written += (uint64_t)written;
    }
    if (feed->fd >= 0 && feed->ended)
        feed_close(front);
}

/* Time in which the pipe was empty, we had nothing, and more was to come, is ours: it is not charged to the program. So is
 * time in which the client had not dealt with what the program sent to its port, which may be waiting for an answer. */
void feed_watch(struct front *front)
{
    struct feed *feed = &front->feed;
    if (front->state != FRONT_RUNNING || !(feed->streaming || front->ports.is_open))
        return;
    uint64_t now = now_ns();
    int waiting = 0;
    int starving = feed->streaming && feed->fd >= 0 && !feed->ended && feed->received == feed->taken && ioctl(feed->fd, FIONREAD, &waiting) == 0 && waiting == 0;
    starving |= front->ports.is_open && front->ports.seen < front->ports.bytes;
    if (starving && feed->starving)
        atomic_fetch_add(&front->options->page->stdin_starved_ns, now - feed->checked_ns);
    feed->starving = starving;
    feed->checked_ns = now;
    if (feed->streaming && !feed->ended && (feed->taken - feed->told >= TELL_ROOM || (feed->taken == feed->received && feed->told != feed->taken))) {
        uint8_t payload[8];
        put64(payload, feed->taken);
        feed->told = feed->taken;
        front_frame(front, B_STDIN_ROOM, front->run_id, payload, sizeof payload, NULL, 0);
    }
}
