"""The files of a record folder: their names, and opening them without following links or waiting on a FIFO.

A record may come from anybody: a link in it could point anywhere, a FIFO would block whoever opens it, a sparse file
could be larger than memory. Every file of a record is opened here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

from grader.errors import Place, PrerequisiteError, RecordError, SandboxError

SCHEMA_VERSION = 1

HEADER = "record.json"
JOURNAL = "runs.jsonl"
SEAL = "seal.json"
VERDICTS = "verdict.json"
BLOBS = "blobs"
LOCK = "lock"
TEMPORARY_PREFIX = ".writing-"

MOST_HEADER_BYTES = 16 * 2**20
MOST_SEAL_BYTES = 4096

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NOT_REGULAR = frozenset(
    {errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR, errno.ENODEV, errno.EINVAL, errno.ENAMETOOLONG}
)
_MEND = "copy the record again from where it was made; a record cannot be mended by hand"


def corrupt(place: Path | str, what: str, *, line: int | None = None) -> RecordError:
    """The error for a record that was changed or damaged, with the place."""
    return RecordError(what, code="record.corrupt", where=Place(str(place), line), hint=_MEND)


def open_regular(path: Path, flags: int = _READ) -> int:
    """A descriptor of a regular file of a record; links are not followed.

    Raises FileNotFoundError if it is not there, RecordError for anything else that is no readable regular file; to
    write, OSError where the disk or the rights do not allow it.
    """
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or error.errno in _NOT_REGULAR:
            raise corrupt(path, "is not a regular file") from error
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise
        hint = "check whose file it is" if error.errno in {errno.EACCES, errno.EPERM} else None
        raise RecordError(f"cannot be read: {error.strerror}", where=Place(str(path)), hint=hint) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise corrupt(path, "is not a regular file")
    return descriptor


def read_small(path: Path, most_bytes: int) -> bytes:
    """All of a file of a record. Raises FileNotFoundError, or RecordError if it is larger than `most_bytes`."""
    with open(open_regular(path), "rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise corrupt(path, f"is larger than {most_bytes:,} bytes, which no record needs")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there wholly or not at all: written beside, synced, renamed. Raises OSError."""
    beside = path.with_name(f"{TEMPORARY_PREFIX}{os.getpid()}-{path.name}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of `data`: one call may write less than it was given. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cannot_begin(path: Path, error: OSError) -> PrerequisiteError:
    """The error for a record that cannot be written at all: nothing was run."""
    return PrerequisiteError(
        f"the record cannot be written: {error.strerror or error}",
        where=Place(str(path)),
        hint="choose another folder for records, or make room and check that you may write there",
    )


def cannot_go_on(path: Path, error: OSError) -> SandboxError:
    """The error for a record that could be written before and no longer can: what was recorded stays readable."""
    return SandboxError(
        f"the record can no longer be written: {error.strerror or error}; all that was recorded before stays readable",
        code="host.disk_full",
        where=Place(str(path)),
        hint="make room, then resume",
    )
