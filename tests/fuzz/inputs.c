/* Runs a fuzz target on random inputs where there is no libFuzzer: `inputs COUNT SEED`. The same seed, the same inputs. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t state;

static uint64_t next(void) /* splitmix64 */
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Mostly small or high bytes: those are the acts and numbers that keep a session alive longest. */
static uint8_t biased(void)
{
    uint64_t n = next();
    return (uint8_t)(n % 4 == 0 ? n >> 8 : n % 4 == 1 ? 96 + (n >> 8) % 32 : (n >> 8) % 16);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    long count = strtol(argv[1], NULL, 10);
    state = strtoull(argv[2], NULL, 10);
    for (long i = 0; i < count; i++) {
        size_t size = (size_t)(next() % 2000);
        uint8_t *data = malloc(size > 0 ? size : 1);
        if (data == NULL)
            return 2;
        for (size_t k = 0; k < size; k++)
            data[k] = biased();
        LLVMFuzzerTestOneInput(data, size);
        free(data);
    }
    printf("%ld inputs\n", count);
    return 0;
}
