"""What a box says that it *is*, read out of the raw texts of its handshake. Pure.

The box sends files as it sees them (/proc/1/status, mountinfo, cgroup and sysctl files); they are interpreted here, not
there, so that a box has no say in how they are read. Whether they are as they must be is the policy's to decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CAPABILITIES: Final = {0: "CHOWN", 1: "DAC_OVERRIDE", 5: "KILL", 6: "SETGID", 7: "SETUID"}
"""The capabilities that a box may be about, by number; others are named by their number."""

_ESCAPE = re.compile(rb"\\([0-3][0-7][0-7])")


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo. `options` are the mount's own flags, `super_options` those of the file system."""

    path: bytes
    fs_type: str
    options: frozenset[str]
    super_options: Mapping[str, str]

    @property
    def is_writable(self) -> bool:
        """Whether neither the mount nor its file system is read-only."""
        return "ro" not in self.options and "ro" not in self.super_options


@dataclass(frozen=True)
class Hello:
    """The handshake's facts. What the box could not read is None, and `errors` has the errno."""

    version: int
    files: Mapping[str, bytes]
    """Every fact by its name: a path as the box read it, or a name such as `affinity.cpus`."""
    errors: Mapping[str, int]

    def text(self, name: str) -> str | None:
        """A fact as text without blanks around it, or None."""
        content = self.files.get(name)
        return None if content is None else content.decode("utf-8", "backslashreplace").strip()

    def number(self, name: str) -> int | None:
        """A fact that is one whole number, or None (also for `max`, which means no limit)."""
        text = self.text(name)
        return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,20}", text) else None

    def status(self, key: str) -> str | None:
        """A field of /proc/1/status, such as `Seccomp`, as it was before the supervisor changed anything."""
        for line in (self.text("/proc/1/status") or "").splitlines():
            name, colon, value = line.partition(":")
            if colon and name == key:
                return value.strip()
        return None

    @property
    def seccomp_mode(self) -> int | None:
        """What the engine put on (the supervisor's own filter is not in it): 0 none, 2 a filter."""
        value = self.status("Seccomp")
        return int(value) if value is not None and value.isdigit() else None

    @property
    def no_new_privileges(self) -> bool | None:
        """Whether PID 1, and so everything in the box, can gain no privileges by exec."""
        value = self.status("NoNewPrivs")
        return None if value is None else value == "1"

    def capabilities(self, which: str = "CapEff") -> frozenset[str] | None:
        """The names of a set of /proc/1/status: CapEff, CapPrm, CapBnd, CapInh or CapAmb."""
        value = self.status(which)
        if value is None or not re.fullmatch("[0-9a-f]{1,16}", value):
            return None
        bits = int(value, 16)
        return frozenset(CAPABILITIES.get(bit, f"CAP_{bit}") for bit in range(64) if bits >> bit & 1)

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """Every mount that the box sees, in the order of mountinfo."""
        lines = self.files.get("/proc/self/mountinfo", b"").splitlines()
        return tuple(mount for line in lines if (mount := _mount(line)) is not None)

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Names of the network interfaces."""
        lines = (self.text("/proc/net/dev") or "").splitlines()
        return tuple(line.partition(":")[0].strip() for line in lines if ":" in line)

    @property
    def routes(self) -> int:
        """How many IPv4 routes there are."""
        return max(0, len((self.text("/proc/net/route") or "").splitlines()) - 1)

    @property
    def uid_map(self) -> tuple[tuple[int, int, int], ...]:
        """Lines of uid_map: first id inside, first id outside, how many."""
        rows = [line.split() for line in (self.text("/proc/self/uid_map") or "").splitlines()]
        return tuple((int(a), int(b), int(c)) for a, b, c in (row for row in rows if len(row) == 3))

    @property
    def rlimits(self) -> Mapping[str, tuple[str, str]]:
        """Soft and hard limits of PID 1 by the name in /proc/1/limits, such as `Max open files`."""
        found: dict[str, tuple[str, str]] = {}
        for line in (self.text("/proc/1/limits") or "").splitlines()[1:]:
            columns = re.split(r"\s{2,}", line.strip())
            if len(columns) >= 3:
                found[columns[0]] = (columns[1], columns[2])
        return found

    @property
    def cgroup_version(self) -> int | None:
        """1 or 2; 0: the box sees no counters."""
        return self.number("cgroup.version")

    @property
    def memory_limit_bytes(self) -> int | None:
        """The box's memory limit as the kernel has it; None: none, or not readable."""
        limit = self.number("/sys/fs/cgroup/memory.max")
        if limit is None:
            limit = self.number("/sys/fs/cgroup/memory/memory.limit_in_bytes")
        return limit if limit is not None and limit < 1 << 60 else None

    @property
    def swap_limit_bytes(self) -> int | None:
        """How much may be swapped out beyond the memory limit; None: not readable."""
        swap = self.number("/sys/fs/cgroup/memory.swap.max")
        both = self.number("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
        if swap is None and both is not None and self.memory_limit_bytes is not None:
            return both - self.memory_limit_bytes
        return swap

    @property
    def pids_limit(self) -> int | None:
        """How many processes and threads the box may have; None: no limit, or not readable."""
        limit = self.number("/sys/fs/cgroup/pids.max")
        return self.number("/sys/fs/cgroup/pids/pids.max") if limit is None else limit

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that the box may run on."""
        text = self.text("affinity.cpus") or ""
        return tuple(int(cpu) for cpu in text.split(",") if cpu.isdigit())

    @property
    def scrubbed(self) -> tuple[bytes, ...]:
        """The mount points that the supervisor empties after each run."""
        return tuple(self.files.get("scrub.mount", b"").split(b"\n")) if "scrub.mount" in self.files else ()

    @property
    def kernel_release(self) -> str | None:
        """As `uname -r` says it."""
        return self.text("uname.release")

    @property
    def machine(self) -> str | None:
        """As `uname -m` says it."""
        return self.text("uname.machine")


def _mount(line: bytes) -> Mount | None:
    left, dash, right = line.partition(b" - ")
    before, after = left.split(b" "), right.split(b" ")
    if not dash or len(before) < 6 or len(after) < 3:
        return None
    path = _ESCAPE.sub(lambda match: bytes([int(match[1], 8)]), before[4])
    options = before[5].decode("ascii", "backslashreplace").split(",")
    pairs = (option.partition("=") for option in after[-1].decode("ascii", "backslashreplace").split(","))
    fs_type = after[0].decode("ascii", "backslashreplace")
    return Mount(path, fs_type, frozenset(options), {name: value for name, _, value in pairs})
