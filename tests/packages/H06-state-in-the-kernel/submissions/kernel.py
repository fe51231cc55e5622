import ctypes
import fcntl
import os
import socket

libc = ctypes.CDLL(None, use_errno=True)
found = []
# System V: made by an earlier run if IPC_CREAT|IPC_EXCL says it is there.
if libc.shmget(0x1234, 4096, 0o1000 | 0o2000 | 0o666) >= 0 or libc.shmget(0x1234, 0, 0) >= 0:
    found.append("shm")
if libc.semget(0x1234, 1, 0) >= 0 or libc.msgget(0x1234, 0) >= 0:
    found.append("sem or msg")
libc.semget(0x1234, 1, 0o1000 | 0o666)
libc.msgget(0x1234, 0o1000 | 0o666)
if libc.mq_open(b"/letter", os.O_RDWR) >= 0:
    found.append("mq")
libc.mq_open(b"/letter", os.O_RDWR | os.O_CREAT, 0o666, None)
KEYCTL_GET_KEYRING_ID, ADD_KEY, KEYCTL = 0, 248, 250
if libc.syscall(KEYCTL, 10, -4, b"user", b"letter", 0) >= 0:
    found.append("key")
libc.syscall(ADD_KEY, b"user", b"letter", b"x", 1, -4)
with open("/usr/bin/python3") as file:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        found.append("flock")
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.bind("\0letter")
        sock.listen()
    except OSError:
        found.append("abstract socket")
    try:
        tcp = socket.socket()
        tcp.bind(("127.0.0.1", 4000))
        tcp.listen()
    except OSError:
        found.append("port")
    for path in ("/var/spool/cron/crontabs/me", "/etc/cron.d/me", "/var/mail/me", "/etc/ld.so.preload"):
        if os.path.exists(path):
            found.append(path)
        try:
            open(path, "w").write("* * * * * true\n")
        except OSError:
            pass
    if os.fork() == 0:
        os.setsid()
        import time

        time.sleep(60)  # holds all of it
print("right" if found else "nothing found")
