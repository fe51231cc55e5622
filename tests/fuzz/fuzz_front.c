/* The front of the supervisor under hostile input from every side: the client's bytes, the program's output, the core's
 * connections to its port, the core's messages, and the hand's items. One input is a list of such acts; the front must end or go on, but never break memory,
 * run into undefined behaviour, hang, or send the client a frame that breaks PROTOCOL.md.
 *
 * front.c is included, so that its own end is caught, its output is checked, and its waits do not wait; ports.c, so that
 * it listens on nothing. The core is played here: the two functions of messages.c answer from the input. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static jmp_buf ended;

_Noreturn static void caught_exit(int code) { longjmp(ended, code + 1); }

static int poll_now(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)timeout_ms;
    return poll(fds, count, 0);
}

static ssize_t checked_write(int fd, const void *data, size_t size);

#define _exit caught_exit
#define poll poll_now
#define write checked_write
#include "front.c"
#undef write
#undef poll
#undef _exit

static int accept_pending(void);

#define socket(family, type, protocol) open("/dev/null", O_RDONLY | O_CLOEXEC)
#define setsockopt(...) 0
#define bind(...) 0
#define listen(...) 0
#define accept4(...) accept_pending()
#include "ports.c"
#undef accept4
#undef listen
#undef bind
#undef setsockopt
#undef socket

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "broken: %s (line %d)\n", #condition, __LINE__); \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the input ---- */
static const uint8_t *input;
static size_t left;

static uint8_t byte(void) { return left > 0 ? (left--, *input++) : 0; }

static uint64_t number(void) /* of any size, and often near an edge */
{
    static const uint64_t edges[] = {0, 1, 2, 255, 256, 65535, 65536, 65537, 1u << 20, STDIN_BUFFER, KEEP_STREAM_MAX, CONTENT_TOTAL_MAX, UINT32_MAX, UINT64_MAX / 4, UINT64_MAX};
    uint8_t how = byte();
    if (how < 128)
        return how % 16;
    if (how < 192)
        return edges[how % (sizeof edges / sizeof *edges)] + (uint64_t)(int8_t)(byte() % 3) - 1;
    uint64_t value = 0;
    for (int i = 0; i < 1 + how % 8; i++)
        value = value << 8 | byte();
    return value;
}

static size_t piece(uint8_t *to, size_t most)
{
    size_t size = (size_t)(number() % (most + 1));
    for (size_t i = 0; i < size; i++)
        to[i] = i < 64 ? byte() : (uint8_t)i;
    return size;
}

/* ---- what the client gets ---- */
static uint8_t seen[HEADER_BYTES];
static size_t seen_have;
static uint32_t seen_left;

static ssize_t checked_write(int fd, const void *data, size_t size)
{
    if (fd != 1)
        return write(fd, data, size);
    const uint8_t *at = data;
    for (size_t i = 0; i < size; i++) {
        if (seen_left > 0) {
            seen_left--;
            continue;
        }
        seen[seen_have++] = at[i];
        if (seen_have < HEADER_BYTES)
            continue;
        seen_have = 0;
        seen_left = get32(seen + 4);
        MUST(((get16(seen) >= B_HELLO && get16(seen) <= B_FATAL) || (get16(seen) >= B_PORT_OPENED && get16(seen) <= B_PORT_CLOSED)) && get16(seen + 2) == 0 && seen_left <= PAYLOAD_MAX);
    }
    return (ssize_t)size;
}

/* ---- the program's connections ---- */
#define CALLS 40
static int calls[CALLS], pending[CALLS], pending_count; /* the program's ends; ours that nobody has accepted yet */

static int accept_pending(void) { return pending_count > 0 ? pending[--pending_count] : -1; }

/* ---- the core ---- */
static int program_in = -1, program_out = -1, program_err = -1, hand = -1;
static struct message next_message;
static int has_message, awaited;

static void shut(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int keep(int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    MUST(copy >= 0 && fcntl(copy, F_SETFL, O_NONBLOCK) == 0);
    return copy;
}

int message_send(int fd, const struct message *message, const int *fds, size_t count)
{
    (void)fd;
    MUST(message->text_bytes <= sizeof message->text);
    if (message->kind == M_OPEN || message->kind == M_CLEAR)
        awaited = message->kind == M_OPEN ? M_OPENED : M_CLEARED;
    if (message->kind == M_START) {
        MUST(count >= FD_EXTRA && count <= START_FDS_COUNT);
        program_in = keep(fds[FD_STDIN]);
        program_out = keep(fds[FD_STDOUT]);
        program_err = keep(fds[FD_STDERR]);
        if (message->number & START_HAND_FD)
            MUST((hand = keep(fds[count - 1])) >= 0 && fcntl(hand, F_SETPIPE_SZ, 1 << 19) > 0);
    }
    return 0;
}

int message_receive(int fd, struct message *message, int *fds, size_t most)
{
    (void)fd;
    for (size_t i = 0; i < most; i++)
        fds[i] = -1;
    if (has_message) {
        *message = next_message;
        has_message = 0;
        return 1;
    }
    if (awaited == 0)
        return 0;
    *message = (struct message){.kind = (uint32_t)awaited, .step = byte() % 4 == 0 ? PUT_OPEN : PUT_OK};
    message->error = message->step != PUT_OK ? ENOSPC : 0;
    if (awaited == M_OPENED && message->step == PUT_OK && most > 0)
        fds[0] = open("/dev/null", O_WRONLY | O_CLOEXEC);
    awaited = 0;
    return 1;
}

void facts_send(struct front *front) { front_frame(front, B_FACT, 0, "\0\0\0\0\1\0\0\0x", 9, NULL, 0); }

uint64_t now_ns(void)
{
    static uint64_t now = 1;
    return now += 400 * NS_PER_MS / 1000;
}

uint64_t difference(uint64_t now, uint64_t before) { return now == UNKNOWN || before == UNKNOWN ? UNKNOWN : now > before ? now - before : 0; }

/* ---- acts ---- */
static void check_state(void)
{
    const struct front *front = &the_front;
    const uint64_t *q = front->request.field;
    MUST(front->stdout_stream.kept_bytes <= front->stdout_stream.keep && front->stdout_stream.keep <= KEEP_STREAM_MAX);
    MUST(front->stderr_stream.kept_bytes <= front->stderr_stream.keep && front->stderr_stream.keep <= KEEP_STREAM_MAX);
    MUST(front->feed.taken <= front->feed.received && front->feed.received - front->feed.taken <= STDIN_BUFFER);
    MUST(front->state != FRONT_PREPARING || (front->strings_have <= q[Q_STRINGS] && q[Q_STRINGS] <= STRINGS_MAX));
    uint32_t connections = 0;
    for (size_t i = 0; front->ports.is_open && i < PORT_CONNECTIONS_MAX; i++) {
        const struct port_connection *connection = &front->ports.connection[i];
        connections += connection->fd >= 0;
        MUST(connection->fd < 0 || (connection->sent <= connection->have && connection->have <= PORT_QUEUE));
    }
    MUST(connections == (front->ports.is_open ? front->ports.connections : 0) && front->ports.bytes <= front->ports.most_bytes);
    MUST(front->out_sent <= front->out_have && front->out_have <= sizeof front->out);
}

static uint8_t payload[PAYLOAD_MAX];

static void to_front(const uint8_t *bytes, size_t size) /* as read_client does it */
{
    struct front *front = &the_front;
    while (size > 0) {
        size_t room, part;
        uint8_t *at = parser_room(&front->parser, &room);
        MUST(room > 0);
        part = size < room ? size : room;
        memcpy(at, bytes, part);
        parser_filled(&front->parser, part);
        bytes += part;
        size -= part;
        struct frame frame;
        enum parsed parsed;
        while ((parsed = parser_next(&front->parser, &frame)) == PARSED_FRAME) {
            MUST(front->parser.taken <= front->parser.have && front->parser.have <= sizeof front->parser.bytes);
            MUST(frame.payload >= front->parser.bytes && frame.payload + frame.length <= front->parser.bytes + front->parser.taken);
            session_frame(front, &frame);
        }
        if (parsed == PARSED_BAD)
            front_fatal(front, FATAL_PROTOCOL, 0, "a frame header that breaks the rules");
    }
}

static void send_frame(uint16_t type, uint64_t run_id, size_t size)
{
    uint8_t header[HEADER_BYTES];
    put_header(header, type, (uint32_t)size, run_id);
    to_front(header, sizeof header);
    to_front(payload, size);
    check_state();
}

static uint64_t some_run(void)
{
    uint8_t which = byte() % 8;
    return which == 0 ? 0 : which == 1 ? the_front.last_run_id : which == 2 ? number() : the_front.run_id != 0 ? the_front.run_id : 7;
}

static void hello_frame(void)
{
    memset(payload, 0, 32);
    memcpy(payload, PROTOCOL_MAGIC, 8);
    put16(payload + 8, 1);
    put16(payload + 10, byte() % 8 == 0 ? (uint16_t)number() : PROTOCOL_VERSION);
    send_frame(F_HELLO, 0, 32);
}

/* A request that is mostly well formed, its strings, its stdin and its start, with some of it left out or spoilt. */
static void port_frame(uint64_t run_id)
{
    memset(payload, 0, 24);
    put16(payload, byte() % 16 == 5 ? (uint16_t)number() : PORT_LISTEN);
    put16(payload + 2, byte() % 16 == 5 ? (uint16_t)number() : 4318);
    put16(payload + 4, byte() % 16 == 5 ? (uint16_t)number() : 1 + byte() % PORT_CONNECTIONS_MAX);
    put32(payload + 8, byte() % 2 ? (uint32_t)number() : 1000);
    put64(payload + 16, byte() % 2 ? number() : 1u << 20);
    send_frame(F_PORT_OPEN, run_id, 24);
}

static void whole_run(void)
{
    uint64_t run_id = some_run();
    uint8_t spoilt = byte(), files = byte() % 3, keeps = byte() % 3, streaming = byte() % 2;
    static const char strings[] = "/probe\0A=b\0out\0d/e\0";
    size_t strings_bytes = files == 0 ? 11 : files == 1 ? 15 : 19;
    uint64_t field[Q_FIELDS] = {
        [Q_CPU_NS] = 1 + number() / 8, [Q_WALL_NS] = 1 + number() / 8, [Q_STDOUT_KILL] = number(), [Q_STDOUT_KEEP] = number() % (1u << 20),
        [Q_STDERR_KILL] = number(), [Q_STDERR_KEEP] = number() % (1u << 16), [Q_NOFILE] = 3 + number() / 2, [Q_COLLECT_FILE] = byte() % 2 ? number() : CONTENT_TOTAL_MAX,
        [Q_COLLECT_TOTAL] = number() % CONTENT_TOTAL_MAX, [Q_ARGC] = 1, [Q_ENVC] = 1, [Q_FILEC] = files, [Q_STRINGS] = strings_bytes,
        [Q_KEEP_FILES] = keeps * 3u, [Q_KEEP_BYTES] = number() % CONTENT_TOTAL_MAX,
        [Q_OPTIONS] = (byte() % 2 ? OPTION_SEND_KEPT : 0) | (streaming ? OPTION_STREAM_STDIN : 0),
    };
    if (spoilt < 32)
        field[spoilt % Q_FIELDS] = number();
    for (size_t i = 0; i < Q_FIELDS; i++)
        put64(payload + 8 * i, field[i]);
    send_frame(F_RUN_BEGIN, run_id, Q_FIELDS * 8u);
    memcpy(payload, strings, strings_bytes);
    if (spoilt >= 32 && spoilt < 48)
        payload[spoilt % strings_bytes] = byte();
    send_frame(F_RUN_DATA, run_id, strings_bytes);
    if (byte() % 16 == 3)
        send_frame(F_RUN_DATA, run_id, piece(payload, PAYLOAD_MAX));
    if (byte() % 2)
        port_frame(run_id);
    if (byte() % 2)
        send_frame(F_STDIN, run_id, piece(payload, PAYLOAD_MAX));
    if (!streaming || byte() % 4 == 0)
        send_frame(F_STDIN_END, run_id, 0);
    send_frame(F_RUN_START, run_id, 0);
}

static void any_frame(void)
{
    uint16_t type = (uint16_t)(byte() % 16 == 0 ? number() : byte() % 2 ? F_PORT_OPEN + byte() % 4u : 1u + byte() % 14u);
    uint64_t run_id = type == F_PUT_OPEN && byte() % 2 ? 0 : type == F_PING || type == F_CLEAR ? 0 : some_run();
    size_t size = piece(payload, PAYLOAD_MAX);
    if (type == F_PUT_OPEN && size > 4) {
        payload[0] = run_id != 0;
        payload[1] &= 1;
        payload[2] = payload[3] = 0;
    }
    if ((type == F_PORT_DATA || type == F_PORT_CLOSE) && size >= 8) { /* mostly of a connection that is there */
        put32(payload, payload[0] % 8u);
        put32(payload + 4, type == F_PORT_CLOSE ? 0 : payload[4]);
        size = type == F_PORT_CLOSE ? 8 : size;
    }
    if ((type == F_RUN_START || type == F_CANCEL || type == F_CLEAR || type == F_PUT_END || type == F_STDIN_END) && byte() % 8)
        size = 0;
    send_frame(type, run_id, type == F_PING && byte() % 8 ? 8 : size);
}

static void close_calls(void)
{
    for (size_t i = 0; i < CALLS; i++)
        shut(&calls[i]);
}

/* More answers than a program that does not read them has room for. */
static void flood_port(void)
{
    if (the_front.state != FRONT_RUNNING || !the_front.ports.is_open)
        return;
    memset(payload, 0, sizeof payload);
    put32(payload, byte() % 8u);
    for (int i = 0; i < 12; i++)
        send_frame(F_PORT_DATA, the_front.run_id, 60000);
}

/* It connects, sends, reads, or goes. */
static void from_caller(void)
{
    static uint8_t read_back[4096];
    int *call = &calls[byte() % CALLS], ends[2];
    if (*call < 0) {
        if (pending_count == CALLS || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
            return;
        *call = ends[0];
        pending[pending_count++] = ends[1];
    }
    uint8_t what = byte() % 8;
    if (what < 5)
        (void)!send(*call, payload, piece(payload, sizeof payload), MSG_NOSIGNAL);
    else if (what == 5)
        (void)!read(*call, read_back, sizeof read_back);
    else if (what == 6)
        (void)!shutdown(*call, SHUT_WR);
    else
        shut(call);
}

static void from_core(void)
{
    static const uint32_t kinds[] = {M_COUNTERS, M_COUNTERS, M_END, M_END, M_FATAL, M_OPENED, M_CLEARED, 99};
    memset(&next_message, 0, sizeof next_message);
    next_message.kind = kinds[byte() % 8];
    next_message.number = (uint32_t)number();
    for (size_t i = 0; i < R_FIELDS; i++)
        next_message.field[i] = i % 8 == 0 ? number() : i;
    next_message.text_bytes = (uint32_t)piece(next_message.text, sizeof next_message.text - 1); /* M_FATAL's ends in NUL */
    has_message = 1;
    if (next_message.kind == M_END) { /* everything of the run is dead, and the hand has ended */
        shut(&program_in);
        shut(&program_out);
        shut(&program_err);
        shut(&hand);
        close_calls();
    }
}

static void from_program(int fd)
{
    if (fd >= 0)
        (void)!write(fd, payload, piece(payload, sizeof payload));
}

/* The hand has the run's id: what it says may be anything. */
static void from_hand(void)
{
    if (hand < 0)
        return;
    struct hand_item item;
    for (int i = byte() % 4; i >= 0; i--) {
        memset(&item, 0, sizeof item);
        item.kind = byte() % 8 == 0 ? byte() : 1 + byte() % 4;
        item.status = byte() % 6;
        item.file_kind = byte();
        item.executable = byte();
        item.index = byte() % 4 ? 0 : (uint32_t)number();
        item.mode = (uint32_t)number();
        item.error = (uint32_t)number();
        item.size = number();
        item.allocated = number();
        item.files = number();
        item.bytes = number();
        item.path_bytes = byte() % 8 == 0 ? (uint32_t)number() : (uint32_t)(byte() % 40);
        item.content_bytes = byte() % 4 == 0 ? number() : byte() % 8 == 0 ? 100000 : byte();
        (void)!write(hand, &item, sizeof item);
        (void)!write(hand, payload, piece(payload, 2000));
        size_t content = (item.content_bytes < 2 * sizeof payload ? (size_t)item.content_bytes : 2 * sizeof payload) + (item.path_bytes < 1000 ? item.path_bytes : 0);
        memset(payload, byte() % 3 ? 'a' : byte(), sizeof payload);
        for (size_t part; content > 0; content -= part) {
            part = content < sizeof payload ? content : sizeof payload;
            (void)!write(hand, payload, part);
        }
    }
    shut(&hand);
}

/* More than the ring holds goes through it, if the program reads. */
static void much_stdin(void)
{
    if (the_front.state != FRONT_RUNNING || the_front.feed.ended)
        return;
    memset(payload, 's', sizeof payload);
    for (int i = 0; i < 300 && program_in >= 0; i++) {
        send_frame(F_STDIN, the_front.run_id, 60000);
        while (read(program_in, payload, sizeof payload) > 0)
            feed_write(&the_front);
    }
}

static void act(void)
{
    static uint8_t raw[4096];
    switch (byte() % 14) {
    case 0: hello_frame(); break;
    case 1:
    case 2: whole_run(); break;
    case 3:
    case 4: any_frame(); break;
    case 5: to_front(raw, piece(raw, sizeof raw)); break;
    case 6: from_core(); break;
    case 7: from_program(program_out); break;
    case 8: from_program(program_err); break;
    case 9:
        if (program_in >= 0 && byte() % 4 == 0)
            shut(&program_in);
        else if (byte() % 8 == 5)
            much_stdin();
        else if (program_in >= 0)
            (void)!read(program_in, payload, sizeof payload);
        break;
    case 10:
    case 11: from_caller(); break;
    case 12: flood_port(); break;
    default: from_hand(); break;
    }
    if (hand < 0 || the_front.hand_fd < 0) /* a hand that has begun ends: the core sees to it */
        loop_once(&the_front);
    for (int i = byte() % 3; i > 0 && hand < 0; i--)
        loop_once(&the_front);
}

/* ---- one input ---- */
static struct front_page page;
static int first_free; /* descriptors from here on are of one input */
static struct front_options options = {.core_fd = -1, .start_ns = 1, .page = &page};

static uint8_t *area(size_t size) /* not mapped as front_main does it: past the end of this the sanitizer sees */
{
    uint8_t *made = malloc(size);
    MUST(made != NULL);
    return made;
}

static void prepare_once(void)
{
    int idle[2], always[2];
    MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
    MUST(pipe(idle) == 0 && dup2(idle[0], 0) == 0); /* the loop reads nothing of its own */
    MUST(pipe(always) == 0 && write(always[1], "x", 1) == 1);
    options.core_fd = always[0];
    first_free = dup(0);
    MUST(first_free > 0 && close(first_free) == 0);
    the_front.stdout_stream.kept = area(KEEP_STREAM_MAX);
    the_front.stderr_stream.kept = area(KEEP_STREAM_MAX);
    the_front.feed.ring = area(STDIN_BUFFER);
    the_front.strings = area(STRINGS_MAX);
}

static void reset(void)
{
    struct front *front = &the_front;
    uint8_t *out = front->stdout_stream.kept, *err = front->stderr_stream.kept, *ring = front->feed.ring, *strings = front->strings;
    memset(front, 0, sizeof *front);
    front->stdout_stream.kept = out;
    front->stderr_stream.kept = err;
    front->feed.ring = ring;
    front->strings = strings;
    front->options = &options;
    front->stdout_stream.fd = front->stderr_stream.fd = front->feed.fd = front->hand_fd = front->put_fd = -1;
    front->stdout_stream.shared_total = &page.out_total;
    front->stderr_stream.shared_total = &page.err_total;
    memset(&page, 0, sizeof page);
    seen_have = seen_left = 0;
    has_message = awaited = 0;
    pending_count = 0;
    for (size_t i = 0; i < CALLS; i++)
        calls[i] = -1;
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++)
        front->ports.connection[i].fd = -1;
    front->ports.listen_fd = -1;
}

/* What either side has open; the front may have ended in the middle of anything. */
static void close_all(void)
{
    MUST(close_range((unsigned)first_free, ~0u, 0) == 0);
    program_in = program_out = program_err = hand = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int prepared;
    if (!prepared)
        prepare_once();
    prepared = 1;
    reset();
    input = data;
    left = size;
    if (setjmp(ended) == 0) {
        if (byte() % 16)
            hello_frame();
        while (left > 0) {
            act();
            check_state();
        }
    }
    close_all();
    return 0;
}
