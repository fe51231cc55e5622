#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Executes itself with no argv at all. */
int main(int argc, char **argv)
{
    (void)argv;
    char *none[] = {0};
    if (argc == 1 && getenv("AGAIN") == 0)
        execve("/proc/self/exe", none, (char *[]){"AGAIN=1", 0});
    return puts("right") < 0;
}
