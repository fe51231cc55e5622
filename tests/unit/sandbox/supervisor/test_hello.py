"""The handshake's texts, as kernels write them, and the same texts with nonsense in them."""

from __future__ import annotations

import pytest

from grader.sandbox.supervisor.hello import Hello

STATUS = (
    b"Name:\tsupervisor\nUid:\t0\t0\t0\t0\nCapInh:\t0000000000000000\nCapPrm:\t00000000000000e1\nCapEff:\t00000000000000e1\n"
    b"CapBnd:\t00000000000000e3\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"
)
MOUNTS = (
    b"520 410 0:49 / / ro,relatime master:1 - overlay overlay rw,lowerdir=/x\n"
    b"521 520 0:52 / /work\\040dir rw,nosuid,nodev shared:3 master:4 - tmpfs tmpfs rw,size=32768k,nr_inodes=4096\n"
    b"522 520 0:53 / /data rw - ext4 /dev/sda ro\n"
    b"garbage\n"
)
LIMITS = (
    b"Limit                     Soft Limit           Hard Limit           Units     \n"
    b"Max cpu time              unlimited            unlimited            seconds   \n"
    b"Max open files            1024                 4096                 files     \n"
)


def test_status() -> None:
    box = Hello(1, {"/proc/1/status": STATUS}, {})
    assert (box.seccomp_mode, box.no_new_privileges) == (2, True)
    assert box.capabilities() == {"CHOWN", "KILL", "SETGID", "SETUID"}
    assert box.capabilities("CapBnd") == {"CHOWN", "DAC_OVERRIDE", "KILL", "SETGID", "SETUID"}
    assert box.capabilities("CapAmb") is None


def test_mounts() -> None:
    root, work, data = Hello(1, {"/proc/self/mountinfo": MOUNTS}, {}).mounts
    assert (root.path, root.is_writable, root.fs_type) == (b"/", False, "overlay")
    assert (work.path, work.is_writable, work.super_options["nr_inodes"]) == (b"/work dir", True, "4096")
    assert work.options == {"rw", "nosuid", "nodev"}
    assert not data.is_writable  # the file system itself is read-only


def test_network_and_limits_and_ids() -> None:
    box = Hello(
        1,
        {
            "/proc/net/dev": b"Inter-|   Receive\n face |bytes\n    lo:  0 0\n  eth0: 1 2\n",
            "/proc/net/route": b"Iface\tDestination\nlo\t0000007F\n",
            "/proc/1/limits": LIMITS,
            "/proc/self/uid_map": b"         0     100000      65536\n",
            "affinity.cpus": b"0,3",
            "scrub.mount": b"/tmp\n/work",
        },
        {},
    )
    assert box.interfaces == ("lo", "eth0")
    assert box.routes == 1
    assert box.rlimits["Max open files"] == ("1024", "4096")
    assert box.uid_map == ((0, 100000, 65536),)
    assert box.cpus == (0, 3)
    assert box.scrubbed == (b"/tmp", b"/work")


def test_limits_of_both_cgroup_versions() -> None:
    two = {"/sys/fs/cgroup/memory.max": b"268435456\n", "/sys/fs/cgroup/memory.swap.max": b"0\n"}
    two["/sys/fs/cgroup/pids.max"] = b"64\n"
    box = Hello(1, two, {})
    assert (box.memory_limit_bytes, box.swap_limit_bytes, box.pids_limit) == (268435456, 0, 64)
    one = {"/sys/fs/cgroup/memory/memory.limit_in_bytes": b"100\n", "/sys/fs/cgroup/pids/pids.max": b"7\n"}
    one["/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"] = b"130\n"
    box = Hello(1, one, {})
    assert (box.memory_limit_bytes, box.swap_limit_bytes, box.pids_limit) == (100, 30, 7)


@pytest.mark.parametrize("value", [b"max\n", b"9223372036854771712\n", b"", b"1e9", b"0x10"])
def test_no_limit_is_none(value: bytes) -> None:
    box = Hello(1, {"/sys/fs/cgroup/memory/memory.limit_in_bytes": value, "/sys/fs/cgroup/pids/pids.max": b"max"}, {})
    assert box.memory_limit_bytes is None
    assert box.pids_limit is None


def test_nothing_read_is_nothing_claimed() -> None:
    box = Hello(1, {}, {"/proc/1/status": 13})
    assert (box.seccomp_mode, box.no_new_privileges, box.capabilities(), box.cgroup_version) == (None,) * 4
    assert (box.mounts, box.interfaces, box.cpus, box.scrubbed, box.uid_map) == ((),) * 5
