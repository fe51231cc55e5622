#include <sys/wait.h>
#include <unistd.h>

int main(void) { if (vfork() == 0) _exit(write(1, "right\n", 6) != 6); int s; wait(&s); _exit(s != 0); }
