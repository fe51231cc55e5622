/* Starting a run, and watching it: samples, limits, counters. */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPU_POLL_NS (10 * NS_PER_MS)
#define COUNTERS_NS (100 * NS_PER_MS)
/* A shorter run does not pay for the canary: what it waited in so short a time decides nothing, wall limits being longer. */
#define CANARY_AFTER_NS (20 * NS_PER_MS)

static void note_before(struct core *core)
{
    const struct measures *m = &core->measures;
    struct before *b = &core->before;
    b->memory = measure_memory(m);
    b->peak = measure_peak(m);
    b->hits = measure_hits(m);
    b->oom_kills = measure_oom_kills(m);
    b->throttled = measure_throttled(m);
    b->machine_is_known = 0; /* see run_watch: /proc/stat is too dear for a short run */
    b->quiet = atomic_load(&core->canary_page->quiet_ns);
    atomic_fetch_add(&core->canary_page->turn, 1);
    b->late = atomic_load(&core->canary_page->late_ns);
    b->foreign_delay = atomic_load(&core->canary_page->foreign_delay_ns);
    atomic_store(&core->canary_page->max_late_ns, 0);
    b->own_cpu = own_cpu(core); /* also books our running slice, so it comes before: */
    b->cpu = measure_cpu(m);
}

/* An end without a beginning: the result says which step failed, and nothing was executed. */
static void start_failed(struct core *core, enum start_step step, int error)
{
    core->result[R_START_STEP] = step;
    core->result[R_START_ERRNO] = (uint64_t)error;
}

#define SHARED_STRINGS_MAX (64u << 10)

static _Alignas(16) char child_stack[64 << 10];

static int child_entry(void *plan) { child_main(plan); }

/* The child shares our memory until it executes the program, as vfork does, on a stack of its own: copying even so small a
 * process costs a fifth of a short run. We stand still meanwhile. From the moment it has the run's id nobody else has that
 * id who could touch it, and changing ids has made the shared memory undumpable. Its signal handlers, descriptors, limits
 * and working directory are its own. With long arguments it gets a copy: they would count as our memory, and the largest
 * memory that we ever had is what the kernel starts every child's account with. Either way we go on when it has executed
 * the program, or has ended after it said in its report why it could not. */
static pid_t start_child(struct core *core, struct child_plan *plan)
{
    plan->is_copy = plan->request[Q_STRINGS] > SHARED_STRINGS_MAX;
    if (!plan->is_copy)
        oom_begin();
    pid_t pid = clone(child_entry, child_stack + sizeof child_stack, SIGCHLD | CLONE_VFORK | (plan->is_copy ? 0 : CLONE_VM), plan);
    int error = errno;
    if (!plan->is_copy && oom_end() != 0)
        core_fatal(core, FATAL_SYSTEM, errno, "the core's own oom score");
    for (int i = 0; i < 2; i++)
        if (plan->mapped[i] != NULL)
            munmap(plan->mapped[i], plan->mapped_bytes[i]);
    errno = error;
    return pid;
}

static int is_sealed(int fd) /* some kernels add seals of their own */
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & STRINGS_SEALS) == STRINGS_SEALS;
}

static int is_pipe(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode);
}

/* Whether the descriptors of a start are what they are said to be: as many as announced, pipes, and strings in a file
 * that nobody can change. The front is not trusted: what it could open elsewhere (a folder of root's) must not be given to the
 * run, and what can hold us up when it is closed (a socket) must never be closed by us. */
static int are_what_they_should(const struct message *message, const int *fds)
{
    int strings = message->number & START_STRINGS_FD ? FD_EXTRA : -1;
    int count = FD_EXTRA + (strings >= 0) + ((message->number & START_HAND_FD) != 0);
    for (int i = 0; i < count; i++)
        if (fds[i] < 0 || !(i == strings ? is_sealed(fds[i]) : is_pipe(fds[i])))
            return 0;
    return count == START_FDS_COUNT || fds[count] < 0;
}

void run_start(struct core *core, const struct message *message, int *fds)
{
    if (!are_what_they_should(message, fds))
        core_fatal(core, FATAL_PROTOCOL, 0, "a run without its descriptors");
    memcpy(core->request, message->field, sizeof core->request);
    for (int i = 0; i < R_FIELDS; i++)
        core->result[i] = 0;
    int extra = FD_EXTRA;
    core->strings.fd = message->number & START_STRINGS_FD ? fds[extra++] : -1;
    core->hand_fd = message->number & START_HAND_FD ? fds[extra++] : -1;
    core->strings.text_bytes = message->text_bytes;
    memcpy(core->strings.text, message->text, sizeof core->strings.text);
    core->out_read = fds[FD_STDOUT_READ];
    core->err_read = fds[FD_STDERR_READ];
    core->main = 0;
    core->main_ended = core->limit_hit_told = 0;
    if (core->request[Q_CPU_NS] > UINT64_MAX / 4 || core->request[Q_WALL_NS] > UINT64_MAX / 4)
        core_fatal(core, FATAL_PROTOCOL, 0, "a limit out of range"); /* the front has checked it; it is not trusted */
    int work = core->mounts.fd[core->mounts.work];
    if ((core->made_folder && tree_give(work, core->run_id, 0) != 0) || fchown(work, core->run_id, core->run_id) != 0)
        core_fatal(core, FATAL_SYSTEM, errno, "the work folder cannot be given to the run");
    core->made_folder = 0;
    /* The run owns its ends: opening /dev/stdin or /dev/stdout by name (which is how many a program reads its input) asks
     * for rights on the pipe. It gets no more than it has: its own input and output. */
    for (int i = FD_STDIN; i <= FD_STDERR; i++)
        if (fchown(fds[i], core->run_id, core->run_id) != 0)
            core_fatal(core, FATAL_SYSTEM, errno, "a stream cannot be given to the run");
    *core->child_report = (struct child_report){0, 0};
    core->result[R_CLAMPED] = limits_clamped(core->request);
    note_before(core);
    atomic_store(&core->front_page->main_pid, 0);
    core->begun_ns = now_ns();
    core->result[R_START_OFFSET] = core->begun_ns - core->start_ns;
    struct child_plan plan = {.request = core->request, .id = core->run_id, .strings = &core->strings,
                              .in = fds[FD_STDIN], .out = fds[FD_STDOUT], .err = fds[FD_STDERR], .report = core->child_report};
    pid_t pid = start_child(core, &plan);
    int error = errno;
    close(fds[FD_STDIN]);
    close(fds[FD_STDOUT]);
    close(fds[FD_STDERR]);
    core->next_cpu_ns = core->begun_ns + CPU_POLL_NS;
    core->next_counters_ns = core->begun_ns + COUNTERS_NS;
    core->next_wall_ns = 0;
    core->state = CORE_RUNNING;
    if (pid < 0) {
        start_failed(core, START_FORK, error);
        core->main_ended = 1;
        end_begin(core);
        return;
    }
    core->main = pid;
    atomic_store(&core->front_page->main_pid, (uint64_t)pid);
    if (core->child_report->step != START_OK)
        start_failed(core, (enum start_step)core->child_report->step, core->child_report->error);
}

void run_stop(struct core *core, enum killed_for cause)
{
    if (core->result[R_KILLED_FOR] == KILL_NONE) {
        core->result[R_KILLED_FOR] = cause; /* the first cause stands */
        core->at_stop = run_excuses(core);
    }
    end_begin(core);
}

/* The longest that something of the run can have waited for a CPU that others had. It wanted a CPU for no longer than it was
 * not quiet. While it waits no CPU of the box is idle, so it waited no longer than the CPUs were not idle on average; nor
 * longer than all that time, less what the box itself used of it. A program can shorten neither number's truth: CPUs that it
 * keeps busy are its own use. The canary's estimate is what is known to be lost, this is what may be. */
static uint64_t contended(const struct core *core, const struct machine *now)
{
    const struct before *b = &core->before;
    uint64_t passed = now_ns() - core->begun_ns;
    uint64_t wanted = difference(core->main_ended ? core->result[R_WALL] : passed, difference(atomic_load(&core->canary_page->quiet_ns), b->quiet));
    if (!b->machine_is_known)
        return wanted; /* too early to tell */
    uint64_t idle = difference(now->idle, b->machine.idle), used = difference(measure_cpu(&core->measures), b->cpu);
    if (idle == UNKNOWN || used == UNKNOWN)
        return UNKNOWN;
    uint64_t cpus = core->measures.cpus, all = cpus * (passed + now->tick);
    uint64_t busy = difference(all, idle), others = difference(busy, used);
    uint64_t most = others < busy / cpus ? others : busy / cpus;
    return most < wanted ? most : wanted;
}

struct excuses run_excuses(const struct core *core)
{
    const struct canary_page *page = core->canary_page;
    struct machine now = {UNKNOWN, UNKNOWN, 0};
    if (core->before.machine_is_known)
        now = measure_machine(&core->measures);
    return (struct excuses){.late = difference(atomic_load(&page->late_ns), core->before.late),
                            .foreign_delay = difference(atomic_load(&page->foreign_delay_ns), core->before.foreign_delay),
                            .steal = core->before.machine_is_known ? difference(now.steal, core->before.machine.steal) : UNKNOWN,
                            .contended = contended(core, &now)};
}

static uint64_t counted_lateness(const struct core *core)
{
    const struct canary_page *page = core->canary_page;
    uint64_t late = difference(atomic_load(&page->late_ns), core->before.late);
    uint64_t foreign = difference(atomic_load(&page->foreign_delay_ns), core->before.foreign_delay);
    return late > foreign ? late : foreign;
}

static uint64_t used_cpu(const struct core *core)
{
    uint64_t own = own_cpu(core) - core->before.own_cpu;
    return difference(difference(measure_cpu(&core->measures), core->before.cpu), own);
}

void run_counters(struct core *core)
{
    const struct measures *m = &core->measures;
    struct message message = {.kind = M_COUNTERS};
    uint64_t *f = message.field;
    f[C_NOW] = now_ns() - core->start_ns;
    f[C_CPU] = used_cpu(core);
    f[C_MEMORY] = measure_memory(m);
    f[C_LIMIT_HITS] = difference(measure_hits(m), core->before.hits);
    f[C_OOM_KILLS] = difference(measure_oom_kills(m), core->before.oom_kills);
    f[C_RUNNABLE] = atomic_load(&core->canary_page->runnable);
    f[C_LATENESS] = counted_lateness(core);
    f[C_TASKS] = measure_tasks(m);
    message_send(core->front_fd, &message, NULL, 0); /* a front that is busy misses one */
}

static void wake_canary(struct core *core)
{
    if (atomic_exchange(&core->canary_page->active, 1) == 0)
        syscall(SYS_futex, &core->canary_page->active, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Time that the hypervisor took away can be booked as the program's, and is not charged to it. So the run may use that
   much more (at most three times its limit): else a kill right at the limit would prove nothing on a machine with steal. */
static uint64_t cpu_allowed(const struct core *core)
{
    uint64_t limit = core->request[Q_CPU_NS];
    if (!core->before.machine_is_known)
        return limit;
    uint64_t now = measure_machine(&core->measures).steal, then = core->before.machine.steal;
    if (now == UNKNOWN || then == UNKNOWN || now <= then)
        return limit;
    uint64_t stolen = now - then;
    return limit + (stolen < 2 * limit ? stolen : 2 * limit);
}

/* Whether it would be too long even if it had waited for others whenever it may have. If not, it goes on: then what is not
 * settled by its end is settled by three times the limit, and says nothing of the program. */
static int is_certainly_too_long(const struct core *core, uint64_t wall)
{
    struct excuses excuses = run_excuses(core);
    uint64_t waived = counted_lateness(core);
    if (excuses.contended != UNKNOWN && excuses.contended > waived)
        waived = excuses.contended;
    return difference(wall, waived + atomic_load(&core->front_page->stdin_starved_ns)) > core->request[Q_WALL_NS];
}

/* The first hit of the box's own limit is told at once: the kernel may kill us next, and then what the client was told last
 * is the only evidence that it was the run's memory. */
static void tell_of_limit_hit(struct core *core)
{
    uint64_t hits = core->limit_hit_told ? UNKNOWN : difference(measure_hits(&core->measures), core->before.hits);
    if (hits == UNKNOWN || hits == 0)
        return;
    core->limit_hit_told = 1;
    run_counters(core);
}

/* Called after every wake, at least each 2 ms. */
void run_watch(struct core *core)
{
    uint64_t now = now_ns(), wall = now - core->begun_ns;
    uint64_t memory = measure_memory(&core->measures);
    core->result[R_SAMPLES]++;
    if (memory != UNKNOWN && memory > core->result[R_SAMPLED_PEAK])
        core->result[R_SAMPLED_PEAK] = memory;
    tell_of_limit_hit(core);
    if (wall >= CANARY_AFTER_NS || wall >= core->request[Q_WALL_NS] / 8)
        wake_canary(core);
    if (now >= core->next_cpu_ns) {
        core->next_cpu_ns = now + CPU_POLL_NS;
        if (!core->before.machine_is_known && now - core->begun_ns >= CPU_POLL_NS) {
            core->before.machine = measure_machine(&core->measures);
            core->before.machine_is_known = 1;
        }
        uint64_t used = used_cpu(core);
        if (used != UNKNOWN && used > core->request[Q_CPU_NS] && used > cpu_allowed(core)) {
            run_stop(core, KILL_CPU);
            return;
        }
    }
    uint64_t waived = counted_lateness(core) + atomic_load(&core->front_page->stdin_starved_ns);
    if (difference(wall, waived) > core->request[Q_WALL_NS] && now >= core->next_wall_ns) {
        core->next_wall_ns = now + CPU_POLL_NS;
        if (is_certainly_too_long(core, wall)) {
            run_stop(core, KILL_WALL);
            return;
        }
    }
    if (wall > 3 * core->request[Q_WALL_NS]) {
        run_stop(core, KILL_STARVED);
        return;
    }
    if (now >= core->next_counters_ns) {
        core->next_counters_ns = now + COUNTERS_NS;
        run_counters(core);
    }
}
