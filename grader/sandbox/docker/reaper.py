"""Finds and removes the boxes of graders that are dead. Who owns a box is in its labels.

An owner is a process: its machine's boot, its pid namespace, its pid, and when it started (pids come again). Only the
boxes of owners that are seen to be dead are removed. Of an owner in another namespace or on another machine nothing can
be seen: its boxes are removed when they have outlived the lifetime that they were made for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import psutil

from grader.errors import SandboxError
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.engine_facts import ContainerFacts

OWNED_LABEL = "grader.owned"
"""On every container that grader makes."""
_BOOT, _NAMESPACE, _PID, _STARTED, _LIFETIME = (
    "grader.owner.boot",
    "grader.owner.pid_namespace",
    "grader.owner.pid",
    "grader.owner.started",
    "grader.lifetime_s",
)
UNKNOWN_LIFETIME_S = 24 * 3600.0
GRACE_S = 600.0
"""Beyond its lifetime: the supervisor ends a box by itself first."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that a container belongs to."""

    boot: str
    """The kernel's boot id: another one is another machine, or this one before it was started again."""
    pid_namespace: str
    pid: int
    started: str
    """When the process started, in the kernel's own ticks where there are any."""

    @classmethod
    def current(cls) -> Owner:
        """This process."""
        return cls(_boot_id(), _pid_namespace(), os.getpid(), started_of(os.getpid()) or "unknown")

    def labels(self, lifetime_s: float) -> dict[str, str]:
        """The labels of a container that belongs to this process and is not meant to live longer than `lifetime_s`."""
        return {
            OWNED_LABEL: "1",
            _BOOT: self.boot,
            _NAMESPACE: self.pid_namespace,
            _PID: str(self.pid),
            _STARTED: self.started,
            _LIFETIME: f"{lifetime_s:.0f}",
        }


def owner_of(labels: Mapping[str, str]) -> Owner | None:
    """The owner that labels name; None if they are not whole."""
    pid = labels.get(_PID, "")
    texts = [labels.get(name, "") for name in (_BOOT, _NAMESPACE, _STARTED)]
    if not (pid.isascii() and pid.isdigit()) or len(pid) > 10 or not all(texts):
        return None
    return Owner(texts[0], texts[1], int(pid), texts[2])


def is_abandoned(
    container: ContainerFacts, here: Owner, started_of: Callable[[int], str | None], now_s: float | None
) -> bool:
    """Whether a container's owner is dead, or out of sight and the container past its lifetime. Pure.

    `started_of` says when a process of this namespace started, None if it is not alive. `now_s` is the engine's clock,
    None if it is unknown: then nothing is removed by age.
    """
    owner = owner_of(container.labels)
    if owner is not None and (owner.boot, owner.pid_namespace) == (here.boot, here.pid_namespace):
        return started_of(owner.pid) != owner.started
    return now_s is not None and now_s - container.created_s > _lifetime_s(container.labels) + GRACE_S


async def sweep(engine: Engine, here: Owner | None = None) -> int:
    """Remove the containers that dead graders left behind, started or not; how many. Raises SandboxError."""
    owner = here if here is not None else Owner.current()
    owned = await engine.containers(OWNED_LABEL)
    if not owned:
        return 0
    now_s = (await engine.facts()).now_s
    removed = 0
    for container in owned:
        if is_abandoned(container, owner, started_of, now_s):
            await engine.remove(container.container_id)
            removed += 1
    return removed


async def remove_own(engine: Engine, here: Owner | None = None) -> int:
    """Remove every container of this process; how many. For the end of a grader that was interrupted."""
    owner = here if here is not None else Owner.current()
    removed = 0
    for container in await engine.containers(f"{_PID}={owner.pid}"):
        if owner_of(container.labels) == owner:
            await engine.remove(container.container_id)
            removed += 1
    return removed


async def remove_all(engine: Engine) -> int:
    """Remove every container that any grader made on this engine, its owner alive or not; how many."""
    owned = await engine.containers(OWNED_LABEL)
    for container in owned:
        with suppress(SandboxError):
            await engine.remove(container.container_id)
    return len(owned)


def _lifetime_s(labels: Mapping[str, str]) -> float:
    text = labels.get(_LIFETIME, "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else UNKNOWN_LIFETIME_S


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return f"booted-{psutil.boot_time():.0f}"


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return "none"


def started_of(pid: int) -> str | None:
    """When a process started; None if it is not alive (a zombie is not)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _started_elsewhere(pid)
    except ProcessLookupError:
        return None
    return None if fields[0] in {b"Z", b"X"} else fields[19].decode("ascii")


def _started_elsewhere(pid: int) -> str | None:
    """The same on a machine without /proc."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None
