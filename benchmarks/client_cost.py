"""What a run costs the grader itself: the CPU time of the client process, for 1,000 runs of one task, judged.

The runs are real; their own CPU time, the engine's and the supervisor's are not in it.
"""

from __future__ import annotations

import time

from benchmarks.boxes import BenchmarkError
from benchmarks.measures import Measure, first_quartile
from grader.api import Runner
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.tri import Tri
from grader.matchers import Equals
from grader.submission import Submission

CASES = 100
ANSWER = b"read\n"
PROGRAM = "read line\necho $line\n"


async def measure(*, quick: bool) -> list[Measure]:
    repetitions = 2 if quick else 10
    cases = tuple(
        ProgramCase(stdin=ANSWER, arguments=(str(number).encode(),), stdout=Equals(expected=ANSWER))
        for number in range(CASES)
    )
    task = Task(conditions=(ProgramBehaves(cases=cases, repetitions=repetitions),), runtime_profiles=("bash",))
    submission = Submission.from_files({"main.sh": PROGRAM.encode()}, name="benchmark")
    spent: list[float] = []
    async with Runner(max_parallel=1) as runner:
        for _ in range(2 if quick else 4):
            start = time.process_time()
            graded = await runner.grade(task, submission)
            spent.append((time.process_time() - start) / (CASES * repetitions))
            if graded.verdict is None or graded.verdict.value is not Tri.TRUE:
                raise BenchmarkError(f"the verdict is not true: {graded.verdict}")
    warm = spent[1:]
    details = {"runs": CASES * repetitions, "first_ms": round(spent[0] * 1e3, 3)}
    return [Measure("client CPU per run, judged", first_quartile(warm) * 1e3, "ms", 0.5, details)]
