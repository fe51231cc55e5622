/* The seccomp filter of every process in the box, a second wall behind the engine's: what no graded program needs and what the engine's
 * profile may let through (it differs between engine versions). ptrace stays: sanitizers need it. */
#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#else
#error "the filter is written for x86_64 and aarch64"
#endif

/* Numbers that older headers lack; they are the same on every architecture. */
#define NR_IO_URING_SETUP 425
#define NR_IO_URING_ENTER 426
#define NR_IO_URING_REGISTER 427
#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_FSOPEN 430
#define NR_FSCONFIG 431
#define NR_FSMOUNT 432
#define NR_FSPICK 433
#define NR_CLONE3 435
#define NR_MOUNT_SETATTR 442
#define NR_OPEN_TREE_ATTR 467

#define NEW_TIME 0x80u
/* CLONE_NEWTIME shares its bit with clone's exit signal, so it only means a namespace to unshare. */
#define NEW_FOR_CLONE ((uint32_t)(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP))
#define NEW_FOR_UNSHARE (NEW_FOR_CLONE | NEW_TIME)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(field))
#define NR offsetof(struct seccomp_data, nr)
#define ARCH offsetof(struct seccomp_data, arch)
/* The low half of an argument; both architectures are little endian. The kernel looks at the low 32 bits of these only. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (uint32_t)(value))
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | ((error) & SECCOMP_RET_DATA))
#define ALLOW RETURN(SECCOMP_RET_ALLOW)
/* If the value loaded is `k`, go on with the next instruction, else skip `n`. */
#define IF(k, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), 0, (n))
#define IF_ANY_BIT(k, n) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(k), 0, (n))
#define CALL_REFUSED(nr, error) IF(nr, 1), REFUSE(error)

int filter_install(void)
{
    struct sock_filter code[] = {
        LOAD(ARCH),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 1, 0),
        RETURN(SECCOMP_RET_KILL_PROCESS),
        LOAD(NR),
#if defined(__x86_64__)
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1), /* x32 calls: another architecture in disguise */
        RETURN(SECCOMP_RET_KILL_PROCESS),
#endif
        /* clone3 hides its flags in memory where a filter cannot look; every libc falls back to clone. */
        CALL_REFUSED(NR_CLONE3, ENOSYS),
        CALL_REFUSED(NR_IO_URING_SETUP, ENOSYS),
        CALL_REFUSED(NR_IO_URING_ENTER, ENOSYS),
        CALL_REFUSED(NR_IO_URING_REGISTER, ENOSYS),
        CALL_REFUSED(SYS_mount, EPERM),
        CALL_REFUSED(SYS_umount2, EPERM),
        CALL_REFUSED(SYS_pivot_root, EPERM),
        CALL_REFUSED(NR_OPEN_TREE, EPERM),
        CALL_REFUSED(NR_OPEN_TREE_ATTR, EPERM),
        CALL_REFUSED(NR_MOVE_MOUNT, EPERM),
        CALL_REFUSED(NR_FSOPEN, EPERM),
        CALL_REFUSED(NR_FSCONFIG, EPERM),
        CALL_REFUSED(NR_FSMOUNT, EPERM),
        CALL_REFUSED(NR_FSPICK, EPERM),
        CALL_REFUSED(NR_MOUNT_SETATTR, EPERM),
        CALL_REFUSED(SYS_setns, EPERM),
        CALL_REFUSED(SYS_bpf, EPERM),
        CALL_REFUSED(SYS_perf_event_open, EPERM),
        CALL_REFUSED(SYS_keyctl, EPERM),
        CALL_REFUSED(SYS_add_key, EPERM),
        CALL_REFUSED(SYS_request_key, EPERM),
        CALL_REFUSED(SYS_userfaultfd, EPERM),
        IF(SYS_clone, 4),
        LOAD(ARGUMENT(0)),
        IF_ANY_BIT(NEW_FOR_CLONE, 1),
        REFUSE(EPERM),
        ALLOW,
        IF(SYS_unshare, 4),
        LOAD(ARGUMENT(0)),
        IF_ANY_BIT(NEW_FOR_UNSHARE, 1),
        REFUSE(EPERM),
        ALLOW,
        IF(SYS_socket, 12),
        LOAD(ARGUMENT(0)),
        IF(AF_UNIX, 1), ALLOW,
        IF(AF_INET, 1), ALLOW,
        IF(AF_INET6, 1), ALLOW,
        IF(AF_NETLINK, 3),
        LOAD(ARGUMENT(2)),
        IF(0 /* NETLINK_ROUTE: getifaddrs needs it */, 1), ALLOW,
        REFUSE(EAFNOSUPPORT),
        ALLOW,
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
