/* The front's loop, its output queue, and its side of the talk with the core. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define STALL_MS 60000
#define ANSWER_MS 120000 /* more than the core ever takes: emptying /submission is the longest */

static struct front the_front; /* large: not for the stack */

/* Write what is queued. `wait`: until it is all gone, else as far as it goes now. */
static int push(struct front *front, int wait)
{
    while (front->out_sent < front->out_have) {
        ssize_t written = write(1, front->out + front->out_sent, front->out_have - front->out_sent);
        if (written > 0) {
            front->out_sent += (size_t)written;
            continue;
        }
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = 1, .events = POLLOUT};
            if (!wait)
                return 0;
            if (poll(&ready, 1, STALL_MS) > 0)
                continue;
        }
        _exit(FATAL_STALLED); /* the client does not read or is gone; there is nobody to tell */
    }
    front->out_have = front->out_sent = 0;
    front->out_is_due = 0;
    return 1;
}

/* The answers to what came before a run are not worth a way to the client of their own: they go with what it says of itself. */
static int has_to_push(const struct front *front) { return front->out_have > 0 && (front->out_is_due || front->state != FRONT_RUNNING); }

void front_flush(struct front *front) { push(front, 1); }

void front_frame(struct front *front, uint16_t type, uint64_t run_id, const void *head, size_t head_bytes, const void *rest, size_t rest_bytes)
{
    size_t size = HEADER_BYTES + head_bytes + rest_bytes;
    if (head_bytes + rest_bytes > PAYLOAD_MAX)
        _exit(FATAL_SYSTEM); /* a bug of ours; never send what the client must refuse */
    if (sizeof front->out - front->out_have < size)
        push(front, 1);
    uint8_t *at = front->out + front->out_have;
    put_header(at, type, (uint32_t)(head_bytes + rest_bytes), run_id);
    if (head_bytes > 0)
        memcpy(at + HEADER_BYTES, head, head_bytes);
    if (rest_bytes > 0)
        memcpy(at + HEADER_BYTES + head_bytes, rest, rest_bytes);
    front->out_have += size;
    front->out_is_due |= type != B_PUT_DONE && type != B_CLEARED;
}

_Noreturn void front_fatal(struct front *front, uint32_t code, int error, const char *text)
{
    uint8_t head[8];
    size_t size = strnlen(text, 200);
    put32(head, code);
    put32(head + 4, (uint32_t)error);
    front_frame(front, B_FATAL, 0, head, sizeof head, text, size);
    push(front, 1);
    _exit((int)code);
}

void front_ask(struct front *front, const struct message *message, const int *fds, size_t count)
{
    if (message_send(front->options->core_fd, message, fds, count) != 0)
        front_fatal(front, FATAL_SYSTEM, errno, "the core takes no message");
}

static void take_counters(struct front *front, const struct message *message)
{
    if (front->state != FRONT_RUNNING || front->out_is_due)
        return; /* the client is slow: it gets the next ones */
    uint8_t payload[C_FIELDS * 8];
    for (size_t i = 0; i < C_FIELDS; i++)
        put64(payload + 8 * i, message->field[i]);
    put64(payload + 8 * C_STDIN_STARVED, atomic_load(&front->options->page->stdin_starved_ns));
    put64(payload + 8 * C_OUT, front->stdout_stream.total);
    put64(payload + 8 * C_ERR, front->stderr_stream.total);
    put64(payload + 8 * C_ZERO, 0);
    front_frame(front, B_COUNTERS, front->run_id, payload, sizeof payload, NULL, 0);
}

/* 1: one was taken. What is an answer to a question is left to the one who asked. */
static int take_message(struct front *front, struct message *message, int *fd)
{
    int got = message_receive(front->options->core_fd, message, fd, 1);
    if (got < 0)
        _exit(FATAL_SYSTEM); /* the core is gone, and with it the box */
    if (got == 0)
        return 0;
    switch (message->kind) {
    case M_COUNTERS:
        take_counters(front, message);
        break;
    case M_END:
        front->end = *message;
        front->ended = 1;
        break;
    case M_FATAL:
        front_fatal(front, message->number, message->error, (const char *)message->text);
    default:
        break;
    }
    return 1;
}

int front_await(struct front *front, struct message *message, uint32_t kind)
{
    for (;;) {
        struct pollfd answer = {.fd = front->options->core_fd, .events = POLLIN};
        int fd = -1;
        if (poll(&answer, 1, ANSWER_MS) <= 0)
            front_fatal(front, FATAL_SYSTEM, errno, "the core does not answer");
        if (take_message(front, message, &fd) == 1 && message->kind == kind)
            return fd;
        if (fd >= 0)
            close(fd);
    }
}

int front_open(struct front *front, uint32_t tree, int executable, const uint8_t *path, size_t path_bytes, uint32_t *step, uint32_t *error)
{
    struct message message = {.kind = M_OPEN, .number = tree, .step = executable ? 1 : 0};
    if (!path_allowed(path, path_bytes)) {
        *step = PUT_PATH;
        *error = EINVAL;
        return -1;
    }
    memcpy(message.text, path, path_bytes);
    message.text_bytes = (uint32_t)path_bytes;
    front_ask(front, &message, NULL, 0);
    int fd = front_await(front, &message, M_OPENED);
    *step = message.step;
    *error = (uint32_t)message.error;
    return fd;
}

static void read_client(struct front *front)
{
    size_t room;
    uint8_t *at = parser_room(&front->parser, &room);
    ssize_t got = read(0, at, room);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got <= 0)
        _exit(0); /* the client is gone, or has closed the box: the core ends everything */
    parser_filled(&front->parser, (size_t)got);
    front->last_frame_ns = now_ns();
    struct frame frame;
    enum parsed parsed;
    while ((parsed = parser_next(&front->parser, &frame)) == PARSED_FRAME)
        session_frame(front, &frame);
    if (parsed == PARSED_BAD)
        front_fatal(front, FATAL_PROTOCOL, 0, "a frame header that breaks the rules");
}

enum { W_CLIENT, W_CORE, W_OUT, W_STDOUT, W_STDERR, W_FEED, W_HAND, W_COUNT, W_MOST = W_COUNT + 1 + PORT_CONNECTIONS_MAX };

/* Just now, so that it is not yet known whether main has closed it or is ending itself. */
static int a_stream_ended(const struct front *front)
{
    return front->state == FRONT_RUNNING && (front->stdout_stream.ended_ns != 0 || front->stderr_stream.ended_ns != 0);
}

static int timeout_ms(const struct front *front)
{
    const struct feed *feed = &front->feed;
    if (front->state == FRONT_RUNNING && feed->fd >= 0 && !feed->ended && feed->received == feed->taken)
        return 2; /* the program may be waiting for us: see feed_watch */
    if (a_stream_ended(front))
        return 2; /* see stream_watch */
    if (front->state == FRONT_RUNNING && front->ports.is_open && front->ports.seen < front->ports.bytes)
        return 10; /* the core reads how long that takes */
    return 1000;
}

static void loop_once(struct front *front)
{
    /* Mostly it ended because main is ending, and so will the other within microseconds: to look at that one at once would only
     * hold main up. */
    int one_ended = a_stream_ended(front);
    struct pollfd watched[W_MOST] = {
        [W_CLIENT] = {.fd = 0, .events = POLLIN},
        [W_CORE] = {.fd = front->options->core_fd, .events = POLLIN},
        [W_OUT] = {.fd = has_to_push(front) ? 1 : -1, .events = POLLOUT},
        [W_STDOUT] = {.fd = one_ended ? -1 : front->stdout_stream.fd, .events = POLLIN},
        [W_STDERR] = {.fd = one_ended ? -1 : front->stderr_stream.fd, .events = POLLIN},
        [W_FEED] = {.fd = front->feed.fd, .events = front->feed.received > front->feed.taken ? POLLOUT : 0},
        [W_HAND] = {.fd = front->hand_fd, .events = POLLIN},
    };
    size_t ports = front->state == FRONT_RUNNING ? ports_watch(front, watched + W_COUNT) : 0;
    if (poll(watched, W_COUNT + ports, timeout_ms(front)) < 0 && errno != EINTR)
        front_fatal(front, FATAL_SYSTEM, errno, "poll");
    if (watched[W_STDOUT].revents != 0)
        stream_drain(front, &front->stdout_stream, 1);
    if (watched[W_STDERR].revents != 0)
        stream_drain(front, &front->stderr_stream, 2);
    if (watched[W_FEED].revents & POLLERR) /* no reader is left; poll would say so for ever */
        feed_abandon(front);
    else if (watched[W_FEED].revents != 0)
        feed_write(front);
    if (ports > 0)
        ports_serve(front, watched + W_COUNT);
    feed_watch(front);
    if (!front->ended) {
        stream_watch(front, &front->stdout_stream);
        stream_watch(front, &front->stderr_stream);
    }
    if (watched[W_HAND].revents != 0)
        relay_hand(front);
    if (watched[W_CORE].revents != 0) {
        struct message message;
        int fd = -1;
        while (take_message(front, &message, &fd) == 1)
            if (fd >= 0)
                close(fd);
    }
    if (front->ended && front->hand_fd < 0)
        session_end(front);
    if (watched[W_CLIENT].revents != 0)
        read_client(front);
    if (has_to_push(front))
        push(front, front->state != FRONT_RUNNING);
    if (front->state == FRONT_READY)
        session_prepare(front);
    if (front->state == FRONT_READY && front->options->idle_ns != 0 && now_ns() - front->last_frame_ns > front->options->idle_ns)
        front_fatal(front, FATAL_IDLE, 0, "no frame for longer than the idle limit");
}

static uint8_t *reserve(size_t size)
{
    void *area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        _exit(FATAL_SYSTEM);
    return area;
}

/* The front is taken for lost from the start: it may not fork, may not see much, and cannot be traced. */
static void confine(void)
{
    struct rlimit none = {0, 0}, few = {64, 64};
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_NPROC, &none) != 0 || setrlimit(RLIMIT_CORE, &none) != 0 ||
        setrlimit(RLIMIT_NOFILE, &few) != 0)
        _exit(FATAL_SYSTEM);
}

_Noreturn void front_main(const struct front_options *options)
{
    struct front *front = &the_front;
    confine();
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || fcntl(0, F_SETFL, O_NONBLOCK) != 0)
        _exit(FATAL_SYSTEM);
    int flags = fcntl(1, F_GETFL);
    if (flags < 0 || fcntl(1, F_SETFL, flags | O_NONBLOCK) != 0)
        _exit(FATAL_SYSTEM);
    front->options = options;
    front->stdout_stream.kept = reserve(KEEP_STREAM_MAX);
    front->stderr_stream.kept = reserve(KEEP_STREAM_MAX);
    front->feed.ring = reserve(STDIN_BUFFER);
    front->strings = reserve(STRINGS_MAX);
    front->stdout_stream.fd = front->stderr_stream.fd = front->feed.fd = front->hand_fd = front->put_fd = -1;
    front->stdout_stream.shared_total = &options->page->out_total;
    front->stderr_stream.shared_total = &options->page->err_total;
    front->last_frame_ns = now_ns();
    for (;;)
        loop_once(front);
}
