#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    static char block[1 << 20];
    for (int i = 0; i < 40; i++) { /* none of them above the limit of one file */
        int fd = memfd_create("x", 0);
        for (int j = 0; j < 10; j++)
            if (write(fd, block, sizeof block) < 0)
                return 1;
    }
    return puts("right") < 0;
}
