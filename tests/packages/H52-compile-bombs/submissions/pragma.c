#pragma GCC poison main
int main(void) { return 0; }
