import fcntl
import os

# Whoever reads the other end is to be told by a signal.
for fd in (0, 1, 2):
    try:
        fcntl.fcntl(fd, fcntl.F_SETOWN, 1)
    except OSError:
        pass
    fcntl.fcntl(fd, fcntl.F_SETSIG, 9)
    fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC)
os.write(1, b"right\n")
