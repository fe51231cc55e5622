/* Two GB of initialised data. */
char large[2000000000] = {1};
int main(void) { return large[0]; }
