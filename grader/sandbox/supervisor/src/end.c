/* The end of a run: everything of it killed and reaped, measured, its files picked up, its places emptied and proved so. */
#define _GNU_SOURCE
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_BUDGET_NS (10 * NS_PER_S)
#define HAND_BUDGET_NS (90 * NS_PER_S)
#define RUN_DELAY_FROM_NS (10 * NS_PER_MS)
#define REAP_AT_ONCE 256 /* an orphan storm must not keep the core from its limits */

/* kill(-1) with the effective id of the run reaches what has that id, and nothing else: changing the effective id from 0
 * takes the effective capabilities away, and no other process of the box has the id 0 but PID 1, which a kill(-1) of its
 * own never reaches. The saved id stays 0: nothing of the run can signal or trace us meanwhile. */
static void kill_run(struct core *core)
{
    if (setresuid((uid_t)-1, core->run_id, (uid_t)-1) != 0)
        core_fatal(core, FATAL_SYSTEM, errno, "setresuid");
    kill(-1, SIGKILL); /* its result says nothing: 0 is returned even if every process refused */
    if (setresuid((uid_t)-1, 0, (uid_t)-1) != 0)
        core_fatal(core, FATAL_SYSTEM, errno, "setresuid back");
}

/* Core, front, canary: none has threads, and the end of the front is the end of the box. */
static uint64_t own_processes(const struct core *core) { return core->canary != 0 ? 3 : 2; }

/* Whether no process, not even a zombie, has the run's id. The box's own count says it at once where there is one: a process
 * is counted until it is reaped. Else getpriority looks at every process of the machine for us. */
static int nobody_left(const struct core *core)
{
    if (core->hand == 0 && measure_tasks(&core->measures) == own_processes(core))
        return 1;
    errno = 0;
    return getpriority(PRIO_USER, core->run_id) == -1 && errno == ESRCH;
}

static uint64_t ns_of(struct timeval t) { return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_usec * 1000; }

static void add_usage(uint64_t *result, const struct rusage *usage)
{
    result[R_USER] += ns_of(usage->ru_utime);
    result[R_SYSTEM] += ns_of(usage->ru_stime);
    result[R_VOLUNTARY] += (uint64_t)usage->ru_nvcsw;
    result[R_INVOLUNTARY] += (uint64_t)usage->ru_nivcsw;
    uint64_t rss = (uint64_t)usage->ru_maxrss * 1024;
    if (rss > result[R_MAX_RSS])
        result[R_MAX_RSS] = rss;
}

/* How much has gone through a stream up to now: what the front has read plus what is in the pipe. The turn counter is odd
 * while the front is between the two. */
static uint64_t stream_total(const struct core *core, int fd, _Atomic uint64_t *total)
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t turn = atomic_load(&core->front_page->turn);
        int waiting = 0;
        if (turn % 2 == 0 && ioctl(fd, FIONREAD, &waiting) == 0) {
            uint64_t sum = atomic_load(total) + (uint64_t)waiting;
            if (atomic_load(&core->front_page->turn) == turn)
                return sum;
        }
        struct timespec moment = {0, 20000};
        nanosleep(&moment, NULL);
    }
    return UNKNOWN;
}

static void note_main_end(struct core *core, int status)
{
    uint64_t *r = core->result;
    core->main_ended = 1;
    r[R_WALL] = now_ns() - core->begun_ns;
    r[R_OUT_AFTER] = stream_total(core, core->out_read, &core->front_page->out_total);
    r[R_ERR_AFTER] = stream_total(core, core->err_read, &core->front_page->err_total);
    if (r[R_START_STEP] != START_OK)
        return;
    if (WIFSIGNALED(status)) {
        r[R_ENDED_BY] = 2;
        r[R_CODE] = (uint64_t)WTERMSIG(status);
        r[R_CORE] = WCOREDUMP(status) ? 1 : 0;
        if (WTERMSIG(status) == SIGXFSZ && r[R_KILLED_FOR] == KILL_NONE)
            r[R_KILLED_FOR] = KILL_FILE_SIZE;
    } else {
        r[R_ENDED_BY] = 1;
        r[R_CODE] = (uint64_t)WEXITSTATUS(status);
    }
}

static void hand_ended(struct core *core, int status);

/* A run whose processes do not want to die for the memory that they used: the kernel took the canary in their place. Whether
 * it was the box's own limit is for the client to say, from the counters; here it is the end of the run, and of the box after
 * it. 0: it was not the kernel, or there is no run. */
static int canary_died_for_the_run(struct core *core, int status, const struct rusage *usage)
{
    uint64_t kills = difference(measure_oom_kills(&core->measures), core->before.oom_kills);
    if (core->state == CORE_IDLE || core->clearing || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || kills == UNKNOWN || kills == 0)
        return 0;
    core->canary = 0;
    core->canary_cpu_ns = ns_of(usage->ru_utime) + ns_of(usage->ru_stime);
    end_begin(core);
    return 1;
}

/* The kernel's own account of how long main waited for a CPU; a zombie still has it. Not asked for a short run. */
static void note_run_delay(struct core *core)
{
    char path[64], text[128];
    core->result[R_RUN_DELAY] = UNKNOWN;
    if (now_ns() - core->begun_ns < RUN_DELAY_FROM_NS)
        return;
    snprintf(path, sizeof path, "/proc/%d/schedstat", (int)core->main);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    unsigned long long on_cpu, waited;
    if (size <= 0)
        return;
    text[size] = 0;
    if (sscanf(text, "%llu %llu", &on_cpu, &waited) == 2)
        core->result[R_RUN_DELAY] = waited;
}

void end_reap(struct core *core)
{
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        siginfo_t info = {.si_pid = 0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
            return;
        if (info.si_pid == core->main)
            note_run_delay(core);
        struct rusage usage;
        int status;
        pid_t pid = wait4(info.si_pid, &status, WNOHANG, &usage);
        if (pid <= 0)
            return;
        if (pid == core->canary && canary_died_for_the_run(core, status, &usage))
            continue;
        if (pid == core->front || pid == core->canary) {
            kill(-1, SIGKILL);
            _exit(pid == core->front && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 100 + FATAL_FRONT);
        }
        if (pid == core->hand) {
            core->hand = 0;
            hand_ended(core, status);
            continue;
        }
        core->result[R_REAPED]++;
        add_usage(core->result, &usage);
        if (pid == core->main) {
            core->main = 0;
            note_main_end(core, status);
            if (core->state == CORE_RUNNING)
                end_begin(core);
        } else if (core->state == CORE_KILLING && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
            core->result[R_SURVIVORS]++;
        }
    }
}

void end_begin(struct core *core)
{
    if (core->state != CORE_RUNNING)
        return;
    core->state = CORE_KILLING;
    core->killing_ns = now_ns();
    if (!core->main_ended)
        kill_run(core); /* else end_step sees first whether there is anybody to kill: mostly there is not */
}

static void final_measures(struct core *core)
{
    const struct measures *m = &core->measures;
    const struct before *b = &core->before;
    uint64_t *r = core->result;
    r[R_OWN_CPU] = own_cpu(core) - b->own_cpu;
    uint64_t cpu = difference(measure_cpu(m), b->cpu);
    /* Without a cgroup counter, what was reaped is all we know; the facts say so. */
    r[R_CPU] = cpu == UNKNOWN ? r[R_USER] + r[R_SYSTEM] : difference(cpu, r[R_OWN_CPU]);
    r[R_CGROUP_PEAK] = measure_peak(m);
    r[R_CGROUP_PEAK_BEFORE] = b->peak;
    r[R_MEMORY_BEFORE] = b->memory;
    uint64_t memory = measure_memory(m);
    if (memory != UNKNOWN && memory > r[R_SAMPLED_PEAK])
        r[R_SAMPLED_PEAK] = memory;
    if (memory == UNKNOWN)
        r[R_SAMPLED_PEAK] = UNKNOWN;
    r[R_OOM_KILLS] = difference(measure_oom_kills(m), b->oom_kills);
    r[R_LIMIT_HITS] = difference(measure_hits(m), b->hits);
    r[R_THROTTLED] = difference(measure_throttled(m), b->throttled);
    /* What was excused after the decision to stop must not make it look as if the limit had been kept. */
    struct excuses excuses = r[R_KILLED_FOR] == KILL_NONE ? run_excuses(core) : core->at_stop;
    r[R_STEAL] = excuses.steal;
    r[R_FOREIGN_DELAY] = excuses.foreign_delay;
    r[R_CONTENDED] = excuses.contended;
    r[R_LATENESS] = excuses.late > excuses.foreign_delay ? excuses.late : excuses.foreign_delay;
    r[R_MAX_LATE] = atomic_load(&core->canary_page->max_late_ns);
    if (!core->main_ended)
        r[R_WALL] = now_ns() - core->begun_ns;
}

static void close_if(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void start_hand(struct core *core, uint32_t id, const struct mounts *mounts, int out)
{
    struct hand_job job = {mounts, core->hand_report, core->request, id, &core->strings, out,
                           core->request[Q_KEEP_FILES] > 0 && core->result[R_ENDED_BY] == 1 && core->result[R_CODE] == 0 && core->result[R_KILLED_FOR] == KILL_NONE};
    atomic_store(&core->hand_report->removed, 0);
    atomic_store(&core->hand_report->finished, 0);
    pid_t pid = fork();
    if (pid == 0)
        hand_main(&job);
    if (pid < 0)
        core_fatal(core, FATAL_SYSTEM, errno, "fork of the hand");
    core->hand = pid;
    core->hand_ns = now_ns();
    core->state = CORE_HAND;
}

/* The last word about a run: the places are root's again, empty, and the next run gets another id. */
static void finish(struct core *core, int scrubbed, int failed)
{
    struct message message = {.kind = M_END};
    uint64_t *r = core->result;
    /* Without a hand, all_dead has just seen that the places are empty, and nobody is left who could change that. */
    int clean = !failed && (!scrubbed || mounts_are_empty(&core->mounts) == 1);
    r[R_SCRUB] = clean ? (scrubbed ? 1 : 0) : 2;
    r[R_SCRUB_REMOVED] = scrubbed ? atomic_load(&core->hand_report->removed) : 0;
    r[R_USABLE] = clean && core->canary != 0 ? 1 : 0;
    if (!clean) {
        size_t used = 0;
        for (size_t i = 0; i < core->mounts.count && used < TEXT_MAX - 300; i++)
            if (mount_is_empty(core->mounts.fd[i]) != 1)
                used += (size_t)snprintf((char *)message.text + used, TEXT_MAX - used, "%s is not empty; ", core->mounts.path[i]);
        message.text_bytes = (uint32_t)used;
    }
    memcpy(message.field, r, sizeof message.field);
    core->state = CORE_IDLE;
    core->is_usable = r[R_USABLE] != 0;
    if (message_send(core->front_fd, &message, NULL, 0) != 0)
        core_fatal(core, FATAL_FRONT, errno, "the front takes no result");
    /* The rest while the result is on its way: nothing is started before it is done, and where it cannot be done the box ends. */
    close_if(&core->strings.fd);
    close_if(&core->hand_fd);
    uint32_t taken[] = {core->front_id, core->canary_id, core->run_id};
    core->run_id = ids_draw(&core->ids, taken, 3);
    if (clean && mounts_reset(&core->mounts) != 0)
        core_fatal(core, FATAL_SYSTEM, errno, "the writable places cannot be made the way they were");
}

static void hand_ended(struct core *core, int status)
{
    int failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0 || atomic_load(&core->hand_report->finished) != 1;
    if (core->clearing) {
        struct message message = {.kind = M_CLEARED};
        /* The next submission and its run may already be on their way to us, behind the CLEAR: they must not get through. */
        if (failed || mount_is_empty(core->mounts.submission_fd) != 1)
            core_fatal(core, FATAL_NOT_CLEARED, 0, "/submission could not be emptied");
        core->clearing = 0;
        core->state = CORE_IDLE;
        if (message_send(core->front_fd, &message, NULL, 0) != 0)
            core_fatal(core, FATAL_FRONT, errno, "the front takes no answer");
        return;
    }
    core->result[R_SCRUB_NS] = now_ns() - core->hand_ns;
    if (!nobody_left(core)) { /* it makes no processes; one that what it read has taken over might */
        kill_run(core);
        failed = 1;
    }
    finish(core, 1, failed);
}

/* A file that was deleted but is mapped or open is gone with its last process; what is named is gone now. */
static void all_dead(struct core *core)
{
    core->result[R_KILL_NS] = now_ns() - core->killing_ns;
    atomic_store(&core->canary_page->active, 0);
    final_measures(core);
    close_if(&core->out_read);
    close_if(&core->err_read);
    /* Most runs leave nothing and have nothing picked up: no hand is needed then. */
    if (core->hand_fd < 0 && mounts_are_empty(&core->mounts) == 1) {
        finish(core, 0, 0);
        return;
    }
    start_hand(core, core->run_id, &core->mounts, core->hand_fd);
    close_if(&core->hand_fd);
}

void end_step(struct core *core)
{
    if (core->state == CORE_HAND) {
        if (now_ns() - core->hand_ns > HAND_BUDGET_NS)
            core_fatal(core, FATAL_SURVIVORS, 0, "collecting and scrubbing took too long");
        return;
    }
    if (core->main_ended && nobody_left(core)) {
        all_dead(core);
        return;
    }
    if (now_ns() - core->killing_ns > KILL_BUDGET_NS)
        core_fatal(core, FATAL_SURVIVORS, 0, "processes of the run would not die");
    kill_run(core);
    end_reap(core);
    if (core->main_ended && nobody_left(core))
        all_dead(core);
}

/* /submission holds only what the core made: folders and files of root, bounded in depth. The hand that empties it keeps
 * the id 0 but none of the capabilities. */
void end_clear(struct core *core)
{
    static struct mounts only;
    memset(&only, 0, sizeof only);
    only.count = 1;
    only.fd[0] = core->mounts.submission_fd;
    only.work = 0;
    core->clearing = 1;
    memset(core->result, 0, sizeof core->result);
    core->strings.fd = -1;
    start_hand(core, 0, &only, -1);
}
