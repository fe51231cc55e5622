#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char *at = mmap(0, 400ul << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            memset(at + ((size_t)i * 50 << 20), 1, 50 << 20);
            _exit(0);
        }
    while (wait(0) > 0)
        ;
    return puts("right") < 0;
}
