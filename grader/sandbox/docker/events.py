"""What the engine says of our containers while they live: kept, so that a box that vanished can be accounted for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import anyio

from grader.errors import SandboxError
from grader.sandbox.docker.engine_facts import ContainerEvent

_CONTAINERS_KNOWN = 1000
_KEPT = frozenset({"oom", "kill", "stop", "die", "destroy", "restart", "pause"})
_DEATH_WITHIN_S = 3.0
"""How long after the end of a box's stream the engine is given to say that it died."""
_SUBSCRIBED_WITHIN_S = 60.0


class EventSource(Protocol):
    """An engine, as far as events go."""

    def events(self, label: str) -> AbstractAsyncContextManager[AsyncIterator[ContainerEvent]]:
        """What happens to containers with a label, from the entering of the context on."""
        ...

    async def ping(self) -> bool:
        """Whether the engine answers."""
        ...


class EventLog:
    """The events of the containers with one label. `start` before the first container, `stop` after the last."""

    def __init__(self, source: EventSource, label: str) -> None:
        self._source = source
        self._label = label
        self._actions: OrderedDict[str, list[str]] = OrderedDict()
        self._changed = asyncio.Event()
        self._subscribed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    async def start(self) -> None:
        """Subscribe; returns when events are being heard. Raises SandboxError if that fails."""
        self._task = asyncio.create_task(self._listen())
        subscribed = asyncio.create_task(self._subscribed.wait())
        try:
            await asyncio.wait(
                [self._task, subscribed], timeout=_SUBSCRIBED_WITHIN_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            subscribed.cancel()
        if not self._subscribed.is_set():
            await self.stop()
            raise SandboxError("the engine did not let us listen to its events", code="engine.unreachable")

    async def stop(self) -> None:
        """Listen no more. Bounded."""
        if self._task is not None:
            self._task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([self._task], timeout=10)

    async def fate_of(self, container_id: str) -> tuple[tuple[str, ...], bool]:
        """What happened to a container that was lost, in order, and whether the engine is there and was all the time.

        Waits a little for the engine to say that it died.
        """
        with anyio.move_on_after(_DEATH_WITHIN_S):
            while not self._is_over and "die" not in self._actions.get(container_id, ()):
                self._changed.clear()
                await self._changed.wait()
        actions = tuple(self._actions.pop(container_id, ()))
        return actions, not self._is_over and await self._source.ping()

    def forget(self, container_id: str) -> None:
        """Nobody will ask for this container."""
        self._actions.pop(container_id, None)

    async def _listen(self) -> None:
        try:
            async with self._source.events(self._label) as events:
                self._subscribed.set()
                async for event in events:
                    self._note(event)
        except SandboxError:
            pass  # the engine is gone: `_is_over` says so
        finally:
            self._is_over = True
            self._changed.set()

    def _note(self, event: ContainerEvent) -> None:
        if event.action in _KEPT:
            self._actions.setdefault(event.container_id, []).append(event.action)
            self._changed.set()
            while len(self._actions) > _CONTAINERS_KNOWN:
                self._actions.popitem(last=False)
