import ctypes
import fcntl
import os
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)
heard = []
mine = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
try:
    mine.bind("\0meeting")
except OSError:
    heard.append("abstract")
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try:
    udp.bind(("127.0.0.1", 4711))
except OSError:
    heard.append("udp")
lock = open("/usr/bin/python3")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    heard.append("flock")
own = {os.getpid(), 1}
until = time.monotonic() + 0.7
known = set(os.listdir("/proc"))
while time.monotonic() < until:
    for name in os.listdir("/dev/shm") + os.listdir("/tmp"):
        if not name.endswith(str(os.getuid())):
            heard.append(name)
    open(f"/dev/shm/i-am-{os.getuid()}", "w").close()
    open(f"/tmp/i-am-{os.getuid()}", "w").close()
    heard += [pid for pid in os.listdir("/proc") if pid.isdigit() and pid not in known]
    if libc.shmget(0x77, 0, 0) >= 0:
        heard.append("shm")
    libc.shmget(0x77, 4096, 0o1666)
    time.sleep(0.05)
print("right" if heard else "alone")
