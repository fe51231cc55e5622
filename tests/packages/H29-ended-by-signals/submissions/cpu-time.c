#include <signal.h>

/* The signal of a CPU limit, without one. */
int main(void) { raise(SIGXCPU); }
