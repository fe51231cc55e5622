"""Ctrl-C, SIGTERM and SIGHUP: what is under way is cancelled and cleaned up; the exit code is 128 + signal."""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

from grader.cli.exit_codes import INTERRUPTED_BY
from grader.errors import first_error

T = TypeVar("T")

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3
"""At this many signals we leave at once; the next start of grader removes what is left."""


class InterruptedBySignalError(Exception):
    """A signal ended what was under way; everything is cleaned up. Its cause is what went wrong meanwhile, if any."""

    def __init__(self, number: int) -> None:
        self.exit_code = INTERRUPTED_BY + number
        super().__init__(signal.Signals(number).name)


class _Outcome(Generic[T]):
    def __init__(self) -> None:
        self.values: list[T] = []
        self.error: Exception | None = None


def run_interruptible(main: Callable[[], Awaitable[T]], told: Callable[[str], None] = lambda _: None) -> T:
    """Run an async function to its end. `told` gets a line when a signal comes.

    Raises InterruptedBySignalError after a signal, and whatever `main` raises, never in a group.
    """
    return anyio.run(_guarded, main, told)


async def _guarded(main: Callable[[], Awaitable[T]], told: Callable[[str], None]) -> T:
    outcome: _Outcome[T] = _Outcome()
    caught: list[int] = []
    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        if threading.current_thread() is threading.main_thread():
            await group.start(_watch, scope, caught, told)
        with scope:
            try:
                outcome.values.append(await main())
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group that would wrap it
                outcome.error = error
        group.cancel_scope.cancel()
    if caught:
        raise InterruptedBySignalError(caught[0]) from (first_error(outcome.error) if outcome.error else None)
    if outcome.error is not None:
        raise first_error(outcome.error)
    return outcome.values[0]


async def _watch(
    scope: anyio.CancelScope,
    caught: list[int],
    told: Callable[[str], None],
    *,
    task_status: anyio.abc.TaskStatus[None],
) -> None:
    try:
        with anyio.open_signal_receiver(*SIGNALS) as signals:
            task_status.started()
            async for number in signals:
                caught.append(number)
                if len(caught) == 1:
                    told("stopping: removing what is running (twice more to leave at once)")
                    scope.cancel()
                elif len(caught) >= PATIENCE:
                    os._exit(INTERRUPTED_BY + caught[0])
    finally:
        if caught:
            _leave_at_once_from_now_on(caught[0])


def _leave_at_once_from_now_on(first: int) -> None:
    """What was under way has ended by the signal `first`: one more ends us with the same exit code, and not by itself.

    While Python finalizes it would put the default back, so there they are ignored.
    """

    def leave(*_: object) -> None:
        os._exit(INTERRUPTED_BY + first)

    for number in SIGNALS:
        signal.signal(number, leave)
    atexit.register(_ignore_signals)


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
