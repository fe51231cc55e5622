#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long number(const char *const *paths)
{
    long value = 0;
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(paths[i], "r");
        if (file != NULL && fscanf(file, "%ld", &value) == 1)
            i = 2;
        if (file != NULL)
            fclose(file);
    }
    return value;
}

/* Fills the box to its real limit (it has more than the program's own) and then keeps reading files of the image. */
int main(void)
{
    static const char *const limits[] = {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"};
    static const char *const used[] = {"/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory.current"};
    /* With whatever is left until the limit is near. */
    while (number(used) + (1 << 20) < number(limits)) {
        char *at = mmap(0, 1 << 18, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (at == MAP_FAILED)
            return 1;
    }
    for (;;) {
        const char *names[] = {"/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/usr/bin/bash", "/usr/lib/gcc/x86_64-linux-gnu/12/lto1"};
        for (int i = 0; i < 3; i++) {
            static char data[1 << 16];
            int fd = open(names[i], O_RDONLY);
            while (fd >= 0 && read(fd, data, sizeof data) > 0)
                ;
            close(fd);
        }
        struct timespec nap = {0, 20000000};
        nanosleep(&nap, 0);
    }
}
