"""Single frames of the supervisor's protocol: bytes of a box to typed, frozen values. Pure, and defensive.

PROTOCOL.md is the specification. A program may have taken the box over, so nothing here believes a length: a frame has
a fixed maximum, nothing is allocated from a declared size, and everything malformed raises `ProtocolViolation`.

What may follow what, and putting a run's output together, is `conversation.py`; a client normally needs only that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final, Literal

from grader.errors import SandboxError

PROTOCOL_VERSION: Final = 2
MAGIC: Final = b"GRADERSV"
HEADER_BYTES: Final = 16
PAYLOAD_MAX: Final = 65_536
UNKNOWN: Final = 0xFFFF_FFFF_FFFF_FFFF
SKIPPED_MAX: Final = 64

HEADER: Final = struct.Struct("<HHIQ")


class ProtocolViolation(SandboxError):  # noqa: N818 - named for what the box did
    """The box sent what the protocol forbids, or what nobody asked for. It cannot be trusted: throw it away."""

    default_code = "supervisor.lost"


def check_path(path: bytes) -> None:
    """Raise ValueError unless the path is one that the box takes: relative, bounded, without `.` and `..`."""
    parts = path.split(b"/")
    if not path or len(path) > 1023 or b"\0" in path or len(parts) > 32:
        raise ValueError(f"{path!r} is empty, has a NUL, or is longer or deeper than the box takes")
    if any(part in (b"", b".", b"..") or len(part) > 255 for part in parts):
        raise ValueError(f"{path!r} has an empty, '.', '..' or over-long component")


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


@dataclass(frozen=True, slots=True)
class PutDone:
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


@dataclass(frozen=True, slots=True)
class StreamData:
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
_RESULT_NUMBERS: Final = 52
_NEVER_UNKNOWN: Final = frozenset(
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


@dataclass(frozen=True, slots=True)
class ResultFrame:
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
    """/submission is empty (errno 0), or could not be emptied."""

    errno: int


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


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise ProtocolViolation(f"the box broke the protocol: {what}")


def _unpack(layout: str, payload: bytes, what: str) -> tuple[int, ...]:
    _need(len(payload) == struct.calcsize(layout), f"{what} of {len(payload)} bytes")
    return struct.unpack(layout, payload)


def _bounded(data: bytes, most: int, what: str) -> bytes:
    _need(0 < len(data) <= most, f"{what} of {len(data)} bytes")
    return data


def _named(names: tuple[str, ...], number: int, what: str) -> str:
    _need(number < len(names), f"{what} {number}")
    return names[number]


def _hello(_run: int, p: bytes) -> Frame:
    _need(len(p) == 40 and p[:8] == MAGIC and p[10:16] == b"\0" * 6, "a hello that is none")
    return HelloBegin(*struct.unpack_from("<H", p, 8), p[16:32], *struct.unpack_from("<Q", p, 32))


def _fact(_run: int, p: bytes) -> Frame:
    _need(len(p) > 8, "a fact without a name")
    errno, size, zero = struct.unpack_from("<IHH", p)
    _need(zero == 0 and 0 < size <= 256 and 8 + size <= len(p), "a fact with a bad name")
    return Fact(p[8 : 8 + size].decode("ascii", "backslashreplace"), p[8 + size :], errno)


def _hello_end(_run: int, p: bytes) -> Frame:
    _need(not p, "a hello end with content")
    return HelloEnd()


def _put_done(run: int, p: bytes) -> Frame:
    return PutDone(run, *_unpack("<II", p, "PUT_DONE"))


def _counters(run: int, p: bytes) -> Frame:
    return Counters(run, *(_known(n) for n in _unpack("<12Q", p, "COUNTERS")[: len(fields(Counters)) - 1]))


def _stdin_room(run: int, p: bytes) -> Frame:
    return StdinRoom(run, *_unpack("<Q", p, "STDIN_ROOM"))


def _stream_data(run: int, p: bytes) -> Frame:
    _need(len(p) > 1 and p[0] in (1, 2), "stream data without a stream")
    return StreamData(run, p[0], p[1:])


def _file(run: int, p: bytes) -> Frame:
    index, status, kind, zero, mode, errno, size, allocated = _unpack("<IBBHIIQQ", p, "FILE")
    _need(zero == 0 and status < len(FILE_STATUSES), f"a file of status {status}")
    return FileBegin(run, index, FILE_STATUSES[status], _named(KINDS, kind, "file kind"), mode, errno, size, allocated)


def _file_data(run: int, p: bytes) -> Frame:
    return FileData(run, _bounded(p, PAYLOAD_MAX, "file data"), kept=False)


def _kept_file(run: int, p: bytes) -> Frame:
    _need(len(p) > 16 and p[0] in (0, 1) and not any(p[1:8]), "a kept file with bad fields")
    path = p[16:]
    try:
        check_path(path)
    except ValueError as error:
        raise ProtocolViolation(f"the box broke the protocol: a kept file at {error}") from error
    return KeptBegin(run, path, p[0] == 1, *struct.unpack_from("<Q", p, 8))


def _kept_data(run: int, p: bytes) -> Frame:
    return FileData(run, _bounded(p, PAYLOAD_MAX, "kept data"), kept=True)


def _kept_skipped(run: int, p: bytes) -> Frame:
    _need(8 <= len(p) <= 8 + 1023 and not any(p[1:4]), "a skipped file with bad fields")
    return KeptSkipped(run, p[8:], _named(KINDS, p[0], "file kind"), *struct.unpack_from("<I", p, 4))


def _kept(run: int, p: bytes) -> Frame:
    complete, files, size, skipped = _unpack("<4Q", p, "KEPT")
    _need(complete in (0, 1), "KEPT that is neither complete nor not")
    return KeptEnd(run, complete == 1, files, size, skipped)


def _port_opened(run: int, p: bytes) -> Frame:
    connection, zero = _unpack("<II", p, "PORT_OPENED")
    _need(zero == 0, "PORT_OPENED with content")
    return PortOpened(run, connection)


def _port_data(run: int, p: bytes) -> Frame:
    _need(len(p) > 4, "port data without data")
    return PortData(run, *struct.unpack_from("<I", p), p[4:])


def _port_closed(run: int, p: bytes) -> Frame:
    connection, how = _unpack("<II", p, "PORT_CLOSED")
    _need(0 < how < len(PORT_ENDS), f"a connection that ended as {how}")
    return PortClosed(run, connection, PORT_ENDS[how])


def _result(run: int, p: bytes) -> Frame:
    start = _RESULT_NUMBERS * 8
    _need(start + 64 <= len(p) <= start + 64 + 1024, f"RESULT of {len(p)} bytes")
    values = struct.unpack_from(f"<{_RESULT_NUMBERS}Q", p)
    _need(not any(values[len(RESULT_FIELDS) :]), "RESULT with numbers that version 2 does not have")
    numbers: dict[str, int | None] = dict(zip(RESULT_FIELDS, values, strict=False))
    if UNKNOWN in values:
        unknown = [name for name, value in numbers.items() if value == UNKNOWN]
        numbers.update(dict.fromkeys(unknown))
        missing = _NEVER_UNKNOWN.intersection(unknown)
        if missing:
            raise ProtocolViolation(f"the box broke the protocol: RESULT without {min(missing)}")
    text = p[start + 64 :].decode("ascii", "backslashreplace")
    return ResultFrame(run, numbers, p[start : start + 32], p[start + 32 : start + 64], text)


def _pong(_run: int, p: bytes) -> Frame:
    return Pong(*_unpack("<QQ", p, "PONG"))


def _cleared(_run: int, p: bytes) -> Frame:
    errno, zero = _unpack("<II", p, "CLEARED")
    _need(zero == 0, "CLEARED with content")
    return Cleared(errno)


def _fatal(_run: int, p: bytes) -> Frame:
    _need(8 <= len(p) <= 208, "FATAL of a bad size")
    return Fatal(*struct.unpack_from("<II", p), p[8:].decode("ascii", "backslashreplace"))


_DECODERS: Final[dict[int, Callable[[int, bytes], Frame]]] = {
    **{129: _hello, 130: _fact, 131: _hello_end, 132: _put_done, 133: _counters, 134: _stdin_room},
    **{135: _stream_data, 136: _file, 137: _file_data, 138: _kept_file, 139: _kept_data, 140: _kept_skipped},
    **{160: _port_opened, 161: _port_data, 162: _port_closed},
    **{141: _kept, 142: _result, 143: _pong, 144: _cleared, 145: _fatal},
}
_BOX_WIDE: Final = frozenset({129, 130, 131, 143, 144, 145})
_OF_EITHER: Final = frozenset({132})


class FrameReader:
    """Turns bytes, however they are cut, into frames. Holds less than one frame between two calls."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now. Raises ProtocolViolation; the reader is of no use afterwards."""
        # Appended to, not joined anew: a box that sends single bytes must not cost a copy of the frame for each.
        held = self._held
        held += data
        frames: list[Frame] = []
        at = 0
        while len(held) - at >= HEADER_BYTES:
            kind, flags, length, run_id = HEADER.unpack_from(held, at)
            _need(flags == 0 and length <= PAYLOAD_MAX, f"a header with flags {flags} and length {length}")
            decoder = _DECODERS.get(kind)
            if decoder is None:
                raise ProtocolViolation(f"the box broke the protocol: a frame of type {kind}")
            _need(kind in _OF_EITHER or (run_id == 0) == (kind in _BOX_WIDE), f"type {kind} with run id {run_id}")
            start = at + HEADER_BYTES
            if len(held) - start < length:
                break
            frames.append(decoder(run_id, bytes(held[start : start + length])))
            at = start + length
        del held[:at]
        return frames
