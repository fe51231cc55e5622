"""Prints `clean`, or what an earlier run has left in this box."""

import os

left = []
for place in ("/tmp", "/work", "/dev/shm", "/dev/mqueue"):
    if os.path.isdir(place):
        left += [f"{place}/{name!r}" for name in os.listdir(os.fsencode(place))]
        left += [f"{place} has attribute {name}" for name in os.listxattr(place)]
for pid in (name for name in os.listdir("/proc") if name.isdigit()):
    try:
        owner = os.stat(f"/proc/{pid}").st_uid
        command = open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError:
        continue
    if owner not in (0, os.getuid()) and not command.startswith(b"/.grader/supervisor"):
        left.append(f"process {pid} of {owner}: {command!r}")
for table in ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp"):
    try:
        left += [f"{table}: {line}" for line in open(table).read().splitlines()[1:]]
    except OSError:
        pass
left += [line for line in open("/proc/net/unix").read().splitlines() if "@" in line]
print("\n".join(left) or "clean")
