#include <stdio.h>

int main(void) { puts("right"); return 0; }
