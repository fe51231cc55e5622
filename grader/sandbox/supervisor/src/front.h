/* The front: the unprivileged process that talks to the client. */
#ifndef GRADER_FRONT_H
#define GRADER_FRONT_H

#include "inside.h"
#include "sha256.h"

#include <poll.h>

#define OUT_QUEUE (256u << 10)

enum { PIPE_IN, PIPE_OUT, PIPE_ERR, PIPES };

enum front_state { FRONT_NEW, FRONT_READY, FRONT_PREPARING, FRONT_RUNNING };

struct stream { /* stdout or stderr of a run */
    int fd;
    uint8_t *kept; /* KEEP_STREAM_MAX of address space, touched as far as it is used */
    uint64_t keep, kill, kept_bytes, total;
    uint64_t ended_ns; /* it ended at that moment, and it is still open whether main had closed it or ended itself */
    int hashing, closed_early, told;
    struct sha256 hash;
    _Atomic uint64_t *shared_total;
};

struct feed { /* stdin of a run: a ring between the client's frames and the pipe */
    int fd;
    uint8_t *ring;
    uint64_t received, taken, told, written; /* counted from the start of the run; taken includes what was thrown away */
    int ended, streaming, starving;
    uint64_t checked_ns;
};

struct port_connection {
    int fd; /* -1: there is none */
    uint32_t number;
    int ended;   /* the program will send nothing more */
    int closing; /* the client will: what is queued goes, and then it is closed */
    uint8_t *queue; /* answers on their way back */
    size_t have, sent;
    uint64_t thrown_away;
};

struct ports { /* the port that the program may connect to */
    int is_open, full;
    int listen_fd;
    uint32_t at_once, connections;
    uint64_t in_all, accepted, refused;
    uint64_t most_bytes, bytes, seen; /* sent to the client; those that it has dealt with */
    struct port_connection connection[PORT_CONNECTIONS_MAX];
};

struct front {
    const struct front_options *options;
    enum front_state state;
    struct frame_parser parser;
    uint8_t out[OUT_QUEUE];
    size_t out_have, out_sent;
    int out_is_due; /* whether some of it must not wait for the end of the run */
    uint64_t last_frame_ns;
    uint64_t run_id, last_run_id;
    int work_used; /* files were put for run_id */
    int put_open, put_fd;
    uint64_t put_run;
    uint32_t put_step, put_error;
    struct request request;
    uint8_t *strings;
    uint64_t strings_have;
    struct stream stdout_stream, stderr_stream;
    struct feed feed;
    struct ports ports;
    int hand_fd;
    int pipes[PIPES][2]; /* of the next run, made ahead: while the client has the last result */
    int pipes_are_made;
    int ended; /* `end` has come from the core */
    struct message end;
};

/* front.c */
void front_frame(struct front *front, uint16_t type, uint64_t run_id, const void *head, size_t head_bytes, const void *rest, size_t rest_bytes);
void front_flush(struct front *front);
_Noreturn void front_fatal(struct front *front, uint32_t code, int error, const char *text);
void front_ask(struct front *front, const struct message *message, const int *fds, size_t count);
/* Wait for the core's answer of that kind; gives the descriptor that came with it, or -1. */
int front_await(struct front *front, struct message *message, uint32_t kind);
/* Open a file in the box by way of the core. A descriptor, or -1 with `step` and `error`. */
int front_open(struct front *front, uint32_t tree, int executable, const uint8_t *path, size_t path_bytes, uint32_t *step, uint32_t *error);

/* session.c */
void session_frame(struct front *front, const struct frame *frame);
void session_end(struct front *front);
void session_prepare(struct front *front);

/* streams.c */
void streams_open(struct front *front);
void stream_drain(struct front *front, struct stream *stream, int index);
void stream_watch(struct front *front, struct stream *stream);
void streams_send(struct front *front);
void feed_add(struct front *front, const uint8_t *data, size_t size);
void feed_write(struct front *front);
void feed_watch(struct front *front);
void feed_close(struct front *front);
void feed_abandon(struct front *front);
void feed_reset(struct front *front);

/* ports.c */
void ports_open(struct front *front, const uint8_t *payload, size_t length);
void ports_send(struct front *front, const struct frame *frame);
void ports_close(struct front *front, const struct frame *frame);
void ports_seen(struct front *front, const struct frame *frame);
/* How many of `watched` are in use: 0, or 1 + PORT_CONNECTIONS_MAX. */
size_t ports_watch(const struct front *front, struct pollfd *watched);
void ports_serve(struct front *front, const struct pollfd *watched);
void ports_end(struct front *front, uint64_t *result);

/* relay.c */
void relay_hand(struct front *front);

/* facts.c */
void facts_send(struct front *front);

#endif
