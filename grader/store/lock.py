"""The lock that keeps two writers from one record. The kernel drops it when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from grader.errors import Place, UsageError
from grader.store.folder import LOCK, open_regular


class WriterLock:
    """Held from construction until `release`. Never waits.

    Raises UsageError if somebody else is writing or removing this record, RecordError if its lock is no regular file,
    OSError if it cannot be opened or locked.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        self._descriptor: int | None = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            _take(self._descriptor, path)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let others write. Does nothing if it was released before."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _take(descriptor: int, path: Path) -> None:
    place = Place(str(path.parent))
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise UsageError(
            "another grader is writing this record", where=place, hint="wait until it has ended, or stop it"
        ) from error
    if not _is_there(descriptor, path):
        # Whoever removed the record held this very lock; the next writer would lock another file of that name.
        raise UsageError("this record was removed just now", where=place, hint="run it again")


def _is_there(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
