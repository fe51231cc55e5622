#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Only the main process decides: a child may crash. */
int main(void) { if (fork() == 0) raise(SIGSEGV); puts("right"); return 0; }
