import os
import socket

found = [name for _, name in socket.if_nameindex() if name != "lo"]
found += open("/proc/net/route").read().splitlines()[1:]
# 47171 is where the test listens, on the host's loopback.
for family, where in ((socket.AF_INET, ("127.0.0.1", 47171)), (socket.AF_INET, ("127.8.8.8", 47171)), (socket.AF_INET, ("127.0.0.1", 2375))):
    try:
        socket.create_connection(where, timeout=1)
        found.append(where)
    except OSError:
        pass
for name in ("localhost.localdomain.", "grader-test.invalid"):
    try:
        found.append((name, socket.getaddrinfo(name, 80)))
    except OSError:
        pass
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"):
    if os.path.lexists(path):
        found.append(path)
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
    found.append("vsock")
except OSError:
    pass
try:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    found.append("raw")
except OSError:
    pass
print(found or "right")
