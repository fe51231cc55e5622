#include <stdio.h>

static long deep(long n) { volatile char room[4000]; room[0] = 1; return n == 0 ? 0 : deep(n - 1) + room[0]; }

int main(void) { return deep(20000) != 20000 || puts("right") < 0; }
