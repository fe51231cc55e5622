/* Connections of the program to the port that the client asked for: streams of bytes in both directions. Nothing in them is looked
 * at here, that is the client's. Everything is bounded: connections at once and in all, bytes in all, bytes waiting to go back. */
#define _GNU_SOURCE
#include "front.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_PART (PAYLOAD_MAX - 4u)     /* of one frame */
#define SOCKET_BUFFER (64 << 10)         /* the kernel takes twice that; it counts as the box's memory */
#define BACKLOG 64
#define ROUNDS 4                         /* reads of one connection before the others have their turn */
#define LINGER_BYTES (1u << 20)          /* read and thrown away of a connection that is closed, so that its last answer arrives */

enum closed { CLOSED_BY_PROGRAM = 1, CLOSED_BROKEN, CLOSED_FULL };

static uint8_t queues[PORT_CONNECTIONS_MAX][PORT_QUEUE];
static uint8_t part[PORT_PART];

void ports_open(struct front *front, const uint8_t *payload, size_t length)
{
    struct ports *ports = &front->ports;
    if (length != 24 || ports->is_open || get16(payload) != PORT_LISTEN || get16(payload + 6) != 0 || get32(payload + 12) != 0)
        front_fatal(front, FATAL_PROTOCOL, 0, "a port that breaks the rules");
    uint16_t number = get16(payload + 2), at_once = get16(payload + 4);
    if (number < 1024 || at_once < 1 || at_once > PORT_CONNECTIONS_MAX)
        front_fatal(front, FATAL_PROTOCOL, 0, "a port that breaks the rules");
    memset(ports, 0, sizeof *ports);
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++)
        ports->connection[i].fd = -1;
    ports->is_open = 1;
    ports->at_once = at_once;
    ports->in_all = get32(payload + 8);
    ports->most_bytes = get64(payload + 16);
    int one = 1, size = SOCKET_BUFFER;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number), .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size) != 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0)
        front_fatal(front, FATAL_SYSTEM, errno, "the port cannot be listened on");
    ports->listen_fd = fd;
}

static void tell_closed(struct front *front, const struct port_connection *connection, enum closed how)
{
    uint8_t payload[8];
    put32(payload, connection->number);
    put32(payload + 4, how);
    front_frame(front, B_PORT_CLOSED, front->run_id, payload, sizeof payload, NULL, 0);
}

static void drop(struct front *front, struct port_connection *connection)
{
    close(connection->fd);
    connection->fd = -1;
    front->ports.connections--;
}

/* It broke, or was stopped: nothing more of it goes in either direction. */
static void lose(struct front *front, struct port_connection *connection, enum closed how)
{
    if (!connection->ended && !connection->closing)
        tell_closed(front, connection, how);
    drop(front, connection);
}

static void stop_listening(struct front *front)
{
    if (front->ports.listen_fd >= 0)
        close(front->ports.listen_fd);
    front->ports.listen_fd = -1;
}

/* Nothing more is taken from anybody. */
static void end_port(struct front *front, enum closed how)
{
    stop_listening(front);
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++)
        if (front->ports.connection[i].fd >= 0)
            lose(front, &front->ports.connection[i], how);
}

/* 1: something was accepted. */
static int take_one(struct front *front)
{
    struct ports *ports = &front->ports;
    size_t slot = 0;
    int fd = accept4(ports->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return 0;
    while (slot < PORT_CONNECTIONS_MAX && ports->connection[slot].fd >= 0)
        slot++;
    if (ports->accepted >= ports->in_all || slot == PORT_CONNECTIONS_MAX) {
        ports->refused++;
        close(fd);
        stop_listening(front); /* from here on the kernel refuses them, which costs nothing */
        return 0;
    }
    struct port_connection *connection = &ports->connection[slot];
    memset(connection, 0, sizeof *connection);
    connection->fd = fd;
    connection->number = (uint32_t)++ports->accepted;
    connection->queue = queues[slot];
    ports->connections++;
    uint8_t payload[8];
    put32(payload, connection->number);
    put32(payload + 4, 0);
    front_frame(front, B_PORT_OPENED, front->run_id, payload, sizeof payload, NULL, 0);
    return 1;
}

/* What a closed connection still sends is thrown away, up to a bound. */
static void linger(struct front *front, struct port_connection *connection)
{
    ssize_t got = read(connection->fd, part, sizeof part);
    if (got > 0)
        connection->thrown_away += (uint64_t)got;
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) || connection->thrown_away > LINGER_BYTES)
        drop(front, connection);
}

/* 1: there may be more at once. */
static int read_one(struct front *front, struct port_connection *connection)
{
    struct ports *ports = &front->ports;
    ssize_t got = read(connection->fd, part, sizeof part);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (got < 0) {
        lose(front, connection, CLOSED_BROKEN);
        return 0;
    }
    if (got == 0) { /* it may still wait for an answer */
        connection->ended = 1;
        tell_closed(front, connection, CLOSED_BY_PROGRAM);
        return 0;
    }
    if ((uint64_t)got > ports->most_bytes - ports->bytes) {
        ports->full = 1;
        end_port(front, CLOSED_FULL);
        return 0;
    }
    ports->bytes += (uint64_t)got;
    uint8_t head[4];
    put32(head, connection->number);
    front_frame(front, B_PORT_DATA, front->run_id, head, sizeof head, part, (size_t)got);
    return 1;
}

static void write_queued(struct front *front, struct port_connection *connection)
{
    while (connection->sent < connection->have) {
        ssize_t written = send(connection->fd, connection->queue + connection->sent, connection->have - connection->sent, MSG_NOSIGNAL);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            return;
        if (written <= 0) {
            lose(front, connection, CLOSED_BROKEN);
            return;
        }
        connection->sent += (size_t)written;
    }
    connection->have = connection->sent = 0;
    if (connection->closing && connection->ended)
        drop(front, connection);
    else if (connection->closing && shutdown(connection->fd, SHUT_WR) != 0)
        drop(front, connection);
}

static struct port_connection *find(struct front *front, uint32_t number)
{
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++)
        if (front->ports.connection[i].fd >= 0 && front->ports.connection[i].number == number)
            return &front->ports.connection[i];
    return NULL;
}

/* Frames for a connection that is gone crossed its end on the way. */
void ports_send(struct front *front, const struct frame *frame)
{
    if (!front->ports.is_open || frame->length < 5)
        front_fatal(front, FATAL_PROTOCOL, 0, "port data without a port");
    struct port_connection *connection = find(front, get32(frame->payload));
    size_t size = frame->length - 4;
    if (connection == NULL || connection->closing)
        return;
    if (connection->sent > 0) {
        memmove(connection->queue, connection->queue + connection->sent, connection->have - connection->sent);
        connection->have -= connection->sent;
        connection->sent = 0;
    }
    if (size > PORT_QUEUE - connection->have) { /* the program does not read its answers */
        lose(front, connection, CLOSED_BROKEN);
        return;
    }
    memcpy(connection->queue + connection->have, frame->payload + 4, size);
    connection->have += size;
    write_queued(front, connection);
}

void ports_close(struct front *front, const struct frame *frame)
{
    if (!front->ports.is_open || frame->length != 8 || get32(frame->payload + 4) != 0)
        front_fatal(front, FATAL_PROTOCOL, 0, "a port is closed that is none");
    uint32_t number = get32(frame->payload);
    struct port_connection *connection = find(front, number);
    if (number == 0) /* no connection has it: the port itself */
        end_port(front, CLOSED_BROKEN);
    if (connection == NULL || connection->closing)
        return;
    connection->closing = 1;
    write_queued(front, connection);
}

/* Until the client has dealt with what was sent, the program may be waiting for it: see feed_watch. */
void ports_seen(struct front *front, const struct frame *frame)
{
    struct ports *ports = &front->ports;
    uint64_t seen = frame->length == 8 ? get64(frame->payload) : UINT64_MAX;
    if (!ports->is_open || seen < ports->seen || seen > ports->bytes)
        front_fatal(front, FATAL_PROTOCOL, 0, "more of a port was seen than was sent");
    ports->seen = seen;
}

/* Room for whatever one connection may say in one turn, so that nothing waits for the client while a run is on. */
static int has_room(const struct front *front) { return sizeof front->out - front->out_have >= 2u * (HEADER_BYTES + PAYLOAD_MAX); }

size_t ports_watch(const struct front *front, struct pollfd *watched)
{
    const struct ports *ports = &front->ports;
    int reads = has_room(front);
    if (!ports->is_open)
        return 0;
    watched[0] = (struct pollfd){.fd = reads && ports->connections < ports->at_once ? ports->listen_fd : -1, .events = POLLIN};
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++) {
        const struct port_connection *connection = &ports->connection[i];
        int events = (connection->have > connection->sent ? POLLOUT : 0) | (reads && !connection->ended ? POLLIN : 0);
        watched[1 + i] = (struct pollfd){.fd = events != 0 ? connection->fd : -1, .events = (short)events};
    }
    return 1 + PORT_CONNECTIONS_MAX;
}

void ports_serve(struct front *front, const struct pollfd *watched)
{
    struct ports *ports = &front->ports;
    for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++) {
        struct port_connection *connection = &ports->connection[i];
        if (watched[1 + i].fd < 0 || watched[1 + i].revents == 0 || connection->fd != watched[1 + i].fd)
            continue;
        if (connection->have > connection->sent)
            write_queued(front, connection);
        for (int round = 0; round < ROUNDS && connection->fd >= 0 && !connection->ended && has_room(front); round++) {
            if (connection->closing) {
                linger(front, connection);
                break;
            }
            if (!read_one(front, connection))
                break;
        }
    }
    if (ports->is_open && ports->listen_fd >= 0 && watched[0].fd >= 0 && watched[0].revents != 0)
        for (uint32_t i = 0; i < BACKLOG && ports->listen_fd >= 0 && ports->connections < ports->at_once && has_room(front); i++)
            if (!take_one(front))
                break;
}

/* Every process of the run is dead. What was on its way is taken, also of connections that nobody had accepted yet: each holds no
 * more than its socket's buffer, and there are no more than the backlog has room for. */
void ports_end(struct front *front, uint64_t *result)
{
    struct ports *ports = &front->ports;
    if (!ports->is_open)
        return;
    for (uint32_t turn = 0; turn <= BACKLOG + PORT_CONNECTIONS_MAX; turn++) {
        for (size_t i = 0; i < PORT_CONNECTIONS_MAX; i++) {
            struct port_connection *connection = &ports->connection[i];
            for (uint32_t left = 1u << 10; left > 0 && connection->fd >= 0 && !connection->ended && !connection->closing; left--)
                if (!read_one(front, connection))
                    break;
            if (connection->fd >= 0)
                drop(front, connection);
        }
        if (ports->listen_fd < 0 || !take_one(front))
            break;
    }
    stop_listening(front);
    result[R_PORT_CONNECTIONS] = ports->accepted;
    result[R_PORT_REFUSED] = ports->refused;
    result[R_PORT_BYTES] = ports->bytes;
    result[R_PORT_FULL] = (uint64_t)ports->full;
    ports->is_open = 0;
}
