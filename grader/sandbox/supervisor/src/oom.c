/* Scores for the kernel's choice of whom to kill when memory runs out. A child begins with its parent's. */
#define _GNU_SOURCE
#include "inside.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int score_fd = -1; /* of the core's own score: to open it anew for every child costs ten times what writing it does */
static char own_score[16];
static size_t own_bytes;

static int set(int fd, const char *score, size_t bytes) { return pwrite(fd, score, bytes, 0) == (ssize_t)bytes ? 0 : -1; }

void oom_offer(const char *score)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)set(fd, score, strlen(score));
        close(fd);
    }
}

void oom_open(void)
{
    score_fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    ssize_t got = score_fd < 0 ? -1 : pread(score_fd, own_score, sizeof own_score, 0);
    own_bytes = got > 0 ? (size_t)got : 0;
}

/* Where a kernel does not have the file or does not let us, nobody is preferred. */
void oom_begin(void)
{
    if (own_bytes > 0)
        (void)set(score_fd, PROGRAM_FIRST, strlen(PROGRAM_FIRST));
}

/* The core's own score is never below the least that it may have, so it can always go back to it. */
int oom_end(void) { return own_bytes > 0 ? set(score_fd, own_score, own_bytes) : 0; }
