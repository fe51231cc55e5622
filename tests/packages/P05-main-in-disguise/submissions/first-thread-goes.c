#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *later(void *unused) { (void)unused; usleep(200000); puts("right"); exit(0); }

int main(void) { pthread_t thread; pthread_create(&thread, 0, later, 0); pthread_exit(0); }
