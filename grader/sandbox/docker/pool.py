"""A stock of boxes: opened ahead and closed in the background, checked when claimed.

Opening a box costs about a quarter of a second of the engine's CPU, so it is done while a run goes on, one ahead for
each kind of box that is asked for again and again; at most so many at once and so many a second, however often
programs destroy theirs. The pool knows nothing of Docker: it is given a way to open a box of a kind.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import anyio

_log = logging.getLogger(__name__)
CLOSING_AT_MOST = 8
"""A new box is opened only when fewer than this many are still being closed."""
_CLOSE_WITHIN_S = 30.0


class PooledBox(Protocol):
    """What the pool needs of a box."""

    async def check(self) -> bool:
        """Whether it answers; bounded."""
        ...

    async def close(self) -> None:
        """Remove it. Bounded, never raises, and may be called again."""
        ...


K = TypeVar("K", bound=Hashable)
B = TypeVar("B", bound=PooledBox)


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many boxes there may be."""

    idle: int = 2
    """Boxes kept for later, of all kinds together."""
    openings_at_once: int = 2
    openings_per_s: float = 10.0
    """In the long run; `openings_in_a_row` may be opened before it counts."""
    openings_in_a_row: int = 20


@dataclass(eq=False)
class _Coming(Generic[K]):
    """A box on its way. It is cancelled by its scope: asyncio's own cancellation would go through every shield."""

    kind: K
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    task: asyncio.Task[None] | None = None


class Rate:
    """So many in a row, and so many a second in the long run (a token bucket)."""

    def __init__(self, per_s: float, in_a_row: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most = float(in_a_row)
        self._left = float(in_a_row)
        self._now_s = now_s
        self._seen_s = now_s()

    def delay_s(self) -> float:
        """Take one; how long the taker has to wait for it."""
        now_s = self._now_s()
        self._left = min(self._most, self._left + (now_s - self._seen_s) * self._per_s) - 1
        self._seen_s = now_s
        return max(0.0, -self._left / self._per_s)


class Pool(Generic[K, B]):
    """Boxes by kind. `open_box` opens one; it may raise, and must leave nothing behind when it does or is cancelled."""

    def __init__(self, open_box: Callable[[K], Awaitable[B]], limits: PoolLimits | None = None) -> None:
        self._open_box = open_box
        self._limits = limits if limits is not None else PoolLimits()
        self._rate = Rate(self._limits.openings_per_s, self._limits.openings_in_a_row)
        self._opening = asyncio.Semaphore(self._limits.openings_at_once)
        self._idle: deque[tuple[K, B]] = deque()
        self._coming: list[_Coming[K]] = []
        self._out: set[B] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    @property
    def size(self) -> int:
        """How many boxes there are: idle, claimed, being opened and being closed."""
        return len(self._idle) + len(self._out) + len(self._coming) + len(self._closing)

    async def claim(self, kind: K) -> B:
        """A box of this kind that answers: from the stock, or a new one. Raises what opening raises."""
        while (box := self._from_stock(kind)) is not None:
            if await self._checked(box):
                return box
        box = await self._from_coming(kind)
        if box is None:
            while len(self._closing) >= CLOSING_AT_MOST:
                await asyncio.wait(self._closing, timeout=_CLOSE_WITHIN_S, return_when=asyncio.FIRST_COMPLETED)
            box = await self._open(kind)
            self._out.add(box)
        return box

    def expect(self, kind: K) -> None:
        """Open one of this kind in the background, unless one is there or on its way."""
        kinds = [known for known, _ in self._idle] + [coming.kind for coming in self._coming]
        if not self._is_closed and kind not in kinds:
            coming = _Coming(kind)
            self._coming.append(coming)
            coming.task = asyncio.create_task(self._bring(coming))

    def give_back(self, kind: K, box: B) -> None:
        """Keep a claimed box for the next who asks for its kind; the longest kept goes if there are too many."""
        self._out.discard(box)
        self._keep(kind, box)

    def discard(self, box: B) -> None:
        """Close a claimed box in the background."""
        self._out.discard(box)
        task = asyncio.create_task(box.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every box, claimed ones too. Bounded, and not to be stopped by a cancellation."""
        self._is_closed = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(_CLOSE_WITHIN_S):
            for coming in self._coming:
                coming.scope.cancel()
            while self._coming:
                await asyncio.wait([coming.task for coming in self._coming if coming.task is not None])
            for box in [*self._out, *(box for _, box in self._idle)]:
                self.discard(box)
            self._idle.clear()
            while self._closing:
                await asyncio.wait(self._closing)

    def _from_stock(self, kind: K) -> B | None:
        for entry in self._idle:
            if entry[0] == kind:
                self._idle.remove(entry)
                self._out.add(entry[1])
                return entry[1]
        return None

    async def _checked(self, box: B) -> bool:
        try:
            answers = await box.check()
        except BaseException:
            self.discard(box)
            raise
        if not answers:
            self.discard(box)
        return answers

    async def _from_coming(self, kind: K) -> B | None:
        """Wait for a box that is on its way. One that fails to come is not waited for: the claimer opens its own."""
        for coming in self._coming:
            if coming.kind == kind and coming.task is not None:
                await asyncio.wait([coming.task])
                return self._from_stock(kind)
        return None

    async def _bring(self, coming: _Coming[K]) -> None:
        """Open a box and keep it. What fails here fails silently: who needs the box opens it, and gets to know why."""
        try:
            with coming.scope:
                self._keep(coming.kind, await self._open(coming.kind))
        except Exception as error:  # noqa: BLE001 (whatever it is, it is not for this task to report)
            _log.debug("no box was opened ahead: %s", error)
        finally:
            self._coming.remove(coming)

    def _keep(self, kind: K, box: B) -> None:
        self._idle.append((kind, box))
        while len(self._idle) > (0 if self._is_closed else self._limits.idle):
            self.discard(self._idle.popleft()[1])

    async def _open(self, kind: K) -> B:
        async with self._opening:
            delay_s = self._rate.delay_s()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            return await self._open_box(kind)
