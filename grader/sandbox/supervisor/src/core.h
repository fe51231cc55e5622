/* The root core: one state machine, driven by messages of the front, by the ends of children, and by the clock. */
#ifndef GRADER_CORE_H
#define GRADER_CORE_H

#include "inside.h"

enum core_state { CORE_IDLE, CORE_RUNNING, CORE_KILLING, CORE_HAND };

struct excuses { /* time that is not charged to the run */
    uint64_t late, foreign_delay, steal, contended;
};

struct before { /* counters at the start of a run */
    uint64_t cpu, own_cpu, memory, peak, hits, oom_kills, throttled, late, foreign_delay, quiet;
    int machine_is_known; /* not at the start, but from a while into the run on: */
    struct machine machine;
};

struct core {
    enum core_state state;
    int front_fd, signal_fd;
    pid_t front, canary, main, hand;
    struct ids ids;
    uint32_t front_id, canary_id, run_id; /* user ids; run_id is that of the next or current run */
    struct measures measures;
    struct mounts mounts;
    struct front_page *front_page;
    struct canary_page *canary_page;
    struct hand_report *hand_report;
    struct child_report *child_report;
    uint64_t start_ns, life_ns;
    int made_folder;
    int is_usable;          /* 0: the box serves no further run */
    uint64_t canary_cpu_ns; /* of one that was killed; then `canary` is 0 */
    int clearing;
    /* the current run */
    uint64_t request[Q_FIELDS];
    uint64_t result[R_FIELDS];
    struct before before;
    struct excuses at_stop; /* what the supervisor went by when it stopped the run */
    struct strings strings;
    int hand_fd, out_read, err_read;
    int main_ended, limit_hit_told;
    uint64_t begun_ns, killing_ns, hand_ns, next_cpu_ns, next_wall_ns, next_counters_ns;
};

/* core.c */
_Noreturn void core_loop(struct core *core);
_Noreturn void core_fatal(struct core *core, uint32_t code, int error, const char *text);
uint64_t own_cpu(const struct core *core);

/* run.c: start, watch */
void run_start(struct core *core, const struct message *message, int *fds);
void run_watch(struct core *core);
void run_stop(struct core *core, enum killed_for cause);
struct excuses run_excuses(const struct core *core);
void run_counters(struct core *core);

/* end.c: kill, reap, measure, collect, scrub, report */
void end_begin(struct core *core);
void end_step(struct core *core);
void end_reap(struct core *core);
void end_clear(struct core *core);

#endif
