"""Reads a submission from a file or a folder of this machine, following no link inside it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from grader.errors import SubmissionError
from grader.submission.collecting import Collector

_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Opening a FIFO waits for a writer, and a terminal could become ours, unless these are said.
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


def with_opened(path: Path, collector: Collector, read: Callable[[BinaryIO, int], None]) -> bool:
    """Call `read` with the opened regular file and its size in bytes; False, without calling it, for a folder.

    Raises SubmissionError for what does not exist, cannot be read, or is neither file nor folder.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind == stat.S_IFDIR:
            return False
        if kind != stat.S_IFREG:
            raise _not_regular(collector, kind, None)
        with open(os.open(path, _OPEN), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _not_regular(collector, stat.S_IFMT(status.st_mode), None)
            read(file, status.st_size)
    except FileNotFoundError as error:
        raise collector.refused("does not exist", "check the path") from error
    except (OSError, ValueError) as error:
        raise _unreadable(collector, error, None) from error
    return True


def read_file(file: BinaryIO, name: bytes, collector: Collector) -> None:
    """A submission of one file."""
    path = collector.enter(name)
    if path is not None:
        executable = bool(os.fstat(file.fileno()).st_mode & stat.S_IXUSR)
        collector.add(path, _content(file, collector), executable=executable)


def read_folder(folder: Path, collector: Collector) -> None:
    """A submission of a folder: every file below it."""
    try:
        descriptor = os.open(folder, _OPEN | os.O_DIRECTORY)
    except (OSError, ValueError) as error:
        raise _unreadable(collector, error, None) from error
    _walk(descriptor, b"", collector)


def _walk(descriptor: int, prefix: bytes, collector: Collector) -> None:
    """Read a folder and those below it; closes the descriptor. The limit on depth bounds the recursion."""
    try:
        try:
            with os.scandir(descriptor) as entries:
                names: list[bytes] = []
                for entry in entries:
                    names.append(os.fsencode(entry.name))
                    if len(names) > collector.limits.files:
                        break  # the collector refuses the one too many, with its own words
        except OSError as error:
            raise _unreadable(collector, error, prefix) from error
        for name in sorted(names):
            try:
                _take(descriptor, name, prefix + name, collector)
            except OSError as error:
                raise _unreadable(collector, error, prefix + name) from error
    finally:
        os.close(descriptor)


def _take(parent: int, name: bytes, path: bytes, collector: Collector) -> None:
    status = os.stat(name, dir_fd=parent, follow_symlinks=False)
    if stat.S_ISDIR(status.st_mode):
        if collector.enter_folder(path):
            descriptor = os.open(name, _OPEN | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            _walk(descriptor, path + b"/", collector)
        return
    entered = collector.enter(path)
    if entered is None:
        return
    if not stat.S_ISREG(status.st_mode):
        raise _not_regular(collector, stat.S_IFMT(status.st_mode), path)
    with open(os.open(name, _OPEN | os.O_NOFOLLOW, dir_fd=parent), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(collector, stat.S_IFMT(status.st_mode), path)
        collector.add(entered, _content(file, collector), executable=bool(status.st_mode & stat.S_IXUSR))


def _content(file: BinaryIO, collector: Collector) -> bytes:
    content = file.read(collector.bytes_left + 1)
    if len(content) > collector.bytes_left:
        raise collector.too_large()
    return content


def _not_regular(collector: Collector, kind: int, name: bytes | None) -> SubmissionError:
    what = f"is {_KINDS.get(kind, 'not a regular file')}"
    return collector.refused(what, "a submission is made of regular files and folders", name=name)


def _unreadable(collector: Collector, error: OSError | ValueError, name: bytes | None) -> SubmissionError:
    reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return collector.refused(f"cannot be read: {reason}", "check that it exists and that you may read it", name=name)
