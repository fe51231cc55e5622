"""Slots: one CPU each, for one run at a time on the whole machine, so that two graders do not double the load.

A slot is a file in the user's runtime directory, locked with flock while a run is on. The kernel releases the lock when
its holder dies, however it dies. Within a process the slot of a CPU is given in the order of asking. Between processes
whoever finds it free takes it; so that one busy grader does not keep another out for ever, a grader that has used a
slot without a pause for `FAIR_SHARE_S` steps back for a moment if another grader is alive.

Graders of different users have different runtime directories and do not see each other.
"""

from __future__ import annotations

import fcntl
import os
import random
import secrets
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import anyio

from grader.errors import PrerequisiteError

FAIR_SHARE_S = 0.5
"""How long a grader may use a slot without a pause while another grader is alive."""
STEP_BACK_S = 0.04
"""The pause then: longer than the longest time between two looks of a waiting grader."""
_LOOK_EVERY_S = (0.005, 0.025)
_PAUSE_S = 0.01
_PRESENCE_SUFFIX = ".alive"


class NoSlotError(Exception):
    """No slot came free in time."""


def runtime_directory(environment: Mapping[str, str]) -> Path:
    """Where the locks are: `GRADER_RUNTIME_DIR`, else a folder of the user's in `XDG_RUNTIME_DIR` or `/tmp`."""
    named = environment.get("GRADER_RUNTIME_DIR")
    if named:
        return Path(named)
    session = environment.get("XDG_RUNTIME_DIR")
    return Path(session) / "grader" if session else Path("/tmp") / f"grader-{os.getuid()}"


@dataclass(slots=True)
class _Slot:
    path: Path
    turn: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(1, fast_acquire=True))
    descriptor: int | None = None
    busy_since_s: float = 0.0
    free_since_s: float = 0.0
    boxes: int = 0


class Slots:
    """The slots of this machine, as one grader uses them. A context manager: leaving it gives everything back.

    `cpus` are the numbers of the CPUs that may be used, each once.
    """

    def __init__(self, cpus: Sequence[int], directory: Path) -> None:
        if not cpus:
            raise ValueError("there must be at least one CPU to use")
        self._directory = directory
        self._slots = {cpu: _Slot(directory / f"cpu{cpu}.lock") for cpu in cpus}
        self._presence: tuple[Path, int] | None = None
        self._others_seen = (-1.0, False)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs that may be used."""
        return tuple(self._slots)

    def __enter__(self) -> Slots:
        """Open the lock files. Raises PrerequisiteError if the runtime directory cannot be used, or is not ours."""
        _make_private(self._directory)
        try:
            for slot in self._slots.values():
                slot.descriptor = os.open(slot.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._presence = _show_presence(self._directory)
            self._look_for_others()  # removes what killed graders left here
        except OSError as error:
            self._close()
            raise PrerequisiteError(
                f"the lock files of {self._directory} cannot be opened: {error}",
                hint="set GRADER_RUNTIME_DIR to a folder of your own",
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def held(self, cpus: tuple[int, ...], *, at_most_s: float = 600) -> AbstractAsyncContextManager[None]:
        """Use the slots of these CPUs. Raises NoSlotError if they do not come free within `at_most_s` seconds."""
        return _Held(self, cpus, at_most_s)

    async def take(self, cpus: tuple[int, ...], taken: list[_Slot], at_most_s: float) -> None:
        """For `held`: take the slots one by one into `taken`, which has what was taken also when it is cancelled."""
        if len(cpus) == 1 and self._take_at_once(self._slots[cpus[0]]):
            taken.append(self._slots[cpus[0]])
        else:
            await self._take_in_time(cpus, taken, at_most_s)

    def choose(self, count: int = 1) -> tuple[int, ...]:
        """CPUs for a new box: free ones first, with the fewest of our boxes. `give_back` them when the box is gone.

        More CPUs than there are gives all.
        """
        by_load = sorted(
            self._slots, key=lambda cpu: (self._slots[cpu].boxes, not self._looks_free(self._slots[cpu]), cpu)
        )
        cpus = tuple(sorted(by_load[:count]))
        for cpu in cpus:
            self._slots[cpu].boxes += 1
        return cpus

    def give_back(self, cpus: tuple[int, ...]) -> None:
        """The box for which the CPUs were chosen is gone."""
        for cpu in cpus:
            self._slots[cpu].boxes -= 1

    def _take_at_once(self, slot: _Slot) -> bool:
        """The usual case, without a wait or a timer: nobody else wants it, and it is nobody's turn to step back."""
        if slot.turn.value == 0 or self._is_to_step_back(slot) or not _try_lock(slot.descriptor):
            return False
        slot.turn.acquire_nowait()
        return True

    async def _take_in_time(self, cpus: tuple[int, ...], taken: list[_Slot], at_most_s: float) -> None:
        try:
            with anyio.fail_after(at_most_s):
                for cpu in sorted(cpus):  # always in this order: two who want the same do not wait for each other
                    taken.append(await self._take(self._slots[cpu]))
        except TimeoutError as error:
            raise NoSlotError(f"the CPUs {cpus} were in use for {at_most_s:g} s") from error

    async def _take(self, slot: _Slot) -> _Slot:
        await slot.turn.acquire()
        try:
            await self._lock(slot)
        except BaseException:
            slot.turn.release()
            raise
        return slot

    async def _lock(self, slot: _Slot) -> None:
        if self._is_to_step_back(slot):
            await anyio.sleep(STEP_BACK_S)
            slot.busy_since_s = time.monotonic()
        while not _try_lock(slot.descriptor):
            await anyio.sleep(random.uniform(*_LOOK_EVERY_S))
            slot.busy_since_s = time.monotonic()

    def _is_to_step_back(self, slot: _Slot) -> bool:
        now_s = time.monotonic()
        if now_s - slot.free_since_s > _PAUSE_S:
            slot.busy_since_s = now_s
            return False
        return now_s - slot.busy_since_s > FAIR_SHARE_S and self._others_alive(now_s)

    def _looks_free(self, slot: _Slot) -> bool:
        if slot.turn.value == 0 or not _try_lock(slot.descriptor):
            return False
        assert slot.descriptor is not None
        fcntl.flock(slot.descriptor, fcntl.LOCK_UN)
        return True

    def _others_alive(self, now_s: float) -> bool:
        seen_s, others = self._others_seen
        if now_s - seen_s > FAIR_SHARE_S:
            others = self._look_for_others()
            self._others_seen = (now_s, others)
        return others

    def _look_for_others(self) -> bool:
        """Whether another grader is alive. What dead ones left is removed, so all of it is looked at."""
        own = self._presence[0] if self._presence is not None else None
        alive = [_is_alive(path) for path in self._directory.glob(f"*{_PRESENCE_SUFFIX}") if path != own]
        return any(alive)

    def _close(self) -> None:
        for slot in self._slots.values():
            if slot.descriptor is not None:
                os.close(slot.descriptor)
                slot.descriptor = None
        if self._presence is not None:
            path, descriptor = self._presence
            path.unlink(missing_ok=True)
            os.close(descriptor)
            self._presence = None


class _Held:
    """Slots in use, for every run: by hand, because a generator's context costs several times as much."""

    __slots__ = ("_at_most_s", "_cpus", "_slots", "_taken")

    def __init__(self, slots: Slots, cpus: tuple[int, ...], at_most_s: float) -> None:
        self._slots = slots
        self._cpus = cpus
        self._at_most_s = at_most_s
        self._taken: list[_Slot] = []

    async def __aenter__(self) -> None:
        try:
            await self._slots.take(self._cpus, self._taken, self._at_most_s)
        except BaseException:
            self._give_back()
            raise

    async def __aexit__(self, *_: object) -> None:
        self._give_back()

    def _give_back(self) -> None:
        for slot in self._taken:
            _unlock(slot)
            slot.turn.release()
        self._taken.clear()


def _try_lock(descriptor: int | None) -> bool:
    if descriptor is None:
        raise RuntimeError("the slots are not open: use them as `with`")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(slot: _Slot) -> None:
    slot.free_since_s = time.monotonic()
    if slot.descriptor is not None:
        fcntl.flock(slot.descriptor, fcntl.LOCK_UN)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = directory.lstat()
    except OSError as error:
        raise PrerequisiteError(
            f"the folder {directory} for lock files cannot be made: {error}",
            hint="set GRADER_RUNTIME_DIR to a folder of your own",
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PrerequisiteError(
            f"{directory} is not a folder of this user", hint="set GRADER_RUNTIME_DIR to a folder of your own"
        )


def _show_presence(directory: Path) -> tuple[Path, int]:
    """A locked file that says: this grader is alive. Another grader removes it once it is not locked any more."""
    while True:
        path = directory / f"{os.getpid()}-{secrets.token_hex(4)}{_PRESENCE_SUFFIX}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        if _try_lock(descriptor) and path.exists():
            return path, descriptor
        os.close(descriptor)  # another grader looked between the two calls, and took it for a dead one's


def _is_alive(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if not _try_lock(descriptor):
            return True
        with suppress(OSError):
            path.unlink()
        return False
    finally:
        os.close(descriptor)
