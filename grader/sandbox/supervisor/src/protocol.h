/* The numbers of PROTOCOL.md, and the two pure decoders that stand between the client's bytes and everything else. */
#ifndef GRADER_PROTOCOL_H
#define GRADER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#define PROTOCOL_VERSION 2
#define PROTOCOL_MAGIC "GRADERSV"
#define HEADER_BYTES 16u
#define PAYLOAD_MAX 65536u
#define UNKNOWN UINT64_MAX

#define PATH_BYTES_MAX 1023u
#define PATH_DEPTH_MAX 32u
#define NAME_BYTES_MAX 255u
#define STRINGS_MAX (4u << 20)
#define COUNT_MAX 65536u
#define COLLECT_MAX 256u
#define STDIN_BUFFER (16u << 20)
#define KEEP_STREAM_MAX (64u << 20)
#define CONTENT_TOTAL_MAX (256ull << 20)
#define KEEP_FILES_MAX 10000u
#define SKIPPED_MAX 64u
#define PORT_LISTEN 2u
#define PORT_CONNECTIONS_MAX 32u
#define PORT_QUEUE (64u << 10)

enum frame_type {
    F_HELLO = 1, F_PUT_OPEN, F_PUT_DATA, F_PUT_END, F_RUN_BEGIN, F_RUN_DATA, F_STDIN, F_STDIN_END, F_RUN_START,
    F_CANCEL, F_PING, F_CLEAR,
    F_PORT_OPEN = 32, F_PORT_DATA, F_PORT_CLOSE, F_PORT_SEEN,
    B_HELLO = 129, B_FACT, B_HELLO_END, B_PUT_DONE, B_COUNTERS, B_STDIN_ROOM, B_STREAM_DATA, B_FILE, B_FILE_DATA,
    B_KEPT_FILE, B_KEPT_DATA, B_KEPT_SKIPPED, B_KEPT, B_RESULT, B_PONG, B_CLEARED, B_FATAL,
    B_PORT_OPENED = 160, B_PORT_DATA, B_PORT_CLOSED
};

enum fatal_code { FATAL_PROTOCOL = 1, FATAL_SURVIVORS, FATAL_FRONT, FATAL_SYSTEM, FATAL_LIFETIME, FATAL_IDLE, FATAL_VERSION, FATAL_STALLED, FATAL_NOT_CLEARED };
enum put_step { PUT_OK, PUT_PATH, PUT_FOLDER, PUT_OPEN, PUT_WRITE };
enum killed_for { KILL_NONE, KILL_CPU, KILL_WALL, KILL_STDOUT, KILL_STDERR, KILL_FILE_SIZE, KILL_STARVED, KILL_CANCELLED };
enum start_step { START_OK, START_FORK, START_FDS, START_SESSION, START_LIMITS, START_IDS, START_WORK, START_FILTER, START_STRINGS, START_EXEC };
enum file_status { FILE_REGULAR, FILE_MISSING, FILE_NOT_REGULAR, FILE_TOO_BIG, FILE_REFUSED };
enum file_kind { KIND_NONE, KIND_REGULAR, KIND_FOLDER, KIND_LINK, KIND_FIFO, KIND_SOCKET, KIND_CHARACTER, KIND_BLOCK, KIND_OTHER,
                 SKIP_SET_ID, SKIP_OVER_CAP, SKIP_UNREADABLE };

#define OPTION_SEND_KEPT 1u
#define OPTION_STREAM_STDIN 2u

/* RUN_BEGIN, as it travels: 20 u64. */
enum request_field {
    Q_CPU_NS, Q_WALL_NS, Q_STDOUT_KILL, Q_STDOUT_KEEP, Q_STDERR_KILL, Q_STDERR_KEEP, Q_FILE_SIZE, Q_STACK, Q_NOFILE, Q_PROCESSES,
    Q_COLLECT_FILE, Q_COLLECT_TOTAL, Q_ARGC, Q_ENVC, Q_FILEC, Q_STRINGS, Q_KEEP_FILES, Q_KEEP_BYTES, Q_OPTIONS, Q_ZERO, Q_FIELDS
};

/* RESULT, as it travels: 52 u64. */
enum result_field {
    R_KILLED_FOR, R_START_STEP, R_START_ERRNO, R_ENDED_BY, R_CODE, R_CORE, R_WALL, R_CPU, R_USER, R_SYSTEM,
    R_MAX_RSS, R_SAMPLED_PEAK, R_CGROUP_PEAK, R_CGROUP_PEAK_BEFORE, R_MEMORY_BEFORE, R_OOM_KILLS, R_LIMIT_HITS,
    R_VOLUNTARY, R_INVOLUNTARY, R_RUN_DELAY, R_LATENESS, R_MAX_LATE, R_THROTTLED, R_STEAL, R_STDIN_STARVED, R_START_OFFSET,
    R_SURVIVORS, R_REAPED, R_STDIN_TAKEN,
    R_OUT_TOTAL, R_OUT_KEPT, R_OUT_CLOSED, R_OUT_AFTER, R_ERR_TOTAL, R_ERR_KEPT, R_ERR_CLOSED, R_ERR_AFTER,
    R_CLAMPED, R_SCRUB, R_SCRUB_REMOVED, R_USABLE, R_SAMPLES, R_KILL_NS, R_SCRUB_NS, R_OWN_CPU, R_FOREIGN_DELAY, R_CONTENDED,
    R_PORT_CONNECTIONS, R_PORT_REFUSED, R_PORT_BYTES, R_PORT_FULL,
    R_FIELDS = 52
};

/* COUNTERS: 12 u64. */
enum counter_field { C_NOW, C_CPU, C_MEMORY, C_LIMIT_HITS, C_OOM_KILLS, C_RUNNABLE, C_LATENESS, C_STDIN_STARVED, C_OUT, C_ERR, C_TASKS, C_ZERO, C_FIELDS };

struct frame {
    uint16_t type;
    uint32_t length;
    uint64_t run_id;
    const uint8_t *payload; /* inside the parser's buffer: gone with the next call */
};

/* Holds at most one frame; the caller asks how much room there is and reads that much into it. */
struct frame_parser {
    size_t have;
    size_t taken;
    uint8_t bytes[HEADER_BYTES + PAYLOAD_MAX];
};

enum parsed { PARSED_NOTHING, PARSED_FRAME, PARSED_BAD };

uint8_t *parser_room(struct frame_parser *parser, size_t *room);
void parser_filled(struct frame_parser *parser, size_t count);
enum parsed parser_next(struct frame_parser *parser, struct frame *frame);

uint16_t get16(const uint8_t *at);
uint32_t get32(const uint8_t *at);
uint64_t get64(const uint8_t *at);
void put16(uint8_t *at, uint16_t value);
void put32(uint8_t *at, uint32_t value);
void put64(uint8_t *at, uint64_t value);
void put_header(uint8_t at[HEADER_BYTES], uint16_t type, uint32_t length, uint64_t run_id);

struct request {
    uint64_t field[Q_FIELDS];
};

/* 0, or -1 for a request that breaks a rule of PROTOCOL.md. */
int decode_request(struct request *request, const uint8_t *payload, size_t length);
/* Whether the strings have exactly the announced numbers of NUL-terminated entries and every path is allowed. */
int check_strings(const struct request *request, const uint8_t *strings, size_t length);
/* Whether a relative path keeps the rules: no empty, `.` or `..` component, bounded. `path` need not end in NUL. */
int path_allowed(const uint8_t *path, size_t length);

#endif
