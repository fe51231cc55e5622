#include <unistd.h>

int main(void) { if (write(1, "right\n", 6) == 6) _exit(0); }
