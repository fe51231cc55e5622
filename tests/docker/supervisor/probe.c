/* The programs that the supervisor is tested with, in one static binary: `probe WHAT [ARGUMENT...]`. Hostile on purpose. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

static int number(char **argument) { return argument[0] != NULL ? atoi(argument[0]) : 0; }

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void burn_ms(int ms)
{
    double end = cpu_s() + ms / 1e3;
    while (cpu_s() < end) {
    }
}

static void copy_file(const char *path)
{
    char bytes[65536];
    int fd = open(path, O_RDONLY);
    ssize_t got;
    while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0)
        write(1, bytes, (size_t)got);
    close(fd);
}

static void write_file(const char *path, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    for (size_t i = 0; i < size; i++)
        write(fd, "x", 1);
    close(fd);
}

/* ---- what a program sees of itself ---- */

static int do_self(char **a)
{
    char cwd[256];
    (void)a;
    printf("cwd %s\nnice %d\numask %o\nleader %d\nparent %d\n", getcwd(cwd, sizeof cwd), getpriority(PRIO_PROCESS, 0), umask(0), getsid(0) == getpid(), getppid());
    DIR *fds = opendir("/proc/self/fd");
    struct dirent *entry;
    printf("fds");
    while ((entry = readdir(fds)) != NULL)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(fds))
            printf(" %s", entry->d_name);
    printf("\n");
    fflush(stdout);
    copy_file("/proc/self/status");
    copy_file("/proc/self/limits");
    return 0;
}

static int do_env(char **a)
{
    for (; *a != NULL; a++)
        printf("[%s]\n", *a);
    for (char **e = environ; *e != NULL; e++)
        printf("%s\n", *e);
    return 0;
}

/* ---- streams ---- */

static int do_cat(char **a)
{
    static char bytes[65536];
    ssize_t got;
    (void)a;
    while ((got = read(0, bytes, sizeof bytes)) > 0)
        for (ssize_t at = 0; at < got;) {
            ssize_t put = write(1, bytes + at, (size_t)(got - at));
            if (put < 0)
                return 1;
            at += put;
        }
    return got < 0;
}

static int do_count(char **a) /* read everything, print how much; slowly if asked */
{
    static char bytes[65536];
    long total = 0;
    ssize_t got;
    while ((got = read(0, bytes, sizeof bytes)) > 0) {
        total += got;
        usleep((useconds_t)number(a));
    }
    printf("%ld\n", total);
    return 0;
}

static int do_bytes(char **a)
{
    (void)a;
    for (int i = 0; i < 256; i++) {
        unsigned char c = (unsigned char)i;
        write(1, &c, 1);
        write(2, &c, 1);
    }
    return 0;
}

static int do_write(char **a) /* fd, how many bytes */
{
    static char bytes[65536];
    memset(bytes, 'x', sizeof bytes);
    long left = atol(a[1]);
    while (left > 0) {
        ssize_t put = write(atoi(a[0]), bytes, left < (long)sizeof bytes ? (size_t)left : sizeof bytes);
        if (put < 0)
            return 9;
        left -= put;
    }
    return 0;
}

static int do_close(char **a) /* close stdin, stdout, stderr; go on for a while */
{
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    usleep((useconds_t)number(a) * 1000);
    return 0;
}

static int do_daemon(char **a) /* double fork, setsid; the daemon prints on and on and keeps stdout open */
{
    if (fork() == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        while (number(a) == 0 || write(1, "d", 1) >= 0) {
        }
        _exit(0);
    }
    usleep(30000);
    write(1, "main", 4);
    return 0;
}

/* ---- endings ---- */

static int do_exit(char **a) { return number(a); }

static int do_raise(char **a)
{
    raise(number(a));
    pause();
    return 0;
}

static int do_sleep(char **a)
{
    usleep((useconds_t)number(a) * 1000);
    return 0;
}

static int do_burn(char **a)
{
    burn_ms(number(a));
    return 0;
}

static int do_stubborn(char **a) /* ignores what can be ignored, and prints the right answer at SIGXCPU */
{
    (void)a;
    for (int s = 1; s < 32; s++)
        signal(s, SIG_IGN);
    write(1, "right\n", 6);
    for (;;) {
    }
    return 0;
}

static int do_burn_tree(char **a) /* children in parallel, never waited for: their usage is in nobody's rusage */
{
    signal(SIGCHLD, SIG_IGN);
    int n = number(a), ms = number(a + 1);
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            burn_ms(ms);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
}

static void *spin(void *unused)
{
    for (;;) {
    }
    return unused;
}

static int do_threads(char **a)
{
    pthread_t thread;
    int made = 0;
    while (made < number(a) && pthread_create(&thread, NULL, spin, NULL) == 0)
        made++;
    usleep((useconds_t)number(a + 1) * 1000);
    printf("%d\n", made);
    return 0;
}

static int do_bomb(char **a)
{
    (void)a;
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            setsid();
    }
    return 0;
}

static int do_vfork_bomb(char **a)
{
    (void)a;
    for (;;)
        if (vfork() == 0)
            _exit(0);
}

static int do_orphans(char **a) /* endless zombies for PID 1 */
{
    (void)a;
    for (;;) {
        if (fork() == 0) {
            if (fork() == 0)
                _exit(0);
            _exit(0);
        }
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

/* ---- memory ---- */

static void take_mib(int mib)
{
    for (int i = 0; i < mib; i++) {
        char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED)
            exit(7);
        memset(p, 1, 1 << 20);
    }
}

static int do_take(char **a)
{
    take_mib(number(a));
    return 0;
}

static int do_child_takes(char **a)
{
    if (fork() == 0) {
        take_mib(number(a));
        _exit(0);
    }
    wait(NULL);
    printf("right\n");
    return 0;
}

static int do_reserve(char **a) /* a TiB that is never touched */
{
    (void)a;
    return mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED;
}

/* Memory in no process, filled by processes that look smaller to the kernel than the supervisor does. */
static int do_makes_others_die(char **a)
{
    static char block[1 << 16];
    (void)a;
    if (write(open("/proc/self/oom_score_adj", O_WRONLY), "0", 1) != 1)
        return 1;
    for (int i = 0; i < 4; i++)
        if (fork() == 0)
            for (int fd = memfd_create("x", 0);;)
                if (write(fd, block, sizeof block) < 0)
                    usleep(1000);
    for (;;)
        pause();
}

/* The scores of the supervisor's processes, and how much they hold: `score KiB` each. */
static int do_scores(char **a)
{
    DIR *list = opendir("/proc");
    struct dirent *entry;
    (void)a;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        char path[300];
        int score = 0;
        long size = 0, held = 0;
        if (atoi(entry->d_name) < 1 || atoi(entry->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/%s/oom_score_adj", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%d", &score) != 1)
            return 1;
        fclose(file);
        snprintf(path, sizeof path, "/proc/%s/statm", entry->d_name);
        file = fopen(path, "r");
        if (file == NULL || fscanf(file, "%ld %ld", &size, &held) != 2)
            return 1;
        fclose(file);
        printf("%d %ld\n", score, held * 4);
    }
    return 0;
}

/* ---- files ---- */

static int do_grow(char **a)
{
    if (number(a + 1) != 0)
        signal(SIGXFSZ, SIG_IGN);
    write_file("grown", (size_t)number(a));
    return 0;
}

static int do_outputs(char **a)
{
    (void)a;
    write_file("good", 5);
    write_file("big", 2000);
    write_file("closed", 3);
    chmod("closed", 0);
    symlink("good", "link");
    symlink("/proc/1/environ", "out");
    symlink("/etc", "etc");
    mkfifo("fifo", 0644);
    mkdir("folder", 0755);
    write_file("folder/inner", 4);
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un name = {AF_UNIX, "socket"};
    bind(s, (struct sockaddr *)&name, sizeof name);
    int fd = open("sparse", O_WRONLY | O_CREAT, 0644);
    printf("truncate %d\n", ftruncate(fd, 1l << 40));
    return 0;
}

static int do_litter(char **a) /* leave as much behind as a program can */
{
    (void)a;
    const char *places[] = {"/work", "/tmp", "/dev/shm", "/dev/mqueue"};
    for (int i = 0; i < 4; i++) {
        if (chdir(places[i]) != 0)
            continue;
        write_file("plain", 1);
        write_file("new\nline", 1);
        write_file("\xff\xfe", 1);
        write_file(".scrub-0", 1);
        char longest[256];
        memset(longest, 'n', 255);
        longest[255] = 0;
        write_file(longest, 1);
        mkdir("closed", 0755);
        write_file("closed/file", 1);
        mkdir("closed/inner", 0755);
        write_file("closed/inner/file", 1);
        mkfifo("fifo", 0);
        symlink("/", "link");
        chmod("closed/inner", 0);
        chmod("closed", 0);
    }
    chdir("/tmp");
    for (int i = 0; i < 1000; i++)
        if (mkdir("d", 0755) != 0 || chdir("d") != 0)
            break;
    setxattr("/work", "user.letter", "x", 1, 0);
    struct timespec times[2] = {{1, 1}, {2, 2}};
    utimensat(AT_FDCWD, "/work", times, 0);
    chmod("/work", 0);
    return 0;
}

static void list(const char *path)
{
    DIR *folder = opendir(path);
    struct dirent *entry;
    struct stat s;
    char names[256];
    printf("%s:", path);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            printf(" %s", entry->d_name);
    if (folder == NULL)
        printf(" %s", strerror(errno));
    else
        closedir(folder);
    if (stat(path, &s) == 0)
        printf(" | %o %ld", s.st_mode & 07777, (long)s.st_mtime);
    ssize_t size = listxattr(path, names, sizeof names);
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1)
        if (strncmp(names + at, "user.", 5) == 0)
            printf(" %s", names + at);
    printf("\n");
}

static int do_list(char **a)
{
    for (; *a != NULL; a++)
        list(*a);
    return 0;
}

static int do_inodes(char **a)
{
    char name[64];
    int made = 0;
    (void)a;
    for (;; made++) {
        snprintf(name, sizeof name, "/tmp/f%d", made);
        int fd = open(name, O_WRONLY | O_CREAT, 0644);
        if (fd < 0)
            break;
        close(fd);
    }
    printf("%d %s\n", made, strerror(errno));
    return 0;
}

static int do_fill(char **a)
{
    static char bytes[65536];
    int fd = open("/tmp/full", O_WRONLY | O_CREAT, 0644);
    long total = 0;
    (void)a;
    for (ssize_t put; (put = write(fd, bytes, sizeof bytes)) > 0;)
        total += put;
    printf("%ld %s\n", total, strerror(errno));
    return 0;
}

static int do_compile(char **a) /* what a compiler, or something worse, leaves in the work folder */
{
    mkdir("bin", 0700);
    int from = open("/probe", O_RDONLY), to = open("bin/program", O_WRONLY | O_CREAT, 0700);
    char bytes[65536];
    ssize_t got;
    while ((got = read(from, bytes, sizeof bytes)) > 0)
        write(to, bytes, (size_t)got);
    close(to);
    write_file("data", 3);
    write_file("secret", 2);
    chmod("secret", 0);
    chmod("data", 04644);
    symlink("/etc/passwd", "main");
    mkfifo("fifo", 0644);
    mkdir("closed", 0755);
    write_file("closed/in", 1);
    chmod("closed", 0);
    return number(a);
}

static int do_touch(char **a) /* try to change what is not ours */
{
    for (; *a != NULL; a++) {
        int fd = open(*a, O_WRONLY | O_CREAT, 0644);
        printf("%s %s\n", *a, fd < 0 ? strerror(errno) : "opened");
        printf("%s unlink %s\n", *a, unlink(*a) != 0 ? strerror(errno) : "done");
        printf("%s chmod %s\n", *a, chmod(*a, 0777) != 0 ? strerror(errno) : "done");
    }
    return 0;
}

/* ---- the walls ---- */

static void say(const char *what, long result) { printf("%s %s\n", what, result < 0 ? strerrorname_np(errno) : "ok"); }

static int do_attack(char **a)
{
    (void)a;
    kill(-1, SIGKILL); /* answers 0 whatever happened: whether it did harm is seen by who is left */
    say("kill-1", kill(1, SIGKILL));
    say("stop-1", kill(1, SIGSTOP));
    say("kill-parent", kill(getppid(), SIGKILL));
    say("ptrace-1", ptrace(PTRACE_ATTACH, 1, NULL, NULL));
    say("mem-1", open("/proc/1/mem", O_RDWR));
    say("fd-1", open("/proc/1/fd/0", O_RDWR));
    say("environ-1", open("/proc/1/environ", O_RDONLY));
    say("setuid-0", setuid(0));
    say("chown", chown("/work", 0, 0));
    say("mknod", mknod("/tmp/null", S_IFCHR | 0666, 0x103));
    say("chroot", chroot("/tmp"));
    say("sethostname", sethostname("x", 1));
    say("nice", setpriority(PRIO_PROCESS, 0, 0));
    say("renice-1", setpriority(PRIO_PROCESS, 1, 19));
    struct rlimit more = {RLIM_INFINITY, RLIM_INFINITY};
    say("core", setrlimit(RLIMIT_CORE, &more));
    say("ptmx", open("/dev/ptmx", O_RDWR));
    say("cgroup", open("/sys/fs/cgroup/memory/memory.limit_in_bytes", O_WRONLY));
    for (int pid = 2; pid < 40; pid++)
        if (pid != getpid() && kill(pid, SIGKILL) == 0)
            printf("killed %d\n", pid);
    return 0;
}

static int do_filter(char **a)
{
    (void)a;
    say("clone3", syscall(435, NULL, 0));
    say("io_uring", syscall(425, 1, NULL));
    say("mount", syscall(SYS_mount, "x", "/tmp", "tmpfs", 0, NULL));
    say("umount", syscall(SYS_umount2, "/tmp", 0));
    say("setns", syscall(SYS_setns, 0, 0));
    say("bpf", syscall(SYS_bpf, 0, NULL, 0));
    say("perf", syscall(SYS_perf_event_open, NULL, 0, 0, -1, 0));
    say("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 1));
    say("add_key", syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_SESSION_KEYRING));
    say("userfaultfd", syscall(SYS_userfaultfd, 0));
    say("open_tree", syscall(428, -100, "/", 1));
    say("fsopen", syscall(430, "tmpfs", 0));
    say("unshare-user", unshare(CLONE_NEWUSER));
    say("unshare-time", unshare(0x80));
    say("unshare-files", unshare(CLONE_FILES));
    say("clone-user", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL));
    say("unix", socket(AF_UNIX, SOCK_STREAM, 0));
    say("inet", socket(AF_INET, SOCK_STREAM, 0));
    say("inet6", socket(AF_INET6, SOCK_STREAM, 0));
    say("route", socket(AF_NETLINK, SOCK_RAW, 0));
    say("netfilter", socket(AF_NETLINK, SOCK_RAW, 12));
    say("vsock", socket(40, SOCK_STREAM, 0));
    say("alg", socket(38, SOCK_SEQPACKET, 0));
    say("packet", socket(AF_PACKET, SOCK_RAW, 0));
    say("traceme", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    return 0;
}

static int do_int80(char **a)
{
    (void)a;
#ifdef __x86_64__
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(20L) : "memory"); /* getpid of the 32 bit kind */
    printf("%ld\n", result);
#else
    raise(SIGSYS);
#endif
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **arguments);
} programs[] = {
    {"self", do_self}, {"env", do_env}, {"cat", do_cat}, {"count", do_count}, {"bytes", do_bytes}, {"write", do_write},
    {"close", do_close}, {"daemon", do_daemon}, {"exit", do_exit}, {"raise", do_raise}, {"sleep", do_sleep}, {"burn", do_burn},
    {"stubborn", do_stubborn}, {"burn-tree", do_burn_tree}, {"threads", do_threads}, {"bomb", do_bomb}, {"vfork-bomb", do_vfork_bomb},
    {"orphans", do_orphans}, {"take", do_take}, {"child-takes", do_child_takes}, {"makes-others-die", do_makes_others_die}, {"scores", do_scores}, {"reserve", do_reserve}, {"grow", do_grow},
    {"outputs", do_outputs}, {"litter", do_litter}, {"list", do_list}, {"inodes", do_inodes}, {"fill", do_fill},
    {"compile", do_compile}, {"touch", do_touch}, {"attack", do_attack}, {"filter", do_filter}, {"int80", do_int80},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof programs / sizeof *programs; i++)
        if (strcmp(argv[1], programs[i].name) == 0)
            return programs[i].run(argv + 2);
    return 111;
}
