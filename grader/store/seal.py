"""The seal: the last file of a record, written when grading is over. It closes the journal and verdict.json."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from grader.core.canonical import canonical_json
from grader.store.blobs import BlobReader
from grader.store.folder import (
    JOURNAL,
    MOST_SEAL_BYTES,
    SCHEMA_VERSION,
    SEAL,
    TEMPORARY_PREFIX,
    VERDICTS,
    corrupt,
    open_regular,
    read_small,
)
from grader.store.journal import split_line
from grader.store.packing import Unpacker, decode_json


@dataclass(frozen=True, slots=True)
class Seal:
    """What a sealed journal must be: lines, size in bytes, last chain value; and the SHA-256 of verdict.json."""

    lines: int
    size: int
    chain: str
    verdicts: str

    def to_bytes(self) -> bytes:
        """The one form in which a seal is written; any other is refused."""
        plain = {
            "schema_version": SCHEMA_VERSION,
            "lines": self.lines,
            "bytes": self.size,
            "chain": self.chain,
            "verdicts": self.verdicts,
        }
        return canonical_json(plain) + b"\n"


def read_seal(folder: Path) -> Seal | None:
    """The seal of a record, None if there is none. Raises RecordError for any form but the one that is written."""
    path = folder / SEAL
    try:
        data = read_small(path, MOST_SEAL_BYTES)
    except FileNotFoundError:
        return None
    plain = decode_json(data, str(path))
    entries = cast("dict[str, object]", plain) if isinstance(plain, dict) else {}
    lines, size, chain, verdicts = (entries.get(key) for key in ("lines", "bytes", "chain", "verdicts"))
    if isinstance(lines, int) and isinstance(size, int) and isinstance(chain, str) and isinstance(verdicts, str):
        seal = Seal(lines, size, chain, verdicts)
        if seal.to_bytes() == data:
            return seal
    raise corrupt(path, "is not a seal")


def write_verdicts(folder: Path, verdicts: array[int], names: Sequence[str]) -> str:
    """Write verdict.json from the verdicts in the journal, one at a time; gives its SHA-256. Raises OSError.

    `verdicts` holds, for each entry, offset and length of its last verdict's line; a length of 0 stands for none.
    """
    beside = folder / f"{TEMPORARY_PREFIX}{os.getpid()}-{VERDICTS}"
    digest = hashlib.sha256()
    unpacker = Unpacker(BlobReader(folder), str(folder / JOURNAL))
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with open(open_regular(folder / JOURNAL), "rb") as journal, open(descriptor, "wb") as file:

        def write(text: str) -> None:
            data = text.encode()
            digest.update(data)
            file.write(data)

        write(f'{{"schema_version": {SCHEMA_VERSION}, "verdicts": [')
        separator = "\n"
        for entry, name in enumerate(names):
            offset, length = verdicts[2 * entry], verdicts[2 * entry + 1]
            if length:
                journal.seek(offset)
                line = split_line(journal.read(length), 0, str(folder / JOURNAL))
                verdict = unpacker.document(decode_json(line.body, str(folder / JOURNAL)))
                plain = {"entry": entry, "submission": name, "verdict": verdict}
                write(separator + json.dumps(plain, ensure_ascii=True, allow_nan=False))
                separator = ",\n"
        write("\n]}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, folder / VERDICTS)
    return digest.hexdigest()


def check_verdicts(folder: Path, seal: Seal) -> None:
    """Raises RecordError if verdict.json is missing or is not the one that was sealed."""
    path = folder / VERDICTS
    digest = hashlib.sha256()
    try:
        with open(open_regular(path), "rb") as file:
            while data := file.read(2**20):
                digest.update(data)
    except FileNotFoundError as error:
        raise corrupt(path, "is missing") from error
    if digest.hexdigest() != seal.verdicts:
        raise corrupt(path, "was changed: its SHA-256 is not the one in the seal")
