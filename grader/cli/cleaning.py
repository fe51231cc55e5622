"""What `grader clean` removes: boxes, images, old records."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from grader.errors import Place, PrerequisiteError, UsageError
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import remove_images
from grader.sandbox.docker.reaper import remove_all, sweep
from grader.store import DEFAULT_ROOT, latest_record

_SECONDS_A_DAY = 86_400


async def clean_engine(*, images: bool, all_boxes: bool) -> list[str]:
    """Remove boxes of dead graders (or all boxes), and images if asked; a line for each. Raises PrerequisiteError."""
    engine = await Engine.connect()
    try:
        if all_boxes:
            lines = [_removed(await remove_all(engine), "box", "boxes")]
        else:
            lines = [_removed(await sweep(engine), "box of a dead grader", "boxes of dead graders")]
        if images:
            lines.append(_removed(await remove_images(engine), "image", "images"))
    finally:
        await engine.close()
    return lines


def clean_records(days: float, root: Path = DEFAULT_ROOT) -> str:
    """Remove the records that were last written more than `days` ago; the latest stays. A line that says how many."""
    removed = 0
    for folder in _old_records(root, time.time() - days * _SECONDS_A_DAY):
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise PrerequisiteError(f"cannot be removed: {error.strerror}", where=Place(str(folder))) from error
        removed += 1
    return _removed(removed, "record", "records")


def _old_records(root: Path, before_s: float) -> Iterator[Path]:
    """Folders of records, and no other folders: what has no header was made by somebody else."""
    try:
        latest = latest_record(root).resolve()
    except UsageError:
        latest = None
    for folder in sorted(root.iterdir()) if root.is_dir() else []:
        if folder.is_symlink() or not (folder / "record.json").is_file() or folder.resolve() == latest:
            continue
        if max(file.stat().st_mtime for file in folder.iterdir()) < before_s:
            yield folder


def _removed(count: int, one: str, several: str) -> str:
    return f"removed {count} {one if count == 1 else several}"
