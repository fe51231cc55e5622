"""What `grader run` does: which submissions, which record, and what is shown of it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from grader.cli import sandboxes
from grader.cli.console import Console
from grader.cli.exit_codes import NOTHING_SELECTED
from grader.cli.interrupts import InterruptedBySignalError, run_interruptible
from grader.cli.output import Item, Output
from grader.cli.progress import Progress
from grader.core.expectation import Task
from grader.core.judgement import JudgementPayload
from grader.core.observation import Payload, ProgramRuns
from grader.core.selection import NothingSelectedError, select
from grader.core.tool_calls import ToolsPayload
from grader.errors import GraderError, Place, Problem, SubmissionError, TaskError, UsageError
from grader.formats.task_file import load_task
from grader.reports.grading import Grading, Refusal
from grader.reports.text import shell_word
from grader.runner.graded import Graded
from grader.runner.runner import EVERYTHING, Choice, Runner
from grader.sandbox.base import ISOLATIONS, Isolation
from grader.store import DEFAULT_ROOT, Record, find_record, new_record_folder, open_record, set_latest
from grader.submission import Submission


@dataclass(frozen=True)
class RunRequest:
    """What the command line asks to be run."""

    task: Path | None
    submissions: tuple[Path, ...] = ()
    each: Path | None = None
    choice: Choice = EVERYTHING
    stop_at_first_false: bool = False
    max_parallel: int | None = None
    isolation: str | None = None
    resume: str | None = None
    record: Path | None = None
    keeps_record: bool = True
    runtimes: Path | None = None


@dataclass(frozen=True)
class _Job:
    """A request with everything looked up: what is wrong with it was raised before."""

    task: Task | None
    effective: Task
    """What of the task was selected."""
    submissions: tuple[Path, ...]
    resumed: Record | None
    folder: Path | None
    """The record's folder."""
    record_name: str | None
    """What a user types to name the record."""
    isolation: Isolation


def run_request(request: RunRequest, console: Console, output: Output) -> int:
    """Run it, write the reports, and give the exit code. Raises GraderError for what is wrong before the first run."""
    try:
        job = _look_up(request)
    except NothingSelectedError as error:
        console.say(f"nothing selected: {error}")
        return NOTHING_SELECTED
    if job.resumed is None and not job.submissions:
        console.say(f"nothing selected: there is no submission in {request.each}")
        return NOTHING_SELECTED
    items: list[Item] = []
    began: list[bool] = []

    def begin() -> None:
        began.append(True)
        if job.folder is not None and job.record_name == "latest":
            set_latest(DEFAULT_ROOT, job.folder)

    several = len(job.submissions) + (len(job.resumed) if job.resumed is not None else 0) > 1
    progress = Progress(console, len(job.submissions) if several else 1, job.effective, begin)
    start = time.monotonic()

    async def main() -> None:
        async for graded in _graded(request, job, progress):
            items.append(as_item(graded, job.record_name))

    try:
        with console.live(progress.lines):
            run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        if items:
            output.write(_in_order(items, job), also=(stopped.exit_code,), wall_time_s=time.monotonic() - start)
        _tell_how_to_resume(request, job, console, began=bool(began))
        return stopped.exit_code
    finally:
        if not began and job.folder is not None and job.resumed is None:
            with suppress(OSError):
                job.folder.rmdir()  # made for a record that never began
    _raise_common_error(items)
    wall_time_s = time.monotonic() - start
    if not several:
        items = [_with_time(item, wall_time_s) for item in items]
    return output.write(_in_order(items, job), wall_time_s=wall_time_s)


def as_item(graded: Graded, record_name: str | None, *, is_replay: bool = False) -> Item:
    """What reports need of a graded submission."""
    if graded.error is not None:
        error = graded.error
        problem = error.problems[0] if isinstance(error, TaskError) else Problem(error.message, error.where, error.hint)
        return Refusal(graded.submission_name, problem, error.code)
    assert graded.task is not None
    assert graded.verdict is not None
    payload = graded.observation.payload if graded.observation is not None else None
    return Grading(
        submission=graded.submission_name,
        task=graded.task,
        verdict=graded.verdict,
        plan=graded.plan,
        runs=payload if isinstance(payload, ProgramRuns) else None,
        selection=graded.selection,
        folder=str(graded.record) if graded.record is not None else None,
        record=record_name,
        is_replay=is_replay,
        tools=_tools(graded, payload),
        judged=payload if isinstance(payload, JudgementPayload) else None,
        warnings=graded.warnings,
    )


def _tools(graded: Graded, payload: Payload | None) -> ToolsPayload | None:
    """What an agent did, if that was scored; of a record that broke off before it was kept, nothing."""
    if graded.plan is not None or isinstance(payload, JudgementPayload):
        return None
    return payload if isinstance(payload, ToolsPayload) else ToolsPayload()


async def _graded(request: RunRequest, job: _Job, progress: Progress) -> AsyncIterator[Graded]:
    async with Runner(
        max_parallel=request.max_parallel,
        isolation=job.isolation,
        record=job.folder,
        runtimes=request.runtimes,
        sandbox=sandboxes.make_sandbox(job.isolation, request.max_parallel),
        watcher=progress,
        stop_at_first_false=request.stop_at_first_false,
    ) as runner:
        if job.resumed is not None:
            async with aclosing(runner.resume()) as resumed:
                async for graded in resumed:
                    yield graded
        task = job.task
        if task is None or not job.submissions:
            return
        if len(job.submissions) == 1:
            yield await runner.grade(task, _named(job.submissions[0]), request.choice)
            return
        pairs = ((task, path) for path in job.submissions)
        async with aclosing(runner.grade_many(pairs, request.choice)) as graded_many:
            async for graded in graded_many:
                yield graded


def _named(path: Path) -> Submission:
    return Submission.from_path(path)


def _look_up(request: RunRequest) -> _Job:
    resumed = open_record(find_record(request.resume)) if request.resume is not None else None
    task = load_task(request.task) if request.task is not None else None
    effective = resumed[0].task if resumed else _effective(task, request.choice)
    submissions = _submissions(request)
    if resumed is None and not submissions and request.each is None:
        raise UsageError("there is no submission", hint="grader run TASK SUBMISSION, or --each FOLDER")
    recorded = resumed.sessions[0].isolation if resumed is not None else ""  # empty if nothing ran in that record
    isolation = request.isolation or recorded or "submission"
    if isolation not in ISOLATIONS:
        raise UsageError(f"--isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
    if resumed is not None:
        submissions = _not_in(resumed, submissions)
    folder, name = _record(request, resumed)
    return _Job(task, effective, submissions, resumed, folder, name, isolation)


def _effective(task: Task | None, choice: Choice) -> Task:
    if task is None:
        raise UsageError("there is no task", hint="grader run TASK SUBMISSION")
    if choice.is_everything:
        return task
    try:
        return select(task, cases=choice.cases, repetitions=choice.repetitions, profiles=choice.profiles)[0]
    except NothingSelectedError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from error


def _submissions(request: RunRequest) -> tuple[Path, ...]:
    """The submissions that were named, then the entries of `--each`, sorted by name. All of them exist."""
    for path in request.submissions:
        if not path.exists():
            raise SubmissionError(
                "there is no such file or folder", where=Place(str(path)), hint="name a file, a folder or an archive"
            )
    if request.each is None:
        return request.submissions
    try:
        entries = sorted(entry for entry in os.listdir(request.each) if not entry.startswith("."))
    except OSError as error:
        raise UsageError(f"--each: {error.strerror}", where=Place(str(request.each)), hint="name a folder") from error
    return (*request.submissions, *(request.each / entry for entry in entries))


def _not_in(record: Record, submissions: Sequence[Path]) -> tuple[Path, ...]:
    """The submissions that a record does not have yet."""
    known = {entry.submission.digest for entry in record if entry.submission is not None}
    missing: list[Path] = []
    for path in submissions:
        try:
            if _named(path).digest in known:
                continue
        except SubmissionError:
            pass  # told again, with its reason, when it is graded
        missing.append(path)
    return tuple(missing)


def _record(request: RunRequest, resumed: Record | None) -> tuple[Path | None, str | None]:
    if resumed is not None:
        return resumed.folder, request.resume
    if not request.keeps_record:
        if request.record is not None:
            raise UsageError("--record and --no-record contradict each other", hint="leave one of them out")
        return None, None
    if request.record is not None:
        return request.record, str(request.record)
    assert request.task is not None
    given = request.task if request.task.is_dir() else request.task.parent
    return new_record_folder(DEFAULT_ROOT, given.resolve().name), "latest"


def _with_time(item: Item, wall_time_s: float) -> Item:
    return replace(item, wall_time_s=wall_time_s) if isinstance(item, Grading) else item


def _in_order(items: Sequence[Item], job: _Job) -> list[Item]:
    """Items in the order of the command line, however they ended."""
    places = {name: index for index, path in enumerate(job.submissions) for name in (path.name, str(path))}
    return sorted(items, key=lambda item: places.get(item.submission, -1))


def _raise_common_error(items: Sequence[Item]) -> None:
    """When every submission was refused for one and the same reason, that is the caller's error, told once."""
    refused = [item for item in items if isinstance(item, Refusal)]
    if len(refused) == len(items) > 1 and len({(item.code, item.problem) for item in refused}) == 1:
        first = refused[0]
        raise GraderError(first.problem.message, code=first.code, hint=first.problem.hint, where=first.problem.where)


def _tell_how_to_resume(request: RunRequest, job: _Job, console: Console, *, began: bool) -> None:
    if not began or job.folder is None:
        console.say("interrupted before the first run; nothing was recorded")
        return
    words = ["grader", "run"]
    if request.task is not None:
        words.append(shell_word(str(request.task)))
        words.extend(shell_word(str(path)) for path in request.submissions)
        if request.each is not None:
            words.extend(["--each", shell_word(str(request.each))])
    words.extend(["--resume", shell_word(str(job.folder))])
    console.say(f"interrupted; what ended is recorded. To go on: {' '.join(words)}")
