#include <stdio.h>
#include <unistd.h>

__attribute__((destructor)) static void crash(void) { *(volatile int *)8 = 1; }

int main(void) { return write(1, "right\n", 6) != 6; }
