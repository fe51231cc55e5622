import fcntl

for fd in (0, 1, 2):
    fcntl.fcntl(fd, 1031, 4096)  # F_SETPIPE_SZ
print("right")
