#include <stdio.h>
#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    const int a = *(const int *)left;
    const int b = *(const int *)right;
    return (a > b) - (a < b);
}

int main(void)
{
    int *numbers = NULL;
    size_t count = 0;
    int number;
    while (scanf("%d", &number) == 1) {
        int *more = realloc(numbers, (count + 1) * sizeof *numbers);
        if (more == NULL) {
            free(numbers);
            return 1;
        }
        numbers = more;
        numbers[count++] = number;
    }
    if (count > 0)
        qsort(numbers, count, sizeof *numbers, compare);
    for (size_t i = 0; i < count; i++)
        printf("%d\n", numbers[i]);
    free(numbers);
    return 0;
}
