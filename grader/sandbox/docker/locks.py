"""A lock between graders of one user on one machine. The kernel releases it when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

from grader.errors import PrerequisiteError
from grader.sandbox.docker.slots import runtime_directory

_LOOK_EVERY_S = 0.2


@asynccontextmanager
async def held_lock(name: str, *, at_most_s: float = 1800) -> AsyncGenerator[None]:
    """Hold the lock of this name. Raises PrerequisiteError if others hold it for longer than `at_most_s` seconds."""
    folder = runtime_directory(os.environ)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to somebody else")
        descriptor = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise PrerequisiteError(
            f"the lock {name} cannot be opened: {error}", hint="set GRADER_RUNTIME_DIR to a folder of your own"
        ) from error
    try:
        try:
            with anyio.fail_after(at_most_s):
                while not _taken(descriptor):  # noqa: ASYNC110 (the other holder is another process)
                    await anyio.sleep(_LOOK_EVERY_S)
        except TimeoutError as error:
            raise PrerequisiteError(f"another grader has held the lock {name} for {at_most_s:g} s") from error
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
