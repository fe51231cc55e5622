/* The canary: how late does an ordinary task of this box get the CPU, when the box itself is not the cause? */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAP_NS (5 * NS_PER_MS)
#define NOTICE_NS (1 * NS_PER_MS) /* timer slack and a context switch are no lateness */
#define LOOK_NS (20 * NS_PER_MS)

static struct tasks tasks;

struct mark { /* the box's counters at one moment */
    uint64_t at_ns, used, throttled;
};

static struct mark mark_now(const struct measures *m)
{
    cpu_of_process(0); /* books what runs now, so that the numbers belong together */
    return (struct mark){now_ns(), measure_cpu(m), measure_throttled(m)};
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
    if (late > atomic_load(&page->max_late_ns))
        atomic_store(&page->max_late_ns, late);
}

static void look(struct canary_page *page, const struct mark *before, const struct mark *now)
{
    uint64_t runnable, used = used_since(before, now);
    uint64_t foreign = tasks_look(&tasks, used == UNKNOWN ? 0 : used, &runnable);
    uint64_t passed = now->at_ns - before->at_ns;
    atomic_store(&page->runnable, runnable);
    if (used == UNKNOWN)
        tasks_forget(&tasks);
    else
        atomic_fetch_add(&page->foreign_delay_ns, foreign < passed ? foreign : passed);
}

_Noreturn void canary_main(struct canary_page *page, const struct measures *m)
{
    const struct timespec nap = {0, (long)NAP_NS};
    struct mark looked = {0, 0, 0};
    for (;;) {
        if (atomic_load(&page->active) == 0) {
            syscall(SYS_futex, &page->active, FUTEX_WAIT, 0, NULL, NULL, 0);
            looked.at_ns = 0;
            continue;
        }
        struct mark before = mark_now(m);
        if (looked.at_ns == 0) { /* the first look at a run only sets the marks */
            uint64_t ignored;
            tasks_forget(&tasks);
            tasks_look(&tasks, 0, &ignored);
            looked = before;
        }
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) != 0 || atomic_load(&page->active) == 0)
            continue;
        struct mark now = mark_now(m);
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
