import os
import signal

for pid in {1, os.getppid(), 2, 3, 4, 5}:
    for sig in (0, signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGCONT):
        if pid == os.getpid():
            continue
        try:
            os.kill(pid, sig)
            print("could", pid, sig)
        except OSError:
            pass
try:
    fd = os.pidfd_open(1)
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    print("could by pidfd")
except OSError:
    pass
print("right")
