/* Counters of the box's cgroup (v1 and v2) and of the machine. The files are opened once and read with pread: a
 * measure then costs a microsecond, and works however full the box's descriptor or inode tables are. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef CGROUP
#define CGROUP "/sys/fs/cgroup/" /* the tests put recorded files elsewhere */
#endif

#ifndef PROC_STAT
#define PROC_STAT "/proc/stat"
#endif

uint64_t now_ns(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        abort();
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t difference(uint64_t now, uint64_t before)
{
    if (now == UNKNOWN || before == UNKNOWN)
        return UNKNOWN;
    return now > before ? now - before : 0;
}

/* The CPU clock of a process, in ns. Reading one's own also books the running slice into the cgroup's counter. */
uint64_t cpu_of_process(pid_t pid)
{
    /* Of another process: the kernel's encoding of its number. clock_getcpuclockid gives the same after one more call. */
    clockid_t clock = pid == 0 ? CLOCK_PROCESS_CPUTIME_ID : (clockid_t)(~(unsigned)pid << 3 | 2u);
    struct timespec t;
    if (clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static char prefix[512]; /* the folder of the box's own cgroup, with a slash at the end */

/* With a cgroup namespace of its own (what engines do) the box's cgroup is the root of what it sees. Without one, version 2
 * shows the whole machine's tree, whose root would count everybody: then /proc/self/cgroup says where we are. */
static void find_prefix(void)
{
    char text[400];
    strcpy(prefix, CGROUP);
    int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return;
    text[got] = 0;
    if (strncmp(text, "0::/", 4) != 0 || text[4] == '\n' || strstr(text, "..") != NULL)
        return;
    text[strcspn(text, "\n")] = 0;
    int size = snprintf(prefix, sizeof prefix, "%s%s/", CGROUP, text + 4);
    if (size < 0 || size >= (int)sizeof prefix || access(prefix, X_OK) != 0)
        strcpy(prefix, CGROUP);
}

static int open_first(const char *const *names)
{
    char path[640];
    for (; *names != NULL; names++) {
        int size = snprintf(path, sizeof path, "%s%s", prefix, *names);
        int fd = size < 0 || size >= (int)sizeof path ? -1 : open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0)
            return fd;
    }
    return -1;
}

#define OPEN_FIRST(...) open_first((const char *const[]){__VA_ARGS__, NULL})

void measures_open(struct measures *m)
{
    memset(m, 0, sizeof *m);
    find_prefix();
    m->version = access(CGROUP "cgroup.controllers", R_OK) == 0 ? 2 : 1;
    if (m->version == 2) {
        m->cpu_usage = m->cpu_stat = OPEN_FIRST("cpu.stat");
        m->memory = OPEN_FIRST("memory.current");
        m->memory_peak = OPEN_FIRST("memory.peak");
        m->memory_hits = m->memory_events = OPEN_FIRST("memory.events");
        m->pids = OPEN_FIRST("pids.current");
    } else {
        m->cpu_usage = OPEN_FIRST("cpuacct/cpuacct.usage", "cpu,cpuacct/cpuacct.usage");
        m->cpu_stat = OPEN_FIRST("cpu/cpu.stat", "cpu,cpuacct/cpu.stat");
        m->memory = OPEN_FIRST("memory/memory.usage_in_bytes");
        m->memory_peak = OPEN_FIRST("memory/memory.max_usage_in_bytes");
        m->memory_hits = OPEN_FIRST("memory/memory.failcnt");
        m->memory_events = OPEN_FIRST("memory/memory.oom_control");
        m->pids = OPEN_FIRST("pids/pids.current");
    }
    if (m->cpu_usage < 0 && m->memory < 0)
        m->version = 0;
    m->proc_stat = open(PROC_STAT, O_RDONLY | O_CLOEXEC);
    m->cpus = 0;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        for (unsigned cpu = 0; cpu < 1024; cpu++) {
            if (CPU_ISSET(cpu, &set)) {
                m->cpus++;
                m->cpu_mask[cpu / 64] |= 1ull << (cpu % 64);
            }
        }
    }
    if (m->cpus == 0)
        m->cpus = 1;
}

static size_t read_text(int fd, char *text, size_t size)
{
    ssize_t count = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
    if (count < 0)
        count = 0;
    text[count] = 0;
    return (size_t)count;
}

static uint64_t parse_number(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return UNKNOWN;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return errno == 0 ? value : UNKNOWN;
}

static uint64_t read_number(int fd)
{
    char text[64];
    return read_text(fd, text, sizeof text) > 0 ? parse_number(text) : UNKNOWN;
}

/* The number after `key` and a blank at the start of a line. */
static uint64_t number_after(const char *text, const char *key)
{
    size_t size = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, size) == 0 && line[size] == ' ')
            return parse_number(line + size + 1);
    }
    return UNKNOWN;
}

static uint64_t read_after(int fd, const char *key)
{
    char text[2048];
    return read_text(fd, text, sizeof text) > 0 ? number_after(text, key) : UNKNOWN;
}

static uint64_t times(uint64_t value, uint64_t factor)
{
    return value == UNKNOWN || value > UINT64_MAX / factor ? UNKNOWN : value * factor;
}

uint64_t measure_cpu(const struct measures *m)
{
    return m->version == 2 ? times(read_after(m->cpu_usage, "usage_usec"), 1000) : read_number(m->cpu_usage);
}

uint64_t measure_memory(const struct measures *m) { return read_number(m->memory); }

uint64_t measure_peak(const struct measures *m) { return read_number(m->memory_peak); }

uint64_t measure_hits(const struct measures *m)
{
    if (m->version != 2)
        return read_number(m->memory_hits);
    char text[2048];
    read_text(m->memory_hits, text, sizeof text);
    uint64_t max = number_after(text, "max"), oom = number_after(text, "oom");
    return max == UNKNOWN || oom == UNKNOWN ? UNKNOWN : max + oom;
}

uint64_t measure_oom_kills(const struct measures *m) { return read_after(m->memory_events, "oom_kill"); }

uint64_t measure_throttled(const struct measures *m)
{
    if (m->version == 2)
        return times(read_after(m->cpu_stat, "throttled_usec"), 1000);
    return read_after(m->cpu_stat, "throttled_time");
}

uint64_t measure_tasks(const struct measures *m) { return read_number(m->pids); }

/* What /proc/stat says of the box's CPUs, in clock ticks: numbers 4 and 5 of their lines are idle, number 8 is steal. */
struct machine measure_machine(const struct measures *m)
{
    const struct machine unknown = {UNKNOWN, UNKNOWN, 0};
    char text[16384];
    if (read_text(m->proc_stat, text, sizeof text) == 0)
        return unknown;
    uint64_t idle = 0, steal = 0, all = 0;
    for (const char *line = text; line != NULL && *line != 0; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, "cpu", 3) != 0)
            break;
        char *at;
        if (line[3] == ' ')
            continue;
        unsigned long cpu = strtoul(line + 3, &at, 10);
        if (cpu >= 1024 || !(m->cpu_mask[cpu / 64] >> (cpu % 64) & 1))
            continue;
        unsigned long long value[8];
        for (int column = 0; column < 8; column++) {
            value[column] = strtoull(at, &at, 10);
            all += value[column];
        }
        idle += value[3] + value[4];
        steal += value[7];
    }
    long per_second = sysconf(_SC_CLK_TCK);
    if (all == 0 || per_second <= 0) /* a kernel that only pretends to have the file writes zeros */
        return unknown;
    uint64_t tick = NS_PER_S / (uint64_t)per_second;
    return (struct machine){idle * tick, steal * tick, tick};
}
