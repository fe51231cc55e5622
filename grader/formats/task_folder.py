"""The folder that a task stands in: reads the files that the task names, and no others.

A task may come from somebody else than the person who grades with it. So a name must stay inside the folder, also
through links; what is not a regular file is never opened (a FIFO would block, a device could act); sizes are capped.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

LARGEST_FILE_BYTES = 64 * 2**20
LARGEST_TOTAL_BYTES = 512 * 2**20
MOST_MATCHES = 100_000


@dataclass
class TaskFolder:
    """Reads files below `root`. Its methods raise ValueError that says what is wrong with a name."""

    root: Path
    _read_bytes: int = 0
    _known: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`, a path relative to the folder, with `/` between its parts."""
        if name not in self._known:
            data = read_regular_file(self._inside(name), LARGEST_FILE_BYTES, name)
            self._read_bytes += len(data)
            if self._read_bytes > LARGEST_TOTAL_BYTES:
                raise ValueError(f"the files that the task names have more than {LARGEST_TOTAL_BYTES >> 20} MiB in all")
            self._known[name] = data
        return self._known[name]

    def matches(self, pattern: str) -> dict[str, str]:
        """The files that fit a pattern with one `*`: what the star stands for -> file name. Sorted by the star part."""
        parts = _parts(pattern)
        starred = [index for index, part in enumerate(parts) if "*" in part]
        if len(starred) != 1 or pattern.count("*") != 1:
            raise ValueError(f"{pattern!r} must have exactly one *, such as data/*.in")
        before, after = parts[: starred[0]], parts[starred[0] + 1 :]
        prefix, _, suffix = parts[starred[0]].partition("*")
        found: dict[str, str] = {}
        for entry in self._entries("/".join(before)):
            fits = entry.startswith(prefix) and entry.endswith(suffix) and len(entry) > len(prefix) + len(suffix)
            if not fits or (prefix == "" and entry.startswith(".")):
                continue
            name = "/".join((*before, entry, *after))
            if after and not self._inside(name).exists():
                continue
            found[entry[len(prefix) : len(entry) - len(suffix)]] = name
            if len(found) > MOST_MATCHES:
                raise ValueError(f"{pattern!r} fits more than {MOST_MATCHES:,} files")
        return dict(sorted(found.items()))

    def _entries(self, folder: str) -> list[str]:
        path = self._inside(folder) if folder else self.root
        try:
            entries = os.listdir(path)
        except OSError as error:
            raise ValueError(f"the folder {folder!r} cannot be read: {error.strerror}") from error
        for entry in entries:
            if not entry.isprintable():
                where = f"the folder {folder!r}" if folder else "the task's folder"
                raise ValueError(f"{where} has a file whose name is not UTF-8, or cannot be printed: {entry!r}")
        return entries

    def _inside(self, name: str) -> Path:
        """The real path of `name`. Raises ValueError if it leaves the folder, by its parts or through a link."""
        _parts(name)
        root = Path(os.path.realpath(self.root))
        path = Path(os.path.realpath(root / name))
        if not path.is_relative_to(root):
            raise ValueError(f"{name!r} leaves the task's folder through a link")
        return path


def read_regular_file(path: Path, most_bytes: int, name: str) -> bytes:
    """The bytes of a regular file; `name` is how messages call it.

    Never blocks: what is not a regular file is not opened. Raises ValueError that says what is wrong.
    """
    try:
        kind = os.stat(path).st_mode
        if not stat.S_ISREG(kind):
            raise ValueError(f"{name!r} is {_kind(kind)}, not a regular file")
        # The path may have been exchanged since: what is open is looked at again, and opening does not wait.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"{name!r} is not a regular file")
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise ValueError(f"{name!r} cannot be read: {error.strerror}") from error
    if len(data) > most_bytes:
        raise ValueError(f"{name!r} is larger than {most_bytes >> 20} MiB")
    return data


def _parts(name: str) -> list[str]:
    if name == "" or "\x00" in name or not _is_unicode(name):
        raise ValueError(f"{name!r} is not a file name")
    if name.startswith("/"):
        raise ValueError(f"{name!r} is absolute; files are named relative to the task's folder")
    parts = name.split("/")
    if ".." in parts:
        raise ValueError(f"{name!r} leaves the task's folder")
    if any(part in {"", "."} for part in parts):
        raise ValueError(f"{name!r} must not contain empty parts or '.'")
    return parts


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _kind(mode: int) -> str:
    for test, word in (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return word
    return "something else"
