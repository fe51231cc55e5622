"""Writes a record while runs end. After a crash at any moment, every run that was appended is still readable.

Appending is synchronous and cheap; the bytes are the kernel's when it returns, so that the death of this process takes
nothing. A power failure can take what was appended within about the last second. Safe to call from several threads.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from array import array
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from grader.core.observation import CompileRecord, Observation, RunRecord
from grader.core.verdict import Verdict
from grader.errors import Place, UsageError
from grader.store.blobs import BlobWriter
from grader.store.contents import EntryHeader, RecordFacts, plain_entry, plain_run
from grader.store.folder import (
    BLOBS,
    HEADER,
    JOURNAL,
    LOCK,
    SCHEMA_VERSION,
    SEAL,
    TEMPORARY_PREFIX,
    VERDICTS,
    cannot_begin,
    cannot_go_on,
    open_regular,
    sync_folder,
    write_all,
    write_whole,
)
from grader.store.journal import INLINE_BODY_BYTES, Index, encode_line
from grader.store.lock import WriterLock
from grader.store.packing import body_text, packed_text
from grader.store.reader import open_record
from grader.store.seal import Seal, write_verdicts
from grader.store.syncing import Syncer

_VERDICT_INLINE_BYTES = 2**16


class RecordWriter:
    """The one writer of a record. Make it with `create` or `reopen`; leaving its context closes it.

    Every method that writes raises SandboxError (`host.disk_full`) when the record can no longer be written. Nothing
    that was appended before is lost then, and appending may be tried again.
    """

    def __init__(self, folder: Path, lock: WriterLock, journal: int, index: Index) -> None:
        """Use `create` or `reopen`."""
        self.folder = folder
        self._lock = lock
        self._journal = journal
        self._size = index.size
        self._lines = index.lines
        self._chain = index.chain
        self._entries = len(index.entries)
        # Of each entry the offset and length of its last verdict's line (0, 0: none), and its submission's name.
        self._verdicts = array("q")
        self._names: list[str] = []
        self._blobs = BlobWriter(folder)
        self._mutex = threading.RLock()
        self._syncer = Syncer(self._sync)
        self._broken: OSError | None = None
        self._is_open = True

    @classmethod
    def create(cls, folder: str | os.PathLike[str], facts: RecordFacts, *, created: str | None = None) -> RecordWriter:
        """Begin a record in a folder that does not exist or is empty. `created`: RFC 3339 time, now by default.

        Raises UsageError if a record or anything else is there, PrerequisiteError if it cannot be written.
        """
        path = Path(folder)
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not _is_free(path):
                raise UsageError(
                    "the folder for the record is not empty",
                    where=Place(str(path)),
                    hint="name another folder, or resume the record that is in it",
                )
            lock = WriterLock(path)
        except OSError as error:
            raise cannot_begin(path, error) from error
        try:
            _remove_remains(path)
            when = created if created is not None else datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            header = {
                "schema_version": SCHEMA_VERSION,
                "created": when,
                "facts": facts.model_dump(mode="json", exclude_defaults=True),
            }
            data = (json.dumps(header, indent=2, ensure_ascii=True, allow_nan=False) + "\n").encode()
            journal = os.open(
                path / JOURNAL, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666
            )
            writer = cls(path, lock, journal, Index(chain=hashlib.sha256(data).hexdigest().encode()))
            writer._blobs.prepare()
            write_whole(path / HEADER, data)
            sync_folder(path)
            sync_folder(path.parent)
        except OSError as error:
            lock.release()
            raise cannot_begin(path, error) from error
        return writer

    @classmethod
    def reopen(cls, folder: str | os.PathLike[str], facts: RecordFacts) -> RecordWriter:
        """Go on with a record: check its chain, cut a torn last line, take the seal away, begin a new session.

        What is recorded is not looked at beyond that; `resume_differences` says whether going on makes sense.

        Raises RecordError for a record that is damaged or too new, UsageError if another grader writes it,
        PrerequisiteError if it cannot be written.
        """
        path = Path(folder)
        try:
            open_record(path)  # refuses what is no record before a lock file is put beside it
            lock = WriterLock(path)
        except OSError as error:
            raise cannot_begin(path, error) from error
        try:
            record = open_record(path)
            journal = open_regular(path / JOURNAL, os.O_WRONLY | os.O_APPEND)
            writer = cls(path, lock, journal, record.journal_index)
            writer._blobs.prepare()
            for name in (SEAL, VERDICTS):
                (path / name).unlink(missing_ok=True)
            for unfinished in path.glob(f"{TEMPORARY_PREFIX}*"):
                unfinished.unlink(missing_ok=True)
            os.ftruncate(journal, record.journal_index.size)
            sync_folder(path)
            writer._verdicts = record.last_verdicts()
            writer._names = record.submission_names()
        except OSError as error:
            lock.release()
            raise cannot_begin(path, error) from error
        except BaseException:
            lock.release()
            raise
        body = {"facts": facts.model_dump(mode="json", exclude_defaults=True)}
        writer._append("session", None, lambda: packed_text(body, writer._blobs.put, inline_bytes=INLINE_BODY_BYTES))
        return writer

    def begin(self, header: EntryHeader) -> int:
        """Begin an entry, before its first run; gives the number by which it is named from then on."""
        with self._mutex:
            entry = self._entries
            self._append(
                "entry",
                entry,
                lambda: body_text(
                    plain_entry(header, self._blobs.put), self._blobs.put, inline_bytes=INLINE_BODY_BYTES
                ),
            )
            self._names.append(header.submission.name if header.submission is not None else "")
            return entry

    def append_compile(self, entry: int, record: CompileRecord) -> None:
        """Keep an attempt at the compile run of a profile."""
        self._append("compile", entry, lambda: self._packed(plain_run(record, self._blobs.put)))

    def append_run(self, entry: int, record: RunRecord) -> None:
        """Keep an attempt at a run."""
        self._append("run", entry, lambda: self._packed(plain_run(record, self._blobs.put)))

    def append_observation(self, entry: int, observation: Observation) -> None:
        """Keep evidence of another kind than program runs: tool events, an execution trace, a judgement."""
        self._append("observation", entry, lambda: self._packed(observation.model_dump(mode="json")))

    def append_verdict(self, entry: int, verdict: Verdict) -> None:
        """Keep the verdict on an entry; the last one counts."""
        plain = verdict.model_dump(mode="json", exclude_defaults=True)
        self._append("verdict", entry, lambda: self._packed(plain, _VERDICT_INLINE_BYTES))

    def supersede(self, entry: int, runs: Iterable[int]) -> None:
        """Set all that is recorded of these runs (their indices in the plan) aside: it is kept, and counts no more.

        Said before the cell they belong to is run again whole on another host.
        """
        body = {"runs": sorted(set(runs))}
        self._append("superseded", entry, lambda: self._packed(body))

    def flush(self) -> None:
        """Make everything durable now. May take as long as the disk needs."""
        with self._mutex:
            self._check_usable()
            try:
                self._sync()
            except OSError as error:
                self._broken = error
                raise cannot_go_on(self.folder, error) from error

    def close(self, *, seal: bool = True) -> None:
        """Make everything durable and let the record go. Does nothing if it is closed.

        `seal`: grading is over; a record without a seal is readable too, and known to be unfinished.
        """
        with self._mutex:
            if not self._is_open:
                return
            self._is_open = False
        self._syncer.close()
        try:
            if self._broken is not None:
                raise self._broken
            self._sync()
            if seal:
                self._seal()
        except OSError as error:
            raise cannot_go_on(self.folder, error) from error
        finally:
            os.close(self._journal)
            self._lock.release()

    def __enter__(self) -> RecordWriter:
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the record; seal it unless an exception passes."""
        self.close(seal=kind is None)

    def _packed(self, plain: object, inline_bytes: int = INLINE_BODY_BYTES) -> str:
        return packed_text(plain, self._blobs.put, inline_bytes=inline_bytes)

    def _append(self, kind: str, entry: int | None, body: Callable[[], str]) -> None:
        with self._mutex:
            self._check_usable()
            if entry is not None and kind != "entry" and not 0 <= entry < self._entries:
                raise ValueError(f"entry {entry} was not begun")
            try:
                self._syncer.check()
                line, chain = encode_line(kind, entry, body(), self._chain)
                self._write(line)
            except OSError as error:
                raise cannot_go_on(self.folder, error) from error
            offset = self._size
            self._size += len(line)
            self._lines += 1
            self._chain = chain
            if kind == "entry":
                self._entries += 1
                self._verdicts.extend((0, 0))
            elif kind == "verdict" and entry is not None:
                self._verdicts[2 * entry] = offset
                self._verdicts[2 * entry + 1] = len(line)
            self._syncer.note()

    def _write(self, line: bytes) -> None:
        try:
            write_all(self._journal, line)
        except BaseException:
            # Half a line must not be followed by another: take it back, or write no more.
            try:
                os.ftruncate(self._journal, self._size)
            except OSError as error:
                self._broken = error
            raise

    def _check_usable(self) -> None:
        if not self._is_open:
            raise ValueError("the record is closed")
        if self._broken is not None:
            raise cannot_go_on(self.folder, self._broken)

    def _sync(self) -> None:
        """Names of blobs before the lines that speak of them."""
        sync_folder(self._blobs.folder)
        os.fsync(self._journal)

    def _seal(self) -> None:
        verdicts = write_verdicts(self.folder, self._verdicts, self._names)
        seal = Seal(lines=self._lines, size=self._size, chain=self._chain.decode(), verdicts=verdicts)
        write_whole(self.folder / SEAL, seal.to_bytes())
        sync_folder(self.folder)


def _is_free(folder: Path) -> bool:
    """Whether a folder is empty, or holds only what is left of a writer that died before its record began."""
    return all(_is_remains(path) for path in folder.iterdir())


def _is_remains(path: Path) -> bool:
    if path.name == JOURNAL:
        return path.is_file() and not path.is_symlink() and path.stat().st_size == 0
    if path.name == BLOBS:
        return path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    return path.name == LOCK or path.name.startswith(TEMPORARY_PREFIX)


def _remove_remains(folder: Path) -> None:
    """Of a record that never began; its lock is held by now, so nobody is about to begin it."""
    for path in folder.iterdir():
        if path.name == JOURNAL or path.name.startswith(TEMPORARY_PREFIX):
            path.unlink()
