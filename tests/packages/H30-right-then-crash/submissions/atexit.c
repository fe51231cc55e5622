#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void crash(void) { fflush(stdout); raise(SIGSEGV); }

int main(void) { atexit(crash); puts("right"); return 0; }
