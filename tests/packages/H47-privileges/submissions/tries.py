import ctypes
import os
import resource

libc = ctypes.CDLL(None, use_errno=True)
could = []


def attempt(name, function, *arguments):
    try:
        if function(*arguments) not in (-1, 0xFFFFFFFFFFFFFFFF):
            could.append(name)
    except (OSError, ValueError):
        pass


def call(name, number, *arguments):
    if libc.syscall(number, *arguments) != -1:
        could.append(name)


for limit in ("NOFILE", "FSIZE", "NPROC", "STACK", "CORE", "CPU", "MEMLOCK", "MSGQUEUE", "NICE", "RTPRIO"):
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{limit}"))[1] if hasattr(resource, f"RLIMIT_{limit}") else -1
    if hard != -1:
        attempt(limit, lambda: resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (hard + 1, hard + 1)) or 0)
attempt("nice", os.nice, -5)
attempt("other cpu", lambda: os.sched_setaffinity(0, {cpu for cpu in range(64) if cpu not in os.sched_getaffinity(0)}) or 0)
attempt("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or 0)
attempt("setuid", lambda: os.setuid(0) or 0)
attempt("setgid", lambda: os.setgid(0) or 0)
attempt("setgroups", lambda: os.setgroups([0]) or 0)
attempt("chroot", lambda: os.chroot("/tmp") or 0)
attempt("renice the supervisor", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19) or 0)
attempt("mount", libc.mount, b"none", b"/tmp", b"tmpfs", 0, None)
attempt("umount", libc.umount2, b"/work", 2)
attempt("sethostname", libc.sethostname, b"x", 1)
attempt("swapon", libc.swapon, b"/tmp/x", 0)
attempt("ptrace", libc.ptrace, 16, 1, None, None)
attempt("personality", libc.setns, 0, 0)
for flag in (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000):
    attempt(f"unshare {flag:#x}", libc.unshare, flag)
call("io_uring", 425, 8, ctypes.byref(ctypes.create_string_buffer(256)))
call("bpf", 321, 0, None, 0)
call("perf", 298, None, 0, -1, -1, 0)
call("userfaultfd", 323, 0)
call("kexec", 246, 0, 0, None, 0)
call("init_module", 175, None, 0, b"")
call("reboot", 169, 0xFEE1DEAD, 672274793, 0, None)
call("open_by_handle", 304, -100, None, 0)
call("fanotify", 300, 0, 0)
call("pidfd_getfd", 438, os.pidfd_open(1), 0, 0)
call("process_vm_readv", 310, 1, None, 0, None, 0, 1)
call("mlockall", 151, 3)
libc.prctl(1, 9)  # PR_SET_PDEATHSIG: harmless
print("right" if not could else could)
