"""The journal of a record: lines of JSON, each with a digest over itself and all that stand before it.

    {"kind":"run","entry":0,"body":{...},"chain":"64 hex digits"}

`chain` is the SHA-256 of the chain value before (64 hex digits; for the first line the SHA-256 of record.json) followed
by the line's own bytes up to `,"chain"`. A changed, missing, doubled or moved line is so found at its place. `entry` is
the number of the submission, from 0 in order of their `entry` lines; null for lines about the whole record.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from grader.store.folder import JOURNAL, corrupt

KINDS: Final = frozenset({"session", "entry", "compile", "run", "superseded", "observation", "verdict"})
INLINE_BODY_BYTES: Final = 2**20
"""A larger body is a blob."""
MOST_LINE_BYTES: Final = 4 * 2**20
MOST_ENTRIES: Final = 10**8

_HEAD = re.compile(rb'\{"kind":"([a-z_]{1,32})","entry":(null|0|[1-9][0-9]{0,7}),"body":')
_TAIL = re.compile(rb',"chain":"([0-9a-f]{64})"\}\n')
_TAIL_BYTES: Final = len(b',"chain":""}\n') + 64
_CHAIN_TO: Final = len(b'"}\n')
_CHAIN_FROM: Final = _CHAIN_TO + 64


def encode_line(kind: str, entry: int | None, body: str, chain: bytes) -> tuple[bytes, bytes]:
    """A line, and its chain value (64 hex digits), which the next line is given as `chain`."""
    number = "null" if entry is None else str(entry)
    content = f'{{"kind":"{kind}","entry":{number},"body":{body}'.encode("ascii")
    value = hashlib.sha256(chain + content).hexdigest().encode("ascii")
    return b'%b,"chain":"%b"}\n' % (content, value), value


@dataclass(slots=True)
class Line:
    """One line, taken apart: its number from 1, its kind, the entry that it belongs to, its body as JSON text."""

    number: int
    kind: str
    entry: int | None
    body: bytes
    chain: bytes


def split_line(line: bytes, number: int, place: str) -> Line:
    """Take a line apart without looking into its body. Raises RecordError if it is not of the form above."""
    head = _HEAD.match(line)
    tail = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_BYTES))
    if head is None or tail is None or head.end() > tail.start():
        raise corrupt(place, "is not a line of a record", line=number)
    kind = head[1].decode("ascii")
    if kind not in KINDS:
        raise corrupt(place, f"has a line of unknown kind {kind!r}", line=number)
    entry = None if head[2] == b"null" else int(head[2])
    return Line(number, kind, entry, line[head.end() : tail.start()], tail[1])


def chain_of(line: bytes, chain: bytes) -> bytes:
    """The chain value that `line` must have after `chain`."""
    return hashlib.sha256(chain + line[:-_TAIL_BYTES]).hexdigest().encode("ascii")


@dataclass
class Index:
    """Where everything stands in a journal whose chain is sound; bytes after `size` are not part of it."""

    size: int = 0
    """Bytes of whole lines."""
    lines: int = 0
    chain: bytes = b""
    torn_bytes: int = 0
    """Bytes after the last whole line: a line that was being written."""
    whole: array[int] = field(default_factory=lambda: array("q"))
    """Of the lines about the whole record: offset, length, hash, line number."""
    entries: list[array[int]] = field(default_factory=list["array[int]"])
    """The same for the lines of each entry."""

    def add(self, line: Line, length: int, data: bytes) -> None:
        """Take in the next line."""
        if line.entry is None:
            target = self.whole
        else:
            if line.kind == "entry":
                self.entries.append(array("q"))
            target = self.entries[line.entry]
        target.extend((self.size, length, hash(data), line.number))
        self.size += length
        self.lines += 1
        self.chain = line.chain


def scan(file: BinaryIO, chain: bytes, place: str = JOURNAL) -> Index:
    """Check the chain of a whole journal and index it. Raises RecordError naming the first line that is wrong."""
    index = Index(chain=chain)
    while True:
        data = file.readline(MOST_LINE_BYTES + 1)
        if not data.endswith(b"\n"):
            if len(data) > MOST_LINE_BYTES:
                raise corrupt(place, f"has a line of more than {MOST_LINE_BYTES:,} bytes", line=index.lines + 1)
            index.torn_bytes = len(data)
            return index
        line = split_line(data, index.lines + 1, place)
        if chain_of(data, index.chain) != line.chain:
            raise corrupt(place, "was changed here, or a line before this one was", line=line.number)
        _check_order(line, index, place)
        index.add(line, len(data), data)


def _check_order(line: Line, index: Index, place: str) -> None:
    known = len(index.entries)
    if (line.kind == "session") != (line.entry is None):
        raise corrupt(place, f"has a line of kind {line.kind} in a wrong place", line=line.number)
    if line.entry is not None and not (line.entry == known if line.kind == "entry" else line.entry < known):
        raise corrupt(place, f"has a line of entry {line.entry} out of order", line=line.number)


def line_at(file: BinaryIO, row: array[int], place: str) -> Line:
    """The line that a row of the index names. Raises RecordError if it is no longer what was checked."""
    offset, length, checked, number = row
    file.seek(offset)
    data = file.read(length)
    if len(data) != length or hash(data) != checked:
        raise corrupt(place, "was changed while it was read", line=number)
    head = _HEAD.match(data)
    assert head is not None  # it was taken apart when the journal was scanned
    entry = None if head[2] == b"null" else int(head[2])
    return Line(number, head[1].decode("ascii"), entry, data[head.end() : -_TAIL_BYTES], data[-_CHAIN_FROM:-_CHAIN_TO])
