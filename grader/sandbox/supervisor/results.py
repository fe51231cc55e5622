"""What a box says of one run, put together from its frames, each bounded by what the request allows. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from grader.core.captured import Captured
from grader.sandbox.supervisor.frames import (
    KILLED_FOR,
    SKIPPED_MAX,
    START_STEPS,
    FileBegin,
    FileData,
    FileStatus,
    Frame,
    KeptBegin,
    KeptEnd,
    KeptSkipped,
    KilledFor,
    PortClosed,
    PortData,
    PortOpened,
    ResultFrame,
    StreamData,
    need,
    violation,
)
from grader.sandbox.supervisor.requests import RunRequest


class StreamResult(NamedTuple):
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


class RunResult(NamedTuple):
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
    """Every number of RESULT by the name in `frames.RESULT_FIELDS`, such as `wall_ns`, `cpu_ns`, `oom_kills`."""
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


_NOTHING: Final = Captured.whole(b"")
_STREAM_KEYS: Final = {
    number: (name, f"{name}_total", f"{name}_kept", f"{name}_closed_early", f"{name}_after_main")
    for number, name in ((1, "stdout"), (2, "stderr"))
}


class RunPieces:
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
            raise violation("a connection to no port")
        if isinstance(frame, PortOpened):
            self.connections += 1
            need(frame.connection == self.connections <= port.connections_in_all, "a connection out of turn")
            self.connected.add(frame.connection)
            return
        need(frame.connection in self.connected, "something of a connection that is not open")
        if isinstance(frame, PortData):
            self.port_bytes += len(frame.data)
            need(self.port_bytes <= port.most_bytes, "more bytes than the port takes")
        else:
            self.connected.remove(frame.connection)

    def take(self, frame: Frame) -> None:
        """The next part of a stream or file, or what was kept. Raises ProtocolViolation for what was not asked for."""
        match frame:
            case StreamData(_, stream, data):
                keep = self.request.stdout_keep_bytes if stream == 1 else self.request.stderr_keep_bytes
                self.stream_bytes[stream] += len(data)
                need(self.stream_bytes[stream] <= keep, "more of a stream than is to be kept")
                self.streams[stream].append(data)
            case FileBegin():
                need(frame.index == len(self.files) < len(self.request.collect), "a file that was not asked for")
                self._whole_before()
                self.files.append((frame, bytearray()))
            case KeptBegin():
                need(len(self.kept) < self.request.keep_files, "more kept files than asked for")
                self._whole_before()
                self.kept_bytes += frame.size_bytes
                need(self.kept_bytes <= self.request.keep_bytes, "more kept bytes than asked for")
                self.kept.append((frame, bytearray()))
            case FileData(_, data, kept):
                self._content(data, kept)
            case KeptSkipped():
                need(self.request.keep_files > 0 and len(self.skipped) < SKIPPED_MAX, "too many skipped files")
                self.skipped.append(frame)
            case KeptEnd():
                need(self.request.keep_files > 0 and self.kept_end is None, "a second or unasked KEPT")
                need(frame.files == len(self.kept) and frame.bytes == self.kept_bytes, "a KEPT that does not add up")
                self.kept_end = frame
            case _:
                raise violation(f"{type(frame).__name__} during a run")

    def _content(self, data: bytes, kept: bool) -> None:
        if kept:
            need(bool(self.kept) and self.request.send_kept, "kept data without a file")
            begin, content = self.kept[-1]
            need(len(content) + len(data) <= begin.size_bytes, "more kept data than its file has")
        else:
            need(bool(self.files), "file data without a file")
            first, content = self.files[-1]
            self.collected_bytes += len(data)
            need(first.status == "regular" and len(content) + len(data) <= first.size_bytes, "data beyond its file")
            need(self.collected_bytes <= self.request.collect_total_bytes, "more data than is to be collected")
            need(len(content) + len(data) <= self.request.collect_file_bytes, "a file over its cap")
        content += data

    def _whole_before(self) -> None:
        if self.files and self.files[-1][0].status == "regular":
            need(len(self.files[-1][1]) == self.files[-1][0].size_bytes, "a file cut short")
        if self.kept and self.request.send_kept:
            need(len(self.kept[-1][1]) == self.kept[-1][0].size_bytes, "a kept file cut short")

    def finish(self, frame: ResultFrame) -> RunResult:
        """The whole result. Raises ProtocolViolation if its parts do not add up."""
        n = frame.numbers
        self._whole_before()
        if len(self.files) != len(self.request.collect):
            raise violation("a result without all files")
        killed_for, ended_by, step = n["killed_for"] or 0, n["ended_by"] or 0, n["start_step"] or 0
        if killed_for >= len(KILLED_FOR) or step >= len(START_STEPS) or ended_by > 2:
            raise violation("an unknown ending")
        if (step == 0) != (ended_by != 0):
            raise violation("a run that neither started nor failed to")
        if n["port_connections"] != self.connections or n["port_bytes"] != self.port_bytes:
            raise violation("connections that do not add up")
        return RunResult(
            run_id=frame.run_id,
            killed_for=KILLED_FOR[killed_for],
            start_step=START_STEPS[step],
            start_errno=n["start_errno"] if step else None,
            exit_code=n["code"] if ended_by == 1 else None,
            signal=n["code"] if ended_by == 2 else None,
            core_dumped=n["core_dumped"] == 1,
            stdout=self._stream(1, n, frame.stdout_sha256),
            stderr=self._stream(2, n, frame.stderr_sha256),
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

    def _stream(self, number: int, n: dict[str, int | None], sha256: bytes) -> StreamResult:
        name, total_key, kept_key, closed_early_key, after_main_key = _STREAM_KEYS[number]
        closed_early, after_main = n[closed_early_key] == 1, n[after_main_key]
        parts, total, kept_bytes = self.streams[number], n[total_key] or 0, n[kept_key]
        if not total and not parts and not kept_bytes:
            return StreamResult(_NOTHING, closed_early, after_main)
        kept = parts[0] if len(parts) == 1 else b"".join(parts)
        limit = self.request.stdout_keep_bytes if number == 1 else self.request.stderr_keep_bytes
        if len(kept) != kept_bytes:
            raise violation(f"{name} that is not all there")
        if len(kept) != min(total, limit):
            raise violation(f"{name} of which less was kept than asked for")
        # Of what is all here we make the digest ourselves.
        digest = hashlib.sha256(kept).hexdigest() if len(kept) == total else sha256.hex()
        return StreamResult(Captured(kept, total, digest), closed_early, after_main)

    def _kept(self) -> Kept | None:
        if self.kept_end is None:
            if self.kept or self.skipped:
                raise violation("kept files without their end")
            return None
        files = tuple(
            KeptFile(begin.path, begin.executable, begin.size_bytes, bytes(data) if self.request.send_kept else None)
            for begin, data in self.kept
        )
        return Kept(self.kept_end.complete, files, tuple(self.skipped), self.kept_end.skipped)
