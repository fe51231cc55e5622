"""What the client asks of a box, as bytes of the supervisor's protocol. Pure; bad requests raise ValueError.

What the box would refuse with the loss of the box is refused here, before it is sent, with a sentence.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from grader.sandbox.base import Port
from grader.sandbox.supervisor.wire import HEADER, MAGIC, PAYLOAD_MAX, PROTOCOL_VERSION, UNKNOWN, check_path

STDIN_BUFFER_BYTES: Final = 16 << 20
"""How much standard input the box can hold before a run starts, and beyond what it has taken."""
KEEP_STREAM_MAX: Final = 64 << 20
CONTENT_TOTAL_MAX: Final = 256 << 20
STRINGS_MAX: Final = 4 << 20
COLLECT_MAX: Final = 256
KEEP_FILES_MAX: Final = 10_000


PORT_CONNECTIONS_MAX: Final = 32
_PORT_LISTEN: Final = 2


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run, exactly as it is to be executed. Times in nanoseconds, sizes in bytes; None means "as inherited"."""

    argv: tuple[bytes, ...]
    environment: tuple[tuple[bytes, bytes], ...] = ()
    """Names and values, in the order in which the program gets them. Nothing else is in its environment."""
    collect: tuple[bytes, ...] = ()
    """Paths below the work directory of the files to bring back."""
    cpu_time_ns: int = 10_000_000_000
    wall_time_ns: int = 32_000_000_000
    stdout_kill_bytes: int = 16 << 20
    stdout_keep_bytes: int = 16 << 20
    stderr_kill_bytes: int = 16 << 20
    stderr_keep_bytes: int = 64 << 10
    file_size_bytes: int = 64 << 20
    stack_bytes: int | None = None
    open_files: int = 256
    processes: int | None = None
    """RLIMIT_NPROC of the run; the box's pids limit stands before it."""
    collect_file_bytes: int = 16 << 20
    collect_total_bytes: int = 64 << 20
    keep_files: int = 0
    """When main exits 0, keep at most so many regular files of the work directory in /submission. 0: keep none."""
    keep_bytes: int = 0
    send_kept: bool = False
    """Whether the kept files are sent to the client too."""
    stream_stdin: bool = False
    """Whether standard input may go on after the start."""
    port: Port | None = None
    """A port to listen on from before the start."""

    def strings(self) -> bytes:
        """The strings as they travel. Raises ValueError for a NUL or an empty or over-long part."""
        parts = [*self.argv, *(name + b"=" + value for name, value in self.environment), *self.collect]
        if not self.argv or not self.argv[0]:
            raise ValueError("argv needs at least the name of what is executed")
        if any(not name or b"=" in name for name, _ in self.environment):
            raise ValueError("a name in the environment is not empty and has no '='")
        for path in self.collect:
            check_path(path)
        data = b"\0".join(parts) + b"\0"
        if data.count(b"\0") != len(parts):
            raise ValueError("no argument, environment entry or path can hold a NUL byte")
        if len(data) > STRINGS_MAX or max(len(self.argv), len(self.environment)) > 65_536:
            raise ValueError("arguments and environment are larger than the box takes (4 MiB, 65,536 each)")
        return data


def _frame(kind: int, run_id: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(kind, 0, len(payload), run_id) + payload


def _chunks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PAYLOAD_MAX):
        yield data[start : start + PAYLOAD_MAX]


def encode_hello(nonce: bytes) -> bytes:
    """The first frame. `nonce`: 16 random bytes."""
    if len(nonce) != 16:
        raise ValueError("the nonce has 16 bytes")
    return _frame(1, 0, MAGIC + struct.pack("<HHI", PROTOCOL_VERSION, PROTOCOL_VERSION, 0) + nonce)


def encode_put(path: bytes, content: bytes, *, executable: bool = False, run_id: int | None = None) -> bytes:
    """One file: into /submission, or with a run id into the work directory of that run."""
    check_path(path)
    tree, run = (0, 0) if run_id is None else (1, run_id)
    frames = [_frame(2, run, struct.pack("<BBH", tree, executable, 0) + path)]
    frames += [_frame(3, run, chunk) for chunk in _chunks(content)]
    frames.append(_frame(4, run))
    return b"".join(frames)


def encode_run(run_id: int, request: RunRequest) -> bytes:
    """RUN_BEGIN and RUN_DATA: what is to be run. stdin and RUN_START come after it.

    Raises ValueError for what the box does not take.
    """
    if not 0 < run_id < UNKNOWN:
        raise ValueError("a run id is a 64 bit number above 0")
    strings = request.strings()
    r = request
    numbers = (
        *(r.cpu_time_ns, r.wall_time_ns),
        *(r.stdout_kill_bytes, r.stdout_keep_bytes, r.stderr_kill_bytes, r.stderr_keep_bytes),
        *(r.file_size_bytes, UNKNOWN if r.stack_bytes is None else r.stack_bytes),
        *(r.open_files, UNKNOWN if r.processes is None else r.processes),
        *(r.collect_file_bytes, r.collect_total_bytes),
        *(len(r.argv), len(r.environment), len(r.collect), len(strings)),
        *(r.keep_files, r.keep_bytes, (1 if r.send_kept else 0) | (2 if r.stream_stdin else 0), 0),
    )
    try:
        begin = struct.pack("<20Q", *numbers)
    except struct.error as error:
        raise ValueError(f"a limit of the run is negative or too large: {error}") from error
    _check_maxima(request)
    return _frame(5, run_id, begin) + _frames(6, run_id, strings)


def _frames(kind: int, run_id: int, data: bytes) -> bytes:
    """Data in as many frames as it needs; none for none."""
    return b"".join(_frame(kind, run_id, chunk) for chunk in _chunks(data))


def encode_port(run_id: int, port: Port) -> bytes:
    """Listen on a port, from before the start of the run. Raises ValueError for what the box does not take."""
    if not 1024 <= port.number < 65_536 or not 1 <= port.connections_at_once <= PORT_CONNECTIONS_MAX:
        raise ValueError(f"a port is 1024 to 65535, with 1 to {PORT_CONNECTIONS_MAX} connections at once")
    numbers = (_PORT_LISTEN, port.number, port.connections_at_once, 0, port.connections_in_all, 0, port.most_bytes)
    try:
        return _frame(32, run_id, struct.pack("<4HIIQ", *numbers))
    except struct.error as error:
        raise ValueError(f"a bound of the port is negative or too large: {error}") from error


def encode_port_data(run_id: int, connection: int, data: bytes) -> bytes:
    """Bytes for the program, on a connection that it made."""
    head = struct.pack("<I", connection)
    room = PAYLOAD_MAX - len(head)
    return b"".join(_frame(33, run_id, head + data[at : at + room]) for at in range(0, len(data), room))


def encode_port_seen(run_id: int, total_bytes: int) -> bytes:
    """So many bytes that the program sent to its port were dealt with: until then its waiting is not charged to it."""
    return _frame(35, run_id, struct.pack("<Q", total_bytes))


def encode_port_close(run_id: int, connection: int) -> bytes:
    """Nothing more is read of a connection: it is closed when all that was sent on it has gone."""
    return _frame(34, run_id, struct.pack("<II", connection, 0))


def _check_maxima(request: RunRequest) -> None:
    """What the box would refuse with the loss of the box is refused here with a sentence."""
    r = request
    if (
        max(r.cpu_time_ns, r.wall_time_ns) > UNKNOWN // 4
        or max(r.stdout_keep_bytes, r.stderr_keep_bytes) > KEEP_STREAM_MAX
        or max(r.collect_total_bytes, r.keep_bytes) > CONTENT_TOTAL_MAX
        or r.keep_files > KEEP_FILES_MAX
    ):
        raise ValueError(f"a limit of the run is above what the box takes: {_above_maximum(r)}")
    if (
        request.cpu_time_ns < 1
        or request.wall_time_ns < 1
        or request.open_files < 3
        or len(request.collect) > COLLECT_MAX
    ):
        raise ValueError("time limits are at least 1 ns, open_files at least 3, and at most 256 files are collected")


def _above_maximum(request: RunRequest) -> str:
    maxima = {
        "cpu_time_ns": UNKNOWN // 4,
        "wall_time_ns": UNKNOWN // 4,
        "stdout_keep_bytes": KEEP_STREAM_MAX,
        "stderr_keep_bytes": KEEP_STREAM_MAX,
        "collect_total_bytes": CONTENT_TOTAL_MAX,
        "keep_files": KEEP_FILES_MAX,
        "keep_bytes": CONTENT_TOTAL_MAX,
    }
    return ", ".join(f"{name} is at most {most}" for name, most in maxima.items() if getattr(request, name) > most)


def encode_stdin(run_id: int, data: bytes) -> bytes:
    """The next part of standard input. The caller keeps within the room (see PROTOCOL.md, stdin)."""
    return _frames(7, run_id, data)


def encode_stdin_end(run_id: int) -> bytes:
    """Standard input ends here."""
    return _frame(8, run_id)


def encode_start(run_id: int) -> bytes:
    """Start the run: from here on exec counts as begun."""
    return _frame(9, run_id)


@dataclass(frozen=True, slots=True)
class RunFrames:
    """Every frame of a run from RUN_BEGIN to RUN_START, but for its id: the same for each repetition."""

    request: RunRequest
    stdin: bytes
    around_ids: tuple[bytes, ...]
    """What stands before, between and after the places of the id, which every frame has."""

    @classmethod
    def of(cls, request: RunRequest, stdin: bytes) -> RunFrames:
        """Check a request and encode it. Raises ValueError for what the box does not take.

        Of a stdin that is streamed, this is as much as may go before the start.
        """
        frames = [encode_run(1, request)]
        if request.port is not None:
            frames.append(encode_port(1, request.port))
        frames.append(encode_stdin(1, stdin[:STDIN_BUFFER_BYTES]))
        if not request.stream_stdin:
            frames.append(encode_stdin_end(1))
        frames.append(encode_start(1))
        return cls(request, stdin, tuple(_around_ids(b"".join(frames))))

    def with_id(self, run_id: int) -> bytes:
        """The frames of one run. Raises ValueError for what is no id."""
        if not 0 < run_id < UNKNOWN:
            raise ValueError("a run id is a 64 bit number above 0")
        return run_id.to_bytes(_ID_BYTES, "little").join(self.around_ids)


_ID_BYTES: Final = 8
"""A header ends with the run's id."""


def _around_ids(frames: bytes) -> Iterator[bytes]:
    """Whole frames, cut where their headers have an id, which is left out."""
    start = at = 0
    while at < len(frames):
        length = HEADER.unpack_from(frames, at)[2]
        yield frames[start : at + HEADER.size - _ID_BYTES]
        start = at + HEADER.size
        at = start + length
    yield frames[start:]


def encode_cancel(run_id: int) -> bytes:
    """Kill the run; its result comes all the same."""
    return _frame(10, run_id)


def encode_ping(token: int) -> bytes:
    """Ask whether the box answers."""
    return _frame(11, 0, struct.pack("<Q", token))


def encode_clear() -> bytes:
    """Empty /submission."""
    return _frame(12, 0)
