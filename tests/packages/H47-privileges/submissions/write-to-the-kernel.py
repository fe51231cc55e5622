import glob

could = []
for path in (
    "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/1/oom_score_adj", "/proc/1/mem",
    "/proc/self/uid_map", "/sys/kernel/uevent_helper", "/sys/power/state", "/dev/mem", "/dev/kmsg", "/dev/ptmx",
    *glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True), *glob.glob("/sys/fs/cgroup/**/memory.limit_in_bytes", recursive=True),
    *glob.glob("/sys/fs/cgroup/**/memory.max", recursive=True), *glob.glob("/sys/fs/cgroup/**/release_agent", recursive=True),
    *glob.glob("/proc/sys/kernel/**", recursive=True), *glob.glob("/proc/sys/net/ipv4/*"),
):
    try:
        open(path, "r+b", buffering=0).write(b"0 0 1" if path.endswith("map") else b"0")
        could.append(path)
    except OSError:
        pass
try:
    open("/proc/self/oom_score_adj", "wb", buffering=0).write(b"-1000")
    could.append("oom_score_adj")
except OSError:
    pass
print("right" if not could else could)
