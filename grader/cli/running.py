"""What `grader run` does: which submissions, which record, and what is shown of it."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from grader.cli import sandboxes
from grader.cli.console import Console
from grader.cli.exit_codes import NOTHING_SELECTED
from grader.cli.interrupted import path_word, what_is_kept
from grader.cli.interrupts import InterruptedBySignalError, run_interruptible
from grader.cli.items import Item, as_item
from grader.cli.output import Output
from grader.cli.progress import Progress
from grader.cli.record_choice import NEW_RECORD, RecordChoice, RecordPlace
from grader.core.agent_tasks import asks_a_judge
from grader.core.expectation import Task
from grader.core.reasons import ReasonCode
from grader.core.selection import NothingSelectedError, select
from grader.errors import GraderError, Place, RecordError, SubmissionError, UsageError
from grader.formats.task_file import load_task
from grader.judge.base import Judge
from grader.reports.grading import Grading, Refusal
from grader.reports.text import shell_word
from grader.runner.choice import EVERYTHING, Choice
from grader.runner.graded import Graded
from grader.runner.runner import Runner
from grader.runner.verdicts import check_readable
from grader.sandbox.base import ISOLATIONS, Isolation
from grader.store import Record, find_record, open_record
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
    record: RecordChoice = NEW_RECORD
    runtimes: Path | None = None


@dataclass(frozen=True)
class _LookedUp:
    """What a request names, found and read: what is wrong with it was raised before."""

    task: Task | None
    effective: Task
    """What of the task was selected."""
    submissions: tuple[Path, ...]
    resumed: Record | None
    place: RecordPlace | None
    """Of the record; None: none is kept."""
    isolation: Isolation


def run_request(request: RunRequest, console: Console, output: Output) -> int:
    """Run it, write the reports, and give the exit code. Raises GraderError for what is wrong before the first run."""
    try:
        found = _look_up(request)
    except NothingSelectedError as error:
        console.say(f"nothing selected: {error}")
        return NOTHING_SELECTED
    if found.resumed is None and not found.submissions:
        console.say(f"nothing selected: there is no submission in {request.each}")
        return NOTHING_SELECTED
    items: list[Item] = []
    began: list[bool] = []

    def begin() -> None:
        began.append(True)
        if found.place is not None:
            found.place.has_begun()

    submissions = len(found.submissions) + (len(found.resumed) if found.resumed is not None else 0)
    several = submissions > 1
    progress = Progress(console, len(found.submissions) if several else 1, _common_task(found), begin)
    start = time.monotonic()

    async def main() -> None:
        async for graded in _graded(request, found, progress):
            items.append(as_item(graded, found.place.name if found.place is not None else None))

    try:
        with console.live(progress.lines):
            run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        if items:
            output.write(_in_order(items, found), also=(stopped.exit_code,), wall_time_s=time.monotonic() - start)
        if isinstance(stopped.__cause__, GraderError):
            console.error(stopped.__cause__)  # what could not be kept is told beside what is
        console.say(_after_interrupt(request, found, progress, submissions))
        return stopped.exit_code
    finally:
        if not began and found.place is not None and found.resumed is None and request.record.folder is None:
            with suppress(OSError):
                found.place.folder.rmdir()  # made for a record that never began; one that was named is not ours
    _raise_common_error(items)
    wall_time_s = time.monotonic() - start
    if not several:
        items = [_with_time(item, wall_time_s) for item in items]
    return output.write(_in_order(items, found), wall_time_s=wall_time_s)


async def _graded(request: RunRequest, found: _LookedUp, progress: Progress) -> AsyncIterator[Graded]:
    async with (
        _judge(found.effective) as judge,
        Runner(
            judge=judge,
            max_parallel=request.max_parallel,
            isolation=found.isolation,
            record=found.place.folder if found.place is not None else None,
            runtimes=request.runtimes,
            sandbox=sandboxes.make_sandbox(found.isolation, request.max_parallel),
            watcher=progress,
            stop_at_first_false=request.stop_at_first_false,
        ) as runner,
    ):
        if found.resumed is not None:
            async with aclosing(runner.resume()) as resumed:
                async for graded in resumed:
                    yield graded
        task = found.task
        if task is None or not found.submissions:
            return
        if len(found.submissions) == 1:
            yield await runner.grade(task, Submission.from_path(found.submissions[0]), request.choice)
            return
        pairs = ((task, path) for path in found.submissions)
        async with aclosing(runner.grade_many(pairs, request.choice)) as graded_many:
            async for graded in graded_many:
                yield graded


@asynccontextmanager
async def _judge(task: Task) -> AsyncGenerator[Judge | None]:
    """The judge that the environment names, if the task asks one. Raises PrerequisiteError if it names none."""
    if not asks_a_judge(task):
        yield None
        return
    check_readable(task)  # what no run could answer is told before a judge is asked for
    from grader.judge.endpoint import endpoint_from_environment  # few tasks have a judge
    from grader.runner.judging.call import http_judge

    async with http_judge(endpoint_from_environment()) as judge:
        yield judge


def _look_up(request: RunRequest) -> _LookedUp:
    resumed = open_record(find_record(request.resume)) if request.resume is not None else None
    task = load_task(request.task) if request.task is not None else None
    effective = _recorded_task(resumed, task, request) if resumed else _effective(task, request.choice)
    submissions = _submissions(request)
    if resumed is None and not submissions and request.each is None:
        raise UsageError("there is no submission", hint="grader run TASK SUBMISSION, or --each FOLDER")
    recorded = resumed.sessions[0].isolation if resumed is not None else ""  # empty if nothing ran in that record
    isolation = request.isolation or recorded or "submission"
    if isolation not in ISOLATIONS:
        raise UsageError(f"--isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
    if resumed is not None:
        submissions = _not_in(resumed, submissions)
    return _LookedUp(task, effective, submissions, resumed, _place(request, resumed), isolation)


def _recorded_task(record: Record, task: Task | None, request: RunRequest) -> Task:
    """The task of a record's entries. Raises RecordError if it is not the one that the command names.

    What was begun goes on under the task it was begun with, whatever is named; submissions that are new to the record
    are graded under the one named. Were they not the same, one record, and one report, would be of two.
    """
    if task is not None:
        from grader.runner.judging.verdicts import with_questions  # as the record has it, if it asks a judge

        named = _effective(task, request.choice)
        named = with_questions(named, of_runs=True) if asks_a_judge(named) else named
        recorded = [entry.task for entry in record if entry.submission is not None]
        if recorded and named not in recorded:
            raise RecordError(
                "this record was begun with another task, or with another part of it",
                code=ReasonCode.RECORD_MISMATCH,
                where=Place(str(request.resume)),
                hint="name the task as it was, with the same -k, -n and -p; or leave task and submissions out, "
                "and what was begun is finished",
            )
    return record[0].task


def _common_task(found: _LookedUp) -> Task | None:
    """The task of all that runs; None if a record that Python made has several."""
    if found.resumed is not None and any(entry.task != found.effective for entry in found.resumed):
        return None
    return found.effective


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
            if Submission.from_path(path).digest in known:
                continue
        except SubmissionError:
            pass  # told again, with its reason, when it is graded
        missing.append(path)
    return tuple(missing)


def _place(request: RunRequest, resumed: Record | None) -> RecordPlace | None:
    if resumed is not None:
        assert request.resume is not None
        return RecordPlace(resumed.folder, request.resume)
    assert request.task is not None
    given = request.task if request.task.is_dir() else request.task.parent
    return request.record.place(given.resolve().name)


def _with_time(item: Item, wall_time_s: float) -> Item:
    return replace(item, wall_time_s=wall_time_s) if isinstance(item, Grading) else item


def _in_order(items: Sequence[Item], found: _LookedUp) -> list[Item]:
    """Items in the order of the command line, however they ended."""
    places = {name: index for index, path in enumerate(found.submissions) for name in (path.name, str(path))}
    return sorted(items, key=lambda item: places.get(item.submission, -1))


def _raise_common_error(items: Sequence[Item]) -> None:
    """When every submission was refused for one and the same reason, that is the caller's error, told once."""
    refused = [item for item in items if isinstance(item, Refusal)]
    if len(refused) == len(items) > 1 and len({(item.code, item.problem) for item in refused}) == 1:
        first = refused[0]
        raise GraderError(first.problem.message, code=first.code, hint=first.problem.hint, where=first.problem.where)


def _after_interrupt(request: RunRequest, found: _LookedUp, progress: Progress, submissions: int) -> str:
    """What is kept, and how to go on if there is a record to go on with."""
    is_resumed = found.resumed is not None
    folder = found.place.folder if found.place is not None else None
    said = what_is_kept(progress.so_far, folder, submissions=submissions, is_resumed=is_resumed)
    if folder is None or not (is_resumed or progress.so_far.planned > 0):
        return said
    return f"{said}. To go on: {_command_to_resume(request, folder)}"


def _command_to_resume(request: RunRequest, folder: Path) -> str:
    words = ["grader", "run"]
    if request.task is not None:
        words.append(path_word(request.task))
        words.extend(path_word(path) for path in request.submissions)
        if request.each is not None:
            words.extend(["--each", path_word(request.each)])
        words.extend(_choice_words(request.choice))
    if request.stop_at_first_false:
        words.append("-x")
    if request.max_parallel is not None:
        words.extend(["-j", str(request.max_parallel)])
    if request.runtimes is not None:
        words.extend(["--runtimes", path_word(request.runtimes)])
    words.extend(["--resume", path_word(folder)])
    return " ".join(words)


def _choice_words(choice: Choice) -> list[str]:
    """The options that make the same choice again."""
    words = ["-k", shell_word(choice.cases)] if choice.cases is not None else []
    if choice.repetitions is not None:
        words.extend(["-n", str(choice.repetitions)])
    for profile in choice.profiles or ():
        words.extend(["-p", shell_word(profile)])
    return words
