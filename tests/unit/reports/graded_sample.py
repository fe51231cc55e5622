"""A grading with one of everything, made through the real plan, scorer and fold; its outputs are hostile."""

from __future__ import annotations

import grader.matchers  # noqa: F401  # pyright: ignore[reportUnusedImport]
from grader.core.captured import Captured
from grader.core.cases import ProgramBehaves
from grader.core.expectation import Task
from grader.core.observation import Acquisition, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import FileOutcome, Measures, RunOutcome, StreamOutcome
from grader.core.plan import ProfileInForce, make_plan
from grader.core.reasons import ReasonCode
from grader.errors import Place, Problem
from grader.reports.grading import Grading, Refusal
from grader.runner.verdicts import judge_runs

HOSTILE = b"\x1b[31mred\x1b]0;title\x07\r\n\xe2\x80\xae\xff<&>]]>\x00\n"


def outcome(
    stdout: bytes = b"", stderr: bytes = b"", *, exit_code: int = 0, files: tuple[FileOutcome, ...] = ()
) -> RunOutcome:
    return RunOutcome(
        command=(b"python3", b"/submission/main.py"),
        command_is_submission=False,
        measures=Measures(
            exit_code=exit_code, wall_time_ns=15_000_000, cpu_time_ns=12_300_000, peak_memory_bytes=8_500_000
        ),
        stdout=StreamOutcome(captured=Captured.whole(stdout)),
        stderr=StreamOutcome(captured=Captured.whole(stderr)),
        files=files,
    )


def sample() -> Grading:
    """Four cases under two profiles, three repetitions: true, false in two ways, disagreeing, and missing."""
    program = ProgramBehaves.model_validate(
        {
            "repetitions": 3,
            "cases": [
                {"name": "good", "stdout": {"equals": "a\n"}},
                {"name": "io/crlf", "stdin": "x", "stdout": {"equals": "a\nb\n"}},
                {"name": "hostile \x1b[2J\u202e<&>", "stdout": {"equals": "plain"}},
                {"name": "conc/two-writers", "output_files": {"log.txt": {"contains": "done"}}},
                {"stdout": {"equals": "never"}},
            ],
        }
    )
    task = Task(conditions=(program,))
    profiles = tuple(ProfileInForce(name=name, image_id=f"sha256:{name}") for name in ("python", "pypy"))
    plan = make_plan(task, profiles)
    records: list[RunRecord] = []
    for run in plan.runs:
        record = _record(run.index, run.case, run.repetition, run.profile)
        if record is not None:
            records.append(record)
    payload = ProgramRuns(
        submission_digest="d" * 64,
        submission_name="main.py",
        plan_fingerprint=plan.fingerprint,
        profiles=profiles,
        runs=tuple(records),
    )
    verdict = judge_runs(task, plan, Observation(acquisition=Acquisition.PARTIAL, payload=payload))
    return Grading(
        submission="main.py",
        task=task,
        verdict=verdict,
        plan=plan,
        runs=payload,
        folder="records/1",
        record="latest",
        wall_time_s=101.4,
    )


def _record(index: int, case: int, repetition: int, profile: str) -> RunRecord | None:
    if case == 0:
        return RunRecord(index=index, outcome=outcome(b"a\n"))
    if case == 1:
        return RunRecord(index=index, outcome=outcome(b"a\nb\r\n", exit_code=1 if profile == "pypy" else 0))
    if case == 2:
        return RunRecord(index=index, outcome=outcome(HOSTILE, HOSTILE))
    if case == 3:
        done = repetition != 1 or profile == "python"
        file = FileOutcome(name=b"log.txt", status="regular", captured=Captured.whole(b"done" if done else b"don"))
        return RunRecord(index=index, outcome=outcome(b"", files=(file,)))
    if profile == "pypy":
        return None
    return RunRecord(index=index, missing=MissingRun(code=ReasonCode.BOX_LOST, detail="the engine said \x1b[0m no"))


def refusal() -> Refusal:
    return Refusal(
        "bomb.zip", Problem("grows to \x1b more than it may", Place("bomb.zip"), "send less"), "submission.refused"
    )
