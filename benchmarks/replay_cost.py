"""Judging 10,000 recorded runs again: open the record, read it, plan, judge. CPU time of this process.

The record is made with the fake sandbox: what a replay costs does not depend on who executed the runs.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from benchmarks.boxes import BenchmarkError
from benchmarks.measures import Measure, first_quartile
from grader.api import Runner
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.tri import Tri
from grader.matchers import Equals
from grader.runner.replay import replay
from grader.sandbox.fake import Behaviour, Call, FakeSandbox
from grader.submission import Submission

RUNS = 10_000


async def measure(*, quick: bool) -> list[Measure]:
    measures: list[Measure] = []
    for cases in (1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder) / "record"
            await _recorded(record, cases, RUNS // cases)
            times = [_replayed(record) for _ in range(2 if quick else 7)]
        name = f"replay of {RUNS:,} recorded runs ({cases:,} cases)"
        measures.append(Measure(name, first_quartile(times), "s", 1.0, {"worst_s": round(max(times), 3)}))
    return measures


async def _recorded(folder: Path, cases: int, repetitions: int) -> None:
    """A record of runs that all wrote what was expected."""
    asked = tuple(
        ProgramCase(
            name=f"case {number}",
            stdin=b"%d\n" % number,
            arguments=(b"--number", b"%d" % number),
            stdout=Equals(expected=b"%d\n" % number),
        )
        for number in range(cases)
    )
    task = Task(conditions=(ProgramBehaves(cases=asked, repetitions=repetitions),), runtime_profiles=("python",))
    sandbox = FakeSandbox(_echo)
    async with Runner(sandbox=sandbox, record=folder) as runner:
        graded = await runner.grade(task, Submission.from_source("print(input())", language="python"))
    if graded.verdict is None or graded.verdict.value is not Tri.TRUE:
        raise BenchmarkError("the recorded runs are not true")


def _echo(call: Call) -> Behaviour:
    return Behaviour(stdout=call.invocation.stdin)


def _replayed(folder: Path) -> float:
    start = time.process_time()
    graded = list(replay(folder))
    seconds = time.process_time() - start
    if len(graded) != 1 or graded[0].verdict is None or graded[0].verdict.value is not Tri.TRUE:
        raise BenchmarkError("the replay does not say what the run did")
    return seconds
