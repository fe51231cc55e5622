#include <stdio.h>
#include <sys/prctl.h>

int main(void) { prctl(PR_SET_DUMPABLE, 0); return puts("right") < 0; }
