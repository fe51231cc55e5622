/* Bytes of the client into frames and requests. Pure: no system call, no allocation. Everything here is fuzzed. */
#include "protocol.h"

#include <string.h>

uint16_t get16(const uint8_t *at) { return (uint16_t)(at[0] | at[1] << 8); }

uint32_t get32(const uint8_t *at) { return (uint32_t)get16(at) | (uint32_t)get16(at + 2) << 16; }

uint64_t get64(const uint8_t *at) { return (uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32; }

void put16(uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

void put32(uint8_t *at, uint32_t value)
{
    put16(at, (uint16_t)value);
    put16(at + 2, (uint16_t)(value >> 16));
}

void put64(uint8_t *at, uint64_t value)
{
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)(value >> 32));
}

void put_header(uint8_t at[HEADER_BYTES], uint16_t type, uint32_t length, uint64_t run_id)
{
    put16(at, type);
    put16(at + 2, 0);
    put32(at + 4, length);
    put64(at + 8, run_id);
}

/* Room for the next read. Bytes already taken are moved out first, so that one frame of the largest size always fits. */
uint8_t *parser_room(struct frame_parser *parser, size_t *room)
{
    if (parser->taken > 0) {
        memmove(parser->bytes, parser->bytes + parser->taken, parser->have - parser->taken);
        parser->have -= parser->taken;
        parser->taken = 0;
    }
    *room = sizeof parser->bytes - parser->have;
    return parser->bytes + parser->have;
}

void parser_filled(struct frame_parser *parser, size_t count)
{
    if (count > sizeof parser->bytes - parser->have)
        count = sizeof parser->bytes - parser->have; /* a caller's bug must not become an overflow */
    parser->have += count;
}

enum parsed parser_next(struct frame_parser *parser, struct frame *frame)
{
    const uint8_t *at = parser->bytes + parser->taken;
    size_t have = parser->have - parser->taken;
    if (have < HEADER_BYTES)
        return PARSED_NOTHING;
    frame->type = get16(at);
    frame->length = get32(at + 4);
    frame->run_id = get64(at + 8);
    if (get16(at + 2) != 0 || frame->length > PAYLOAD_MAX)
        return PARSED_BAD;
    if (have - HEADER_BYTES < frame->length)
        return PARSED_NOTHING;
    frame->payload = at + HEADER_BYTES;
    parser->taken += HEADER_BYTES + frame->length;
    return PARSED_FRAME;
}

int path_allowed(const uint8_t *path, size_t length)
{
    if (length == 0 || length > PATH_BYTES_MAX || memchr(path, 0, length) != NULL)
        return 0;
    size_t start = 0, depth = 0;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && path[i] != '/')
            continue;
        size_t size = i - start;
        if (size == 0 || size > NAME_BYTES_MAX || ++depth > PATH_DEPTH_MAX)
            return 0;
        if (path[start] == '.' && (size == 1 || (size == 2 && path[start + 1] == '.')))
            return 0;
        start = i + 1;
    }
    return 1;
}

int decode_request(struct request *request, const uint8_t *payload, size_t length)
{
    if (length != Q_FIELDS * 8u)
        return -1;
    uint64_t *f = request->field;
    for (size_t i = 0; i < Q_FIELDS; i++)
        f[i] = get64(payload + 8 * i);
    static const struct {
        enum request_field field;
        uint64_t least, most;
    } bounds[] = {
        /* A quarter of the range, so that three times a limit and sums of two never overflow. */
        {Q_CPU_NS, 1, UINT64_MAX / 4}, {Q_WALL_NS, 1, UINT64_MAX / 4},
        {Q_STDOUT_KEEP, 0, KEEP_STREAM_MAX}, {Q_STDERR_KEEP, 0, KEEP_STREAM_MAX},
        {Q_NOFILE, 3, UINT64_MAX}, {Q_COLLECT_TOTAL, 0, CONTENT_TOTAL_MAX},
        {Q_ARGC, 1, COUNT_MAX}, {Q_ENVC, 0, COUNT_MAX}, {Q_FILEC, 0, COLLECT_MAX}, {Q_STRINGS, 2, STRINGS_MAX},
        {Q_KEEP_FILES, 0, KEEP_FILES_MAX}, {Q_KEEP_BYTES, 0, CONTENT_TOTAL_MAX},
        {Q_OPTIONS, 0, OPTION_SEND_KEPT | OPTION_STREAM_STDIN}, {Q_ZERO, 0, 0},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (f[bounds[i].field] < bounds[i].least || f[bounds[i].field] > bounds[i].most)
            return -1;
    return 0;
}

int check_strings(const struct request *request, const uint8_t *strings, size_t length)
{
    const uint64_t *f = request->field;
    if (length != f[Q_STRINGS] || length == 0 || strings[length - 1] != 0)
        return 0;
    uint64_t index = 0;
    size_t at = 0;
    while (at < length) {
        const uint8_t *end = memchr(strings + at, 0, length - at); /* there: the last byte is NUL */
        size_t size = (size_t)(end - (strings + at));
        if (index == 0 && size == 0)
            return 0; /* nothing can be executed by the empty name */
        if (index >= f[Q_ARGC] && index < f[Q_ARGC] + f[Q_ENVC]) {
            if (memchr(strings + at, '=', size) == NULL || strings[at] == '=')
                return 0;
        } else if (index >= f[Q_ARGC] + f[Q_ENVC] && !path_allowed(strings + at, size)) {
            return 0;
        }
        index++;
        at += size + 1;
    }
    return index == f[Q_ARGC] + f[Q_ENVC] + f[Q_FILEC];
}
