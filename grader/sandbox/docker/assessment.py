"""Whether a box is what its policy asks for, by what the supervisor read inside. Pure.

An engine that ignores an option (rootless, another runtime, an older version) is found out here, and the box is refused
with the difference named: what was asked for counts for nothing until it was seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from grader.core.outcomes import BoxSeen
from grader.sandbox.docker.policy import (
    CAPABILITY_MASK,
    HOST_NAME,
    SYSCTLS,
    BoxPolicy,
    FolderInMemory,
    folders_in_memory,
)

_HARMLESS_MOUNTS = {
    ("/dev", "tmpfs"),  # root's alone
    ("/dev/pts", "devpts"),
    ("/dev/mqueue", "mqueue"),  # no queue can be made: see the sysctl
    ("/proc", "proc"),
    ("/sys/fs/cgroup", "tmpfs"),  # cgroup v1: root's alone; what is mounted in it is read-only
}
"""Mounts that are writable, and hold no file that a program could write."""
_WHOLE = re.compile(r"[0-9]{1,20}")
_MOST_CPUS = 8192

_TUNNELS = {"tunl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "sit0", "ip6tnl0", "ip6gre0"}
"""Interfaces that some kernels make in every network namespace; down, and nobody in the box can raise them."""


@dataclass(slots=True)
class Assessment:
    """A box held against its policy. A box with `differences` must not be used; `not_enforced` goes into the record."""

    differences: list[str] = field(default_factory=list[str])
    not_enforced: list[str] = field(default_factory=list[str])


def assess(policy: BoxPolicy, facts: Mapping[str, bytes | None]) -> Assessment:
    """Compare what the supervisor read inside (fact names as in PROTOCOL.md; None: unreadable) with what was asked."""
    found = Assessment()
    _assess_privileges(found, facts)
    _assess_mounts(found, policy, facts)
    _assess_network(found, facts)
    _assess_sysctls(found, facts)
    _assess_resources(found, policy, facts)
    if policy.image.runtime is not None and found.differences:
        # Another runtime has a kernel of its own, whose /proc says other things; the record names what it lacks.
        found.not_enforced.extend(found.differences)
        found.differences.clear()
    return found


def differences(policy: BoxPolicy, facts: Mapping[str, bytes | None]) -> list[str]:
    """In which ways a box is not what its policy asks for; empty if it may be used."""
    return assess(policy, facts).differences


def box_seen(assessment: Assessment, facts: Mapping[str, bytes | None]) -> BoxSeen:
    """What of a box is recorded with every run in it."""
    return BoxSeen(
        interfaces=tuple(sorted(_interfaces(facts))), routes=_routes(facts), not_enforced=tuple(assessment.not_enforced)
    )


def _assess_privileges(found: Assessment, facts: Mapping[str, bytes | None]) -> None:
    status = _keyed(_text(facts, "/proc/1/status"))
    expected = {"Seccomp": "2", "NoNewPrivs": "1"}
    for name, value in expected.items():
        if status.get(name) != value:
            found.differences.append(f"{name} is {status.get(name, 'unknown')}, not {value}")
    for name, mask in (("CapEff", CAPABILITY_MASK), ("CapBnd", CAPABILITY_MASK), ("CapInh", 0), ("CapAmb", 0)):
        value = status.get(name)
        # Docker 20.10 also makes the granted capabilities inheritable; a program's are cleared by the supervisor.
        allowed = {mask, CAPABILITY_MASK} if name == "CapInh" else {mask}
        if value is None or not _is_hex(value) or int(value, 16) not in allowed:
            found.differences.append(f"{name} is {value if value is not None else 'unknown'}, not {mask:016x}")
    if not status.get("Uid", "").startswith("0\t0\t0"):
        found.differences.append(f"the supervisor's uid is {status.get('Uid', 'unknown')}, not 0")
    limits = _text(facts, "/proc/1/limits")
    for line, name in (("Max core file size", "core"), ("Max msgqueue size", "msgqueue")):
        values = _limit(limits, line)
        if values != ["0", "0"]:
            found.differences.append(f"the ulimit {name} is {' '.join(values) or 'unknown'}, not 0")


def _assess_mounts(found: Assessment, policy: BoxPolicy, facts: Mapping[str, bytes | None]) -> None:
    mounts = _mounts(_text(facts, "/proc/self/mountinfo"))
    if "/" not in mounts:
        found.differences.append("the root file system is unknown")
    asked = {folder.path: folder for folder in folders_in_memory(policy)}
    for path, mount in mounts.items():
        folder = asked.get(path)
        if folder is not None:
            _assess_folder(found, folder, mount)
        elif mount.is_writable and (path, mount.kind) not in _HARMLESS_MOUNTS and not mount.is_null_device:
            found.differences.append(f"{path} is writable")
    for path in asked:
        if path not in mounts:
            found.differences.append(f"{path} is no file system of its own")
    for path in policy.image.volumes:
        if path not in mounts:
            found.differences.append(f"the image's volume {path} is not covered")


def _assess_folder(found: Assessment, folder: FolderInMemory, mount: _Mount) -> None:
    if mount.kind != "tmpfs":
        found.differences.append(f"{folder.path} is a {mount.kind}, not a tmpfs")
        return
    flags = {"rw", "nosuid", "nodev"} | (set[str]() if folder.executable else {"noexec"})
    for flag in sorted(flags - mount.options):
        found.differences.append(f"{folder.path} is not mounted {flag}")
    size = _tmpfs_bytes(mount.settings.get("size", ""))
    if size is None or size > folder.size_bytes:
        found.differences.append(f"{folder.path} has {size if size is not None else 'no limit of'} bytes")
    inodes = _whole(mount.settings.get("nr_inodes", ""))
    if inodes is None:
        found.not_enforced.append(f"the number of files in {folder.path} is not limited")
    elif inodes > folder.inodes:
        found.differences.append(f"{folder.path} has room for {inodes} files, not {folder.inodes}")


def _assess_network(found: Assessment, facts: Mapping[str, bytes | None]) -> None:
    interfaces, routes = set(_interfaces(facts)), _text(facts, "/proc/net/route").splitlines()
    if not interfaces:
        found.differences.append("the network interfaces are unknown")
    for name in sorted(interfaces - {"lo"} - _TUNNELS):
        found.differences.append(f"there is a network interface {name}")
    if not routes:
        found.differences.append("the network routes are unknown")
    if _routes(facts) > 0:
        found.differences.append("there is a network route")


def _assess_sysctls(found: Assessment, facts: Mapping[str, bytes | None]) -> None:
    for name, value in SYSCTLS.items():
        actual = " ".join(_text(facts, "/proc/sys/" + name.replace(".", "/")).split())
        if actual != value:
            found.differences.append(f"the sysctl {name} is {actual or 'unknown'}, not {value}")
    host_name = _text(facts, "/proc/sys/kernel/hostname").strip()
    if host_name != HOST_NAME:
        found.differences.append(f"the host name is {host_name or 'unknown'}, not {HOST_NAME}")


def _assess_resources(found: Assessment, policy: BoxPolicy, facts: Mapping[str, bytes | None]) -> None:
    v2 = _number(facts, "/sys/fs/cgroup/memory.max")
    memory = v2 if v2 is not None else _number(facts, "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    _assess_number(found, "memory", memory, policy.box_memory_bytes)
    if v2 is not None:
        swap = _number(facts, "/sys/fs/cgroup/memory.swap.max")
        with_swap = None if swap is None else policy.box_memory_bytes + swap
    else:
        with_swap = _number(facts, "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
    host_swaps = len(_text(facts, "/proc/swaps").splitlines()) > 1
    if with_swap is None and host_swaps:
        found.not_enforced.append("swap is not limited")
    elif with_swap is not None and with_swap > policy.box_memory_and_swap_bytes:
        found.differences.append(f"memory and swap together are limited to {with_swap} bytes")
    pids = _number(facts, "/sys/fs/cgroup/pids.max")
    pids = pids if pids is not None else _number(facts, "/sys/fs/cgroup/pids/pids.max")
    _assess_number(found, "processes", pids, policy.box_processes)
    if policy.cpu_set is not None:
        cpus = _cpu_list(_text(facts, "affinity.cpus").strip())
        if not cpus:
            found.not_enforced.append("the CPUs of the box are not known")
        elif not cpus <= (_cpu_list(policy.cpu_set) or set()):
            found.differences.append(f"the box may use the CPUs {sorted(cpus)}, not {policy.cpu_set}")
    if _text(facts, "cgroup.cpu_usage").strip() != "cgroup":
        found.not_enforced.append("CPU time is measured by process, not for the whole box")


def _assess_number(found: Assessment, what: str, actual: float | None, asked: int) -> None:
    if actual is None:
        found.not_enforced.append(f"the limit of {what} cannot be read back")
    elif actual > asked:
        limit = "not limited" if actual == float("inf") else f"{actual:.0f}"
        found.differences.append(f"the limit of {what} is {limit}, not {asked}")


# ---- reading the facts ----------------------------------------------------------------------------------------------


def _interfaces(facts: Mapping[str, bytes | None]) -> list[str]:
    return [line.split(":")[0].strip() for line in _text(facts, "/proc/net/dev").splitlines() if ":" in line]


def _routes(facts: Mapping[str, bytes | None]) -> int:
    return sum(1 for line in _text(facts, "/proc/net/route").splitlines()[1:] if line.strip())


@dataclass(frozen=True, slots=True)
class _Mount:
    kind: str
    options: frozenset[str]
    settings: Mapping[str, str]
    is_writable: bool
    is_null_device: bool
    """/dev/null mounted over a file, which is how the engine masks it."""


def _mounts(text: str) -> dict[str, _Mount]:
    """mountinfo by mount point; the last mount on a path is the one that is seen."""
    mounts: dict[str, _Mount] = {}
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if len(fields) < 6 or len(rest) < 3:
            continue
        options = frozenset(fields[5].split(","))
        words = rest[2].split(",")
        settings = dict(word.split("=", 1) for word in words if "=" in word)
        is_writable = "rw" in options and "ro" not in words
        is_null_device = rest[0] in {"tmpfs", "devtmpfs"} and fields[3] == "/null"
        mounts[fields[4]] = _Mount(rest[0], options, settings, is_writable, is_null_device)
    return mounts


def _text(facts: Mapping[str, bytes | None], name: str) -> str:
    return (facts.get(name) or b"").decode("utf-8", "replace")


def _keyed(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, colon, value in pairs if colon}


def _number(facts: Mapping[str, bytes | None], name: str) -> float | None:
    """A limit of a cgroup: a number, infinity for none, None where it cannot be read."""
    text = _text(facts, name).strip()
    if text == "max":
        return float("inf")
    number = _whole(text)
    # cgroup v1 writes "no limit" as the largest page-aligned number.
    return float("inf") if number is not None and number >= 2**62 else number


def _whole(text: str) -> int | None:
    """A whole number of ordinary length; None for anything else that a hostile box may say."""
    return int(text) if _WHOLE.fullmatch(text) is not None else None


def _tmpfs_bytes(text: str) -> int | None:
    """`65536k` as bytes."""
    factor = {"k": 1024, "m": 1024**2, "g": 1024**3}.get(text[-1:].lower())
    number = _whole(text[:-1] if factor is not None else text)
    return None if number is None else number * (factor or 1)


def _limit(limits: str, name: str) -> list[str]:
    """Soft and hard limit of a row of /proc/PID/limits."""
    for row in limits.splitlines():
        if row.startswith(name):
            return row[len(name) :].split()[:2]
    return []


def _is_hex(text: str) -> bool:
    return 0 < len(text) <= 16 and all(character in "0123456789abcdef" for character in text)


def _cpu_list(text: str) -> set[int] | None:
    """`0-2,5` as a set; None if it is none."""
    cpus: set[int] = set()
    for part in text.split(","):
        low, dash, high = part.partition("-")
        first, last = _whole(low), _whole(high if dash else low)
        if first is None or last is None or last > _MOST_CPUS:
            return None
        cpus.update(range(first, last + 1))
    return cpus
