#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes orphans over from PID 1, and leaves a thousand zombies behind. */
int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (int i = 0; i < 40; i++)
        if (fork() == 0) {
            if (fork() == 0)
                _exit(0);
            _exit(0);
        }
    usleep(100000);
    return puts("right") < 0;
}
