#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A name that breaks whoever reads /proc/PID/stat from the left. Its streams close early, then it goes on. */
int main(void)
{
    prctl(PR_SET_NAME, ") R 0 0 (\n");
    puts("right");
    fflush(stdout);
    close(1);
    close(2);
    usleep(200000);
    return 0;
}
