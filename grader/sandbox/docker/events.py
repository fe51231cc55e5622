"""What the engine says of our containers while they live: kept, so that a box that vanished can be accounted for."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from grader.core.reasons import ReasonCode
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
    """The events of the containers with one label. `stop` it after the last container.

    It is subscribed again when the engine was gone and is back; a `Watch` remembers which subscription a container was
    opened under, so that one that lived through the gap is known to have been lost with the engine.
    """

    def __init__(self, source: EventSource, label: str) -> None:
        self._source = source
        self._label = label
        self._actions: OrderedDict[str, list[str]] = OrderedDict()
        self._changed = asyncio.Event()
        self._subscription: _Subscription | None = None
        self._lock = asyncio.Lock()

    async def watch(self) -> Watch:
        """Make sure that events are being heard, for a container that is opened next. Raises SandboxError."""
        async with self._lock:
            if self._subscription is None or self._subscription.is_over:
                self._subscription = await self._subscribe()
            return Watch(self, self._subscription)

    async def stop(self) -> None:
        """Listen no more. Bounded."""
        if self._subscription is not None:
            await self._end(self._subscription)

    async def fate_of(self, container_id: str, subscription: _Subscription) -> tuple[tuple[str, ...], bool]:
        """See `Watch.fate_of`."""
        with anyio.move_on_after(_DEATH_WITHIN_S):
            while not subscription.is_over and "die" not in self._actions.get(container_id, ()):
                self._changed.clear()
                await self._changed.wait()
        actions = tuple(self._actions.pop(container_id, ()))
        return actions, not subscription.is_over and await self._source.ping()

    def forget(self, container_id: str) -> None:
        """Nobody will ask for this container."""
        self._actions.pop(container_id, None)

    async def _subscribe(self) -> _Subscription:
        subscription = _Subscription()
        subscription.task = asyncio.create_task(self._listen(subscription))
        heard = asyncio.create_task(subscription.is_heard.wait())
        try:
            await asyncio.wait(
                [subscription.task, heard], timeout=_SUBSCRIBED_WITHIN_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            heard.cancel()
            if not subscription.is_heard.is_set():
                await self._end(subscription)
        if not subscription.is_heard.is_set():
            raise SandboxError("the engine did not let us listen to its events", code=ReasonCode.ENGINE_UNREACHABLE)
        return subscription

    async def _end(self, subscription: _Subscription) -> None:
        if subscription.task is not None:
            subscription.task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait([subscription.task], timeout=10)

    async def _listen(self, subscription: _Subscription) -> None:
        try:
            async with self._source.events(self._label) as events:
                subscription.is_heard.set()
                async for event in events:
                    self._note(event)
        except SandboxError:
            pass  # the engine is gone: `is_over` says so
        finally:
            subscription.is_over = True
            self._changed.set()

    def _note(self, event: ContainerEvent) -> None:
        if event.action in _KEPT:
            self._actions.setdefault(event.container_id, []).append(event.action)
            self._changed.set()
            while len(self._actions) > _CONTAINERS_KNOWN:
                self._actions.popitem(last=False)


@dataclass(slots=True)
class _Subscription:
    is_heard: asyncio.Event = field(default_factory=asyncio.Event)
    is_over: bool = False
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """What will be known of one container."""

    log: EventLog
    subscription: _Subscription

    async def fate_of(self, container_id: str) -> tuple[tuple[str, ...], bool]:
        """What happened to the container, in order, and whether the engine is there, and was since `EventLog.watch`.

        Waits a little for the engine to say that it died.
        """
        return await self.log.fate_of(container_id, self.subscription)

    def forget(self, container_id: str) -> None:
        """Nobody will ask for this container."""
        self.log.forget(container_id)
