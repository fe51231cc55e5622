"""What a run costs the grader itself: the CPU time of the client process, for 1,000 runs of one task, judged.

The runs are real; their own CPU time, the engine's and the supervisor's are not in it.
"""

from __future__ import annotations

import cProfile
import pstats
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


PLACES = {
    "socket send and receive": ("of '_socket.socket'",),
    "asyncio and anyio": ("/asyncio/", "/anyio/", "selectors.py", "contextlib.py"),
    "pydantic": ("pydantic",),
    "protocol and boxes": ("/grader/sandbox/",),
    "plan, runner, judging": ("/grader/core/", "/grader/runner/", "/grader/scorers/", "/grader/matchers/"),
}
"""Where the client's time goes, by what stands in a profile's entries; waiting for the box is not counted."""


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
        shares = await _shares(runner, task, submission)
    warm = spent[1:]
    details = {"runs": CASES * repetitions, "first_ms": round(spent[0] * 1e3, 3), "percent_in": shares}
    return [Measure("client CPU per run, judged", first_quartile(warm) * 1e3, "ms", 0.5, details)]


async def _shares(runner: Runner, task: Task, submission: Submission) -> dict[str, int]:
    """Of one profiled grading: percent of the time by place. The profiler makes small functions look larger."""
    profile = cProfile.Profile()
    profile.enable()
    await runner.grade(task, submission)
    profile.disable()
    seconds = dict.fromkeys([*PLACES, "other"], 0.0)
    entries: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # pyright: ignore
    for (file, _, function), (_, _, own, _, _) in entries.items():
        name = f"{file}:{function}"
        if "select.epoll" in name:
            continue
        place = next((place for place, marks in PLACES.items() if any(mark in name for mark in marks)), "other")
        seconds[place] += own
    return {place: round(100 * value / sum(seconds.values())) for place, value in seconds.items()}
