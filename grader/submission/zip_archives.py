"""Reads a submission from a zip archive: stored and deflated members, nothing encrypted, no links.

The directory at the archive's end is measured before it is parsed, because the parser would build all of it in memory.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from typing import BinaryIO

from grader.submission.collecting import Collector

_END = b"PK\x05\x06"
_END_BYTES = 22
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_DIRECTORY_BYTES_PER_ENTRY = 1024
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF8 = 0x800
_MEND = "make the archive again, with an ordinary zip program"


def read_zip(file: BinaryIO, size: int, collector: Collector) -> None:
    """Give every file of the archive to the collector. Raises SubmissionError for an archive that is refused."""
    _check_directory(file, size, collector)
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            for member in members:
                _check_member(member, collector)
            declared = sum(member.file_size for member in members)
            collector.check_growth(declared, size)
            for member in members:
                _take(archive, member, collector)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, struct.error) as error:
        raise collector.refused(f"is not a sound zip archive: {error}", _MEND) from error


def _check_directory(file: BinaryIO, size: int, collector: Collector) -> None:
    """Refuse a directory larger than any honest submission needs, before it is parsed."""
    file.seek(max(0, size - _END_BYTES - _ZIP64_LOCATOR_BYTES - 2**16))
    tail = file.read(_END_BYTES + _ZIP64_LOCATOR_BYTES + 2**16)
    at = len(tail) - _END_BYTES
    # The parser takes the end record without a comment if there is one, else the last that it finds: so do we.
    if at < 0 or tail[at : at + 4] != _END or tail[-2:] != b"\0\0":
        at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise collector.refused("is not a sound zip archive: its directory is missing (is it cut?)", _MEND)
    directory_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    entries = int.from_bytes(tail[at + 10 : at + 12], "little")
    zip64 = tail[max(0, at - _ZIP64_LOCATOR_BYTES) : at].startswith(_ZIP64_LOCATOR)
    most = collector.limits.files
    if zip64 or entries > most or directory_bytes > most * _DIRECTORY_BYTES_PER_ENTRY:
        raise collector.refused(
            f"has more than {most:,} files and folders, or names beyond measure",
            "hand in the program's own files only",
        )


def _check_member(member: zipfile.ZipInfo, collector: Collector) -> None:
    name = _raw_name(member)
    kind = stat.S_IFMT(member.external_attr >> 16)
    if member.flag_bits & _ENCRYPTED:
        raise collector.refused("is encrypted", "make the archive without a password", name=name)
    if kind not in {0, stat.S_IFREG} and not (kind == stat.S_IFDIR and member.is_dir()):
        what = "is a link" if kind == stat.S_IFLNK else "is not a regular file"
        raise collector.refused(what, "a submission is made of regular files and folders", name=name)
    if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise collector.refused(f"is compressed by method {member.compress_type}", _MEND, name=name)


def _take(archive: zipfile.ZipFile, member: zipfile.ZipInfo, collector: Collector) -> None:
    name = _raw_name(member)
    if name.endswith(b"/"):
        collector.enter_folder(name.rstrip(b"/"))
        return
    path = collector.enter(name)
    if path is None:
        return
    if member.file_size > collector.bytes_left:
        raise collector.too_large()
    with archive.open(member) as content:
        data = content.read(member.file_size + 1)
    if len(data) != member.file_size:
        raise collector.refused("has another size than the archive says", _MEND, name=path)
    collector.add(path, data, executable=bool((member.external_attr >> 16) & stat.S_IXUSR))


def _raw_name(member: zipfile.ZipInfo) -> bytes:
    """The name's bytes as they stand in the archive: many programs write UTF-8 without saying so."""
    raw = member.orig_filename.encode("utf-8" if member.flag_bits & _UTF8 else "cp437")
    return raw[2:] if raw.startswith(b"./") else raw
