/* The canary: how late does an ordinary task of this box get the CPU, when the box itself is not the cause? */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAP_NS (5 * NS_PER_MS)
#define NOTICE_NS (1 * NS_PER_MS) /* timer slack and a context switch are no lateness */
#define LOOK_NS (20 * NS_PER_MS)
#define RESERVE_BYTES (4u << 20)
#define QUIET_NS (NS_PER_MS / 10) /* what a run that wants no CPU may have used between two looks: errors of measurement */

static struct tasks tasks;
static uint64_t begun_ns, counted; /* when this run was looked at first, and the foreign wait that was counted since */
static uint64_t late_since_look;

struct mark { /* the box's counters at one moment */
    uint64_t at_ns, used, throttled, own;
};

static struct mark mark_now(const struct measures *m, pid_t front)
{
    uint64_t own = cpu_of_process(1) + cpu_of_process(front);
    own += cpu_of_process(0); /* books what runs now, so that the numbers belong together */
    return (struct mark){now_ns(), measure_cpu(m), measure_throttled(m), own};
}

/* CPU time of the box since `before`; unknown if its own quota held it up meanwhile, for then waiting proves nothing. */
static uint64_t used_since(const struct mark *before, const struct mark *now)
{
    uint64_t throttled = difference(now->throttled, before->throttled);
    return throttled != UNKNOWN && throttled > 0 ? UNKNOWN : difference(now->used, before->used);
}

static void count_late(struct canary_page *page, uint64_t late)
{
    atomic_fetch_add(&page->late_ns, late);
    late_since_look += late;
    if (late > atomic_load(&page->max_late_ns))
        atomic_store(&page->max_late_ns, late);
}

/* A wait is told when it ends, and may then be longer than the time between two looks: together they cannot be longer
 * than the time in which we have looked at this run. */
static void count_foreign(struct canary_page *page, uint64_t foreign, uint64_t looked_ns)
{
    uint64_t room = looked_ns > counted ? looked_ns - counted : 0;
    counted += foreign < room ? foreign : room;
    atomic_fetch_add(&page->foreign_delay_ns, foreign < room ? foreign : room);
}

/* Whom nobody waited for was not late: a program that sleeps is not held up by a busy machine. */
static void count_quiet(struct canary_page *page, uint64_t quiet)
{
    atomic_fetch_add(&page->quiet_ns, quiet);
    atomic_fetch_sub(&page->late_ns, late_since_look);
}

/* What happened between two looks. Nothing of the run wanted a CPU if it used none and nothing of it is runnable now: what
 * wants one stays runnable until it gets it. */
static void look(struct canary_page *page, const struct mark *before, const struct mark *now)
{
    uint64_t runnable, used = used_since(before, now);
    uint64_t foreign = tasks_look(&tasks, used == UNKNOWN ? 0 : used, &runnable);
    atomic_store(&page->runnable, runnable);
    if (used == UNKNOWN)
        tasks_forget(&tasks);
    else
        count_foreign(page, foreign, now->at_ns - begun_ns);
    uint64_t by_run = difference(difference(now->used, before->used), difference(now->own, before->own));
    if (by_run <= QUIET_NS && !tasks_want_cpu((pid_t)atomic_load(&page->front)))
        count_quiet(page, now->at_ns - before->at_ns);
    late_since_look = 0;
}

/* Given back when the kernel kills us for memory, see CANARY_NEXT. */
static void hold_reserve(void)
{
    void *reserve = mmap(NULL, RESERVE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    (void)reserve; /* without it there is less time */
}

_Noreturn void canary_main(struct canary_page *page, const struct measures *m)
{
    hold_reserve();
    const struct timespec nap = {0, (long)NAP_NS};
    struct mark looked = {0};
    uint64_t looked_turn = 0;
    for (;;) {
        if (atomic_load(&page->active) == 0) {
            syscall(SYS_futex, &page->active, FUTEX_WAIT, 0, NULL, NULL, 0);
            looked.at_ns = 0;
            continue;
        }
        const pid_t front = (pid_t)atomic_load(&page->front);
        uint64_t turn = atomic_load(&page->turn);
        struct mark before = mark_now(m, front);
        if (looked.at_ns == 0 || turn != looked_turn) { /* the first look at a run only sets the marks */
            uint64_t ignored;
            tasks_forget(&tasks);
            tasks_look(&tasks, 0, &ignored);
            looked = before;
            looked_turn = turn;
            begun_ns = before.at_ns;
            counted = late_since_look = 0;
        }
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) != 0 || atomic_load(&page->active) == 0 || atomic_load(&page->turn) != turn)
            continue;
        struct mark now = mark_now(m, front);
        uint64_t slept = now.at_ns - before.at_ns;
        if (slept > NAP_NS + NOTICE_NS) {
            uint64_t used = used_since(&before, &now), late = slept - NAP_NS;
            if (used != UNKNOWN && used / m->cpus < late)
                count_late(page, late - used / m->cpus);
        }
        if (now.at_ns - looked.at_ns >= LOOK_NS) {
            look(page, &looked, &now);
            looked = now;
        }
    }
}
