"""What `grader clean` removes: boxes, images, old records."""

from __future__ import annotations

import time
from pathlib import Path

from grader.cli.console import Console
from grader.errors import PrerequisiteError
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import remove_images
from grader.sandbox.docker.locks import IMAGES, held_if_free
from grader.sandbox.docker.reaper import remove_all, sweep
from grader.store import DEFAULT_ROOT
from grader.store.removing import remove_old_records

_SECONDS_A_DAY = 86_400


async def clean_engine(console: Console, *, images: bool, all_boxes: bool) -> None:
    """Remove boxes of dead graders (or all boxes), and images if asked; says how many. Raises PrerequisiteError.

    Images stay while a grader is running that may use them; that is said too.
    """
    engine = await Engine.connect()
    try:
        if all_boxes:
            console.note(_removed(await remove_all(engine), "box", "boxes"))
        else:
            console.note(_removed(await sweep(engine), "box of a dead grader", "boxes of dead graders"))
        if images:
            with held_if_free(IMAGES) as is_free:
                if is_free:
                    console.note(_removed(await remove_images(engine), "image", "images"))
                else:
                    console.say("left alone: the images; another grader is running and may need them")
    finally:
        await engine.close()


def clean_records(days: float, console: Console, root: Path = DEFAULT_ROOT) -> None:
    """Remove the records that were last written more than `days` ago; the latest stays, and what is being written.

    Says how many, and which were left and why. Raises PrerequisiteError if one could not be removed; after all were
    tried.
    """
    done = remove_old_records(root, time.time() - days * _SECONDS_A_DAY)
    console.note(_removed(done.removed, "record", "records"))
    console.problems(done.left, "left alone")
    if done.failed:
        console.problems(done.failed[1:], "error")
        first = done.failed[0]
        raise PrerequisiteError(first.message, where=first.where, hint="check whose files they are, then clean again")


def _removed(count: int, one: str, several: str) -> str:
    return f"removed {count} {one if count == 1 else several}"
