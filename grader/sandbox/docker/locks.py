"""A lock between graders of one user on one machine. The kernel releases it when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio

from grader.errors import PrerequisiteError
from grader.sandbox.docker.slots import runtime_directory

IMAGES = "images"
"""Shared by every grader that may use or build images; held alone by one that removes them."""
_LOOK_EVERY_S = 0.2


@asynccontextmanager
async def held_lock(name: str, *, at_most_s: float = 1800, is_shared: bool = False) -> AsyncGenerator[None]:
    """Hold the lock of this name, alone or beside others that share it.

    Raises PrerequisiteError if others keep it from us for longer than `at_most_s` seconds.
    """
    how = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    with _opened(name) as descriptor:
        try:
            with anyio.fail_after(at_most_s):
                while not _taken(descriptor, how):  # noqa: ASYNC110 (the other holder is another process)
                    await anyio.sleep(_LOOK_EVERY_S)
        except TimeoutError as error:
            raise PrerequisiteError(f"another grader has held the lock {name} for {at_most_s:g} s") from error
        yield


@contextmanager
def held_if_free(name: str) -> Generator[bool]:
    """Hold the lock of this name alone if nobody holds it now; whether it is held. Never waits."""
    with _opened(name) as descriptor:
        yield _taken(descriptor, fcntl.LOCK_EX)


@contextmanager
def _opened(name: str) -> Generator[int]:
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
        yield descriptor
    finally:
        os.close(descriptor)


def _taken(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
