#include <pthread.h>
#include <unistd.h>

static void *later(void *unused) { (void)unused; execl("/bin/echo", "echo", "right", (char *)0); return 0; }

int main(void) { pthread_t thread; pthread_create(&thread, 0, later, 0); for (;;) pause(); }
