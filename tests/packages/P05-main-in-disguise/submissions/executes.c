#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "200") == 0)
        return puts("right") < 0;
    char next[16];
    int count = 0;
    if (argc > 1)
        sscanf(argv[1], "%d", &count);
    snprintf(next, sizeof next, "%d", count + 1);
    execl("/proc/self/exe", argv[0], next, (char *)0);
    return 1;
}
