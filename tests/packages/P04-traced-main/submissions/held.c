#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define PTRACE_SEIZE_ 0x4206

int main(void)
{
    int ready[2];
    if (pipe(ready) != 0)
        return 1;
    if (fork() == 0) {
        long traced = ptrace(PTRACE_SEIZE_, getppid(), 0, 0);
        if (write(ready[1], traced == 0 ? "y" : "n", 1) != 1)
            return 1;
        for (;;)
            pause(); /* and never waits for it */
    }
    char answer;
    if (read(ready[0], &answer, 1) != 1)
        return 1;
    puts(answer == 'y' ? "right" : "could not trace");
    return 0;
}
