#include <unistd.h>

int main(void) { for (;;) if (vfork() == 0) for (;;) if (vfork() < 0) _exit(0); }
