#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void right(int number) { (void)number; if (write(1, "right\n", 6) == 6) _exit(0); }

int main(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, number == SIGXCPU ? right : SIG_IGN);
    for (;;)
        ;
}
