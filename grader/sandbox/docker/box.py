"""One container with one supervisor: opened, held against its policy, used for one run at a time, removed.

Whatever happens (an error, a cancellation in any step, the loss of the container), no container stays: from the moment
it may exist, everything that leaves `Box.open` or `close` early removes it first.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

import anyio

from grader.core.outcomes import BoxSeen
from grader.core.reasons import ReasonCode
from grader.errors import SandboxError
from grader.sandbox.base import Ear, Failed
from grader.sandbox.docker.assessment import assess, box_seen
from grader.sandbox.docker.box_runs import BoxInvocation, BoxReport, NoBoxError, Tree
from grader.sandbox.docker.connection import Stream
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.events import EventLog, Watch
from grader.sandbox.docker.losses import BoxLoss, BoxLostError, is_out_of_memory
from grader.sandbox.docker.policy import BoxPolicy, container_config
from grader.sandbox.docker.reports import out_of_memory_outcome, report_of, request_of, too_long_to_send
from grader.sandbox.docker.talk import FillError, PutError, Talk, TalkOverError
from grader.sandbox.supervisor.dialogue import Hello
from grader.sandbox.supervisor.requests import RunRequest

GROWTH_ALLOWED_BYTES = 32 * 2**20
"""How much more memory a shared box may hold between runs than before its first: page cache, its submission."""
BELIEVED_FOR_S = 0.05
"""A box whose stream is there, and that said something within this time, is not asked again whether it answers."""
_REMOVE_WITHIN_S = 30.0
_OPEN_WITHIN_S = 60.0
_LATE_S = 15.0
"""How long a cancelled call to the engine is waited for, to undo what it made."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BoxHost:
    """Where boxes are opened."""

    engine: Engine
    events: EventLog
    labels: Mapping[str, str]
    """Of every container, so that whoever comes next can find and remove it."""


class Box:
    """An open box. Made by `Box.open`, ended by `close`."""

    def __init__(self, engine: Engine, watch: Watch, container_id: str, closed: Callable[[], None]) -> None:
        self._engine = engine
        self._watch = watch
        self._talk = Talk()
        self._closed = closed
        self._is_closed = False
        self._removal = anyio.Lock()
        self._memory_at_first: int | None = None
        self._last: tuple[BoxInvocation, RunRequest] | None = None  # a repetition is the very same
        self.container_id = container_id
        self.cpus: tuple[int, ...] = ()
        """The CPUs it is bound to."""
        self.uses = 0
        """How many runs it has served."""
        self.seen = BoxSeen()
        """What was seen inside before the first run; it goes into the record with every run."""
        self.hello: Hello | None = None
        """What the supervisor said of the box."""

    @classmethod
    async def open(
        cls, host: BoxHost, policy: BoxPolicy, cpus: tuple[int, ...], closed: Callable[[], None] = lambda: None
    ) -> Box:
        """A new box, checked. `closed` is called once when it is gone, also if it never came to life.

        Raises NoBoxError if it cannot be had.
        """
        try:
            with anyio.fail_after(_OPEN_WITHIN_S):
                watch = await host.events.watch()
                container_id = await _created(host.engine, container_config(policy, host.labels))
        except TimeoutError as error:
            closed()
            raise NoBoxError(_unreachable("create a container")) from error
        except SandboxError as error:
            closed()
            raise NoBoxError(_failure_of(error)) from error
        except BaseException:
            closed()
            raise
        box = cls(host.engine, watch, container_id, closed)
        box.cpus = cpus
        try:
            with anyio.fail_after(_OPEN_WITHIN_S):
                await box._come_to_life(policy)
        except BaseException as error:
            await box.close()
            if isinstance(error, TimeoutError):
                raise NoBoxError(_unreachable("start a box")) from error
            if isinstance(error, SandboxError):
                raise NoBoxError(_failure_of(error)) from error
            raise
        return box

    async def check(self) -> bool:
        """Whether it still answers. One that did a moment ago is believed: what a run meets is dealt with there."""
        if self._talk.over is not None:
            return False
        return self._talk.silent_for_s < BELIEVED_FOR_S or await self._talk.ping()

    async def fill(self, tree: Tree) -> None:
        """Put files into `/submission`, in the place of what is there. Raises NoBoxError, BoxLostError.

        A small tree goes to the box with its first run.
        """
        try:
            await self._talk.fill(tree)
        except (FillError, ValueError) as error:
            raise _does_not_fit(error) from error
        except TalkOverError as error:
            raise BoxLostError(await self._loss(str(error), has_begun=False)) from error

    async def run(self, asked: BoxInvocation, ear: Ear | None = None) -> BoxReport:
        """Run what is asked; `ear` hears what comes to its port. Raises BoxLostError if the box is lost meanwhile, and
        NoBoxError if what it was filled with did not fit.

        When cancelled, the box is removed before the cancellation goes on.
        """
        if self._last is None or self._last[0] is not asked:
            refused = too_long_to_send(asked)
            if refused is not None:
                return refused
            self._last = (asked, request_of(asked))
        _, request = self._last
        self.uses += 1
        started_ns = time.monotonic_ns()
        try:
            result = await self._talk.run(request, asked.stdin, asked.files, ear)
        except ValueError as error:
            return BoxReport(Failed(ReasonCode.BOX_LOST, f"the box does not take this: {error}", retryable=False))
        except FillError as error:
            raise _does_not_fit(error) from error
        except PutError as error:
            failed = Failed(ReasonCode.BOX_LOST, f"an input file: {error}", retryable=False)
            return BoxReport(failed, box_is_as_new=False)
        except TalkOverError as error:
            return await self._after_loss(asked, str(error), time.monotonic_ns() - started_ns)
        except BaseException:
            await self.close()
            raise
        report = report_of(asked, result, self.seen)
        if self._has_grown(result.numbers["memory_before_bytes"]):
            report = replace(report, box_is_as_new=False)
        return report

    async def close(self) -> None:
        """Remove it. Bounded, never raises, not to be stopped by a cancellation, and may be called again."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_REMOVE_WITHIN_S):
            async with self._removal:
                if self._is_closed:
                    return
                self._is_closed = True
                try:
                    self._talk.close()
                    with suppress(SandboxError):  # the sweep of the next grader removes what cannot be removed now
                        await self._engine.remove(self.container_id)
                finally:
                    self._watch.forget(self.container_id)
                    self._closed()

    async def _come_to_life(self, policy: BoxPolicy) -> None:
        await self._talk.open(await _attached(self._engine, self.container_id))
        await _started(self._engine, self.container_id)
        try:
            self.hello = hello = await self._talk.hello()
        except TalkOverError as error:
            raise NoBoxError(Failed(ReasonCode.BOX_LOST, f"the box did not begin: {error}", retryable=True)) from error
        facts = {**dict.fromkeys(hello.errors), **hello.files}
        assessment = assess(policy, facts)
        if assessment.differences:
            detail = "the box is not what was asked for: " + "; ".join(assessment.differences)
            raise NoBoxError(Failed(ReasonCode.BOX_LOST, detail, retryable=False))
        self.seen = box_seen(assessment, facts)

    def _has_grown(self, memory_bytes: int | None) -> bool:
        """Whether more stayed in the box from its earlier runs than may be passed on to another submission."""
        if self._memory_at_first is None:
            self._memory_at_first = memory_bytes
        return (memory_bytes or 0) - (self._memory_at_first or 0) > GROWTH_ALLOWED_BYTES

    async def _after_loss(self, asked: BoxInvocation, why: str, passed_ns: int) -> BoxReport:
        """The box is gone in the middle of a run: evidence that memory ran out, or a loss. Raises BoxLostError."""
        counters = self._talk.counters
        loss = await self._loss(why, has_begun=True)
        if not is_out_of_memory(loss) or counters is None:
            raise BoxLostError(loss)
        try:
            self._talk.check_files()
        except PutError as error:  # what a program did without its files says nothing of it
            raise BoxLostError(loss) from error
        seen = (counters.stdout_bytes or 0, counters.stderr_bytes or 0)
        outcome = out_of_memory_outcome(asked, counters.memory_limit_hits or 0, passed_ns, seen, self.seen)
        return BoxReport(outcome, box_is_usable=False, box_is_as_new=False)

    async def _loss(self, why: str, *, has_begun: bool) -> BoxLoss:
        counters = self._talk.counters
        actions, engine_answers = await self._watch.fate_of(self.container_id)
        hits = counters.memory_limit_hits if counters is not None else None
        return BoxLoss(why, has_begun, engine_answers, actions, hits)


async def _created(engine: Engine, config: dict[str, object]) -> str:
    """A new container; cancelled, it leaves none."""
    return await _made(engine.create(config, f"grader-{secrets.token_hex(8)}"), engine.remove)


async def _attached(engine: Engine, container_id: str) -> socket.socket | Stream:
    """The stream of a container; cancelled, it leaves none open."""

    async def close(stream: socket.socket | Stream) -> None:
        stream.close()

    return await _made(engine.attach(container_id), close)


async def _started(engine: Engine, container_id: str) -> None:
    """Start a container; cancelled, it is not left in the middle of it."""

    async def nothing(_: None) -> None: ...

    await _made(engine.start(container_id), nothing)


async def _made(making: Coroutine[object, object, T], undo: Callable[[T], Awaitable[None]]) -> T:
    """What is made. Cancelled (by asyncio's own means too, which no scope shields from), it waits for it to undo it."""
    task = asyncio.create_task(making)
    try:
        return await asyncio.shield(task)
    except BaseException:
        with anyio.CancelScope(shield=True), suppress(SandboxError):
            await asyncio.wait([task], timeout=_LATE_S)
            if task.done() and not task.cancelled() and task.exception() is None:
                await undo(task.result())
            task.cancel()  # what takes longer than that is left to the sweep
        raise


def _does_not_fit(error: Exception) -> NoBoxError:
    return NoBoxError(Failed(ReasonCode.BOX_LOST, f"the submission: {error}", retryable=False))


def _failure_of(error: SandboxError) -> Failed:
    """No box for a cause of the engine's. Nothing has run, so another attempt is fair, where it can help at all."""
    code = ReasonCode(error.code)
    return Failed(code, error.message, retryable=code is not ReasonCode.IMAGE_MISSING)


def _unreachable(doing: str) -> Failed:
    detail = f"the engine did not {doing} within {_OPEN_WITHIN_S:g} s"
    return Failed(ReasonCode.ENGINE_UNREACHABLE, detail, retryable=True)
