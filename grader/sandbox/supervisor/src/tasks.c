/* How long the tasks of a run waited for a CPU that others than this box were using. Read from /proc by the canary, which
 * has no privilege: the names in there are the program's own words. */
#define _GNU_SOURCE
#include "inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_AT 64 /* processes per look; with more than that running, waiting is the box's own doing */

static int read_file(int folder, const char *name, char *text, size_t size)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    if (got <= 0)
        return -1;
    text[got] = 0;
    return 0;
}

struct look { /* what /proc says of one process at one moment */
    uint64_t started, on_cpu, waited;
    char state;
    long nice, policy;
};

/* The fields of /proc/PID/stat behind the name; the name may hold anything, so they are found from the *last* bracket. */
static int look_at(int proc, const char *pid, struct look *look)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "%.20s/stat", pid);
    if (read_file(proc, path, text, sizeof text) != 0)
        return -1;
    char *at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ')
        return -1;
    look->state = at[2];
    look->policy = 0;
    at += 3;
    for (int field = 4; field <= 41 && *at != 0; field++) {
        char *end;
        long long value = strtoll(at, &end, 10);
        if (end == at)
            break;
        at = end;
        if (field == 19)
            look->nice = (long)value;
        else if (field == 22)
            look->started = (uint64_t)value;
        else if (field == 41)
            look->policy = (long)value;
    }
    snprintf(path, sizeof path, "%.20s/schedstat", pid);
    unsigned long long on_cpu, waited;
    if (read_file(proc, path, text, sizeof text) != 0 || sscanf(text, "%llu %llu", &on_cpu, &waited) != 2)
        return -1;
    look->on_cpu = on_cpu;
    look->waited = waited;
    return 0;
}

static struct task *find(struct tasks *tasks, long pid, uint64_t started)
{
    struct task *spare = NULL;
    for (size_t i = 0; i < TASKS_MAX; i++) {
        struct task *task = &tasks->task[i];
        if (task->pid == pid && task->started == started)
            return task;
        if (spare == NULL && (task->pid == 0 || task->seen != tasks->turn - 1))
            spare = task; /* never used, or its process was gone at the last look */
    }
    if (spare != NULL)
        *spare = (struct task){.pid = pid, .started = started, .fresh = 1};
    return spare;
}

/* What part of a task's new waiting was not spent behind the box's own tasks?
 *
 * The kernel adds a wait to the account when it *ends*, so it can span several looks. `behind` gathers what the others of
 * this box used since the last moment at which the task was certainly not waiting; new waiting counts only beyond that. */
static uint64_t foreign_wait(struct task *task, const struct look *look, uint64_t box_used)
{
    uint64_t waited = difference(look->waited, task->waited), own = difference(look->on_cpu, task->on_cpu);
    uint64_t others = difference(box_used, own), foreign = 0;
    task->behind += others;
    if (task->fresh) {
        task->fresh = 0; /* the first look only sets the marks */
        task->behind = 0;
    } else if (waited > 0) {
        foreign = difference(waited, task->behind);
        task->behind = others; /* it may be waiting again since some moment in this interval */
    }
    if (look->state != 'R')
        task->behind = 0; /* asleep: everything it waited is in the account */
    task->waited = look->waited;
    task->on_cpu = look->on_cpu;
    return foreign;
}

static int is_runnable(int folder, const char *name)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "%.20s/stat", name);
    if (read_file(folder, path, text, sizeof text) != 0)
        return 0; /* gone */
    const char *at = strrchr(text, ')');
    return at == NULL || at[1] != ' ' || at[2] == 'R';
}

/* Whether a thread of one process is runnable. `looked` counts threads. */
static int process_wants_cpu(int proc, const char *pid, int *looked)
{
    char path[64];
    snprintf(path, sizeof path, "%.20s/task", pid);
    int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (list == NULL) {
        if (fd >= 0)
            close(fd);
        return errno != ENOENT && errno != ESRCH;
    }
    int wants = 0;
    struct dirent *entry;
    while (!wants && (entry = readdir(list)) != NULL)
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            wants = ++*looked > LOOK_AT || is_runnable(fd, entry->d_name);
    closedir(list);
    return wants;
}

int tasks_want_cpu(pid_t front)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (list == NULL) {
        if (fd >= 0)
            close(fd);
        return 1;
    }
    int wants = 0, looked = 0;
    struct dirent *entry;
    while (!wants && (entry = readdir(list)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 1 && pid != getpid() && pid != front)
            wants = process_wants_cpu(fd, entry->d_name, &looked);
    }
    closedir(list);
    return wants;
}

void tasks_forget(struct tasks *tasks) { memset(tasks, 0, sizeof *tasks); }

uint64_t tasks_look(struct tasks *tasks, uint64_t box_used, uint64_t *runnable)
{
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    *runnable = UNKNOWN;
    if (list == NULL) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    uint64_t worst = 0, running = 0;
    int looked = 0;
    struct dirent *entry;
    tasks->turn++;
    while ((entry = readdir(list)) != NULL && looked < LOOK_AT) {
        struct look look = {0};
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 1 || pid == getpid() || look_at(fd, entry->d_name, &look) != 0)
            continue;
        looked++;
        if (look.state == 'R')
            running++;
        /* A task that asks for less than its share (nicer, batch, idle) waits by its own wish. */
        if (look.nice != CHILD_NICE || look.policy != 0)
            continue;
        struct task *task = find(tasks, pid, look.started);
        if (task == NULL)
            continue;
        task->seen = tasks->turn;
        uint64_t foreign = foreign_wait(task, &look, box_used);
        if (foreign > worst)
            worst = foreign;
    }
    closedir(list);
    *runnable = running;
    return worst;
}
