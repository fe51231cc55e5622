#include "/proc/1/mem"
