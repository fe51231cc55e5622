"""From the files and folders that a user names to the sources that are read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from grader.errors import Place, TraceError
from grader.traces.reader import TraceInput

MOST_FILES = 100_000
"""How many files one folder may hold."""


def trace_inputs(paths: Iterable[Path]) -> tuple[TraceInput, ...]:
    """Each file as it is named, and of each folder every file in it, also in folders inside, sorted by path.

    Hidden files and folders (`.name`) are passed over. Everything else in a folder must be a trace: a file that is left
    out because it cannot be read could be the one that shows the call. A named file may be a pipe.

    Raises TraceError for a path that is not there, and for what is no regular file in a folder.
    """
    found: list[TraceInput] = []
    for path in paths:
        is_folder = stat.S_ISDIR(_mode(path))
        found.extend(TraceInput.of_path(file) for file in (_files_of(path) if is_folder else (path,)))
    return tuple(found)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise TraceError(f"cannot be read: {said}", where=Place(str(path)), hint="check the path") from error


def _files_of(folder: Path) -> tuple[Path, ...]:
    files: list[Path] = []
    for file in _walk(folder):
        # Opening a FIFO would wait for ever, and a device could act.
        if not stat.S_ISREG(_mode(file)):
            raise TraceError("is no regular file", where=Place(str(file)), hint="take it out of the folder")
        files.append(file)
        if len(files) > MOST_FILES:
            raise TraceError(
                f"more than {MOST_FILES:,} files", where=Place(str(folder)), hint="give a folder with fewer files"
            )
    return tuple(sorted(files))


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder. Links to files are followed, links to folders are not: they could lead round in circles."""

    def refuse(error: OSError) -> None:
        raise TraceError(
            f"cannot be read: {error.strerror or error}",
            where=Place(str(error.filename or folder)),
            hint="check that you may read it",
        ) from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        for name in folders:
            if not name.startswith(".") and os.path.islink(os.path.join(parent, name)):
                raise TraceError(
                    "is a link to a folder, which is not followed",
                    where=Place(os.path.join(parent, name)),
                    hint="name the folder that it leads to as evidence of its own, and take the link out",
                )
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent) / name for name in names if not name.startswith("."))
