"""Where the time of a fake sandbox comes from: it passes at once, or when a test says so."""

from __future__ import annotations

import math
from typing import Protocol

import anyio
from anyio.lowlevel import checkpoint


class Clock(Protocol):
    """Where the time of a fake sandbox comes from."""

    async def sleep(self, seconds: float) -> None:
        """Return when that much time has passed; `math.inf` never returns. Must let other tasks run."""
        ...


class InstantClock:
    """Time passes by itself whenever somebody waits for it, without any waiting."""

    def __init__(self) -> None:
        self.now_s = 0.0

    async def sleep(self, seconds: float) -> None:
        """Let the time pass at once."""
        if math.isinf(seconds):
            await anyio.sleep_forever()
        self.now_s += seconds
        await checkpoint()


class HeldClock:
    """Time stands still until `advance` is called: for tests of what happens meanwhile."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._waiting: list[tuple[float, anyio.Event]] = []

    @property
    def sleepers(self) -> int:
        """How many tasks wait for the time to pass."""
        return len(self._waiting)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by that much."""
        entry = (self.now_s + seconds, anyio.Event())
        self._waiting.append(entry)
        try:
            await entry[1].wait()
        finally:
            self._waiting.remove(entry)

    def advance(self, seconds: float) -> None:
        """Let time pass, and wake everybody whose time has come."""
        self.now_s += seconds
        for due_s, event in self._waiting:
            if due_s <= self.now_s:
                event.set()
