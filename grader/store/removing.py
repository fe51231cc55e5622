"""Removes records that are old. One that somebody writes is left alone: the writer's lock is held while it goes."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from grader.errors import GraderError, Place, PrerequisiteError, Problem, UsageError
from grader.store.folder import HEADER, LOCK
from grader.store.lock import WriterLock
from grader.store.places import latest_record


@dataclass(frozen=True)
class RemovedRecords:
    """What became of the records that are old."""

    removed: int
    left: tuple[Problem, ...] = ()
    """Those that could not be asked for, or are being written: nothing of them was touched."""
    failed: tuple[Problem, ...] = ()
    """Those that the file system did not let go. They may have lost parts; removing them again takes the rest."""


def remove_old_records(root: Path, before_s: float) -> RemovedRecords:
    """Remove the records in `root` that were last written before a time (seconds since the epoch); the latest stays.

    Folders without a record's header were made by somebody else, and stay. Never waits.

    Raises PrerequisiteError if `root` cannot be read, RecordError if what names the latest record is no regular file.
    """
    _latest(root)
    removed = 0
    left: list[Problem] = []
    failed: list[Problem] = []
    for folder in _folders(root):
        try:
            if not _may_go(folder, root, before_s):
                continue
            lock = WriterLock(folder)
        except FileNotFoundError:
            continue  # its writer just renamed a file in it, or somebody else removed it
        except GraderError as error:
            left.append(Problem(error.message, error.where, _mend(error)))
            continue
        except OSError as error:
            why = f"nobody can say whether it is being written: {error.strerror or error}"
            left.append(Problem(why, Place(str(folder)), "check whose files they are, or remove it by hand"))
            continue
        try:
            # Looked at again, for the time between the first look and the lock.
            if _may_go(folder, root, before_s):
                _remove(folder)
                removed += 1
        except OSError as error:
            failed.append(Problem(f"cannot be removed: {error.strerror or error}", Place(str(folder))))
        finally:
            lock.release()
    return RemovedRecords(removed, tuple(left), tuple(failed))


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise PrerequisiteError(f"cannot be read: {error.strerror}", where=Place(str(root))) from error
    return [root / name for name in names]


def _may_go(folder: Path, root: Path, before_s: float) -> bool:
    """Whether it is a record, old and not the latest. Raises OSError if that cannot be seen."""
    if not _is_record(folder) or _last_written_s(folder) >= before_s:
        return False
    return _latest(root) != folder.resolve()


def _latest(root: Path) -> Path | None:
    try:
        return latest_record(root).resolve()
    except UsageError:
        return None


def _is_record(folder: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(folder / HEADER).st_mode)
    except FileNotFoundError:
        return False


def _last_written_s(folder: Path) -> float:
    """Of its files. Not of the lock, which says nothing; nor of folders, which also change when parts are removed."""
    with os.scandir(folder) as entries:
        files = [entry.stat(follow_symlinks=False) for entry in entries if entry.name != LOCK]
    return max(status.st_mtime for status in files if not stat.S_ISDIR(status.st_mode))


def _remove(folder: Path) -> None:
    """All of a record, whose lock is held.

    The header goes last, so that what an interruption leaves is still a record to remove; then the lock, so that until
    then no writer can begin here.
    """
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with os.scandir(inside) as entries:
            others = [entry for entry in entries if entry.name not in {HEADER, LOCK}]
        for entry in others:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.name, dir_fd=inside)
            else:
                os.unlink(entry.name, dir_fd=inside)
        for name in (HEADER, LOCK):
            os.unlink(name, dir_fd=inside)
    finally:
        os.close(inside)
    folder.rmdir()


def _mend(error: GraderError) -> str:
    if isinstance(error, UsageError) and error.hint is not None:
        return error.hint
    return "see what it is; if no grader writes here, remove it and clean again"
