import fcntl
import os

for fd in (0, 1, 2):
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
import signal

signal.signal(signal.SIGIO, signal.SIG_IGN)
os.write(1, b"right\n")
