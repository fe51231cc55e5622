"""The files of one source of received spans: appended to, and on the disk before anybody is told that they are kept.

JSON bodies go to `spans-NNNN.jsonl`, one a line; protobuf bodies to `spans-NNNN.binpb`, each after its length (4 bytes,
big-endian): both as the collector's file exporter writes them, and as `grader score` reads them. Notes of what is *not*
in the files (grader/traces/received.py) stand between the lines. Each session writes files of its own, so that the cut
end of one that was killed stays an end.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grader.capture.otlp_body import OtlpEncoding, one_line

_ENDINGS = {OtlpEncoding.JSON: ".jsonl", OtlpEncoding.PROTOBUF: ".binpb"}
_MOST_SESSIONS = 9999


def framed(body: bytes, encoding: OtlpEncoding) -> bytes:
    """A body as it stands in a file."""
    if encoding is OtlpEncoding.JSON:
        return one_line(body) + b"\n"
    return len(body).to_bytes(4, "big") + body


@dataclass(slots=True)
class _Open:
    """A file that is written, and how much of it is known to be on the disk."""

    path: Path
    descriptor: int
    safe_bytes: int = 0


@dataclass(slots=True)
class SourceFiles:
    """The files of one source in its folder. Used by one thread at a time."""

    folder: Path
    written_bytes: int = 0
    _open: dict[OtlpEncoding, _Open] = field(default_factory=dict[OtlpEncoding, _Open])

    def append(self, data: bytes, encoding: OtlpEncoding) -> None:
        """Append, and return when it is on the disk.

        Raises OSError when it is not; then nothing of it is in the file, and what was appended before still is.
        """
        if len(data) == 0:
            return
        file = self._open.get(encoding)
        if file is None:
            file = self._open[encoding] = self._new(encoding)
        try:
            _write_all(file.descriptor, data)
            os.fdatasync(file.descriptor)
        except OSError:
            # After a failed sync nobody knows what of the file's later pages is safe: go on in a new one.
            self._give_up(encoding, file)
            raise
        file.safe_bytes += len(data)
        self.written_bytes += len(data)

    def close(self) -> None:
        """Close the files; all that was appended is on the disk already."""
        for file in self._open.values():
            os.close(file.descriptor)
        self._open.clear()

    def _give_up(self, encoding: OtlpEncoding, file: _Open) -> None:
        del self._open[encoding]
        with suppress(OSError):
            os.ftruncate(file.descriptor, file.safe_bytes)
            if file.safe_bytes == 0:
                file.path.unlink()
        with suppress(OSError):
            os.close(file.descriptor)

    def _new(self, encoding: OtlpEncoding) -> _Open:
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, _MOST_SESSIONS + 1):
            path = self.folder / f"spans-{number:04d}{_ENDINGS[encoding]}"
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            except FileExistsError:
                continue
            try:
                sync_folder(self.folder)
            except OSError:
                os.close(descriptor)
                path.unlink(missing_ok=True)
                raise
            return _Open(path, descriptor)
        raise FileExistsError(f"{self.folder} has {_MOST_SESSIONS} files of received spans already")


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
