"""The lock that keeps two writers from one record. The kernel drops it when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from grader.errors import Place, UsageError
from grader.store.folder import LOCK, open_regular


class WriterLock:
    """Held from construction until `release`. Raises UsageError if somebody else is writing this record."""

    def __init__(self, folder: Path) -> None:
        path = folder / LOCK
        self._descriptor: int | None = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            self._descriptor = None
            raise UsageError(
                "another grader is writing this record",
                where=Place(str(folder)),
                hint="wait until it has ended, or stop it",
            ) from error

    def release(self) -> None:
        """Let others write. Does nothing if it was released before."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
