"""Reads a record, trusting nothing in it. It never writes there, and may read while a writer writes."""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, cast, overload

from pydantic import ValidationError

from grader.errors import Place, RecordError, UsageError
from grader.store.blobs import BlobReader
from grader.store.contents import RecordFacts
from grader.store.entries import LineReader, RecordedEntry
from grader.store.folder import HEADER, JOURNAL, MOST_HEADER_BYTES, SCHEMA_VERSION, corrupt, open_regular, read_small
from grader.store.journal import Index, Line, line_at, scan
from grader.store.packing import decode_json
from grader.store.seal import Seal, check_verdicts, read_seal

_ROW = 4
_MOST_TRIES = 5


class Record(Sequence[RecordedEntry]):
    """A record whose chain (and seal, if it has one) is sound: a sequence of its entries.

    Entries are read and checked when they are asked for, one at a time, so that a batch of any size can be iterated in
    the memory that its largest entry needs. An entry that is malformed raises RecordError then.
    """

    def __init__(self, folder: Path, created: str, facts: RecordFacts, index: Index, seal: Seal | None) -> None:
        """Use `open_record`."""
        self.folder = folder
        self.created = created
        """When it was begun, RFC 3339."""
        self.journal_index = index
        self.is_sealed = seal is not None
        """Whether grading came to its end; without a seal it was interrupted, or is still going on."""
        self._place = str(folder / JOURNAL)
        self._lines = LineReader(self._place, BlobReader(folder))
        self._facts = facts
        self._last: RecordedEntry | None = None

    @property
    def entries(self) -> Sequence[RecordedEntry]:
        """The entries; the same as the record itself."""
        return self

    @property
    def is_torn(self) -> bool:
        """Whether a line that was never finished stands at the end; it is ignored."""
        return self.journal_index.torn_bytes > 0

    @cached_property
    def sessions(self) -> tuple[RecordFacts, ...]:
        """Facts of every session that wrote into it: first that which began it, then each that resumed it."""
        return (self._facts, *(self._lines.session(line) for line in self._read(self.journal_index.whole)))

    def __len__(self) -> int:
        return len(self.journal_index.entries)

    @overload
    def __getitem__(self, position: int) -> RecordedEntry: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[RecordedEntry]: ...
    def __getitem__(self, position: int | slice) -> RecordedEntry | Sequence[RecordedEntry]:
        """The entry of that number. Raises IndexError, and RecordError if it is malformed."""
        if isinstance(position, slice):
            return [self[number] for number in range(*position.indices(len(self)))]
        number = range(len(self))[position]
        if self._last is None or self._last.number != number:
            self._last = None  # let it go before the next is read
            self._last = self._lines.entry(number, self._read(self.journal_index.entries[number]), self._session_of)
        return self._last

    def last_verdicts(self) -> array[int]:
        """For each entry, offset and length of its last verdict's line; 0 and 0 if it has none."""
        places = array("q")
        with self._open() as file:
            for rows in self.journal_index.entries:
                found = (0, 0)
                for start in range(len(rows) - _ROW, -1, -_ROW):
                    row = rows[start : start + _ROW]
                    if line_at(file, row, self._place).kind == "verdict":
                        found = (row[0], row[1])
                        break
                places.extend(found)
        return places

    def submission_names(self) -> list[str]:
        """The name of each entry's submission; empty for an entry without one."""
        names: list[str] = []
        for rows in self.journal_index.entries:
            for line in self._read(rows[:_ROW]):
                submission = self._lines.header(line).submission
                names.append(submission.name if submission is not None else "")
        return names

    def _session_of(self, line_number: int) -> int:
        whole = self.journal_index.whole
        return bisect_right(range(3, len(whole), _ROW), line_number, key=whole.__getitem__)

    def _open(self) -> BinaryIO:
        try:
            return open(open_regular(self.folder / JOURNAL), "rb")
        except FileNotFoundError as error:
            raise corrupt(self._place, "is missing") from error

    def _read(self, rows: array[int]) -> Iterator[Line]:
        with self._open() as file:
            for start in range(0, len(rows), _ROW):
                yield line_at(file, rows[start : start + _ROW], self._place)


def open_record(folder: str | os.PathLike[str]) -> Record:
    """Open a record and check its chain and seal.

    Raises UsageError if there is no record, RecordError (`record.corrupt`, with file and line) if a byte of it was
    changed, RecordError (`record.too_new`) if a newer grader wrote it.
    """
    path = Path(folder)
    try:
        seal = read_seal(path)
        for _ in range(_MOST_TRIES):
            record = _open_once(path, seal)
            if record is not None:
                return record
            seal, before = read_seal(path), seal
            if seal == before:
                break
            # Between our two looks a writer went on with the record, or sealed it.
    except OSError as error:
        raise RecordError(
            f"cannot be read: {error.strerror or error}", where=Place(str(path)), hint="check that you may read it"
        ) from error
    raise corrupt(path / JOURNAL, "does not end where the seal says it does")


def _open_once(path: Path, seal: Seal | None) -> Record | None:
    """The record, or None if its journal is sound but not the one that was sealed."""
    header = _read_header(path)
    created, facts = _parse_header(path, header)
    try:
        with open(open_regular(path / JOURNAL), "rb") as file:
            index = scan(file, hashlib.sha256(header).hexdigest().encode("ascii"), str(path / JOURNAL))
    except FileNotFoundError as error:
        raise corrupt(path / JOURNAL, "is missing") from error
    if seal is not None:
        if (index.lines, index.size, index.chain.decode("ascii")) != (seal.lines, seal.size, seal.chain):
            return None
        if index.torn_bytes:
            return None
        try:
            check_verdicts(path, seal)
        except RecordError:
            if read_seal(path) != seal:
                return None  # a writer that goes on takes the seal away first, then the verdicts
            raise
    return Record(path, created, facts, index, seal)


def _read_header(path: Path) -> bytes:
    try:
        return read_small(path / HEADER, MOST_HEADER_BYTES)
    except FileNotFoundError as error:
        raise UsageError(
            "there is no record here", where=Place(str(path)), hint=f"name a folder that has a {HEADER} in it"
        ) from error


def _parse_header(path: Path, data: bytes) -> tuple[str, RecordFacts]:
    place = path / HEADER
    plain = decode_json(data, str(place))
    entries = cast("dict[str, object]", plain) if isinstance(plain, dict) else {}
    version = entries.get("schema_version")
    if isinstance(version, int) and not isinstance(version, bool) and version > SCHEMA_VERSION:
        raise RecordError(
            f"this record has schema version {str(version)[:40]}; this grader reads versions up to {SCHEMA_VERSION}",
            code="record.too_new",
            where=Place(str(place)),
            hint="use the version of grader that wrote it, or a newer one",
        )
    created = entries.get("created")
    if set(entries) != {"schema_version", "created", "facts"} or version != 1 or not isinstance(created, str):
        raise corrupt(place, "is not the head of a record: schema_version, created, facts")
    try:
        return created, RecordFacts.model_validate(entries["facts"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"facts.{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
        raise corrupt(place, what[:500]) from error
