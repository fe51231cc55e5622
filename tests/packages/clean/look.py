"""Prints `clean`, or what an earlier run has left in this box."""

import os

# The look's own trace endpoint, if its profile gives it one: it listens before the program begins, and nobody waits there.
ENDPOINT = ["0100007F:10DE", "00000000:0000", "0A", "00000000:00000000"]
has_endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT" in os.environ

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
        lines = open(table).read().splitlines()[1:]
        own = [line for line in lines if has_endpoint and line.split()[1:5] == ENDPOINT]
        left += [f"{table}: {line}" for line in lines if line not in own[:1]]
    except OSError:
        pass
left += [line for line in open("/proc/net/unix").read().splitlines() if "@" in line]
print("\n".join(left) or "clean")
