/* Prints every counter that measures.c reads from the folder that CGROUP names. Built by test_c_measures.py. */
#include "inside.h"

#include <stdio.h>

static void print(const char *name, uint64_t value)
{
    if (value == UNKNOWN)
        printf("%s unknown\n", name);
    else
        printf("%s %llu\n", name, (unsigned long long)value);
}

int main(void)
{
    struct measures m;
    measures_open(&m);
    print("version", (uint64_t)m.version);
    print("cpu", measure_cpu(&m));
    print("memory", measure_memory(&m));
    print("peak", measure_peak(&m));
    print("hits", measure_hits(&m));
    print("oom_kills", measure_oom_kills(&m));
    print("throttled", measure_throttled(&m));
    print("tasks", measure_tasks(&m));
    struct machine machine = measure_machine(&m);
    print("idle", machine.idle);
    print("steal", machine.steal);
    return 0;
}
