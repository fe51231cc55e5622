/* What the box *is*, told as raw text that the client reads for itself. */
#define _GNU_SOURCE
#include "front.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FACT_BYTES 60000

static const char *const files[] = {
    "/proc/1/limits", "/proc/1/cgroup", "/proc/self/status", "/proc/self/mountinfo", "/proc/self/uid_map", "/proc/self/gid_map",
    "/proc/net/dev", "/proc/net/route", "/proc/sys/kernel/shmmni", "/proc/sys/kernel/msgmni", "/proc/sys/kernel/sem",
    "/proc/sys/fs/mqueue/queues_max", "/proc/sys/net/ipv4/tcp_max_tw_buckets", "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id", "/proc/swaps",
    /* cgroup v2 */
    "/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.swap.max", "/sys/fs/cgroup/memory.peak",
    "/sys/fs/cgroup/memory.oom.group", "/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpuset.cpus.effective",
    "/sys/fs/cgroup/cpu.stat",
    /* cgroup v1 */
    "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "/sys/fs/cgroup/memory/memory.oom_control",
    "/sys/fs/cgroup/memory/memory.swappiness", "/sys/fs/cgroup/pids/pids.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
    "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "/sys/fs/cgroup/cpu/cpu.shares", "/sys/fs/cgroup/cpuset/cpuset.cpus",
};

static void send_fact(struct front *front, const char *name, const void *content, size_t bytes, int error)
{
    uint8_t head[8 + 256];
    size_t name_bytes = strnlen(name, 256);
    put32(head, (uint32_t)error);
    put16(head + 4, (uint16_t)name_bytes);
    put16(head + 6, 0);
    memcpy(head + 8, name, name_bytes);
    front_frame(front, B_FACT, 0, head, 8 + name_bytes, content, bytes);
}

static void send_file(struct front *front, const char *path)
{
    static uint8_t content[FACT_BYTES];
    size_t have = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;
    while (fd >= 0 && have < sizeof content) {
        ssize_t got = read(fd, content + have, sizeof content - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error = errno;
        if (got <= 0)
            break;
        have += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    send_fact(front, path, content, have, error);
}

static void send_system(struct front *front)
{
    struct utsname name;
    if (uname(&name) != 0)
        return;
    send_fact(front, "uname.release", name.release, strlen(name.release), 0);
    send_fact(front, "uname.machine", name.machine, strlen(name.machine), 0);
}

void facts_send(struct front *front)
{
    send_fact(front, "/proc/1/status", front->options->status, strlen(front->options->status), 0);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        send_file(front, files[i]);
    send_system(front);
    const char *line = front->options->facts;
    while (*line != 0) { /* `name value` lines of the core */
        char name[64];
        const char *end = strchr(line, '\n'), *blank = strchr(line, ' ');
        if (end == NULL || blank == NULL || blank > end || (size_t)(blank - line) >= sizeof name)
            break;
        memcpy(name, line, (size_t)(blank - line));
        name[blank - line] = 0;
        send_fact(front, name, blank + 1, (size_t)(end - blank - 1), 0);
        line = end + 1;
    }
}
