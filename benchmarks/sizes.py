"""What a submission costs with more cases (1 to 1,000) and with more output (1 KB to 64 MB): time from end to end."""

from __future__ import annotations

import time

from benchmarks.boxes import BenchmarkError
from benchmarks.measures import Measure, first_quartile
from grader.api import Runner
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.limits import Limits
from grader.core.tri import Tri
from grader.matchers import Equals
from grader.submission import Submission

ECHO = b"read line\necho $line\n"
ZEROS = b"head -c $1 /dev/zero\n"
MOST_BYTES = 64 << 20


async def measure(*, quick: bool) -> list[Measure]:
    measures: list[Measure] = []
    async with Runner(max_parallel=1) as runner:
        for count in (1, 10, 100) if quick else (1, 10, 100, 1_000):
            seconds = await _seconds(runner, _cases(count), ECHO, rounds=2 if quick else 5)
            details = {"ms_a_run": round(seconds * 1e3 / count, 2)}
            measures.append(Measure(f"a submission of {count:,} cases", seconds, "s", None, details))
        for size in (1 << 10, 1 << 20, 16 << 20) if quick else (1 << 10, 64 << 10, 1 << 20, 16 << 20, MOST_BYTES):
            seconds = await _seconds(runner, _output(size), ZEROS, rounds=2 if quick else 5)
            details = {"mb_a_s": round(size / 1e6 / seconds, 1)}
            measures.append(Measure(f"a submission that writes {size:,} bytes", seconds, "s", None, details))
    return measures


def _cases(count: int) -> tuple[ProgramCase, ...]:
    return tuple(
        ProgramCase(stdin=b"%d\n" % number, stdout=Equals(expected=b"%d\n" % number)) for number in range(count)
    )


def _output(size: int) -> tuple[ProgramCase, ...]:
    limits = Limits(stdout_bytes=MOST_BYTES)
    return (ProgramCase(arguments=(b"%d" % size,), stdout=Equals(expected=bytes(size)), limits=limits),)


async def _seconds(runner: Runner, cases: tuple[ProgramCase, ...], program: bytes, *, rounds: int) -> float:
    """The first quartile of the time from submission to verdict, once a box of the kind is opened ahead."""
    task = Task(conditions=(ProgramBehaves(cases=cases),), runtime_profiles=("bash",))
    times: list[float] = []
    for number in range(rounds + 1):
        submission = Submission.from_files({"main.sh": program + b"# %d\n" % number}, name="benchmark")
        start = time.perf_counter()
        graded = await runner.grade(task, submission)
        times.append(time.perf_counter() - start)
        if graded.verdict is None or graded.verdict.value is not Tri.TRUE:
            raise BenchmarkError(f"the verdict is not true: {graded.verdict}")
    return first_quartile(times[1:])
