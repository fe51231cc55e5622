"""Where records are: `.grader/records/` of the current folder, a folder each, and a file that names the latest."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

from grader.errors import Place, UsageError
from grader.store.folder import HEADER, cannot_begin, read_small, write_whole

DEFAULT_ROOT = Path(".grader") / "records"
LATEST = "latest"
_MOST_NAME = 40
_MOST_POINTER_BYTES = 8192


def new_record_folder(root: str | os.PathLike[str], task: str, *, now: datetime | None = None) -> Path:
    """Make an empty folder `<UTC time>-<task>-<n>` for a record; `n` is the first that is free.

    Raises PrerequisiteError if it cannot be made.
    """
    base = Path(root)
    when = (now if now is not None else datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", task).strip("-.")[:_MOST_NAME] or "task"
    try:
        base.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            folder = base / f"{when}-{name}-{number}"
            try:
                folder.mkdir()
            except FileExistsError:
                number += 1
            else:
                return folder
    except OSError as error:
        raise cannot_begin(base, error) from error


def set_latest(root: str | os.PathLike[str], folder: str | os.PathLike[str]) -> None:
    """Let `latest` name this record. Raises PrerequisiteError if that cannot be written."""
    base, target = Path(root), Path(folder)
    text = target.name if target.parent.absolute() == base.absolute() else str(target.absolute())
    try:
        base.mkdir(parents=True, exist_ok=True)
        write_whole(base / LATEST, os.fsencode(text) + b"\n")
    except OSError as error:
        raise cannot_begin(base, error) from error


def latest_record(root: str | os.PathLike[str] = DEFAULT_ROOT) -> Path:
    """The folder of the record that was begun last. Raises UsageError if there is none."""
    base = Path(root)
    try:
        text = os.fsdecode(read_small(base / LATEST, _MOST_POINTER_BYTES).removesuffix(b"\n"))
        folder = base / text if text and "\0" not in text else None
    except FileNotFoundError:
        folder = None
    if folder is not None and (folder / HEADER).is_file():
        return folder
    raise UsageError("there is no latest record", where=Place(str(base)), hint="run something first, or name a record")


def find_record(name: str, root: str | os.PathLike[str] = DEFAULT_ROOT) -> Path:
    """The folder of a record that a user names: `latest`, a path, or the name of a folder in `root`.

    Raises UsageError if there is none.
    """
    if name == LATEST:
        return latest_record(root)
    for folder in (Path(name), Path(root) / name):
        if "\0" not in name and (folder / HEADER).is_file():
            return folder
    raise UsageError(
        "there is no record here", where=Place(name), hint="name a folder that has a record.json, or latest"
    )
