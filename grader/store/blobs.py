"""Blobs: large values of a record, one file each, named by the SHA-256 of their bytes and so stored once."""

from __future__ import annotations

import re
from collections import OrderedDict
from pathlib import Path

from grader.core.canonical import sha256_hex
from grader.store.folder import BLOBS, TEMPORARY_PREFIX, corrupt, open_regular, write_whole

MOST_BLOB_BYTES = 2**30
_CACHED_BYTES = 64 * 2**20
_NAME = re.compile(r"[0-9a-f]{64}")


class BlobWriter:
    """Writes blobs into a record's folder; each is durable before its name is given out."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / BLOBS
        self._known: set[bytes] = set()

    @property
    def folder(self) -> Path:
        """Where the blobs are."""
        return self._folder

    def prepare(self) -> None:
        """Make the folder, or clear away what a crash left half-written. Raises OSError."""
        if self._folder.is_symlink():
            raise corrupt(self._folder, "is a link")
        self._folder.mkdir(exist_ok=True)
        for path in self._folder.iterdir():
            if path.name.startswith(TEMPORARY_PREFIX):
                path.unlink(missing_ok=True)

    def put(self, data: bytes) -> str:
        """Store bytes and give their name. Raises OSError, and ValueError for more than a blob may hold."""
        if len(data) > MOST_BLOB_BYTES:
            raise ValueError(f"a value of {len(data):,} bytes is larger than a record can keep")
        name = sha256_hex(data)
        key = bytes.fromhex(name)
        if key not in self._known:
            path = self._folder / name
            if not _holds(path, data):
                write_whole(path, data)
            self._known.add(key)
        return name


class BlobReader:
    """Reads blobs of a record, checking name, size and digest. Equal blobs are one object while they are in use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / BLOBS
        self._cache: OrderedDict[str, bytes] = OrderedDict()
        self._cached_bytes = 0

    def get(self, name: object, size: object) -> bytes:
        """The bytes of a blob. Raises RecordError if the reference is malformed, or the blob missing or changed."""
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise corrupt(self._folder, f"a blob is named {str(name)[:80]!r}, which is no SHA-256")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MOST_BLOB_BYTES:
            raise corrupt(self._folder / name, f"a blob is said to have {str(size)[:40]} bytes")
        data = self._cache.get(name)
        if data is None:
            data = self._read(self._folder / name, size)
            if sha256_hex(data) != name:
                raise corrupt(self._folder / name, "was changed: its SHA-256 is not its name")
            self._keep(name, data)
        elif len(data) != size:
            raise corrupt(self._folder / name, f"has {len(data):,} bytes, not the {size:,} that were recorded")
        else:
            self._cache.move_to_end(name)
        return data

    def _read(self, path: Path, size: int) -> bytes:
        if self._folder.is_symlink():
            raise corrupt(self._folder, "is a link")
        try:
            with open(open_regular(path), "rb") as file:
                data = file.read(size + 1)
        except FileNotFoundError as error:
            raise corrupt(path, "is missing") from error
        except OSError as error:
            raise corrupt(path, f"cannot be read: {error.strerror or error}") from error
        if len(data) != size:
            raise corrupt(path, f"does not have the {size:,} bytes that were recorded")
        return data

    def _keep(self, name: str, data: bytes) -> None:
        self._cache[name] = data
        self._cached_bytes += len(data)
        while self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._cached_bytes -= len(dropped)


def _holds(path: Path, data: bytes) -> bool:
    """Whether a blob of an earlier session is there and sound; one that is not is written again."""
    try:
        with open(open_regular(path), "rb") as file:
            return file.read(len(data) + 1) == data
    except FileNotFoundError:
        return False
