/* Writes through a null pointer. */
#include <stdio.h>

int main(void)
{
    int *volatile numbers = NULL;
    numbers[0] = 1;
    printf("%d\n", numbers[0]);
    return 0;
}
