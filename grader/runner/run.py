"""Executes a plan: every run of it ends in a record, with an outcome or with why there is none.

Runs of one submission are spread over a few seats (submissions made ready in a box). A failure of the sandbox is tried
again only where that gives the program no second throw of the dice; every attempt is recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from grader.core.endings import NoEnding, decide_ending
from grader.core.observation import CompileRecord, MissingRun, RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import PlannedRun
from grader.core.reasons import ReasonCode, ReasonKind
from grader.runtimes.profile import TRACE_PORT
from grader.sandbox.base import Failed, Port, Program, Sandbox, Seat
from grader.scorers.runs import judge_compile

if TYPE_CHECKING:
    from grader.capture.exported_spans import ExportedSpans

RUNS_PER_SEAT = 16
"""A second box for the same submission costs about as much as this many short runs."""


@dataclass(frozen=True)
class Rules:
    """How often, and on how many seats."""

    retries: int = 2
    """How often a run that is missing for a cause of ours is tried again."""
    pause_s: float = 0.2
    """Before the second attempt; twice as long before each further one."""
    seats_per_profile: int = 1
    """At most; fewer where there is little to run."""


@dataclass(frozen=True)
class Listener:
    """Who is told when something has ended; both are called in the order in which things end."""

    run_ended: Callable[[PlannedRun, RunRecord], None]
    """Every attempt; the last one of a run is the one that no other follows."""
    compile_ended: Callable[[CompileRecord], None]
    run_settled: Callable[[PlannedRun], None]
    """No further attempt at this run will follow."""
    should_stop: Callable[[], bool] = lambda: False
    """Asked before each run: true ends the execution early, leaving the rest without a record."""


@dataclass
class _Queue:
    """The runs of one profile that are still to do, and what is known to block them all."""

    program: Program
    runs: deque[PlannedRun]
    blocked: MissingRun | None = None
    compiled_well: bool = False
    compile_attempts: int = 0
    will_not_compile: bool = False
    lock: anyio.Lock = field(default_factory=lambda: anyio.Lock(fast_acquire=True))


async def execute(
    runs: Sequence[PlannedRun],
    programs: Mapping[str, Program],
    sandbox: Sandbox,
    limiter: anyio.Semaphore,
    listener: Listener,
    rules: Rules,
) -> None:
    """Execute the given runs. `programs`: by profile name. `limiter`: how many runs may go on at the same time.

    Returns when every run has its last record (or `should_stop` said so). Cancelled, it leaves no box behind.
    """
    queues = {
        name: _Queue(program, deque(run for run in runs if run.profile == name)) for name, program in programs.items()
    }
    workers: list[_Worker] = []
    for queue in queues.values():
        wanted = min(rules.seats_per_profile, -(-len(queue.runs) // RUNS_PER_SEAT))
        workers += [_Worker(queue, sandbox, limiter, listener, rules) for _ in range(wanted)]
    if len(workers) == 1:  # as for most submissions of a stream: no task of its own
        await workers[0].work()
        return
    async with anyio.create_task_group() as group:
        for worker in workers:
            group.start_soon(worker.work)


@dataclass
class _Worker:
    """Takes runs from a queue and executes them on a seat of its own."""

    queue: _Queue
    sandbox: Sandbox
    limiter: anyio.Semaphore
    listener: Listener
    rules: Rules

    async def work(self) -> None:
        """Until the queue is empty, a compile fails, or the listener stops it."""
        async with AsyncExitStack() as stack:
            holder = _SeatHolder(self.queue, self.sandbox, stack, self.listener)
            while self.queue.runs and not self.listener.should_stop():
                run = self.queue.runs.popleft()
                await self._settle(run, holder)
                self.listener.run_settled(run)

    async def _settle(self, run: PlannedRun, holder: _SeatHolder) -> None:
        """Attempts at one run until one counts or no further one is allowed."""
        for attempt in range(1, self.rules.retries + 2):
            await _enter(self.limiter)
            try:
                record, again = await self._attempt(run, holder, attempt)
            finally:
                self.limiter.release()
            if record is None:
                return  # the compile command failed: its one record speaks for every run
            self.listener.run_ended(run, record)
            if not again or attempt > self.rules.retries:
                return
            await anyio.sleep(self.rules.pause_s * 2 ** (attempt - 1))

    async def _attempt(self, run: PlannedRun, holder: _SeatHolder, attempt: int) -> tuple[RunRecord | None, bool]:
        """One attempt: its record, and whether another is allowed."""
        seat = await holder.seat()
        if self.queue.will_not_compile:
            return None, False
        if isinstance(seat, Failed):
            missing = MissingRun(code=seat.code, detail=seat.detail)
            again = seat.retryable and self.queue.blocked is None
            if attempt > self.rules.retries or not again:
                self.queue.blocked = missing
            return RunRecord(index=run.index, attempt=attempt, missing=missing), again
        outcome = await self._run(seat, run)
        if isinstance(outcome, Failed):
            await holder.give_back()
            missing = MissingRun(code=outcome.code, detail=outcome.detail)
            return RunRecord(index=run.index, attempt=attempt, missing=missing), outcome.retryable
        record = RunRecord(index=run.index, attempt=attempt, outcome=outcome)
        return record, was_starved(outcome, run)

    async def _run(self, seat: Seat, run: PlannedRun) -> RunOutcome | Failed:
        """One run; what it sends to its trace endpoint, if it has one, is part of its outcome."""
        if not self.queue.program.profile.is_traced:
            return await seat.run(run.invocation)
        spans = exported_spans()
        outcome = await seat.run(run.invocation, spans)
        if isinstance(outcome, Failed):
            return outcome
        return outcome.model_copy(update={"traces": spans.outcome()})


async def _enter(limiter: anyio.Semaphore) -> None:
    """Take one of the limiter's places: mostly one is free, and then asking for it the long way costs more than it."""
    try:
        limiter.acquire_nowait()
    except anyio.WouldBlock:
        await limiter.acquire()


def exported_spans() -> ExportedSpans:
    """The ear of one run with a trace endpoint. Raises PrerequisiteError if a package for it is missing."""
    # Most profiles have no endpoint: what receives and checks spans is not loaded for them.
    from grader.capture.exported_spans import ExportedSpans

    return ExportedSpans(Port(TRACE_PORT))


def was_starved(outcome: RunOutcome, run: PlannedRun) -> bool:
    """Whether the run counts as missing because the machine was too busy: only then may it be run again."""
    ending = decide_ending(outcome, run.invocation.limits)
    return isinstance(ending, NoEnding) and ending.code is ReasonCode.HOST_STARVED


class _SeatHolder:
    """One worker's seat: opened when first needed, given back when it failed, opened again for the next run."""

    def __init__(self, queue: _Queue, sandbox: Sandbox, stack: AsyncExitStack, listener: Listener) -> None:
        self._queue = queue
        self._sandbox = sandbox
        self._stack = stack
        self._listener = listener
        self._seat: Seat | None = None

    async def seat(self) -> Seat | Failed:
        """The seat, or why there is none. A program is compiled by one worker while the others wait."""
        if self._seat is not None:
            return self._seat
        async with self._queue.lock:
            if self._queue.blocked is not None:
                return Failed(self._queue.blocked.code, self._queue.blocked.detail, retryable=False)
            if self._queue.will_not_compile:
                return Failed(ReasonCode.INTERRUPTED, "the compile command failed", retryable=False)
            seat = await self._stack.enter_async_context(self._sandbox.prepare(self._queue.program))
            if isinstance(seat, Failed):
                await self._stack.aclose()
                return seat
            failed = self._note_compile(seat.compiled)
            if failed is not None:
                await self._stack.aclose()
                return failed
            self._seat = seat
            return seat

    def _note_compile(self, compiled: CompileRecord | None) -> Failed | None:
        """Tell of the compile run, once; a starved one is no fact about the program, so the seat is not used."""
        if compiled is None or self._queue.compiled_well:
            return None
        self._queue.compile_attempts += 1
        self._listener.compile_ended(compiled.model_copy(update={"attempt": self._queue.compile_attempts}))
        finding = judge_compile(compiled)
        if finding is None:
            self._queue.compiled_well = True
        elif finding.code.kind is ReasonKind.FALSE:
            self._queue.will_not_compile = True
        else:
            return Failed(finding.code, finding.detail, retryable=finding.code is ReasonCode.HOST_STARVED)
        return None

    async def give_back(self) -> None:
        """Leave the seat; the next call of `seat` opens another."""
        self._seat = None
        await self._stack.aclose()
