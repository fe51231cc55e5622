/* The canary: how late does an ordinary task of this box get the CPU, when the box itself is not the cause? */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAP_NS (5 * NS_PER_MS)
#define NOTICE_NS (1 * NS_PER_MS) /* timer slack and a context switch are no lateness */

static void wait_until_active(struct canary_page *page)
{
    while (atomic_load(&page->active) == 0)
        syscall(SYS_futex, &page->active, FUTEX_WAIT, 0, NULL, NULL, 0);
}

_Noreturn void canary_main(struct canary_page *page, const struct measures *m)
{
    const struct timespec nap = {0, (long)NAP_NS};
    for (;;) {
        wait_until_active(page);
        cpu_of_process(0); /* books what runs now, so that the box's use is not counted into the nap */
        uint64_t used_before = measure_cpu(m), throttled_before = measure_throttled(m), start = now_ns();
        if (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL) != 0 && errno != EINTR)
            continue;
        uint64_t slept = now_ns() - start;
        if (slept <= NAP_NS + NOTICE_NS || atomic_load(&page->active) == 0)
            continue;
        cpu_of_process(0);
        uint64_t used = difference(measure_cpu(m), used_before), throttled = difference(measure_throttled(m), throttled_before);
        if (used == UNKNOWN || (throttled != UNKNOWN && throttled > 0))
            continue; /* cannot be told apart from the box's own doing */
        uint64_t late = slept - NAP_NS, own = used / m->cpus;
        if (own >= late)
            continue;
        late -= own;
        atomic_fetch_add(&page->late_ns, late);
        if (late > atomic_load(&page->max_late_ns))
            atomic_store(&page->max_late_ns, late);
    }
}
