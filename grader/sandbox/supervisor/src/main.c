/* PID 1 of a box: checks where it is, makes its helpers, and becomes the core. See PROTOCOL.md for who does what. */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SUPERVISOR_VERSION "1.0"

static struct core the_core;
static char facts_text[8192];
static char status_text[8192];

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "supervisor: %s: %s\n", what, strerror(errno));
    exit(90);
}

static uint64_t seconds(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || *text == '-' || value > 31536000) {
        errno = EINVAL;
        die("a limit must be whole seconds, 0 for none");
    }
    return value * NS_PER_S;
}

static void add_fact(const char *name, const char *format, ...)
{
    size_t used = strlen(facts_text);
    if (used + 512 > sizeof facts_text)
        return;
    used += (size_t)snprintf(facts_text + used, sizeof facts_text - used, "%s ", name);
    va_list list;
    va_start(list, format);
    vsnprintf(facts_text + used, 400, format, list);
    va_end(list);
    strcat(facts_text, "\n");
}

static void gather_facts(const struct core *core, int ptmx)
{
    add_fact("supervisor.version", SUPERVISOR_VERSION);
    add_fact("supervisor.pid", "%d", (int)getpid());
    add_fact("clock.start_ns", "%llu", (unsigned long long)core->start_ns);
    add_fact("cgroup.version", "%d", core->measures.version);
    add_fact("cgroup.cpu_usage", "%s", core->measures.cpu_usage >= 0 ? "cgroup" : "rusage of what was reaped");
    add_fact("run.uid_range", "%u-%u", core->ids.low, core->ids.high);
    add_fact("pty.closed", "%d", ptmx == 0);
    add_fact("affinity.count", "%u", core->measures.cpus);
    for (size_t i = 0; i < core->mounts.count; i++)
        if (strchr(core->mounts.path[i], '\n') == NULL)
            add_fact("scrub.mount", "%s", core->mounts.path[i]);
    if (core->mounts.overflow)
        add_fact("scrub.overflow", "1");
    char cpus[300] = "";
    size_t used = 0;
    for (unsigned cpu = 0; cpu < 1024 && used + 8 < sizeof cpus; cpu++)
        if (core->measures.cpu_mask[cpu / 64] >> (cpu % 64) & 1)
            used += (size_t)snprintf(cpus + used, sizeof cpus - used, used > 0 ? ",%u" : "%u", cpu);
    add_fact("affinity.cpus", "%s", cpus);
}

/* What the engine made of us, taken down before our own filter and our own no_new_privs could be taken for its. */
static void read_own_status(void)
{
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, status_text, sizeof status_text - 1);
    if (got <= 0)
        die("/proc/self/status");
    close(fd);
    status_text[got] = 0;
}

static void *shared_page(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        die("a shared page");
    return page;
}

static void close_others(int keep)
{
    if (keep > 3 && syscall(SYS_close_range, 3u, (unsigned)keep - 1, 0u) != 0)
        _exit(91);
    if (syscall(SYS_close_range, (unsigned)keep + 1, ~0u, 0u) != 0)
        _exit(91);
}

static void unblock_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
        _exit(91);
}

static void start_canary(struct core *core)
{
    core->canary = fork();
    if (core->canary < 0)
        die("fork of the canary");
    if (core->canary > 0)
        return;
    unblock_signals();
    oom_offer(CANARY_NEXT);
    const struct rlimit none = {0, 0};
    if (munmap(core->front_page, 4096) != 0 || munmap(core->hand_report, 4096) != 0 || setpriority(PRIO_PROCESS, 0, CHILD_NICE) != 0 ||
        become(core->canary_id) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || setrlimit(RLIMIT_NPROC, &none) != 0)
        _exit(92);
    canary_main(core->canary_page, &core->measures);
}

static void start_front(struct core *core, uint64_t idle_ns)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
        die("socketpair");
    core->front = fork();
    if (core->front < 0)
        die("fork of the front");
    if (core->front > 0) {
        close(pair[1]);
        core->front_fd = pair[0];
        /* A front that has been taken over and reads nothing must not hold up the one who keeps the limits. */
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
            die("fcntl");
        return;
    }
    unblock_signals();
    close_others(pair[1]);
    if (munmap(core->canary_page, 4096) != 0 || munmap(core->hand_report, 4096) != 0 || become(core->front_id) != 0)
        _exit(92);
    static struct front_options options;
    options = (struct front_options){pair[1], idle_ns, core->start_ns, facts_text, status_text, core->front_page};
    front_main(&options);
}

/* The core has no business with the client's bytes: its own stdin and stdout are /dev/null from here on. */
static void leave_stdio(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) != 0 || dup2(null, 1) != 1)
        die("/dev/null");
    close(null);
}

/* What is ignored here would be ignored by every program: exec resets handlers only. */
static void default_signals(void)
{
    const struct sigaction standard = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP && sigaction(number, &standard, NULL) != 0 && errno != EINVAL)
            die("sigaction"); /* EINVAL: the two that libc keeps for itself, which we never touch */
}

static void block_signals(struct core *core)
{
    sigset_t watched;
    sigemptyset(&watched);
    sigaddset(&watched, SIGCHLD);
    sigaddset(&watched, SIGTERM);
    sigaddset(&watched, SIGINT);
    if (sigprocmask(SIG_BLOCK, &watched, NULL) != 0)
        die("sigprocmask");
    core->signal_fd = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (core->signal_fd < 0)
        die("signalfd");
}

int main(int argc, char **argv)
{
    struct core *core = &the_core;
    uint64_t idle_ns = 0;
    core->start_ns = now_ns();
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 < argc && strcmp(argv[i], "--idle-s") == 0)
            idle_ns = seconds(argv[i + 1]);
        else if (i + 1 < argc && strcmp(argv[i], "--lifetime-s") == 0)
            core->life_ns = seconds(argv[i + 1]);
        else {
            errno = EINVAL;
            die("usage: supervisor [--idle-s N] [--lifetime-s N]");
        }
    }
    if (getpid() != 1) {
        errno = EPERM;
        die("must be PID 1: it kills everything that it can see");
    }
    umask(022);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        die("PR_SET_DUMPABLE");
    default_signals();
    block_signals(core);
    measures_open(&core->measures);
    if (mounts_open(&core->mounts) != 0)
        die("the box needs /work and /submission as writable mounts of their own");
    if (ids_open(&core->ids) != 0)
        die("no range of user ids to run programs under");
    int ptmx = ptmx_close();
    core->front_id = ids_draw(&core->ids, NULL, 0);
    core->canary_id = ids_draw(&core->ids, &core->front_id, 1);
    const uint32_t taken[] = {core->front_id, core->canary_id};
    core->run_id = ids_draw(&core->ids, taken, 2);
    core->front_page = shared_page();
    core->canary_page = shared_page();
    core->hand_report = shared_page();
    core->strings.fd = core->hand_fd = core->out_read = core->err_read = -1;
    read_own_status();
    /* Put on here and inherited by every process of the box: for each run it would cost 80 microseconds. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || filter_install() != 0)
        die("the seccomp filter");
    gather_facts(core, ptmx);
    start_canary(core);
    start_front(core, idle_ns);
    atomic_store(&core->canary_page->front, (uint64_t)core->front);
    leave_stdio();
    core->child_report = shared_page(); /* after the front and the canary: not theirs */
    oom_open();
    if (limits_open() != 0)
        die("getrlimit");
    if (mounts_reset(&core->mounts) != 0)
        die("the writable places cannot be made the way they must be");
    core->is_usable = 1;
    core_loop(core);
}
