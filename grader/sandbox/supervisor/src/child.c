/* From fork to exec: the child of a run on its way down from root. It is the last code of ours that runs in that process;
 * what it fails at is told in a page that exec takes away, so that a program can never be blamed for it or fake it. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif
#define STRINGS_FD 3

struct limit {
    int resource;
    uint64_t soft, hard;
};
#define LIMITS_MAX 16

static size_t limits_of(const uint64_t *request, struct limit *limits)
{
    size_t n = 0;
    uint64_t cpu_s = (request[Q_CPU_NS] + NS_PER_S - 1) / NS_PER_S + 1;
    limits[n++] = (struct limit){RLIMIT_CORE, 0, 0};
    limits[n++] = (struct limit){RLIMIT_CPU, cpu_s, cpu_s + 1}; /* SIGXCPU first, SIGKILL a second later */
    limits[n++] = (struct limit){RLIMIT_FSIZE, request[Q_FILE_SIZE], request[Q_FILE_SIZE]};
    limits[n++] = (struct limit){RLIMIT_NOFILE, request[Q_NOFILE], request[Q_NOFILE]};
    limits[n++] = (struct limit){RLIMIT_MSGQUEUE, 0, 0};
    limits[n++] = (struct limit){RLIMIT_RTPRIO, 0, 0};
    limits[n++] = (struct limit){RLIMIT_NICE, 0, 0};
    if (request[Q_STACK] != UNKNOWN)
        limits[n++] = (struct limit){RLIMIT_STACK, request[Q_STACK], request[Q_STACK]};
    if (request[Q_PROCESSES] != UNKNOWN)
        limits[n++] = (struct limit){RLIMIT_NPROC, request[Q_PROCESSES], request[Q_PROCESSES]};
    return n;
}

static struct rlimit own_limits[RLIM_NLIMITS]; /* the core's: nobody changes them, and every child begins with them */

int limits_open(void)
{
    for (int resource = 0; resource < (int)RLIM_NLIMITS; resource++)
        if (getrlimit((__rlimit_resource_t)resource, &own_limits[resource]) != 0)
            return -1;
    return 0;
}

uint64_t limits_clamped(const uint64_t *request)
{
    struct limit limits[LIMITS_MAX];
    uint64_t clamped = 0;
    size_t count = limits_of(request, limits);
    for (size_t i = 0; i < count; i++)
        if (limits[i].hard > own_limits[limits[i].resource].rlim_max)
            clamped |= 1ull << limits[i].resource;
    return clamped;
}

static int set_limits(const uint64_t *request)
{
    struct limit limits[LIMITS_MAX];
    size_t count = limits_of(request, limits);
    for (size_t i = 0; i < count; i++) {
        const struct rlimit *now = &own_limits[limits[i].resource];
        /* Without SYS_RESOURCE nobody can go above the hard limit; the result says that it was clamped. */
        rlim_t hard = limits[i].hard < now->rlim_max ? limits[i].hard : now->rlim_max;
        struct rlimit wanted = {limits[i].soft < hard ? limits[i].soft : hard, hard};
        if (wanted.rlim_cur == now->rlim_cur && wanted.rlim_max == now->rlim_max)
            continue;
        if (setrlimit((__rlimit_resource_t)limits[i].resource, &wanted) != 0)
            return -1;
    }
    return 0;
}

static _Noreturn void fail(const struct child_plan *plan, uint32_t step)
{
    *plan->report = (struct child_report){step, errno};
    _exit(127);
}

/* 0, 1, 2 are the pipes; 3 the strings, if they are a file, closed by exec; the rest is closed now. */
static int set_descriptors(const struct child_plan *plan)
{
    /* Moved out of the way first: a source may be one of the numbers to be overwritten. */
    int from[] = {plan->in, plan->out, plan->err, plan->strings->fd}, count = plan->strings->fd < 0 ? STRINGS_FD : STRINGS_FD + 1;
    for (int i = 0; i < count; i++) {
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 16);
        if (from[i] < 0)
            return -1;
    }
    for (int i = 0; i < count; i++)
        if (dup3(from[i], i, i == STRINGS_FD ? O_CLOEXEC : 0) != i)
            return -1;
    return (int)syscall(SYS_close_range, (unsigned)count, ~0u, 0u);
}

/* Dispositions are the standard ones already, see main.c. */
static int unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static const char *entry_of(char *const *environment, const char *name)
{
    size_t size = strlen(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=')
            return *environment + size + 1;
    return NULL;
}

/* execve by path, or along the PATH of the environment that the program is given. Returns with errno. */
static void execute(char *const *arguments, char *const *environment)
{
    const char *name = arguments[0];
    if (strchr(name, '/') != NULL) {
        execve(name, arguments, environment);
        return;
    }
    static char path[PATH_BYTES_MAX + NAME_BYTES_MAX + 2];
    const char *at = entry_of(environment, "PATH");
    int denied = 0;
    size_t name_size = strlen(name);
    while (at != NULL && *at != 0) {
        size_t size = strcspn(at, ":");
        if (size > 0 && size + name_size + 2 <= sizeof path) {
            memcpy(path, at, size);
            path[size] = '/';
            memcpy(path + size + 1, name, name_size + 1);
            execve(path, arguments, environment);
            if (errno == EACCES)
                denied = 1;
            else if (errno != ENOENT && errno != ENOTDIR)
                return;
        }
        at += size;
        if (*at == ':')
            at++;
    }
    errno = denied ? EACCES : ENOENT;
}

/* The strings, all of them: those that came with the message, or the file mapped. NULL if they are not what was asked. */
static const char *strings_of(struct child_plan *plan, size_t *size)
{
    const struct strings *strings = plan->strings;
    struct stat s;
    *size = (size_t)plan->request[Q_STRINGS];
    if (strings->fd < 0)
        return *size > 0 && *size == strings->text_bytes ? strings->text : NULL;
    if (fstat(STRINGS_FD, &s) != 0 || s.st_size <= 0 || (uint64_t)s.st_size != plan->request[Q_STRINGS] || s.st_size > (off_t)STRINGS_MAX)
        return NULL;
    char *mapped = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, STRINGS_FD, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    plan->mapped[0] = mapped;
    plan->mapped_bytes[0] = *size;
    return mapped;
}

/* Room for pointers to every string and two NULLs, all zero. */
static const char **table_of(struct child_plan *plan, size_t count)
{
    static const char *few[64];
    if (count <= sizeof few / sizeof *few) {
        memset(few, 0, sizeof few); /* shared with the core: the last run's are in it */
        return few;
    }
    const char **table = mmap(NULL, count * sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        return NULL;
    plan->mapped[1] = table;
    plan->mapped_bytes[1] = count * sizeof *table;
    return table;
}

/* Pointers into the strings. The counts are checked again: they come from an unprivileged process. */
static const char **pointers_into(struct child_plan *plan, const char *strings, size_t size)
{
    uint64_t arguments = plan->request[Q_ARGC], environment = plan->request[Q_ENVC];
    if (arguments == 0 || arguments > COUNT_MAX || environment > COUNT_MAX)
        return NULL;
    const char **table = table_of(plan, (size_t)(arguments + environment + 2));
    if (table == NULL)
        return NULL;
    size_t at = 0, slot = 0;
    for (uint64_t i = 0; i < arguments + environment; i++) {
        const char *end = at < size ? memchr(strings + at, 0, size - at) : NULL;
        if (end == NULL)
            return NULL;
        if (i == arguments)
            slot++; /* the NULL that ends the arguments */
        table[slot++] = strings + at;
        at = (size_t)(end - strings) + 1;
    }
    return table;
}

_Noreturn void child_main(struct child_plan *plan)
{
    const uint64_t *request = plan->request;
    if (set_descriptors(plan) != 0)
        fail(plan, START_FDS);
    if (unblock_signals() != 0 || setsid() < 0 || setpriority(PRIO_PROCESS, 0, CHILD_NICE) != 0)
        fail(plan, START_SESSION);
    umask(022);
    if (plan->is_copy)
        oom_offer(PROGRAM_FIRST);
    if (set_limits(request) != 0)
        fail(plan, START_LIMITS);
    if (become(plan->id) != 0)
        fail(plan, START_IDS);
    /* As the run's own id: without DAC_OVERRIDE root cannot enter the 0700 folder, and an unchecked chdir would leave the
     * program somewhere else. */
    if (chdir(WORK_PATH) != 0)
        fail(plan, START_WORK);
    size_t size;
    const char *strings = strings_of(plan, &size);
    const char **table = strings == NULL ? NULL : pointers_into(plan, strings, size);
    if (table == NULL) {
        errno = EINVAL;
        fail(plan, START_STRINGS);
    }
    execute((char *const *)(uintptr_t)table, (char *const *)(uintptr_t)(table + request[Q_ARGC] + 1));
    fail(plan, START_EXEC);
}
