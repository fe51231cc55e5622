"""A box that is not what was asked for is refused, and the difference is named: each guard has its row."""

from __future__ import annotations

import pytest

from grader.core.outcomes import BoxSeen
from grader.sandbox.docker.assessment import assess, box_seen, differences
from grader.sandbox.docker.policy import MIB, BoxImage, BoxPolicy

POLICY = BoxPolicy(
    BoxImage("sha256:abc"), memory_bytes=256 * MIB, processes=64, disk_bytes=64 * MIB, files=4096, cpu_set="1"
)

STATUS = """Name:\tsupervisor
Uid:\t0\t0\t0\t0
CapInh:\t0000000000000000
CapPrm:\t00000000000000e1
CapEff:\t00000000000000e1
CapBnd:\t00000000000000e1
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
"""

MOUNTS = """77 52 0:39 / / ro,relatime master:2 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
78 77 0:42 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
79 77 0:43 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
80 79 0:44 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620,ptmxmode=666
81 77 0:45 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
82 81 0:46 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,mode=755
86 82 0:32 /docker/4d /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime - cgroup cgroup rw,memory
92 79 0:41 / /dev/mqueue rw,nosuid,nodev,noexec,relatime - mqueue mqueue rw
93 77 0:47 / /submission rw,nosuid,nodev,relatime - tmpfs tmpfs rw,size=65536k,nr_inodes=16384,mode=755
94 77 0:48 / /work rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=65536k,nr_inodes=4096,mode=700
95 77 0:49 / /tmp rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=32768k,nr_inodes=4096
96 77 254:0 /c/hostname /etc/hostname ro,relatime - ext4 /dev/vda rw,discard
97 79 0:50 / /dev/shm rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=32768k,nr_inodes=512
56 78 0:42 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
58 78 0:43 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
60 78 0:52 / /proc/pressure ro,relatime - tmpfs tmpfs ro
"""

LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max core file size        0                    0                    bytes
Max msgqueue size         0                    0                    bytes
"""

NET = """Inter-|   Receive                |  Transmit
 face |bytes    packets errs drop|bytes    packets
    lo:       0       0    0    0        0       0
"""

V1: dict[str, bytes | None] = {
    "/proc/1/status": STATUS.encode(),
    "/proc/1/limits": LIMITS.encode(),
    "/proc/self/mountinfo": MOUNTS.encode(),
    "/proc/net/dev": NET.encode(),
    "/proc/net/route": b"Iface\tDestination\tGateway\n",
    "/proc/swaps": b"Filename\tType\tSize\n",
    "/proc/sys/kernel/shmmni": b"0\n",
    "/proc/sys/kernel/msgmni": b"0\n",
    "/proc/sys/kernel/sem": b"0\t0\t0\t0\n",
    "/proc/sys/fs/mqueue/queues_max": b"0\n",
    "/proc/sys/net/ipv4/tcp_max_tw_buckets": b"0\n",
    "/proc/sys/kernel/hostname": b"box\n",
    "/sys/fs/cgroup/memory.max": None,
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": b"318767104\n",
    "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": b"318767104\n",
    "/sys/fs/cgroup/pids/pids.max": b"72\n",
    "affinity.cpus": b"1",
    "cgroup.cpu_usage": b"cgroup",
}
V2 = {
    **{name: value for name, value in V1.items() if "/memory/" not in name and "/pids/" not in name},
    "/sys/fs/cgroup/memory.max": b"318767104\n",
    "/sys/fs/cgroup/memory.swap.max": b"0\n",
    "/sys/fs/cgroup/pids.max": b"72\n",
}


@pytest.mark.parametrize("facts", [V1, V2])
def test_a_box_as_asked_for_has_no_difference(facts: dict[str, bytes | None]) -> None:
    found = assess(POLICY, facts)
    assert (found.differences, found.not_enforced) == ([], [])


def test_what_is_recorded_of_a_box_is_what_was_seen_in_it() -> None:
    assert box_seen(assess(POLICY, V1), V1) == BoxSeen(interfaces=("lo",))
    nothing_known = {**V1, "/proc/net/dev": None, "/proc/net/route": None}
    assert box_seen(assess(POLICY, nothing_known), nothing_known) == BoxSeen()
    network = {
        **V1,
        "/proc/net/dev": b"Inter-| Receive\n face |bytes\n    lo: 0 0\n  eth0: 5 0\n",
        "/proc/net/route": b"Iface\tDestination\neth0\t00000000\neth0\t000011AC\n",
        "/sys/fs/cgroup/pids/pids.max": None,
    }
    seen = box_seen(assess(POLICY, network), network)
    assert seen == BoxSeen(
        interfaces=("eth0", "lo"), routes=2, not_enforced=("the limit of processes cannot be read back",)
    )


def changed(name: str, old: str, new: str) -> dict[str, bytes | None]:
    content = (V1[name] or b"").decode()
    assert old in content, "the row changes nothing"
    return {**V1, name: content.replace(old, new).encode()}


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("/proc/1/status", "Seccomp:\t2", "Seccomp:\t0", "Seccomp is 0, not 2"),
        ("/proc/1/status", "NoNewPrivs:\t1", "NoNewPrivs:\t0", "NoNewPrivs is 0, not 1"),
        ("/proc/1/status", "CapEff:\t00000000000000e1", "CapEff:\t00000000a80425fb", "CapEff is 00000000a80425fb"),
        ("/proc/1/status", "CapBnd:\t00000000000000e1", "CapBnd:\t000001ffffffffff", "CapBnd is 000001ffffffffff"),
        ("/proc/1/status", "CapEff:\t00000000000000e1", "CapEff:\t0000000000000000", "CapEff is 0000000000000000"),
        ("/proc/1/status", "CapAmb:\t0000000000000000", "CapAmb:\t00000000000000e1", "CapAmb is"),
        ("/proc/1/status", "CapEff:\t00000000000000e1", "CapEff:\tgarbage", "CapEff is garbage"),
        ("/proc/1/status", "Uid:\t0", "Uid:\t1000", "uid is 1000"),
        ("/proc/1/limits", "file size        0                    0", "file size        0   unlimited", "ulimit core"),
        ("/proc/1/limits", "Max msgqueue size", "Max other size", "ulimit msgqueue is unknown"),
        ("/proc/self/mountinfo", "/ / ro,relatime", "/ / rw,relatime", "/ is writable"),
        ("/proc/self/mountinfo", "/etc/hostname ro", "/etc/hostname rw", "/etc/hostname is writable"),
        ("/proc/self/mountinfo", "/sys/fs/cgroup/memory ro", "/sys/fs/cgroup/memory rw", "memory is writable"),
        ("/proc/self/mountinfo", "/proc/sys ro", "/proc/sys rw", "/proc/sys is writable"),
        ("/proc/self/mountinfo", "0:43 /null /proc/keys", "0:43 / /proc/keys", "/proc/keys is writable"),
        ("/proc/self/mountinfo", "0:50 / /dev/shm", "0:50 / /dev/other", "/dev/shm is no file system of its own"),
        ("/proc/self/mountinfo", "/work rw,nosuid,nodev", "/work rw,nosuid", "/work is not mounted nodev"),
        ("/proc/self/mountinfo", "/tmp rw,nosuid,", "/tmp rw,", "/tmp is not mounted nosuid"),
        ("/proc/self/mountinfo", "/tmp rw,nosuid,nodev,noexec", "/tmp rw,nosuid,nodev", "/tmp is not mounted noexec"),
        ("/proc/self/mountinfo", "rw,size=32768k,nr_inodes=512", "rw,nr_inodes=512", "/dev/shm has no limit of bytes"),
        ("/proc/self/mountinfo", "size=65536k,nr_inodes=4", "size=65537k,nr_inodes=4", "/work has 67109888 bytes"),
        ("/proc/self/mountinfo", "nr_inodes=512", "nr_inodes=513", "/dev/shm has room for 513 files"),
        ("/proc/self/mountinfo", "/work rw,nosuid,nodev,noexec,relatime - tmpfs", "/work rw - ext4", "is a ext4"),
        ("/proc/net/dev", "lo:", "eth0: 0\n lo:", "there is a network interface eth0"),
        ("/proc/net/dev", "lo:", "lo", "interfaces are unknown"),
        ("/proc/net/route", "Gateway\n", "Gateway\neth0\t00000000\t010011AC\n", "there is a network route"),
        ("/proc/sys/kernel/sem", "0\t0", "32000\t0", "sysctl kernel.sem is 32000"),
        ("/proc/sys/net/ipv4/tcp_max_tw_buckets", "0", "131072", "tcp_max_tw_buckets is 131072"),
        ("/proc/sys/kernel/hostname", "box", "host", "host name is host"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "318767104", "9223372036854771712", "memory is not limited"),
        ("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "318767104", "637534208", "memory and swap"),
        ("/sys/fs/cgroup/pids/pids.max", "72", "max", "the limit of processes is not limited"),
        ("affinity.cpus", "1", "0,1", "may use the CPUs [0, 1]"),
    ],
)  # fmt: skip
def test_a_difference_is_named(name: str, old: str, new: str, said: str) -> None:
    found = differences(POLICY, changed(name, old, new))
    assert any(said in line for line in found), found


@pytest.mark.parametrize("name", [name for name in V1 if name.startswith("/proc/") and name != "/proc/swaps"])
def test_what_cannot_be_read_is_a_difference_and_not_taken_for_good(name: str) -> None:
    assert differences(POLICY, {**V1, name: None}) != []
    assert differences(POLICY, {key: value for key, value in V1.items() if key != name}) != []


def test_the_last_mount_on_a_path_counts() -> None:
    over = MOUNTS + "99 77 254:0 /x /work rw,nosuid,nodev,noexec - ext4 /dev/vda rw\n"
    assert "/work is a ext4, not a tmpfs" in differences(POLICY, {**V1, "/proc/self/mountinfo": over.encode()})


def test_an_uncovered_volume_is_named() -> None:
    image = BoxImage("sha256:abc", volumes=("/data",))
    policy = BoxPolicy(image, 256 * MIB, 64, 64 * MIB, 4096, cpu_set="1")
    assert differences(policy, V1) == ["the image's volume /data is not covered"]
    covered = MOUNTS + "99 77 0:60 / /data ro,nosuid,nodev,noexec - tmpfs tmpfs ro,size=4k\n"
    assert differences(policy, {**V1, "/proc/self/mountinfo": covered.encode()}) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"/sys/fs/cgroup/memory/memory.limit_in_bytes": None}, "the limit of memory cannot be read back"),
        ({"/sys/fs/cgroup/pids/pids.max": None}, "the limit of processes cannot be read back"),
        (
            {"/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": None, "/proc/swaps": b"Filename\n/dev/sda2 1\n"},
            "swap is not limited",
        ),
        ({"affinity.cpus": b""}, "the CPUs of the box are not known"),
        ({"cgroup.cpu_usage": b"rusage of what was reaped"}, "CPU time is measured by process"),
        (
            {"/proc/self/mountinfo": MOUNTS.replace(",nr_inodes=512", "").encode()},
            "the number of files in /dev/shm is not limited",
        ),
    ],
)
def test_what_an_engine_cannot_do_is_said_and_goes_into_the_record(changes: dict[str, bytes | None], said: str) -> None:
    found = assess(POLICY, {**V1, **changes})
    assert found.differences == []
    assert any(said in line for line in found.not_enforced)


def test_without_swap_on_the_host_a_missing_swap_limit_does_not_matter() -> None:
    found = assess(POLICY, {**V1, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": None})
    assert (found.differences, found.not_enforced) == ([], [])


def test_a_runtime_with_a_kernel_of_its_own_is_described_not_refused() -> None:
    policy = BoxPolicy(BoxImage("sha256:abc", runtime="runsc"), 256 * MIB, 64, 64 * MIB, 4096, cpu_set="1")
    found = assess(policy, changed("/proc/1/status", "Seccomp:\t2", "Seccomp:\t0"))
    assert found.differences == []
    assert "Seccomp is 0, not 2" in found.not_enforced


def test_hostile_facts_do_not_break_the_assessment() -> None:
    for content in (b"", b"\xff\xfe", b":::", b"9" * 60_000, b"0 - - -\n" * 100):
        assert assess(POLICY, dict.fromkeys(V1, content)).differences != []
