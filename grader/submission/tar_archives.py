"""Reads a submission from a tar archive, plain or gzipped, as one stream of bounded length."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zlib
from collections.abc import Iterable
from typing import BinaryIO, Protocol, cast

from grader.submission.collecting import Collector

_BLOCK = 512
_HEADER_BYTES_PER_ENTRY = 4096
_MEND = "make the archive again, with an ordinary tar program"
_READ_AT_ONCE = 2**16


class _Reads(Protocol):
    def read(self, size: int, /) -> bytes: ...


def read_tar(file: BinaryIO, size: int, collector: Collector, *, compressed: bool) -> None:
    """Give every file of the archive to the collector. Raises SubmissionError for an archive that is refused."""
    stream = _BoundedStream(gzip.GzipFile(fileobj=file, mode="rb") if compressed else file, size, collector)
    try:
        # Numbers above 2^63 in headers and endless chains of headers end in these errors, too.
        with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r|", errors="surrogateescape") as archive:
            for member in cast("Iterable[tarfile.TarInfo]", archive):
                _take(archive, member, collector)
            end = archive.offset
        stream.drain()
    except (tarfile.TarError, EOFError, zlib.error, ValueError, OverflowError, RecursionError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile | tarfile.TarError):
            raise
        raise collector.refused(f"is not a sound tar archive: {error}", _MEND) from error
    # The parser takes a damaged header, and the end of a cut stream, for the end of the archive.
    if not stream.has_only_zeros_from(end):
        raise collector.refused("is not a sound tar archive: its end is missing (is it cut?)", _MEND)


def _take(archive: tarfile.TarFile, member: tarfile.TarInfo, collector: Collector) -> None:
    name = member.name.encode("utf-8", "surrogateescape")
    if member.isdir():
        name = name.rstrip(b"/").removeprefix(b"./")
        if name != b".":
            collector.enter_folder(name)
        return
    path = collector.enter(name.removeprefix(b"./"))
    if path is None:
        return
    if not member.isreg() or member.issparse():
        what = "is a link" if member.issym() or member.islnk() else "is not a regular file"
        raise collector.refused(what, "a submission is made of regular files and folders", name=path)
    if member.size > collector.bytes_left:
        raise collector.too_large()
    content = archive.extractfile(member)
    data = content.read(member.size + 1) if content is not None else b""
    if len(data) != member.size:
        raise collector.refused("has another size than the archive says", _MEND, name=path)
    collector.add(path, data, executable=bool(member.mode & stat.S_IXUSR))


class _BoundedStream:
    """What `tarfile` reads from: never more than a submission may hold, and it remembers where only zeros were left."""

    def __init__(self, source: _Reads, archive_bytes: int, collector: Collector) -> None:
        self._source = source
        self._archive_bytes = archive_bytes
        self._collector = collector
        self._read_bytes = 0
        self._zeros_from = 0
        limits = collector.limits
        self._most_bytes = limits.total_bytes + limits.files * _HEADER_BYTES_PER_ENTRY

    def read(self, size: int = io.DEFAULT_BUFFER_SIZE) -> bytes:
        data = self._source.read(min(size, _READ_AT_ONCE))
        self._read_bytes += len(data)
        if self._read_bytes > self._most_bytes:
            raise self._collector.too_large()
        self._collector.check_growth(self._read_bytes, self._archive_bytes)
        meaning = data.rstrip(b"\0")
        if meaning:
            self._zeros_from = self._read_bytes - len(data) + len(meaning)
        return data

    def drain(self) -> None:
        """Read what is left: the end of the compressed stream holds its checksum."""
        while self.read(_READ_AT_ONCE):
            pass

    def has_only_zeros_from(self, place: int) -> bool:
        """Whether a block of zeros or more, and nothing else, came from this place to the end of the stream."""
        return self._zeros_from <= place and self._read_bytes >= place + _BLOCK
