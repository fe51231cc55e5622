import fcntl

for fd in (1, 2):
    try:
        fcntl.fcntl(fd, 1031, 1 << 20)
    except OSError:
        pass
print("right")
