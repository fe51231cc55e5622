/* What the supervisor's own processes share: fixed-size messages between core and front, shared pages, and the modules. */
#ifndef GRADER_INSIDE_H
#define GRADER_INSIDE_H

#include "protocol.h"

#include <stdatomic.h>
#include <sys/types.h>
#include <time.h>

#define WORK_PATH "/work"
#define SUBMISSION_PATH "/submission"
#define CHILD_NICE 10
#define NS_PER_S 1000000000ull
#define NS_PER_MS 1000000ull
#define MOUNTS_MAX 16
#define TEXT_MAX 1024

/* ---- messages over the SOCK_SEQPACKET pair; a message of another size or kind is a fatal surprise ---- */
enum message_kind { M_OPEN = 1, M_START, M_KILL, M_CLEAR, M_OPENED, M_COUNTERS, M_END, M_CLEARED, M_FATAL };

struct message {
    uint32_t kind;
    uint32_t number; /* OPEN: tree. START: which of the start_extra come. KILL: why. FATAL: code */
    uint32_t step;   /* OPEN: executable. OPENED: put_step */
    int32_t error;
    uint32_t text_bytes;
    uint32_t zero;
    uint64_t field[R_FIELDS]; /* START: request. COUNTERS, END: as they travel */
    uint8_t text[TEXT_MAX];   /* OPEN: path, NUL-terminated. START: the strings, if they fit. END: what the scrub left */
};

/* The descriptors that come with M_START, in this order; then those of start_extra that are said to come. */
enum start_fd { FD_STDIN, FD_STDOUT, FD_STDERR, FD_STDOUT_READ, FD_STDERR_READ, FD_EXTRA, START_FDS_COUNT = FD_EXTRA + 2 };
enum start_extra { START_STRINGS_FD = 1, START_HAND_FD = 2 }; /* strings that do not fit into the message are a file */
#define STRINGS_SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) /* nobody can change it while we read it */

struct strings { /* arguments, environment and output files of a run, each ended by NUL */
    int fd;             /* -1: they are these: */
    uint32_t text_bytes;
    char text[TEXT_MAX];
};

int message_send(int fd, const struct message *message, const int *fds, size_t count);
/* 1: a message; 0: nothing there; -1: the other side is gone or broke the rules. Fills `fds` (at most `most`), -1 for the rest. */
int message_receive(int fd, struct message *message, int *fds, size_t most);

/* ---- shared pages ---- */
struct front_page { /* written by the front, read by the core, but for main_pid */
    _Atomic uint64_t main_pid;
    _Atomic uint64_t turn; /* odd while the front is between read() and the update of the totals */
    _Atomic uint64_t out_total, err_total, stdin_starved_ns, stdin_taken;
};

struct canary_page {
    _Atomic uint32_t active; /* futex; written by the core */
    _Atomic uint64_t late_ns, max_late_ns, runnable, foreign_delay_ns;
    _Atomic uint64_t quiet_ns; /* how long certainly nothing of the run wanted a CPU; grows only */
    _Atomic uint64_t front;    /* its pid; written by the core, as is: */
    _Atomic uint64_t turn;     /* another for every run */
};

/* ---- measures.c ---- */
struct measures {
    int version; /* 1, 2, or 0: no readable cgroup */
    int cpu_usage, cpu_stat, memory, memory_peak, memory_hits, memory_events, pids, proc_stat;
    unsigned cpus; /* CPUs that this box may use */
    uint64_t cpu_mask[16];
};

void measures_open(struct measures *m);
uint64_t measure_cpu(const struct measures *m);       /* ns of the whole box */
uint64_t measure_memory(const struct measures *m);    /* bytes */
uint64_t measure_peak(const struct measures *m);
uint64_t measure_hits(const struct measures *m);
uint64_t measure_oom_kills(const struct measures *m);
uint64_t measure_throttled(const struct measures *m); /* ns */
uint64_t measure_tasks(const struct measures *m);
struct machine { /* of the box's CPUs since the machine was started, in ns */
    uint64_t idle, steal, tick; /* they are counted in ticks of so long */
};
struct machine measure_machine(const struct measures *m);
uint64_t now_ns(void);
uint64_t cpu_of_process(pid_t pid); /* ns; 0 is this process */
uint64_t difference(uint64_t now, uint64_t before); /* unknown if either is, and never below 0 */

/* ---- canary.c ---- */
_Noreturn void canary_main(struct canary_page *page, const struct measures *m);

/* ---- tasks.c ---- */
#define TASKS_MAX 16
struct task {
    long pid;
    uint64_t started, waited, on_cpu, behind, seen;
    int fresh;
};
struct tasks {
    uint64_t turn;
    struct task task[TASKS_MAX];
};
void tasks_forget(struct tasks *tasks);
/* Look at every process of the box. `box_used`: CPU time of the box since the last look. Gives the longest foreign wait
 * of any one task since then, in ns. */
uint64_t tasks_look(struct tasks *tasks, uint64_t box_used, uint64_t *runnable);
/* Whether any thread of the run is runnable at this moment; yes as well if that cannot be told. */
int tasks_want_cpu(pid_t front);

/* ---- ids.c ---- */
struct ids {
    uint32_t low, high; /* the range that ids are drawn from, both included */
};
int ids_open(struct ids *ids);
uint32_t ids_draw(const struct ids *ids, const uint32_t *taken, size_t count);
/* Give up every privilege for good. 0, or -1 with errno. */
int become(uint32_t id);
int drop_capabilities(void); /* all of them, keeping the ids; and no new ones */
int ptmx_close(void);

/* ---- mounts.c: the writable places of the box ---- */
struct mounts {
    size_t count;
    int overflow; /* more writable mounts than the table holds: the box cannot be reused */
    int fd[MOUNTS_MAX];
    mode_t mode[MOUNTS_MAX];
    char path[MOUNTS_MAX][256];
    int work; /* index of /work */
    int submission_fd;
};
int mounts_open(struct mounts *mounts);
int mount_is_empty(int fd); /* 1, 0, or -1 */
int mounts_are_empty(const struct mounts *mounts);
/* Owner, mode, times, extended attributes of every mount's root as they were: nothing can be handed on in them. */
int mounts_reset(const struct mounts *mounts);

/* ---- tree.c ---- */
int tree_put(int root, const char *path, int executable, mode_t file_mode, uint32_t owner, uint32_t *step, int *made_folder);
int tree_give(int root, uint32_t owner, int depth);
int tree_open(int root, const char *path);

/* ---- scrub.c ---- */
int scrub_folder(int root, uint64_t deadline_ns, uint64_t *removed);

/* ---- hand.c ---- */
enum hand_kind { HAND_FILE = 1, HAND_KEPT, HAND_SKIPPED, HAND_KEPT_DONE };
struct hand_item { /* what the hand writes to the front: this, `path_bytes` of path, `content_bytes` of content */
    uint8_t kind, status, file_kind, executable;
    uint32_t index, mode, error, path_bytes;
    uint64_t size, allocated, content_bytes, files, bytes;
};
struct hand_report { /* what it leaves for the core, in a shared page */
    _Atomic uint64_t removed;
    _Atomic uint32_t finished;
};
struct hand_job {
    const struct mounts *mounts;
    struct hand_report *report;
    const uint64_t *request;
    uint32_t id;
    const struct strings *strings;
    int out; /* -1: nothing to collect */
    int keep;
};
_Noreturn void hand_main(const struct hand_job *job);

/* ---- filter.c ---- */
int filter_install(void);

/* ---- child.c ---- */
struct child_report { /* in a page that the core shares with the child, also with one that is a copy of it */
    uint32_t step; /* 0: exec took place */
    int32_t error;
};
struct child_plan {
    const uint64_t *request;
    uint32_t id;
    const struct strings *strings;
    int in, out, err;
    struct child_report *report;
    int is_copy; /* whether the child has the core's memory for itself, and not shared */
    /* What the child mapped: if it shared the core's memory, the core takes it away again. */
    void *mapped[2];
    size_t mapped_bytes[2];
};
_Noreturn void child_main(struct child_plan *plan);
/* ---- oom.c: whom the kernel kills when the box is at its memory limit ----
 * The program. It may lower its own score again, however small it then looks beside us; then the canary is next, and with it goes
 * the memory that it holds for that moment, so that the core has room and time to end the run and to tell of it. */
#define PROGRAM_FIRST "1000"
#define CANARY_NEXT "900"
void oom_offer(const char *score); /* this process, for good */
void oom_open(void);               /* once, by the core */
/* A child that is made between the two is killed first, and so would be the core meanwhile: only for one with which it shares its
 * memory, and would be killed anyway. 0; or -1 with errno: it cannot go back. */
void oom_begin(void);
int oom_end(void);

int limits_open(void); /* once, before the first run */
uint64_t limits_clamped(const uint64_t *request); /* bit n: rlimit n will be set to the hard limit */

/* ---- front.c ---- */
struct front_options {
    int core_fd;
    uint64_t idle_ns, start_ns;
    const char *facts;  /* lines `name value` that the core knows */
    const char *status; /* /proc/1/status as the engine made it */
    struct front_page *page;
};
_Noreturn void front_main(const struct front_options *options);

#endif
