/* The privileged core of the supervisor when everything around it has been taken over: the front (messages of any kind at any
 * moment, with any descriptors, and any numbers in its shared page), the hand (any end, any report, processes and files left behind) and
 * the program. One input is a list of such acts; the core must go on or end the box, but never break memory, run into undefined
 * behaviour, hang, keep a descriptor, wait for a socket to close, give away or touch anything outside the box's own folders, go on
 * with changed ids, or call a box clean that is not.
 *
 * The core's files are included, with the calls that only root may make replaced by checks. Messages, descriptors, folders and
 * files are real. The program's processes are played; the child of a run goes as far as execve, the hand sometimes all the way. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "core.h"

#define MUST(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "broken: %s (line %d)\n", #condition, __LINE__); \
            abort(); \
        } \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OURS 400 /* descriptors from here on are the harness's; those below, but 0 to 3, are the core's */
#define LOOKED_AT 32 /* it never has more of its own */
#define FRONT_PID 100001
#define CANARY_PID 100002
#define PROCESSES_MAX 64

static struct core the_core;
static const uint8_t *input;
static size_t left;

static uint8_t byte(void) { return left > 0 ? (left--, *input++) : 0; }

static uint64_t number(void) /* of any size, and often near an edge */
{
    static const uint64_t edges[] = {0, 1, 2, 64, 255, 256, 1023, 1024, 1025, 65536, 65537, 4u << 20, UINT32_MAX, UINT64_MAX / 4, UINT64_MAX / 3, UINT64_MAX};
    uint8_t how = byte();
    if (how < 128)
        return how % 16;
    if (how < 192)
        return edges[how % (sizeof edges / sizeof *edges)] + (uint64_t)(byte() % 3) - 1;
    uint64_t value = 0;
    for (int i = 0; i < 1 + how % 8; i++)
        value = value << 8 | byte();
    return value;
}

/* ---- the box: its folders, its clock, its counters ---- */
static char place[4096];                   /* where the folders are */
static int work_fd, tmp_fd, submission_fd, outside_fd, front_end;
static uint64_t clock_ns;
static uint32_t effective_id, next_id;
static int box_ends, in_child, in_hand;
static jmp_buf ended, child_ended, hand_is_done;
static int child_status, hand_status;

uint64_t now_ns(void) { return clock_ns += 20000; }

uint64_t difference(uint64_t now, uint64_t before) { return now == UNKNOWN || before == UNKNOWN ? UNKNOWN : now > before ? now - before : 0; }

uint64_t cpu_of_process(pid_t pid) { return pid == 0 ? clock_ns / 100 : 1; }

static uint64_t counter(void) { return byte() % 8 == 0 ? number() : clock_ns / 2; }

uint64_t measure_cpu(const struct measures *m) { return (void)m, counter(); }
uint64_t measure_memory(const struct measures *m) { return (void)m, counter(); }
uint64_t measure_peak(const struct measures *m) { return (void)m, counter(); }
uint64_t measure_hits(const struct measures *m) { return (void)m, byte() % 16 == 0 ? number() : 0; }
uint64_t measure_oom_kills(const struct measures *m) { return (void)m, byte() % 8 == 0 ? number() : 0; }
uint64_t measure_throttled(const struct measures *m) { return (void)m, counter(); }
struct machine measure_machine(const struct measures *m) { return (void)m, (struct machine){counter(), counter(), 10 * NS_PER_MS}; }

uint32_t ids_draw(const struct ids *ids, const uint32_t *taken, size_t count)
{
    (void)taken, (void)count;
    return ids->low + ++next_id;
}

static int is_socket(int fd)
{
    struct stat s;
    return fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
}

/* Whether a descriptor is of this folder of the box, or of something in it. */
static int is_in(const char *name, int fd)
{
    char link[64], path[8192], folder[8192];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    MUST(size > 0);
    path[size] = 0;
    size = snprintf(folder, sizeof folder, "%s/%s", place, name);
    return strncmp(path, folder, (size_t)size) == 0 && (path[size] == 0 || path[size] == '/');
}

/* ---- the processes of the box ---- */
static struct {
    pid_t pid;
    int status;
} dead[PROCESSES_MAX];
static size_t dead_count;
static int living, stubborn; /* processes of the run; how many kills they outlive (of a kernel that is slow) */
static pid_t main_pid, hand_pid, last_pid;

static void dies(pid_t pid, int status)
{
    if (dead_count == PROCESSES_MAX)
        return;
    dead[dead_count].pid = pid;
    dead[dead_count++].status = status;
}

static void all_of_the_run_die(void)
{
    if (stubborn > 0 && stubborn-- > 0)
        return;
    for (; living > 0; living--) {
        pid_t pid = main_pid != 0 ? main_pid : hand_pid != 0 ? hand_pid : ++last_pid;
        if (pid == main_pid)
            main_pid = 0;
        else if (pid == hand_pid)
            hand_pid = 0;
        dies(pid, SIGKILL);
    }
}

uint64_t measure_tasks(const struct measures *m)
{
    (void)m;
    return byte() % 4 == 0 ? UNKNOWN : (the_core.canary != 0 ? 3 : 2) + (uint64_t)living + dead_count + (byte() % 8 == 0);
}

/* ---- what only root may do, or what would hurt the harness ---- */
static int checked_kill(pid_t pid, int number_of)
{
    MUST(pid == -1 && number_of == SIGKILL && !in_child && !in_hand);
    if (effective_id == 0)
        box_ends = 1;
    else
        all_of_the_run_die();
    return 0;
}

static int checked_setresuid(uid_t real, uid_t effective, uid_t saved)
{
    MUST(real == (uid_t)-1 && saved == (uid_t)-1 && (effective == 0 || effective == the_core.run_id));
    effective_id = effective;
    return 0;
}

static _Noreturn void caught_exit(int code)
{
    if (in_child) {
        child_status = code;
        longjmp(child_ended, 1);
    }
    if (in_hand) {
        hand_status = code;
        longjmp(hand_is_done, 1);
    }
    MUST(box_ends && effective_id == 0);
    longjmp(ended, 1);
}

static int work_is_given, said_unusable; /* the work folder is the run's; the client was told to throw the box away */
static int first_to_be_killed;          /* our own score is the program's, as is that of what we fork now */

void oom_offer(const char *score) { MUST(in_child && !first_to_be_killed && strcmp(score, PROGRAM_FIRST) == 0); }

void oom_begin(void)
{
    MUST(!in_child && !first_to_be_killed);
    first_to_be_killed = 1;
}

int oom_end(void)
{
    MUST(!in_child && first_to_be_killed);
    first_to_be_killed = 0;
    return byte() % 64 == 63 ? -1 : 0;
}

static int checked_fchown(int fd, uid_t owner, gid_t group)
{
    struct stat s;
    MUST(owner == group && (owner == 0 || owner == the_core.run_id) && effective_id == 0 && !in_child && !in_hand);
    MUST(fstat(fd, &s) == 0);
    MUST(S_ISFIFO(s.st_mode) ? owner != 0 : is_in("work", fd));
    if (fd == work_fd)
        work_is_given = owner != 0;
    return 0;
}

static int checked_close(int fd)
{
    MUST(fd > 3 && !is_socket(fd)); /* to close a socket can take as long as its maker likes */
    return close(fd);
}

static int checked_send(int fd, const struct message *message, const int *fds, size_t count)
{
    struct stat s;
    MUST(message->text_bytes <= TEXT_MAX && fd == the_core.front_fd && effective_id == 0);
    MUST(count == 0 || (count == 1 && message->kind == M_OPENED && (is_in("work", fds[0]) || is_in("submission", fds[0]))));
    MUST(count == 0 || (fstat(fds[0], &s) == 0 && S_ISREG(s.st_mode) && (fcntl(fds[0], F_GETFL) & O_ACCMODE) == O_WRONLY));
    if (message->kind == M_END) {
        MUST(living == 0 || message->field[R_USABLE] == 0);
        MUST(the_core.canary != 0 || message->field[R_USABLE] == 0);
        said_unusable = message->field[R_USABLE] == 0;
        living = 0; /* of a run that is over, and the box is thrown away: they are nobody's */
        MUST(message->field[R_USABLE] == 0 || (mount_is_empty(work_fd) == 1 && mount_is_empty(tmp_fd) == 1));
    }
    MUST(message->kind != M_CLEARED || message->error != 0 || mount_is_empty(submission_fd) == 1);
    return message_send(fd, message, fds, count);
}

static int no_wait(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)timeout_ms;
    return poll(fds, count, 0);
}

static int waitid_now(siginfo_t *info)
{
    info->si_pid = dead_count > 0 ? dead[0].pid : 0;
    return 0;
}

static pid_t wait4_now(pid_t pid, int *status, struct rusage *usage)
{
    MUST(dead_count > 0 && dead[0].pid == pid);
    *status = dead[0].status;
    memset(usage, byte() % 2, sizeof *usage);
    memmove(dead, dead + 1, --dead_count * sizeof *dead);
    return pid;
}

static int getpriority_now(uint32_t id)
{
    MUST(id == the_core.run_id);
    int anybody = living > 0 || dead_count > 0;
    errno = anybody ? 0 : ESRCH;
    return anybody ? 10 : -1;
}

/* ---- descriptors below OURS: what a process that has ended leaves to us is closed ---- */
static void open_ones(uint8_t *is_open)
{
    for (int fd = 4; fd < LOOKED_AT; fd++)
        is_open[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void close_new(const uint8_t *was_open)
{
    for (int fd = 4; fd < LOOKED_AT; fd++)
        if (!was_open[fd])
            close(fd);
}

/* ---- the child of a run ---- */
static void read_strings(char *const *strings, uint64_t count)
{
    const struct strings *all = &the_core.strings;
    for (uint64_t i = 0; i < count; i++) {
        size_t size = strlen(strings[i]); /* the sanitizer looks */
        MUST(all->fd >= 0 || (strings[i] >= all->text && strings[i] + size < all->text + all->text_bytes));
    }
    MUST(strings[count] == NULL && (all->fd < 0 || (fcntl(all->fd, F_GET_SEALS) & STRINGS_SEALS) == STRINGS_SEALS));
}

static int execve_now(const char *path, char *const *arguments, char *const *environment)
{
    static const int errors[] = {ENOENT, ENOENT, ENOTDIR, EACCES, E2BIG};
    MUST(strlen(path) < PATH_BYTES_MAX + NAME_BYTES_MAX + 2 || path == arguments[0]);
    read_strings(arguments, the_core.request[Q_ARGC]);
    read_strings(environment, the_core.request[Q_ENVC]);
    if (byte() % 4) {
        child_status = -1; /* it is the program now */
        longjmp(child_ended, 1);
    }
    errno = errors[byte() % 5];
    return -1;
}

static int dup3_now(int from, int to)
{
    MUST(to >= 0 && to <= 3 && in_child);
    return to == 3 ? dup2(from, to) : to;
}

static pid_t clone_now(int (*entry)(void *), void *plan)
{
    static uint8_t was_open[LOOKED_AT];
    if (byte() % 16 == 7) {
        errno = EAGAIN;
        return -1;
    }
    MUST(!said_unusable && (first_to_be_killed || ((struct child_plan *)plan)->is_copy));
    open_ones(was_open);
    in_child = 1;
    if (setjmp(child_ended) == 0)
        entry(plan);
    in_child = 0;
    close_new(was_open);
    main_pid = ++last_pid;
    if (child_status >= 0) {
        dies(main_pid, (child_status & 255) << 8);
        main_pid = 0;
    } else {
        living = 1;
        stubborn = byte() % 8 == 0 ? byte() % 32 : 0;
    }
    return last_pid;
}

/* ---- the hand ---- */
static void *hand_mapped;
static size_t hand_mapped_bytes;

static void *mmap_in_hand(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    MUST(hand_mapped == NULL);
    hand_mapped = mmap(at, size, protection, flags, fd, offset);
    hand_mapped_bytes = size;
    return hand_mapped;
}

static ssize_t write_in_hand(int fd, const void *data, size_t size)
{
    struct stat s;
    MUST(fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode));
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
        return -1;
    ssize_t written = write(fd, data, size);
    return written < 0 && errno == EAGAIN ? (ssize_t)size : written; /* somebody reads it, in time */
}

_Noreturn void hand_main(const struct hand_job *job);

static pid_t hand_begins(const struct hand_job *job)
{
    static uint8_t was_open[LOOKED_AT];
    hand_pid = ++last_pid;
    MUST(job->id == (the_core.clearing ? 0 : the_core.run_id) && (the_core.clearing || (living == 0 && dead_count == 0)));
    living = job->id != 0; /* the one that clears is root's own */
    if (byte() % 4 == 0)
        return hand_pid; /* what it reads takes it over */
    open_ones(was_open);
    in_hand = 1;
    if (setjmp(hand_is_done) == 0)
        hand_main(job);
    in_hand = 0;
    close_new(was_open);
    if (hand_mapped != NULL && hand_mapped != MAP_FAILED)
        munmap(hand_mapped, hand_mapped_bytes);
    hand_mapped = NULL;
    dies(hand_pid, (hand_status & 255) << 8);
    living = 0;
    hand_pid = 0;
    return last_pid;
}

int become(uint32_t id)
{
    MUST(id == the_core.run_id && (in_child || in_hand));
    return byte() % 16 == 15 ? -1 : 0;
}

int drop_capabilities(void)
{
    MUST(in_hand);
    return 0;
}

static int next_act(struct pollfd *watched);

static long skipped_call(long call) { return call == SYS_close_range || call == SYS_futex ? 1 : 0; }

#define kill checked_kill
#define setresuid checked_setresuid
#define _exit caught_exit
#define fchown checked_fchown
#define close checked_close
#define poll no_wait
#define ppoll(watched, count, timeout, mask) next_act(watched)
#define nanosleep(moment, rest) (void)(moment)
#define waitid(type, id, info, options) waitid_now(info)
#define wait4(pid, status, options, usage) wait4_now(pid, status, usage)
#define getpriority(which, id) getpriority_now(id)
#define open(...) (errno = ENOENT, -1) /* of the machine's files none is needed here */
#define syscall(call, ...) (skipped_call(call) ? 0 : syscall(call, __VA_ARGS__))
#include "messages.c"
#include "mounts.c"
#include "tree.c"

#define setsid() 1
#define setpriority(which, id, value) 0
#define umask(mode) (void)(mode)
#define setrlimit(resource, limits) 0
#define sigprocmask(how, set, old) 0
#define chdir(path) 0
#define dup3(from, to, flags) dup3_now(from, to)
#define execve execve_now
#define unblock_signals unblock_child
#define fail child_fails
#include "child.c"
#undef execve
#undef fail

#define prctl(...) 0
#define mmap mmap_in_hand
#define write write_in_hand
#include "hand.c"
#undef write
#undef mmap

#define message_send checked_send
#define clone(entry, stack, flags, plan) clone_now(entry, plan)
#define fork() hand_begins(&job)
#include "run.c"
#include "end.c"
#include "core.c"
#undef fork
#undef clone
#undef message_send
#undef prctl
#undef syscall
#undef open
#undef poll
#undef close
#undef fchown
#undef _exit
#undef kill

/* ---- what the front sends ---- */
static struct message sent;
static int hand_reader = -1; /* a hand whose words nobody can read gives up */

static int moved(int fd) /* out of the way of the core's descriptors */
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, OURS);
    MUST(copy >= OURS);
    close(fd);
    return copy;
}

static int made_pipe(int end)
{
    int ends[2];
    MUST(pipe2(ends, O_CLOEXEC) == 0);
    close(ends[!end]);
    return ends[end];
}

static int lingering_socket(void)
{
    const struct linger forever = {1, 30000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_LINGER, &forever, sizeof forever) == 0);
    return fd;
}

static int strings_file(size_t size, int seals)
{
    int fd = memfd_create("strings", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MUST(fd >= 0);
    for (size_t i = 0; i < size; i += sizeof sent.text) {
        size_t part = size - i < sizeof sent.text ? size - i : sizeof sent.text;
        MUST(write(fd, sent.text, part) == (ssize_t)part);
    }
    MUST(seals == 0 || fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

/* Whatever a process without rights can have open. */
static int any_descriptor(void)
{
    switch (byte() % 12) {
    case 0: return openat(outside_fd, "secret", O_RDONLY | O_CLOEXEC);
    case 1: return openat(outside_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case 2: return openat(submission_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case 3: return openat(tmp_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    case 4: return lingering_socket();
    case 5: return fcntl(front_end, F_DUPFD_CLOEXEC, 4);
    case 6: return eventfd(0, EFD_CLOEXEC);
    case 7: return openat(outside_fd, "secret", O_PATH | O_CLOEXEC);
    case 8: return strings_file((size_t)(byte() * 8u), 0);
    case 9: return strings_file((size_t)(byte() * 8u), STRINGS_SEALS);
    case 10: return made_pipe(1);
    default: return made_pipe(0);
    }
}

static void deliver(size_t size, const int *fds, size_t count)
{
    struct iovec part = {&sent, size};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 253)];
    } control;
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
    }
    (void)!sendmsg(front_end, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void some_text(void)
{
    size_t size = (size_t)(number() % (sizeof sent.text + 1));
    for (size_t i = 0; i < size; i++)
        sent.text[i] = i < 48 ? byte() : i % 7 ? 'x' : '/';
    sent.text_bytes = byte() % 8 == 0 ? (uint32_t)number() : (uint32_t)size;
}

static void send_anything(void)
{
    static struct {
        struct message message;
        uint8_t more[64];
    } spare;
    int fds[253];
    size_t count = byte() % 4 ? 0 : byte() % 8 == 0 ? number() % 254 : byte() % 10u;
    memset(&sent, byte() % 2 ? 0 : byte(), sizeof sent);
    sent.kind = byte() % 8 == 0 ? (uint32_t)number() : byte() % (M_FATAL + 2u);
    sent.number = (uint32_t)number();
    sent.step = (uint32_t)number();
    for (size_t i = 0; i < R_FIELDS; i++)
        sent.field[i] = i % 4 == 0 ? number() : i;
    some_text();
    for (size_t i = 0; i < count; i++)
        fds[i] = any_descriptor();
    size_t size = byte() % 8 ? sizeof sent : number() % sizeof spare;
    deliver(size <= sizeof sent ? size : sizeof sent, fds, count);
}

static uint64_t some_time(void) { return byte() % 2 ? NS_PER_MS * (1 + byte()) : number() % (UINT64_MAX / 4); }

/* A start that is well formed, with now and then a number, a string or a descriptor that is not. */
static void send_start(void)
{
    static const char all[] = "/probe\0prog\0A=b\0PATH=:/bin::/usr/bin:x\0out\0d/e\0../out";
    static const uint8_t sizes[] = {7, 12, 16, 40, 44, 48};
    uint8_t named = byte() % 2, files = byte() % 3, spoilt = byte();
    memset(&sent, 0, sizeof sent);
    sent.kind = M_START;
    size_t from = named ? 7 : 0, size = (size_t)sizes[3 + files] - from;
    memcpy(sent.text, all + from, size);
    uint64_t field[Q_FIELDS] = {
        [Q_CPU_NS] = some_time(), [Q_WALL_NS] = some_time(), [Q_FILE_SIZE] = number(), [Q_STACK] = number(),
        [Q_NOFILE] = number(), [Q_PROCESSES] = number(), [Q_COLLECT_FILE] = number(), [Q_COLLECT_TOTAL] = number(), [Q_ARGC] = named ? 1 : 2,
        [Q_ENVC] = 2, [Q_FILEC] = files, [Q_STRINGS] = size, [Q_KEEP_FILES] = byte() % 2 ? number() % 8 : 0, [Q_KEEP_BYTES] = number(),
    };
    if (spoilt < 24)
        field[spoilt % Q_FIELDS] = number();
    if (spoilt >= 224)
        field[byte() % 2 ? Q_ARGC : Q_ENVC] = number();
    if (spoilt >= 24 && spoilt < 48)
        sent.text[spoilt % size] = byte();
    if (spoilt >= 48 && spoilt < 56)
        some_text();
    else
        sent.text_bytes = (uint32_t)size;
    memcpy(sent.field, field, sizeof field);
    int fds[START_FDS_COUNT], count = FD_EXTRA;
    for (int i = 0; i < FD_EXTRA; i++)
        fds[i] = made_pipe(i == FD_STDOUT || i == FD_STDERR);
    if (spoilt >= 200) {
        uint8_t how = byte();
        if (how % 2 == 0) {
            size += how * 64u; /* what follows the strings may be anything */
            sent.field[Q_STRINGS] = size;
        }
        fds[count++] = how % 16 == 5 ? any_descriptor() : strings_file(size, how % 8 == 3 ? F_SEAL_WRITE : how % 8 == 1 ? STRINGS_SEALS | F_SEAL_SEAL : STRINGS_SEALS);
        sent.number |= START_STRINGS_FD;
    }
    if (files > 0 || field[Q_KEEP_FILES] > 0) {
        int ends[2];
        MUST(pipe2(ends, O_CLOEXEC) == 0);
        if (hand_reader >= 0)
            close(hand_reader);
        hand_reader = moved(ends[0]);
        fds[count++] = ends[1];
        sent.number |= START_HAND_FD;
    }
    if (spoilt >= 60 && spoilt < 90) {
        int which = spoilt % count;
        close(fds[which]);
        fds[which] = any_descriptor();
    }
    if (spoilt >= 90 && spoilt < 94)
        sent.number = (uint32_t)number();
    if (spoilt >= 98 && spoilt < 104)
        sent.text_bytes = (uint32_t)number();
    if (spoilt >= 94 && spoilt < 98)
        close(fds[--count]);
    if (spoilt >= 104 && spoilt < 108 && count < START_FDS_COUNT)
        fds[count++] = made_pipe(1);
    deliver(sizeof sent, fds, (size_t)count);
}

static void send_open(void)
{
    static const char *const paths[] = {"a", "a/b", "out", "d/e", "x/y/z", "a/b/c", "../outside/new", "/etc/new", "a//b", "a/../../outside/new", "link/new", "tmp"};
    memset(&sent, 0, sizeof sent);
    sent.kind = M_OPEN;
    sent.number = byte() % 16 == 0 ? (uint32_t)number() : byte() % 2;
    sent.step = byte() % 2;
    if (byte() % 8 == 0)
        some_text();
    else
        strcpy((char *)sent.text, paths[byte() % (sizeof paths / sizeof *paths)]);
    int fd = byte() % 32 == 31 ? any_descriptor() : -1;
    deliver(sizeof sent, &fd, fd >= 0);
}

static void send_short(uint32_t kind, uint32_t with)
{
    memset(&sent, 0, sizeof sent);
    sent.kind = kind;
    sent.number = with;
    deliver(sizeof sent, NULL, 0);
}

/* What the core answers is taken out of the way; a front that does not do so is one of the acts. */
static void read_answers(void)
{
    static struct message answer;
    int fd;
    while (message_receive(front_end, &answer, &fd, 1) == 1)
        if (fd >= 0)
            close(fd);
}

static void scribble(void)
{
    _Atomic uint64_t *const numbers[] = {&the_core.front_page->turn, &the_core.front_page->out_total, &the_core.front_page->err_total,
                                         &the_core.front_page->stdin_starved_ns, &the_core.front_page->stdin_taken, &the_core.front_page->main_pid};
    atomic_store(numbers[byte() % 6], number());
}

/* ---- what the program and a hand that was taken over do ---- */
static void litter(void)
{
    static const char *const names[] = {"a", "out", "d", "x", "link", "e", "b", "f", "tmp"};
    int place_of = byte() % 4 == 0 ? tmp_fd : work_fd, fd;
    const char *name = names[byte() % (sizeof names / sizeof *names)];
    int folder = openat(place_of, byte() % 2 ? "." : byte() % 2 ? "d" : "a", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0)
        return;
    switch (byte() % 6) {
    case 0: (void)!mkdirat(folder, name, byte() % 2 ? 0700 : 0); break;
    case 1: (void)!symlinkat("../outside", folder, name); break;
    case 2: (void)!symlinkat("/etc/passwd", folder, name); break;
    case 3: (void)!mkfifoat(folder, name, 0600); break;
    case 4: (void)!unlinkat(folder, name, 0); break;
    default:
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, byte() % 2 ? 0700 : 0);
        if (fd >= 0) {
            (void)!write(fd, the_core.request, byte());
            close(fd);
        }
    }
    close(folder);
}

static void hand_acts(void)
{
    if (hand_pid == 0)
        return;
    atomic_store(&the_core.hand_report->removed, number());
    atomic_store(&the_core.hand_report->finished, byte() % 2 ? 1 : (uint32_t)number());
    if (!the_core.clearing && byte() % 4 == 0)
        living += byte() % 4; /* it has made processes of its own */
    if (byte() % 2)
        litter();
    if (byte() % 2) {
        dies(hand_pid, byte() % 4 ? 0 : byte() % 2 ? SIGKILL : byte() << 8);
        living -= !the_core.clearing;
        hand_pid = 0;
    }
}

static void program_acts(void)
{
    if (living == 0 || hand_pid != 0)
        return;
    uint8_t what = byte() % 8;
    if (what < 3) {
        litter();
    } else if (what < 5 && main_pid != 0) {
        dies(main_pid, byte() % 4 ? 0 : byte() % 2 ? 1 + byte() % 31 : byte() << 8);
        main_pid = 0;
        living--;
    } else if (what == 5 && living < 40) {
        living += byte() % 8;
    } else if (what == 6 && living > (main_pid != 0)) {
        dies(++last_pid, byte() % 2 ? SIGKILL : 0);
        living--;
    }
}

static int next_act(struct pollfd *watched)
{
    MUST(!box_ends && effective_id == 0 && watched[0].fd == the_core.front_fd);
    MUST(the_core.strings.text_bytes <= TEXT_MAX);
    uint64_t so_long = clock_ns - (the_core.state == CORE_RUNNING ? the_core.begun_ns : the_core.state == CORE_KILLING ? the_core.killing_ns : the_core.hand_ns);
    MUST(the_core.state != CORE_RUNNING || so_long <= 3 * the_core.request[Q_WALL_NS] + NS_PER_S);
    MUST(the_core.state != CORE_KILLING || so_long <= 11 * NS_PER_S);
    MUST(the_core.state != CORE_HAND || so_long <= 91 * NS_PER_S);
    MUST(the_core.state != CORE_IDLE || said_unusable || !work_is_given);
    MUST(!first_to_be_killed);
    MUST(the_core.run_id != the_core.front_id && the_core.run_id != the_core.canary_id && the_core.run_id >= the_core.ids.low);
    if (left == 0)
        longjmp(ended, 1);
    clock_ns += (1 + byte() % 16) * NS_PER_MS;
    int idle = the_core.state == CORE_IDLE || byte() % 16 == 15; /* elsewhere a start or a file ends the box at once */
    switch (byte() % 16) {
    case 0:
        if (byte() % 4 == 0)
            send_anything();
        break;
    case 1:
    case 2:
    case 3:
    case 4:
        if (idle && said_unusable && byte() % 8) /* a start would be the end */
            send_open();
        else if (idle)
            send_start();
        else
            program_acts();
        break;
    case 5:
        if (idle || (the_core.state == CORE_HAND && !the_core.clearing))
            send_open();
        break;
    case 6:
        if (byte() % 2)
            send_short(M_KILL, byte() % 9u);
        break;
    case 7:
        if (idle)
            send_short(M_CLEAR, 0);
        break;
    case 8: scribble(); break;
    case 9:
        if (byte() % 4 == 3)
            clock_ns += byte() * NS_PER_S;
        break;
    case 10:
    case 11: hand_acts(); break;
    case 12:
        if (byte() % 8 == 7 && the_core.canary != 0)
            dies(CANARY_PID, byte() % 4 ? SIGKILL : 0);
        else if (byte() % 32 == 31)
            dies(FRONT_PID, byte() % 2 ? SIGKILL : 0);
        else if (byte() % 32 == 31)
            shutdown(front_end, SHUT_WR);
        break;
    default: program_acts(); break;
    }
    if (byte() % 8)
        read_answers();
    watched[1].revents = 0;
    return poll(watched, 1, 0);
}

/* ---- one input ---- */
static int folder_of(const char *name)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", place, name);
    MUST(mkdir(path, 0755) == 0 || errno == EEXIST);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    MUST(fd >= 0);
    return moved(fd);
}

static void *page_of(size_t size) /* not as main maps it: past the end of this the sanitizer sees */
{
    void *made = calloc(1, size);
    MUST(made != NULL);
    return made;
}

static struct stat outside_was, secret_was;

static void prepare_once(void)
{
    MUST(signal(SIGPIPE, SIG_IGN) != SIG_ERR && getcwd(place, sizeof place) != NULL && limits_open() == 0);
    int null = moved(open("/dev/null", O_RDWR | O_CLOEXEC));
    MUST(dup2(null, 3) == 3);
    work_fd = folder_of("work");
    tmp_fd = folder_of("tmp");
    submission_fd = folder_of("submission");
    outside_fd = folder_of("outside");
    int secret = openat(outside_fd, "secret", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    MUST(secret >= 0 && write(secret, "secret", 6) == 6);
    close(secret);
    MUST(fstat(outside_fd, &outside_was) == 0 && fstatat(outside_fd, "secret", &secret_was, 0) == 0);
    the_core.front_page = page_of(sizeof *the_core.front_page);
    the_core.canary_page = page_of(sizeof *the_core.canary_page);
    the_core.hand_report = page_of(sizeof *the_core.hand_report);
    the_core.child_report = page_of(sizeof *the_core.child_report);
}

static void empty(int folder)
{
    uint64_t removed = 0;
    MUST(fchmod(folder, 0755) == 0 && scrub_folder(folder, UINT64_MAX, &removed) == 0);
}

static void reset(void)
{
    struct core *core = &the_core;
    struct front_page *front_page = core->front_page;
    struct canary_page *canary_page = core->canary_page;
    struct hand_report *hand_report = core->hand_report;
    struct child_report *child_report = core->child_report;
    int pair[2];
    MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    memset(core, 0, sizeof *core);
    memset(front_page, 0, sizeof *front_page);
    memset(canary_page, 0, sizeof *canary_page);
    memset(hand_report, 0, sizeof *hand_report);
    *core = (struct core){.front_fd = moved(pair[0]), .signal_fd = -1, .front = FRONT_PID, .canary = CANARY_PID, .front_page = front_page,
                          .canary_page = canary_page, .hand_report = hand_report, .child_report = child_report, .ids = {1000, 60000},
                          .front_id = 1001, .canary_id = 1002, .run_id = 1003, .life_ns = byte() % 8 ? 0 : NS_PER_S, .out_read = -1,
                          .err_read = -1, .hand_fd = -1, .strings = {.fd = -1}, .is_usable = 1};
    core->mounts = (struct mounts){.count = 2, .fd = {work_fd, tmp_fd}, .mode = {0700, 01777}, .path = {"/work", "/tmp"}, .submission_fd = submission_fd};
    core->measures.cpus = 2;
    front_end = moved(pair[1]);
    int room = 4096; /* for one or two answers to a front that does not read them */
    MUST(fcntl(core->front_fd, F_SETFL, O_NONBLOCK) == 0);
    MUST(byte() % 4 || setsockopt(core->front_fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room) == 0);
    clock_ns = NS_PER_S;
    core->start_ns = clock_ns;
    next_id = 10;
    last_pid = 200000;
    effective_id = 0;
    work_is_given = said_unusable = first_to_be_killed = 0;
    box_ends = in_child = in_hand = living = stubborn = main_pid = hand_pid = 0;
    dead_count = 0;
}

static void check_outside(void)
{
    struct stat now;
    MUST(fstat(outside_fd, &now) == 0 && memcmp(&now.st_ctim, &outside_was.st_ctim, sizeof now.st_ctim) == 0);
    MUST(fstatat(outside_fd, "secret", &now, 0) == 0 && memcmp(&now.st_ctim, &secret_was.st_ctim, sizeof now.st_ctim) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int prepared;
    static uint8_t was_open[LOOKED_AT]; /* by whoever started us, or by the fuzzer */
    if (!prepared)
        prepare_once();
    prepared = 1;
    open_ones(was_open);
    input = data;
    left = size;
    reset();
    if (setjmp(ended) == 0)
        core_loop(&the_core);
    for (int fd = 4; fd < LOOKED_AT; fd++) /* between two runs it has none open */
        MUST(box_ends || the_core.state != CORE_IDLE || was_open[fd] || fcntl(fd, F_GETFD) < 0);
    close_new(was_open);
    MUST(syscall(SYS_close_range, (unsigned)LOOKED_AT, OURS - 1u, 0u) == 0);
    close(front_end);
    close(the_core.front_fd);
    if (hand_reader >= 0)
        close(hand_reader);
    hand_reader = -1;
    empty(work_fd);
    empty(tmp_fd);
    empty(submission_fd);
    check_outside();
    return 0;
}
