"""What a box can say, as frozen values: a class for each frame of PROTOCOL.md, and the words behind their numbers.

Those that come with every run are named tuples, which cost a third of a frozen dataclass to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from grader.errors import SandboxError

SKIPPED_MAX: Final = 64


class ProtocolViolation(SandboxError):  # noqa: N818 - named for what the box did
    """The box sent what the protocol forbids, or what nobody asked for. It cannot be trusted: throw it away."""

    default_code = "supervisor.lost"


def violation(what: str) -> ProtocolViolation:
    """`what`: what the box did."""
    return ProtocolViolation(f"the box broke the protocol: {what}")


def need(condition: bool, what: str) -> None:
    """Raise ProtocolViolation unless the condition holds; `what`: what the box did.

    What every run passes through says the same with `if` and `violation`: a call for each rule is a tenth of its cost.
    """
    if not condition:
        raise violation(what)


@dataclass(frozen=True, slots=True)
class HelloBegin:
    """The box's answer to the hello; its facts follow."""

    version: int
    nonce: bytes
    now_ns: int


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing the box read about itself: a file's text, or the errno of reading it."""

    name: str
    content: bytes
    errno: int


@dataclass(frozen=True, slots=True)
class HelloEnd:
    """The facts are complete."""


class PutDone(NamedTuple):
    """A file was put (step 0), or why not."""

    run_id: int
    step: int
    errno: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of the run that is on, about each 100 ms. None: could not be read."""

    run_id: int
    now_ns: int | None
    cpu_time_ns: int | None
    memory_bytes: int | None
    memory_limit_hits: int | None
    oom_kills: int | None
    runnable: int | None
    lateness_ns: int | None
    stdin_starved_ns: int | None
    stdout_bytes: int | None
    stderr_bytes: int | None
    tasks: int | None


@dataclass(frozen=True, slots=True)
class StdinRoom:
    """How many bytes of standard input were taken out of the box's buffer so far."""

    run_id: int
    taken_bytes: int


class StreamData(NamedTuple):
    """The next part of the kept prefix of stdout (1) or stderr (2)."""

    run_id: int
    stream: int
    data: bytes


FileStatus = Literal["regular", "missing", "not_regular", "too_large", "refused"]
FILE_STATUSES: Final[tuple[FileStatus, ...]] = ("regular", "missing", "not_regular", "too_large", "refused")
KINDS: Final = (
    *("none", "regular", "directory", "symlink", "fifo", "socket", "character device", "block device", "other"),
    *("set-id bits dropped", "over the caps", "unreadable"),
)
"""What a file is, by its number in FILE and KEPT_SKIPPED."""


@dataclass(frozen=True, slots=True)
class FileBegin:
    """One of the files asked for, as it was found; its content follows if `status` is regular."""

    run_id: int
    index: int
    status: FileStatus
    kind: str
    mode: int
    errno: int
    size_bytes: int
    allocated_bytes: int


@dataclass(frozen=True, slots=True)
class FileData:
    """The next part of the last file's content; `kept`: of the last kept file."""

    run_id: int
    data: bytes
    kept: bool


@dataclass(frozen=True, slots=True)
class KeptBegin:
    """A regular file that was copied into /submission after a compile."""

    run_id: int
    path: bytes
    executable: bool
    size_bytes: int


@dataclass(frozen=True, slots=True)
class KeptSkipped:
    """Something in the work directory that was not copied (or not whole), and why."""

    run_id: int
    path: bytes
    kind: str
    errno: int


@dataclass(frozen=True, slots=True)
class KeptEnd:
    """What was kept in all. `complete`: no regular file was left out."""

    run_id: int
    complete: bool
    files: int
    bytes: int
    skipped: int


@dataclass(frozen=True, slots=True)
class PortOpened:
    """The program has connected to its port. Connections are numbered from 1."""

    run_id: int
    connection: int


@dataclass(frozen=True, slots=True)
class PortData:
    """The next bytes that the program sent on a connection."""

    run_id: int
    connection: int
    data: bytes


PORT_ENDS: Final = ("", "ended", "broken", "full")
PortEnd = Literal["", "ended", "broken", "full"]


@dataclass(frozen=True, slots=True)
class PortClosed:
    """Nothing more comes of a connection: the program `ended` it (and may still be read to), it is `broken`, or the
    port is `full`."""

    run_id: int
    connection: int
    how: PortEnd


KILLED_FOR: Final = ("none", "cpu", "wall", "stdout", "stderr", "file_size", "starved", "cancelled")
KilledFor = Literal["none", "cpu", "wall", "stdout", "stderr", "file_size", "starved", "cancelled"]
START_STEPS: Final = (
    "",
    "fork",
    "descriptors",
    "session",
    "limits",
    "ids",
    "work directory",
    "filter",
    "strings",
    "exec",
)
RESULT_FIELDS: Final = (
    *("killed_for", "start_step", "start_errno", "ended_by", "code", "core_dumped"),
    *("wall_ns", "cpu_ns", "user_ns", "system_ns"),
    *("max_rss_bytes", "sampled_peak_bytes", "cgroup_peak_bytes", "cgroup_peak_before_bytes", "memory_before_bytes"),
    *("oom_kills", "memory_limit_hits", "voluntary_switches", "involuntary_switches", "run_queue_delay_ns"),
    *("lateness_ns", "max_late_ns", "throttled_ns", "steal_ns", "stdin_starved_ns", "start_offset_ns"),
    *("survivors", "reaped", "stdin_taken_bytes"),
    *("stdout_total", "stdout_kept", "stdout_closed_early", "stdout_after_main"),
    *("stderr_total", "stderr_kept", "stderr_closed_early", "stderr_after_main"),
    *("limits_clamped", "scrub", "scrub_removed", "box_usable", "memory_samples", "kill_ns", "scrub_ns"),
    *("own_cpu_ns", "foreign_delay_ns", "contended_ns"),
    *("port_connections", "port_refused", "port_bytes", "port_full"),
)
"""The names of RESULT's numbers, in the order in which they travel."""
RESULT_NUMBERS: Final = 52
"""How many numbers RESULT has room for."""
NEVER_UNKNOWN: Final = frozenset(
    {
        *("killed_for", "start_step", "start_errno", "ended_by", "code", "core_dumped", "wall_ns", "start_offset_ns"),
        *("survivors", "reaped", "stdin_taken_bytes", "stdout_total", "stdout_kept", "stdout_closed_early"),
        *(
            "stderr_total",
            "stderr_kept",
            "stderr_closed_early",
            "limits_clamped",
            "scrub",
            "scrub_removed",
            "box_usable",
        ),
        *("port_connections", "port_refused", "port_bytes", "port_full"),
    }
)
"""Those of them that the box can always say."""
NEVER_UNKNOWN_PLACES: Final = tuple(place for place, name in enumerate(RESULT_FIELDS) if name in NEVER_UNKNOWN)
"""Where they stand in RESULT."""


class ResultFrame(NamedTuple):
    """The numbers of RESULT by name (None: could not be read), the digests of cut streams, and the scrub's text."""

    run_id: int
    numbers: dict[str, int | None]
    stdout_sha256: bytes
    stderr_sha256: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Pong:
    """The answer to a ping."""

    token: int
    now_ns: int


@dataclass(frozen=True, slots=True)
class Cleared:
    """/submission is empty. A box in which it cannot be emptied ends."""


@dataclass(frozen=True, slots=True)
class Fatal:
    """The box is about to end, and why."""

    code: int
    errno: int
    text: str


Frame = (
    HelloBegin | Fact | HelloEnd | PutDone | Counters | StdinRoom | StreamData | FileBegin | FileData
    | KeptBegin | KeptSkipped | KeptEnd | PortOpened | PortData | PortClosed | ResultFrame | Pong | Cleared | Fatal
)  # fmt: skip
