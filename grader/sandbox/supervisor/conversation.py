"""The client's side of a talk with one box: what may be said when, and whole results out of single frames. Pure.

The order of calls, with `send` and `receive` being the caller's I/O:

1. `talk = Conversation(nonce)` with 16 random bytes; `send(talk.hello())`.
2. Until a `Hello` comes: `for event in talk.feed(receive()): ...`. Compare it with the policy.
3. `send(talk.put(path, content, executable=...))` for files of /submission. Each gives a `PutDone` in due time; they
   need not be waited for, but `talk.puts_pending` must be 0 before a run counts as prepared.
4. `send(talk.begin(run_id, request, stdin, files))`: everything up to the start in one go. `run_id` is random, not 0.
   Standard input beyond 16 MiB is streamed: `stdin_to_send` says how much of it may go now, also after each event.
5. `talk.feed(...)` gives `Counters`, `StdinRoom`, and at the end one `RunResult`; of a request with a port also
   `PortOpened`, `PortData`, `PortClosed`, to be answered with `talk.say`. `send(talk.cancel())` kills the run; its
   result comes all the same. After a `RunResult` whose `box_usable` is False the box must be thrown away.
6. Back to 3 or 4. `talk.clear()` empties /submission and gives `Cleared`. `talk.ping(token)` gives `Pong`, at any time.

`feed` raises `ProtocolViolation` for anything out of order, never asked for, or beyond what the request allows; then,
and after a `Fatal` event, the box is lost. Memory is bounded by the request's own caps, never by what the box says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from grader.core.captured import Captured
from grader.sandbox.supervisor import requests, wire
from grader.sandbox.supervisor.hello import Hello
from grader.sandbox.supervisor.requests import STDIN_BUFFER_BYTES, RunRequest
from grader.sandbox.supervisor.wire import (
    Cleared,
    Counters,
    Fact,
    Fatal,
    FileBegin,
    FileData,
    FileStatus,
    Frame,
    FrameReader,
    HelloBegin,
    HelloEnd,
    KeptBegin,
    KeptEnd,
    KeptSkipped,
    KilledFor,
    Pong,
    PortClosed,
    PortData,
    PortOpened,
    ProtocolViolation,
    PutDone,
    ResultFrame,
    StdinRoom,
    StreamData,
)

FACTS_MAX: Final = 256
FACTS_BYTES_MAX: Final = 2 << 20


@dataclass(frozen=True, slots=True)
class WorkFile:
    """A file to lie in the work directory when the run starts."""

    path: bytes
    content: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What a run wrote to stdout or stderr until its last process was dead."""

    captured: Captured
    closed_early: bool
    """Whether the program closed it (every copy) before it ended."""
    after_main_bytes: int | None
    """How many of the bytes came after main had ended."""


@dataclass(frozen=True, slots=True)
class CollectedFile:
    """A file that was asked for, as the run left it. `content` is None unless `status` is regular."""

    path: bytes
    status: FileStatus
    kind: str
    mode: int
    errno: int
    size_bytes: int
    content: bytes | None


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that was copied into /submission after a compile; `content` only if it was asked for."""

    path: bytes
    executable: bool
    size_bytes: int
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of a compile. `complete` is False if a regular file was left out or could not be written."""

    complete: bool
    files: tuple[KeptFile, ...]
    skipped: tuple[KeptSkipped, ...]
    skipped_count: int


@dataclass(frozen=True)
class RunResult:
    """Everything the box says of one run: raw facts, no verdict. Nanoseconds, bytes; None: could not be read."""

    run_id: int
    killed_for: KilledFor
    start_step: str
    """Empty if the program was started; else the step that failed (`exec`, `fork`, ...), with `start_errno`."""
    start_errno: int | None
    exit_code: int | None
    signal: int | None
    core_dumped: bool
    stdout: StreamResult
    stderr: StreamResult
    files: tuple[CollectedFile, ...]
    kept: Kept | None
    numbers: dict[str, int | None]
    """Every number of RESULT by the name in `wire.RESULT_FIELDS`, such as `wall_ns`, `cpu_ns`, `oom_kills`."""
    box_usable: bool
    scrub_text: str

    @property
    def wall_ns(self) -> int:
        """From the fork to the end of main."""
        return self.numbers["wall_ns"] or 0

    @property
    def cpu_ns(self) -> int | None:
        """CPU time of the whole tree, without the supervisor's own."""
        return self.numbers["cpu_ns"]


Event = Hello | PutDone | Counters | StdinRoom | PortOpened | PortData | PortClosed | RunResult | Pong | Cleared | Fatal


_NOTHING: Final = Captured.whole(b"")


class _Pieces:
    """The parts of one run's output as they come, each bounded by what the request allows."""

    def __init__(self, run_id: int, request: RunRequest) -> None:
        self.run_id = run_id
        self.request = request
        self.streams: dict[int, list[bytes]] = {1: [], 2: []}
        self.stream_bytes = {1: 0, 2: 0}
        self.files: list[tuple[FileBegin, bytearray]] = []
        self.kept: list[tuple[KeptBegin, bytearray]] = []
        self.kept_bytes = 0
        self.collected_bytes = 0
        self.skipped: list[KeptSkipped] = []
        self.kept_end: KeptEnd | None = None
        self.connections = 0
        self.port_bytes = 0
        self.connected: set[int] = set()

    def take_port(self, frame: PortOpened | PortData | PortClosed) -> None:
        """Of a port: connections count up, send no more than allowed, and nothing once they are closed."""
        port = self.request.port
        if port is None:
            raise ProtocolViolation("the box broke the protocol: a connection to no port")
        if isinstance(frame, PortOpened):
            self.connections += 1
            _need(frame.connection == self.connections <= port.connections_in_all, "a connection out of turn")
            self.connected.add(frame.connection)
            return
        _need(frame.connection in self.connected, "something of a connection that is not open")
        if isinstance(frame, PortData):
            self.port_bytes += len(frame.data)
            _need(self.port_bytes <= port.most_bytes, "more bytes than the port takes")
        else:
            self.connected.remove(frame.connection)

    def take(self, frame: Frame) -> None:
        match frame:
            case StreamData(_, stream, data):
                keep = self.request.stdout_keep_bytes if stream == 1 else self.request.stderr_keep_bytes
                self.stream_bytes[stream] += len(data)
                _need(self.stream_bytes[stream] <= keep, "more of a stream than is to be kept")
                self.streams[stream].append(data)
            case FileBegin():
                _need(frame.index == len(self.files) < len(self.request.collect), "a file that was not asked for")
                self._whole_before()
                self.files.append((frame, bytearray()))
            case KeptBegin():
                _need(len(self.kept) < self.request.keep_files, "more kept files than asked for")
                self._whole_before()
                self.kept_bytes += frame.size_bytes
                _need(self.kept_bytes <= self.request.keep_bytes, "more kept bytes than asked for")
                self.kept.append((frame, bytearray()))
            case FileData(_, data, kept):
                self._content(data, kept)
            case KeptSkipped():
                _need(self.request.keep_files > 0 and len(self.skipped) < wire.SKIPPED_MAX, "too many skipped files")
                self.skipped.append(frame)
            case KeptEnd():
                _need(self.request.keep_files > 0 and self.kept_end is None, "a second or unasked KEPT")
                _need(frame.files == len(self.kept) and frame.bytes == self.kept_bytes, "a KEPT that does not add up")
                self.kept_end = frame
            case _:
                raise ProtocolViolation(f"the box broke the protocol: {type(frame).__name__} during a run")

    def _content(self, data: bytes, kept: bool) -> None:
        if kept:
            _need(bool(self.kept) and self.request.send_kept, "kept data without a file")
            begin, content = self.kept[-1]
            _need(len(content) + len(data) <= begin.size_bytes, "more kept data than its file has")
        else:
            _need(bool(self.files), "file data without a file")
            first, content = self.files[-1]
            self.collected_bytes += len(data)
            _need(first.status == "regular" and len(content) + len(data) <= first.size_bytes, "data beyond its file")
            _need(self.collected_bytes <= self.request.collect_total_bytes, "more data than is to be collected")
            _need(len(content) + len(data) <= self.request.collect_file_bytes, "a file over its cap")
        content += data

    def _whole_before(self) -> None:
        if self.files and self.files[-1][0].status == "regular":
            _need(len(self.files[-1][1]) == self.files[-1][0].size_bytes, "a file cut short")
        if self.kept and self.request.send_kept:
            _need(len(self.kept[-1][1]) == self.kept[-1][0].size_bytes, "a kept file cut short")

    def finish(self, frame: ResultFrame) -> RunResult:
        n = frame.numbers
        self._whole_before()
        _need(len(self.files) == len(self.request.collect), "a result without all files")
        killed_for, ended_by, step = n["killed_for"] or 0, n["ended_by"] or 0, n["start_step"] or 0
        _need(killed_for < len(wire.KILLED_FOR) and step < len(wire.START_STEPS) and ended_by <= 2, "an unknown ending")
        _need((step == 0) == (ended_by != 0), "a run that neither started nor failed to")
        seen = (n["port_connections"], n["port_bytes"])
        _need(seen == (self.connections, self.port_bytes), "connections that do not add up")
        return RunResult(
            run_id=frame.run_id,
            killed_for=wire.KILLED_FOR[killed_for],
            start_step=wire.START_STEPS[step],
            start_errno=n["start_errno"] if step else None,
            exit_code=n["code"] if ended_by == 1 else None,
            signal=n["code"] if ended_by == 2 else None,
            core_dumped=n["core_dumped"] == 1,
            stdout=self._stream(1, "stdout", n, frame.stdout_sha256),
            stderr=self._stream(2, "stderr", n, frame.stderr_sha256),
            files=tuple(
                CollectedFile(
                    self.request.collect[begin.index],
                    *(begin.status, begin.kind, begin.mode, begin.errno, begin.size_bytes),
                    bytes(content) if begin.status == "regular" else None,
                )
                for begin, content in self.files
            ),
            kept=self._kept(),
            numbers=n,
            box_usable=n["box_usable"] == 1,
            scrub_text=frame.text,
        )

    def _stream(self, number: int, name: str, n: dict[str, int | None], sha256: bytes) -> StreamResult:
        if not n[f"{name}_total"] and not self.streams[number] and not n[f"{name}_kept"]:
            return StreamResult(_NOTHING, n[f"{name}_closed_early"] == 1, n[f"{name}_after_main"])
        kept, total = b"".join(self.streams[number]), n[f"{name}_total"] or 0
        _need(len(kept) == n[f"{name}_kept"], f"{name} that is not all there")
        limit = self.request.stdout_keep_bytes if number == 1 else self.request.stderr_keep_bytes
        _need(len(kept) == min(total, limit), f"{name} of which less was kept than asked for")
        # Of what is all here we make the digest ourselves.
        digest = hashlib.sha256(kept).hexdigest() if len(kept) == total else sha256.hex()
        return StreamResult(Captured(kept, total, digest), n[f"{name}_closed_early"] == 1, n[f"{name}_after_main"])

    def _kept(self) -> Kept | None:
        if self.kept_end is None:
            _need(not self.kept and not self.skipped, "kept files without their end")
            return None
        files = tuple(
            KeptFile(begin.path, begin.executable, begin.size_bytes, bytes(data) if self.request.send_kept else None)
            for begin, data in self.kept
        )
        return Kept(self.kept_end.complete, files, tuple(self.skipped), self.kept_end.skipped)


def _need(condition: bool, what: str) -> None:
    if not condition:
        raise ProtocolViolation(f"the box broke the protocol: {what}")


class Conversation:
    """The state of the talk with one box. See the module's text for the order of calls."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._reader = FrameReader()
        self._hello: HelloBegin | None = None
        self._facts: dict[str, bytes] = {}
        self._errors: dict[str, int] = {}
        self._facts_bytes = 0
        self._ready = False
        self._puts: list[int] = []
        self._pings: list[int] = []
        self._clearing = 0
        self._run: _Pieces | None = None
        self._encoded: requests.EncodedRequest | None = None
        self._stdin = memoryview(b"")
        self._stdin_sent = 0
        self._stdin_taken = 0
        self._stdin_ended = True

    @property
    def puts_pending(self) -> int:
        """How many files were sent that the box has not answered for."""
        return len(self._puts)

    @property
    def running(self) -> int | None:
        """The id of the run that is on, or None."""
        return self._run.run_id if self._run is not None else None

    def hello(self) -> bytes:
        """The first bytes to send."""
        return requests.encode_hello(self._nonce)

    def put(self, path: bytes, content: bytes, *, executable: bool = False) -> bytes:
        """A file for /submission. Raises ValueError for a path that the box does not take."""
        self._idle()
        self._puts.append(0)
        return requests.encode_put(path, content, executable=executable)

    def begin(self, run_id: int, request: RunRequest, stdin: bytes = b"", files: Sequence[WorkFile] = ()) -> bytes:
        """A whole run up to its start. stdin beyond 16 MiB follows by `stdin_to_send`. Raises ValueError."""
        self._idle()
        stream = len(stdin) > STDIN_BUFFER_BYTES
        if stream != request.stream_stdin:
            request = replace(request, stream_stdin=stream)
        parts = [requests.encode_put(f.path, f.content, executable=f.executable, run_id=run_id) for f in files]
        if self._encoded is None or self._encoded.request is not request:
            self._encoded = requests.encode_request(request)
        parts.append(requests.encode_run(run_id, self._encoded))
        if request.port is not None:
            parts.append(requests.encode_port(run_id, request.port))
        parts.append(requests.encode_stdin(run_id, stdin[:STDIN_BUFFER_BYTES]))
        if not stream:
            parts.append(requests.encode_stdin_end(run_id))
        parts.append(requests.encode_start(run_id))
        self._puts += [run_id] * len(files)
        self._run = _Pieces(run_id, request)
        self._stdin, self._stdin_sent, self._stdin_taken = memoryview(stdin), min(len(stdin), STDIN_BUFFER_BYTES), 0
        self._stdin_ended = not stream
        return b"".join(parts)

    def stdin_to_send(self, at_most: int = 1 << 20) -> bytes:
        """The bytes of standard input, as frames, for which there is room now; empty when there is none or no more."""
        if self._run is None or self._stdin_ended:
            return b""
        room = self._stdin_taken + STDIN_BUFFER_BYTES - self._stdin_sent
        part = bytes(self._stdin[self._stdin_sent : self._stdin_sent + min(room, at_most)])
        self._stdin_sent += len(part)
        frames = requests.encode_stdin(self._run.run_id, part)
        if self._stdin_sent == len(self._stdin):
            self._stdin_ended = True
            frames += requests.encode_stdin_end(self._run.run_id)
        return frames

    def say(self, connection: int, data: bytes, *, close: bool) -> bytes:
        """Bytes for the program on one of its connections, and whether it ends there. Empty once the run is over."""
        if self._run is None:
            return b""
        frames = requests.encode_port_data(self._run.run_id, connection, data)
        return frames + requests.encode_port_close(self._run.run_id, connection) if close else frames

    def cancel(self) -> bytes:
        """Kill the run that is on (empty if none is)."""
        return b"" if self._run is None else requests.encode_cancel(self._run.run_id)

    def ping(self, token: int) -> bytes:
        """Ask whether the box answers."""
        self._pings.append(token)
        return requests.encode_ping(token)

    def clear(self) -> bytes:
        """Empty /submission, between two submissions in a shared box."""
        self._idle()
        self._clearing += 1
        return requests.encode_clear()

    def feed(self, data: bytes) -> list[Event]:
        """What the box's bytes mean. Raises ProtocolViolation; the box is lost then."""
        return [event for frame in self._reader.feed(data) if (event := self._take(frame)) is not None]

    def _idle(self) -> None:
        if not self._ready or self._run is not None:
            raise RuntimeError("a box does one thing at a time, after its handshake")

    def _take(self, frame: Frame) -> Event | None:
        if isinstance(frame, Fatal):
            return frame
        if not self._ready:
            return self._take_hello(frame)
        match frame:
            case Pong():
                _need(frame.token in self._pings, "a pong for no ping")
                self._pings.remove(frame.token)
                return frame
            case PutDone():
                _need(bool(self._puts) and self._puts[0] == frame.run_id, "an answer for a file that was not put")
                del self._puts[0]
                return frame
            case Cleared():
                _need(self._clearing > 0, "cleared without being asked")
                self._clearing -= 1
                return frame
            case HelloBegin() | Fact() | HelloEnd():
                raise ProtocolViolation("the box broke the protocol: a second handshake")
            case _:
                return self._take_of_run(frame)

    def _take_hello(self, frame: Frame) -> Event | None:
        match frame:
            case HelloBegin():
                _need(self._hello is None and frame.nonce == self._nonce, "a hello with another nonce")
                _need(frame.version in (0, wire.PROTOCOL_VERSION), f"protocol version {frame.version}")
                self._hello = frame
            case Fact():
                self._facts_bytes += len(frame.content)
                _need(self._hello is not None, "facts before the hello")
                _need(len(self._facts) < FACTS_MAX and self._facts_bytes <= FACTS_BYTES_MAX, "too many facts")
                if frame.errno:
                    self._errors[frame.name] = frame.errno
                elif frame.name in self._facts:  # one line of several
                    self._facts[frame.name] += b"\n" + frame.content
                else:
                    self._facts[frame.name] = frame.content
            case HelloEnd():
                if self._hello is None:
                    raise ProtocolViolation("the box broke the protocol: facts end before the hello")
                self._ready = True
                return Hello(self._hello.version, self._facts, self._errors)
            case _:
                raise ProtocolViolation(f"the box broke the protocol: {type(frame).__name__} before the handshake")
        return None

    def _take_of_run(self, frame: Frame) -> Event | None:
        run_id = getattr(frame, "run_id", 0)
        if self._run is None or run_id != self._run.run_id:
            raise ProtocolViolation("the box broke the protocol: a frame of a run that is not on")
        match frame:
            case Counters():
                return frame
            case StdinRoom():
                _need(self._stdin_taken <= frame.taken_bytes <= self._stdin_sent, "more stdin taken than was sent")
                self._stdin_taken = frame.taken_bytes
                return frame
            case PortOpened() | PortData() | PortClosed():
                self._run.take_port(frame)
                return frame
            case ResultFrame():
                result = self._run.finish(frame)
                _need(not self._puts, "a result before the answers for its files")
                self._run, self._stdin = None, memoryview(b"")
                return result
            case _:
                self._run.take(frame)
                return None
