#include <stdio.h>
#include <sys/mman.h>

/* One page each 2 MiB: a page of table for every page of memory. */
int main(void)
{
    size_t size = 1ul << 40;
    char *at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return 1;
    volatile char seen = 0;
    for (size_t i = 0; i < size; i += 2 << 20)
        seen += at[i]; /* reading alone */
    return puts("right") < 0;
}
