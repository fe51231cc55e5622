"""A machine that others keep busy (H23): a correct program is never false for it, a sleeper no truer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator

import pytest

from grader import ProgramBehaves, Runner, Submission, Task, Tri

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.slow]
HOGS_PER_CPU = 6
WORK = "total = 0\nfor n in range(3_000_000):\n    total += n\nprint('right')\n"
SLEEP = "import time\nprint('right', flush=True)\ntime.sleep(60)\n"


@pytest.fixture
def busy_machine() -> Generator[None]:
    """Other programs on every CPU, before ours in the kernel's order by their nice level; for a minute at most."""
    code = "import os, time\nos.sched_setaffinity(0, {%d})\nend = time.time() + 60\nwhile time.time() < end: pass"
    hogs = [
        subprocess.Popen([sys.executable, "-c", code % cpu])
        for cpu in os.sched_getaffinity(0)
        for _ in range(HOGS_PER_CPU)
    ]
    yield
    for hog in hogs:
        hog.kill()
    for hog in hogs:
        hog.wait()


@pytest.mark.usefixtures("busy_machine")
async def test_a_busy_machine_is_never_the_programs_fault() -> None:
    case = {"stdout": {"equals": "right\n"}, "limits": {"cpu_time_s": 5, "wall_time_s": 1}}
    program = ProgramBehaves.model_validate({"cases": [case], "repetitions": 2})
    task = Task(runtime_profiles=("python",), conditions=(program,))
    found: dict[str, tuple[Tri, list[str]]] = {}
    async with Runner(max_parallel=1) as runner:
        for name, source in (("works", WORK), ("sleeps", SLEEP)):
            graded = await runner.grade(task, Submission.from_source(source, name=name))
            assert graded.verdict is not None
            found[name] = (graded.verdict.value, [finding.code.value for finding in graded.verdict.findings])
    assert found["works"] in ((Tri.TRUE, []), (Tri.UNDETERMINED, ["host.starved"])), found
    assert found["sleeps"] == (Tri.FALSE, ["wall_time.exceeded"]), found
