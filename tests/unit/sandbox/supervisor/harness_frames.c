/* Reads standard input as a client's bytes, in pieces of the size given as argument, and prints what frames.c makes of them.
 * Built with the address and undefined-behaviour sanitizers by test_c_frames.py. */
#include "protocol.h"
#include "sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct frame_parser parser;

static void frames(size_t piece)
{
    struct request request;
    int have_request = 0;
    for (;;) {
        size_t room;
        uint8_t *at = parser_room(&parser, &room);
        ssize_t got = read(0, at, room < piece ? room : piece);
        if (got <= 0)
            break;
        parser_filled(&parser, (size_t)got);
        struct frame frame;
        enum parsed parsed;
        while ((parsed = parser_next(&parser, &frame)) == PARSED_FRAME) {
            /* An exact copy, so that reading one byte too far is seen. */
            uint8_t *copy = malloc(frame.length > 0 ? frame.length : 1);
            memcpy(copy, frame.payload, frame.length);
            printf("frame %u %llu %u\n", frame.type, (unsigned long long)frame.run_id, frame.length);
            if (frame.type == F_RUN_BEGIN) {
                have_request = decode_request(&request, copy, frame.length) == 0;
                printf("request %d\n", have_request);
            } else if (frame.type == F_RUN_DATA && have_request) {
                printf("strings %d\n", check_strings(&request, copy, frame.length));
            } else if (frame.type == F_PUT_OPEN && frame.length > 4) {
                printf("path %d\n", path_allowed(copy + 4, frame.length - 4));
            }
            free(copy);
        }
        if (parsed == PARSED_BAD) {
            printf("bad\n");
            return;
        }
    }
    printf("end %zu\n", parser.have - parser.taken);
}

static void digest(size_t piece)
{
    struct sha256 hash;
    uint8_t *bytes = malloc(piece), result[32];
    ssize_t got;
    sha256_begin(&hash);
    while ((got = read(0, bytes, piece)) > 0)
        sha256_add(&hash, bytes, (size_t)got);
    sha256_end(&hash, result);
    for (int i = 0; i < 32; i++)
        printf("%02x", result[i]);
    free(bytes);
}

int main(int argc, char **argv)
{
    size_t piece = argc > 2 ? (size_t)atol(argv[2]) : 4096;
    if (argc > 1 && strcmp(argv[1], "sha256") == 0)
        digest(piece);
    else
        frames(piece);
    return 0;
}
