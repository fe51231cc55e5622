static int deep(volatile int n) { volatile char room[4096]; room[0] = (char)n; return deep(n + 1) + room[0]; }
int main(void) { return deep(0); }
