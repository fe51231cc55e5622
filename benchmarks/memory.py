"""Memory of the client while 100,000 runs stream through `grade_many` into a record, with the fake sandbox.

In a process of its own. Flat means: the second half of the runs adds next to nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import psutil

from benchmarks.measures import Measure
from grader.api import Runner
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.matchers import Equals
from grader.sandbox.fake import Behaviour, FakeSandbox
from grader.submission import Submission

RUNS_EACH = 10


async def measure(*, quick: bool) -> list[Measure]:
    submissions = 1_000 if quick else 10_000
    command = [sys.executable, "-m", "benchmarks.memory", str(submissions)]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: ASYNC221
    details = {"runs": submissions * RUNS_EACH, "mb_by_tenths": found}
    return [
        Measure("memory of the client, at most", max(found), "MB", 150, details),
        Measure("memory of the client, second half adds", found[-1] - found[len(found) // 2], "MB", 5),
    ]


async def _stream(submissions: int) -> list[float]:
    """Resident memory in MB after each tenth of the submissions."""
    process = psutil.Process()
    seen: list[float] = []
    cases = tuple(
        ProgramCase(stdin=b"%d\n" % number, stdout=Equals(expected=b"%d\n" % number)) for number in range(RUNS_EACH)
    )
    task = Task(conditions=(ProgramBehaves(cases=cases),), runtime_profiles=("python",))

    def pairs() -> Iterator[tuple[Task, Submission]]:
        for number in range(submissions):
            yield task, Submission.from_source(f"print(input())  # {number}\n", language="python")

    sandbox = FakeSandbox(lambda call: Behaviour(stdout=call.invocation.stdin))
    with tempfile.TemporaryDirectory() as folder:
        async with Runner(sandbox=sandbox, record=Path(folder) / "record", max_parallel=2) as runner:
            done = 0
            async for _ in runner.grade_many(pairs()):
                done += 1
                if done % (submissions // 10) == 0:
                    seen.append(round(process.memory_info().rss / 1e6, 1))
    return seen


if __name__ == "__main__":
    print(json.dumps(anyio.run(_stream, int(sys.argv[1]))))
