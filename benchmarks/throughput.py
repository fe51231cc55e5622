"""Runs a second with 1, 2 and 4 boxes. More runs than CPUs never go on at the same time: slots see to that."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack

import anyio

from benchmarks.boxes import docker_sandbox, invocation, outcome_of, program_for, seated
from benchmarks.measures import Measure
from grader.core.plan import Invocation
from grader.sandbox.base import Seat

PROGRAMS = {
    "sh": ("bash", {"main.sh": b""}, (b"/bin/sh", b"-c", b":")),
    "python": ("python", {"main.py": b""}, (b"python3", b"-c", b"pass")),
}


async def measure(*, quick: bool) -> list[Measure]:
    seconds = 1.0 if quick else 4.0
    measures: list[Measure] = []
    async with docker_sandbox(boxes=4) as sandbox:
        for name, (profile, files, command) in PROGRAMS.items():
            program = await program_for(sandbox, profile, files, command)
            asked = invocation(program.profile)
            for boxes in (1, 2, 4):
                async with AsyncExitStack() as stack:
                    seats = [await stack.enter_async_context(seated(sandbox, program)) for _ in range(boxes)]
                    for seat in seats:
                        await outcome_of(seat, asked)
                    count = await _count(seats, asked, seconds)
                measures.append(Measure(f"{name}, {boxes} boxes", count / seconds, "runs/s"))
    return measures


async def _count(seats: list[Seat], asked: Invocation, seconds: float) -> int:
    """How many runs all seats together end in that time."""
    ended = [0] * len(seats)
    until = time.perf_counter() + seconds

    async def work(number: int, seat: Seat) -> None:
        while time.perf_counter() < until:
            await outcome_of(seat, asked)
            ended[number] += 1

    async with anyio.create_task_group() as group:
        for number, seat in enumerate(seats):
            group.start_soon(work, number, seat)
    return sum(ended)
