#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    static char block[1 << 20];
    int adj = open("/proc/self/oom_score_adj", O_WRONLY);
    if (adj < 0 || write(adj, "0", 1) != 1)
        return 1;
    for (;;) {
        int fd = memfd_create("x", 0);
        for (int i = 0; i < 10; i++)
            if (write(fd, block, sizeof block) < 0)
                return 2;
    }
}
