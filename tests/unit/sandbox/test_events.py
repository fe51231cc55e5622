"""The event log: what happened to a container, also when the engine came and went."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from grader.errors import SandboxError
from grader.sandbox.docker import events as events_module
from grader.sandbox.docker.engine_facts import ContainerEvent
from grader.sandbox.docker.events import EventLog

pytestmark = pytest.mark.anyio


class Source:
    """An engine whose events a test sends, and that can go away."""

    def __init__(self) -> None:
        self.is_there = True
        self.subscriptions = 0
        self._queue: asyncio.Queue[ContainerEvent | None] = asyncio.Queue()

    async def ping(self) -> bool:
        return self.is_there

    @asynccontextmanager
    async def events(self, label: str) -> AsyncGenerator[AsyncIterator[ContainerEvent]]:
        if not self.is_there:
            raise SandboxError("gone", code="engine.unreachable")
        self.subscriptions += 1
        yield self._each()

    async def _each(self) -> AsyncIterator[ContainerEvent]:
        while (event := await self._queue.get()) is not None:
            yield event

    def say(self, container: str, *actions: str) -> None:
        for action in actions:
            self._queue.put_nowait(ContainerEvent(container, action, 0))

    def end(self) -> None:
        self.is_there = False
        self._queue.put_nowait(None)


async def test_the_fate_of_a_container_is_told_in_order_and_apart_from_others() -> None:
    source = Source()
    log = EventLog(source, "label")
    watch = await log.watch()
    source.say("a", "start", "oom", "die", "destroy")
    source.say("b", "kill", "die")
    assert await watch.fate_of("b") == (("kill", "die"), True)
    assert await watch.fate_of("a") == (("oom", "die", "destroy"), True)
    await log.stop()


async def test_a_death_that_comes_late_is_waited_for() -> None:
    source = Source()
    log = EventLog(source, "label")
    watch = await log.watch()
    asyncio.get_running_loop().call_later(0.02, source.say, "a", "oom", "die")
    assert await watch.fate_of("a") == (("oom", "die"), True)
    await log.stop()


async def test_a_death_that_never_comes_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_DEATH_WITHIN_S", 0.05)
    log = EventLog(Source(), "label")
    watch = await log.watch()
    with anyio.fail_after(2):
        assert await watch.fate_of("a") == ((), True)
    await log.stop()


async def test_a_container_that_lived_through_an_engines_death_was_lost_with_it() -> None:
    source = Source()
    log = EventLog(source, "label")
    before = await log.watch()
    source.end()
    assert await before.fate_of("a") == ((), False)
    with pytest.raises(SandboxError, match="listen"):
        await log.watch()
    source.is_there = True
    again = await log.watch()
    assert source.subscriptions == 2
    source.say("b", "die")
    assert await again.fate_of("b") == (("die",), True)
    assert await before.fate_of("a") == ((), False)  # the engine answers now, but was away
    await log.stop()


async def test_subscribing_again_is_not_done_while_it_is_on() -> None:
    source = Source()
    log = EventLog(source, "label")
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(log.watch)
    assert source.subscriptions == 1
    await log.stop()
