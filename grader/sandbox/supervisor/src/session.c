/* What a frame of the client means, and when it may come. Anything out of order ends the box. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static _Noreturn void violation(struct front *front, const char *text) { front_fatal(front, FATAL_PROTOCOL, 0, text); }

static void hello(struct front *front, const struct frame *frame)
{
    if (front->state != FRONT_NEW || frame->length != 32 || frame->run_id != 0 || memcmp(frame->payload, PROTOCOL_MAGIC, 8) != 0 ||
        get32(frame->payload + 12) != 0)
        violation(front, "a hello that is none");
    uint16_t lowest = get16(frame->payload + 8), highest = get16(frame->payload + 10);
    int fits = lowest <= PROTOCOL_VERSION && highest >= PROTOCOL_VERSION;
    uint8_t answer[40];
    memset(answer, 0, sizeof answer);
    memcpy(answer, PROTOCOL_MAGIC, 8);
    put16(answer + 8, fits ? PROTOCOL_VERSION : 0);
    memcpy(answer + 16, frame->payload + 16, 16);
    put64(answer + 32, now_ns() - front->options->start_ns);
    front_frame(front, B_HELLO, 0, answer, sizeof answer, NULL, 0);
    if (!fits)
        front_fatal(front, FATAL_VERSION, 0, "no protocol version in common");
    facts_send(front);
    front_frame(front, B_HELLO_END, 0, NULL, 0, NULL, 0);
    front->state = FRONT_READY;
}

/* ---- files ---- */

static void put_begin(struct front *front, const struct frame *frame)
{
    if (front->state != FRONT_READY || front->put_open || frame->length < 5)
        violation(front, "a file at the wrong moment");
    uint8_t tree = frame->payload[0], executable = frame->payload[1];
    if (tree > 1 || executable > 1 || get16(frame->payload + 2) != 0 || (tree == 0) != (frame->run_id == 0))
        violation(front, "a file with fields that break the rules");
    if (tree == 1) {
        if (front->work_used && front->run_id != frame->run_id)
            violation(front, "files for two runs");
        front->work_used = 1;
        front->run_id = frame->run_id;
    }
    front->put_open = 1;
    front->put_run = frame->run_id;
    front->put_fd = front_open(front, tree, executable, frame->payload + 4, frame->length - 4, &front->put_step, &front->put_error);
}

static void put_close(struct front *front)
{
    if (front->put_fd >= 0)
        close(front->put_fd);
    front->put_fd = -1;
}

static void put_data(struct front *front, const struct frame *frame)
{
    if (!front->put_open || frame->run_id != front->put_run)
        violation(front, "file data without a file");
    for (uint32_t at = 0; front->put_fd >= 0 && at < frame->length;) {
        ssize_t written = write(front->put_fd, frame->payload + at, frame->length - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) { /* told at PUT_END; the rest of the data is passed over */
            front->put_step = PUT_WRITE;
            front->put_error = written < 0 ? (uint32_t)errno : ENOSPC;
            put_close(front);
        } else {
            at += (uint32_t)written;
        }
    }
}

static void put_end(struct front *front, const struct frame *frame)
{
    if (!front->put_open || frame->run_id != front->put_run || frame->length != 0)
        violation(front, "the end of a file that is not open");
    uint8_t done[8];
    put_close(front);
    front->put_open = 0;
    put32(done, front->put_step);
    put32(done + 4, front->put_error);
    front_frame(front, B_PUT_DONE, front->put_run, done, sizeof done, NULL, 0);
}

/* ---- runs ---- */

static void run_begin(struct front *front, const struct frame *frame)
{
    if (front->state != FRONT_READY || front->put_open || frame->run_id == 0 || (front->work_used && frame->run_id != front->run_id))
        violation(front, "a run at the wrong moment");
    if (decode_request(&front->request, frame->payload, frame->length) != 0)
        violation(front, "a run request that breaks the rules");
    front->run_id = frame->run_id;
    front->strings_have = 0;
    feed_reset(front);
    front->feed.streaming = (front->request.field[Q_OPTIONS] & OPTION_STREAM_STDIN) != 0;
    front->state = FRONT_PREPARING;
}

static void run_data(struct front *front, const struct frame *frame)
{
    if (frame->length > front->request.field[Q_STRINGS] - front->strings_have)
        violation(front, "more strings than announced");
    memcpy(front->strings + front->strings_have, frame->payload, frame->length);
    front->strings_have += frame->length;
}

static int strings_as_file(struct front *front)
{
    int fd = memfd_create("strings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    for (uint64_t at = 0; fd >= 0 && at < front->strings_have;) {
        ssize_t written = write(fd, front->strings + at, (size_t)(front->strings_have - at));
        if (written <= 0)
            return -1;
        at += (uint64_t)written;
    }
    return fcntl(fd, F_ADD_SEALS, STRINGS_SEALS) == 0 ? fd : -1;
}

/* A pipe of which our end does not block and the program's does. */
static int make_pipe(int ends[2], int ours)
{
    return pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[ours], F_SETFL, O_NONBLOCK) == 0 ? 0 : -1;
}

/* What the next run needs whatever it is, so that it need not wait for it. */
void session_prepare(struct front *front)
{
    if (front->pipes_are_made)
        return;
    if (make_pipe(front->pipes[PIPE_IN], 1) != 0 || make_pipe(front->pipes[PIPE_OUT], 0) != 0 || make_pipe(front->pipes[PIPE_ERR], 0) != 0)
        front_fatal(front, FATAL_SYSTEM, errno, "pipes for a run");
    front->pipes_are_made = 1;
}

static void run_start(struct front *front, const struct frame *frame)
{
    const uint64_t *q = front->request.field;
    if (frame->length != 0 || !check_strings(&front->request, front->strings, (size_t)front->strings_have))
        violation(front, "strings that are not what was announced");
    if (!front->feed.ended && !front->feed.streaming)
        violation(front, "the start of a run whose stdin is not there");
    session_prepare(front);
    front->pipes_are_made = 0; /* they are this run's now */
    const int *in = front->pipes[PIPE_IN], *out = front->pipes[PIPE_OUT], *err = front->pipes[PIPE_ERR];
    int hand[2] = {-1, -1}, strings = -1, count = FD_EXTRA;
    struct message message = {.kind = M_START};
    memcpy(message.field, q, sizeof front->request.field);
    int fds[START_FDS_COUNT] = {[FD_STDIN] = in[0], [FD_STDOUT] = out[1], [FD_STDERR] = err[1], [FD_STDOUT_READ] = out[0], [FD_STDERR_READ] = err[0]};
    if (front->strings_have <= sizeof message.text) {
        memcpy(message.text, front->strings, (size_t)front->strings_have);
        message.text_bytes = (uint32_t)front->strings_have;
    } else if ((strings = fds[count++] = strings_as_file(front)) >= 0) {
        message.number |= START_STRINGS_FD;
    } else {
        front_fatal(front, FATAL_SYSTEM, errno, "the strings of a run");
    }
    if (q[Q_FILEC] > 0 || q[Q_KEEP_FILES] > 0) {
        if (pipe2(hand, O_CLOEXEC) != 0)
            front_fatal(front, FATAL_SYSTEM, errno, "pipes for a run");
        fds[count++] = hand[1];
        message.number |= START_HAND_FD;
    }
    streams_open(front);
    front->stdout_stream.fd = out[0];
    front->stderr_stream.fd = err[0];
    front->feed.fd = in[1];
    front->hand_fd = hand[0];
    front->ended = 0;
    front->state = FRONT_RUNNING;
    feed_write(front); /* the pipe is full before the clock starts */
    front_ask(front, &message, fds, (size_t)count);
    const int not_ours[] = {strings, in[0], out[1], err[1], hand[1]};
    for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
        if (not_ours[i] >= 0)
            close(not_ours[i]);
}

static void end_stream(struct front *front, struct stream *stream, int index, enum result_field first, uint64_t *result, uint8_t digest[32])
{
    uint64_t at_end = result[first + 3];
    for (int i = 0; i < 64 && stream->fd >= 0; i++) /* nothing can write any more: at most what one pipe holds */
        stream_drain(front, stream, index);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
    stream->ended_ns = 0; /* whether main went on after that is answered */
    result[first] = stream->total;
    result[first + 1] = stream->kept_bytes;
    result[first + 2] = (uint64_t)stream->closed_early;
    result[first + 3] = difference(stream->total, at_end);
    memset(digest, 0, 32);
    if (stream->hashing)
        sha256_end(&stream->hash, digest);
}

/* The core has said its last word and the hand is done: everything goes out, RESULT last. */
void session_end(struct front *front)
{
    uint8_t payload[R_FIELDS * 8 + 64];
    uint64_t *result = front->end.field;
    if (front->state != FRONT_RUNNING)
        front_fatal(front, FATAL_SYSTEM, 0, "an end without a run");
    end_stream(front, &front->stdout_stream, 1, R_OUT_TOTAL, result, payload + R_FIELDS * 8);
    end_stream(front, &front->stderr_stream, 2, R_ERR_TOTAL, result, payload + R_FIELDS * 8 + 32);
    result[R_STDIN_STARVED] = atomic_load(&front->options->page->stdin_starved_ns);
    result[R_STDIN_TAKEN] = front->feed.written;
    ports_end(front, result);
    for (size_t i = 0; i < R_FIELDS; i++)
        put64(payload + 8 * i, result[i]);
    streams_send(front);
    front_frame(front, B_RESULT, front->run_id, payload, sizeof payload, front->end.text, front->end.text_bytes);
    feed_reset(front);
    front->ended = 0;
    front->state = FRONT_READY;
    front->last_run_id = front->run_id;
    front->run_id = 0;
    front->work_used = 0;
    front->last_frame_ns = now_ns(); /* idle time starts when the box is free, not when the run was asked for */
}

/* Frames that belong to a run being prepared or running. Those of the run that has just ended crossed its result. */
static void run_frame(struct front *front, const struct frame *frame)
{
    if (frame->run_id != 0 && frame->run_id == front->last_run_id && (frame->type == F_STDIN || frame->type == F_STDIN_END || frame->type == F_CANCEL ||
                                                                        frame->type == F_PORT_DATA || frame->type == F_PORT_CLOSE || frame->type == F_PORT_SEEN))
        return;
    int preparing = front->state == FRONT_PREPARING, running = front->state == FRONT_RUNNING;
    if (frame->run_id != front->run_id || !(preparing || running))
        violation(front, "a frame for a run that is not there");
    if (frame->type == F_RUN_DATA && preparing) {
        run_data(front, frame);
    } else if (frame->type == F_RUN_START && preparing) {
        run_start(front, frame);
    } else if (frame->type == F_STDIN && !front->feed.ended) {
        feed_add(front, frame->payload, frame->length);
    } else if (frame->type == F_STDIN_END && !front->feed.ended && frame->length == 0) {
        front->feed.ended = 1;
        if (running)
            feed_write(front);
    } else if (frame->type == F_PORT_OPEN && preparing) {
        ports_open(front, frame->payload, frame->length);
    } else if (frame->type == F_PORT_DATA && running) {
        ports_send(front, frame);
    } else if (frame->type == F_PORT_CLOSE && running) {
        ports_close(front, frame);
    } else if (frame->type == F_PORT_SEEN && running) {
        ports_seen(front, frame);
    } else if (frame->type == F_CANCEL && running && frame->length == 0) {
        struct message message = {.kind = M_KILL, .number = KILL_CANCELLED};
        front_ask(front, &message, NULL, 0);
    } else {
        violation(front, "a frame at the wrong moment of a run");
    }
}

static void ping(struct front *front, const struct frame *frame)
{
    uint8_t answer[16];
    if (frame->length != 8 || frame->run_id != 0)
        violation(front, "a ping that is none");
    memcpy(answer, frame->payload, 8);
    put64(answer + 8, now_ns() - front->options->start_ns);
    front_frame(front, B_PONG, 0, answer, sizeof answer, NULL, 0);
}

static void clear(struct front *front, const struct frame *frame)
{
    if (front->state != FRONT_READY || front->put_open || frame->length != 0 || frame->run_id != 0)
        violation(front, "clearing at the wrong moment");
    struct message message = {.kind = M_CLEAR};
    uint8_t answer[8];
    front_ask(front, &message, NULL, 0);
    front_await(front, &message, M_CLEARED); /* what the client has already sent after it comes after it */
    put32(answer, (uint32_t)message.error);
    put32(answer + 4, 0);
    front_frame(front, B_CLEARED, 0, answer, sizeof answer, NULL, 0);
}

void session_frame(struct front *front, const struct frame *frame)
{
    if (front->state == FRONT_NEW && frame->type != F_HELLO)
        violation(front, "a frame before the hello");
    switch (frame->type) {
    case F_HELLO: hello(front, frame); break;
    case F_PUT_OPEN: put_begin(front, frame); break;
    case F_PUT_DATA: put_data(front, frame); break;
    case F_PUT_END: put_end(front, frame); break;
    case F_RUN_BEGIN: run_begin(front, frame); break;
    case F_RUN_DATA:
    case F_STDIN:
    case F_STDIN_END:
    case F_RUN_START:
    case F_CANCEL:
    case F_PORT_OPEN:
    case F_PORT_DATA:
    case F_PORT_CLOSE:
    case F_PORT_SEEN: run_frame(front, frame); break;
    case F_PING: ping(front, frame); break;
    case F_CLEAR: clear(front, frame); break;
    default: violation(front, "a frame of a type that version 2 does not have");
    }
}
