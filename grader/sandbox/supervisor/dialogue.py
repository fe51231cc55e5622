"""The client's side of a talk with one box: what may be said when, and whole results out of single frames. Pure.

The order of calls, with `send` and `receive` being the caller's I/O:

1. `talk = Dialogue(nonce)` with 16 random bytes; `send(talk.hello())`.
2. Until a `Hello` comes: `for event in talk.feed(receive()): ...`. Compare it with the policy.
3. `send(talk.put(path, content, executable=...))` for files of /submission. Each gives a `PutDone` in due time; they
   need not be waited for, but `talk.puts_pending` must be 0 before a run counts as prepared.
4. `send(talk.begin(run_id, request, stdin, files))`: everything up to the start in one go. `run_id` is random, not 0.
   Standard input beyond 16 MiB is streamed: `stdin_to_send` says how much of it may go now, also after each event.
5. `talk.feed(...)` gives `Counters`, `StdinRoom`, and at the end one `RunResult`; of a request with a port also
   `PortOpened`, `PortData`, `PortClosed`, to be answered with `talk.say`. `send(talk.cancel())` kills the run; its
   result comes all the same. After a `RunResult` whose `box_usable` is False the box must be thrown away.
6. Back to 3 or 4. `talk.clear()` empties /submission and gives `Cleared`; what is sent behind it happens after it, or
   not at all. `talk.ping(token)` gives `Pong`, at any time.

`feed` raises `ProtocolViolation` for anything out of order, never asked for, or beyond what the request allows; then,
and after a `Fatal` event, the box is lost. Memory is bounded by the request's own caps, never by what the box says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from grader.core.submission_files import SubmissionFile
from grader.sandbox.supervisor import requests
from grader.sandbox.supervisor.frames import (
    Cleared,
    Counters,
    Fact,
    Fatal,
    Frame,
    HelloBegin,
    HelloEnd,
    Pong,
    PortClosed,
    PortData,
    PortOpened,
    PutDone,
    ResultFrame,
    StdinRoom,
    need,
    violation,
)
from grader.sandbox.supervisor.requests import STDIN_BUFFER_BYTES, RunRequest
from grader.sandbox.supervisor.results import RunPieces, RunResult
from grader.sandbox.supervisor.wire import PROTOCOL_VERSION, FrameReader

KNOWN_STDIN_BYTES: Final = 1 << 16
"""The frames of a run with no more standard input than this are kept for its next repetition."""
FACTS_MAX: Final = 256
FACTS_BYTES_MAX: Final = 2 << 20


@dataclass(frozen=True)
class Hello:
    """The handshake's facts: what the box read about itself, as raw texts. What they mean is the policy's to decide.

    They are interpreted outside, so that a box has no say in how they are read.
    """

    version: int
    files: Mapping[str, bytes]
    """Every fact by its name: a path as the box read it, or a name such as `affinity.cpus`."""
    errors: Mapping[str, int]
    """errno of what it could not read."""


Event = Hello | PutDone | Counters | StdinRoom | PortOpened | PortData | PortClosed | RunResult | Pong | Cleared | Fatal


class Dialogue:
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
        self._run: RunPieces | None = None
        self._frames: requests.RunFrames | None = None
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

    def begin(
        self, run_id: int, request: RunRequest, stdin: bytes = b"", files: Sequence[SubmissionFile] = ()
    ) -> bytes:
        """A whole run up to its start. stdin beyond 16 MiB follows by `stdin_to_send`. Raises ValueError."""
        self._idle()
        stream = len(stdin) > STDIN_BUFFER_BYTES
        if stream != request.stream_stdin:
            request = replace(request, stream_stdin=stream)
        known = self._frames
        if known is None or known.request is not request or known.stdin is not stdin:
            known = requests.RunFrames.of(request, stdin)
            self._frames = known if len(stdin) <= KNOWN_STDIN_BYTES else None
        frames = known.with_id(run_id)
        if files:
            puts = [requests.encode_put(f.path, f.content, executable=f.executable, run_id=run_id) for f in files]
            self._puts += [run_id] * len(files)
            frames = b"".join((*puts, frames))
        self._run = RunPieces(run_id, request)
        self._stdin, self._stdin_sent, self._stdin_taken = memoryview(stdin), min(len(stdin), STDIN_BUFFER_BYTES), 0
        self._stdin_ended = not stream
        return frames

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

    def port_seen(self) -> bytes:
        """That all of `PortData` so far was dealt with: until then the program's waiting is not charged to it."""
        if self._run is None:
            return b""
        return requests.encode_port_seen(self._run.run_id, self._run.port_bytes)

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
                need(frame.token in self._pings, "a pong for no ping")
                self._pings.remove(frame.token)
                return frame
            case PutDone():
                need(bool(self._puts) and self._puts[0] == frame.run_id, "an answer for a file that was not put")
                del self._puts[0]
                return frame
            case Cleared():
                need(self._clearing > 0, "cleared without being asked")
                self._clearing -= 1
                return frame
            case HelloBegin() | Fact() | HelloEnd():
                raise violation("a second handshake")
            case _:
                return self._take_of_run(frame)

    def _take_hello(self, frame: Frame) -> Event | None:
        match frame:
            case HelloBegin():
                need(self._hello is None and frame.nonce == self._nonce, "a hello with another nonce")
                need(frame.version in (0, PROTOCOL_VERSION), f"protocol version {frame.version}")
                self._hello = frame
            case Fact():
                self._facts_bytes += len(frame.content)
                need(self._hello is not None, "facts before the hello")
                need(len(self._facts) < FACTS_MAX and self._facts_bytes <= FACTS_BYTES_MAX, "too many facts")
                if frame.errno:
                    self._errors[frame.name] = frame.errno
                elif frame.name in self._facts:  # one line of several
                    self._facts[frame.name] += b"\n" + frame.content
                else:
                    self._facts[frame.name] = frame.content
            case HelloEnd():
                if self._hello is None:
                    raise violation("facts end before the hello")
                self._ready = True
                return Hello(self._hello.version, self._facts, self._errors)
            case _:
                raise violation(f"{type(frame).__name__} before the handshake")
        return None

    def _take_of_run(self, frame: Frame) -> Event | None:
        run_id = getattr(frame, "run_id", 0)
        if self._run is None or run_id != self._run.run_id:
            raise violation("a frame of a run that is not on")
        match frame:
            case Counters():
                return frame
            case StdinRoom():
                need(self._stdin_taken <= frame.taken_bytes <= self._stdin_sent, "more stdin taken than was sent")
                self._stdin_taken = frame.taken_bytes
                return frame
            case PortOpened() | PortData() | PortClosed():
                self._run.take_port(frame)
                return frame
            case ResultFrame():
                result = self._run.finish(frame)
                if self._puts or self._clearing:
                    raise violation("a result before the answers to what came before it")
                self._run, self._stdin = None, memoryview(b"")
                return result
            case _:
                self._run.take(frame)
                return None
