"""Between the connections and the files of a receiver: a bounded queue, written in groups, each group synced once.

Whoever hands something in waits until it is on the disk, or is refused. Notes of losses are merged while they wait, so
that a flood of refusals takes no room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from grader.capture.otlp_body import OtlpEncoding
from grader.capture.otlp_http import Batch
from grader.capture.received_files import SourceFiles, framed
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.traces.received import note_line

_MOST_AWAITED = 10_000
_RETRY_AFTER_S = 1


@dataclass(frozen=True, slots=True)
class NotKept:
    """Why a batch was not kept, as its sender is told. `retry_after_s` None: never send it again."""

    status: int
    why: str
    retry_after_s: int | None = None


@dataclass(slots=True)
class _Item:
    source: str
    encoding: OtlpEncoding
    data: bytes
    digest: str
    was_awaited: bool = False
    """Its sender had been told to send it again."""
    done: anyio.Event = field(default_factory=anyio.Event)
    error: OSError | None = None


@dataclass(slots=True)
class _Notes:
    """What is to be noted of one source with the next group."""

    reasons: dict[CoverageCode, tuple[int, str]] = field(default_factory=dict[CoverageCode, tuple[int, str]])
    send_again: dict[str, None] = field(default_factory=dict[str, None])
    came_again: dict[str, None] = field(default_factory=dict[str, None])

    def add(self, code: CoverageCode, detail: str, count: int = 1) -> None:
        known, first = self.reasons.get(code, (0, detail))
        self.reasons[code] = (known + count, first)

    def merge(self, other: _Notes) -> None:
        for code, (count, detail) in other.reasons.items():
            self.add(code, detail, count)
        self.send_again.update(other.send_again)
        self.came_again.update(other.came_again)

    def line(self) -> bytes:
        reasons = [
            CoverageReason(code=code, count=count, detail=detail) for code, (count, detail) in self.reasons.items()
        ]
        return note_line(reasons, self.send_again, self.came_again)

    def __bool__(self) -> bool:
        return bool(self.reasons or self.send_again or self.came_again)


class Spool:
    """Keeps batches of sources in files; `run` writes, in a task of its own."""

    def __init__(self, folders: Mapping[str, Path], *, queue_batches: int, folder_bytes: int) -> None:
        self._files = {source: SourceFiles(folder) for source, folder in folders.items()}
        self._notes = {source: _Notes() for source in folders}
        self._awaited: dict[str, dict[str, None]] = {source: {} for source in folders}
        self._queue_batches = queue_batches
        self._folder_bytes = folder_bytes
        self._queue: deque[_Item] = deque()
        self._in_hand = 0
        self._wake = anyio.Event()
        self._written = anyio.Event()
        self._is_ending = self._has_ended = False

    @property
    def written_bytes(self) -> int:
        """How much this session has written."""
        return sum(files.written_bytes for files in self._files.values())

    @property
    def unsaved_notes(self) -> bool:
        """Whether losses could not be noted in the files."""
        return any(bool(notes) for notes in self._notes.values())

    async def keep(self, batch: Batch) -> NotKept | None:
        """Wait until a batch is on the disk; None when it is."""
        if batch.spans == 0:
            return None
        data = framed(batch.body, batch.encoding)
        digest = sha256(batch.body).hexdigest()
        if len(self._queue) + self._in_hand >= self._queue_batches:
            return await self._later(
                batch.source, digest, 429, "the queue of the receiver is full: send it again later"
            )
        if self.written_bytes + sum(len(item.data) for item in self._queue) + len(data) > self._folder_bytes:
            why = f"the receiver has written its {self._folder_bytes} bytes, and keeps nothing more"
            await self.note([batch.source], CoverageCode.CAPACITY, why)
            return NotKept(507, why)
        item = _Item(batch.source, batch.encoding, data, digest)
        self._queue.append(item)
        self._wake.set()
        await item.done.wait()
        if item.error is None:
            return None
        why = f"the spans could not be written: {item.error.strerror or item.error}"
        return await self._later(batch.source, digest, 503, why)

    async def note(self, sources: Iterable[str], code: CoverageCode, detail: str) -> None:
        """Wait until it is noted that spans of these sources were lost, or until that was tried."""
        for source in sources:
            self._notes[source].add(code, detail)
        await self._noted()

    async def run(self) -> None:
        """Write what is handed in, group by group, until `end` and nothing is left."""
        while not self._is_ending or self._queue or self._wake.is_set():
            await self._wake.wait()
            self._wake = anyio.Event()
            written, self._written = self._written, anyio.Event()
            group, notes = list(self._queue), self._notes
            self._queue.clear()
            self._notes = {source: _Notes() for source in notes}
            for item in group:
                item.was_awaited = item.digest in self._awaited[item.source]
            self._in_hand = len(group)
            await to_thread.run_sync(self._write, group, notes)
            self._in_hand = 0
            for item in group:
                if item.error is None:
                    self._awaited[item.source].pop(item.digest, None)
                item.done.set()
            for source, left in notes.items():
                self._notes[source].merge(left)
            written.set()
        self._has_ended = True

    def end(self) -> None:
        """Write what was handed in until now and is not on the disk, and then end `run`."""
        self._is_ending = True
        self._wake.set()

    def close(self) -> None:
        """Close the files."""
        for files in self._files.values():
            files.close()

    async def _later(self, source: str, digest: str, status: int, why: str) -> NotKept:
        """Its sender is told to send it again; until that comes it is noted as missing."""
        notes, awaited = self._notes[source], self._awaited[source]
        if len(awaited) >= _MOST_AWAITED and digest not in awaited:
            notes.add(CoverageCode.CAPTURE_FAILED, why)
        else:
            awaited[digest] = notes.send_again[digest] = None
        await self._noted()
        return NotKept(status, why, _RETRY_AFTER_S)

    async def _noted(self) -> None:
        # The group that is being written now has taken its notes already: the next one has these.
        if not self._has_ended:
            self._wake.set()
            await self._written.wait()

    # --- in the writer's thread; nothing here is used elsewhere meanwhile

    def _write(self, group: list[_Item], notes: dict[str, _Notes]) -> None:
        """Write a group and its notes. An item that could not be written has an error; notes that could not, stay."""
        by_file: dict[tuple[str, OtlpEncoding], list[_Item]] = {}
        for item in group:
            by_file.setdefault((item.source, item.encoding), []).append(item)
        for (source, encoding), items in by_file.items():
            try:
                self._files[source].append(b"".join(item.data for item in items), encoding)
            except OSError as error:
                for item in items:
                    item.error = error
                continue
            notes[source].came_again.update((item.digest, None) for item in items if item.was_awaited)
        for source, noted in notes.items():
            if noted:
                with suppress(OSError):
                    self._files[source].append(noted.line(), OtlpEncoding.JSON)
                    notes[source] = _Notes()
