"""What `grader score` does: which evidence, which record, and what is shown of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from grader.capture.sources import folder_of_source, needs_folder
from grader.cli.console import Console
from grader.cli.exit_codes import NOTHING_SELECTED
from grader.cli.items import as_item
from grader.cli.output import Output
from grader.cli.record_choice import NEW_RECORD, RecordChoice
from grader.core.durations import parse_duration_ns
from grader.core.tools.arguments import ContentRules
from grader.errors import UsageError
from grader.formats.task_file import trace_source_place
from grader.messages.conversation import Conversation
from grader.runner.graded import Graded
from grader.runner.score import (
    Evidence,
    NoEvidenceError,
    keep_evidence,
    load_scorable,
    read_conversation_file,
    read_conversation_stream,
    score_evidence,
)
from grader.traces.files import trace_inputs
from grader.traces.reader import TraceInput

STDIN = "-"
STDIN_NAME = "<standard input>"


@dataclass(frozen=True)
class ScoreRequest:
    """What the command line asks to be scored."""

    evidence: tuple[str, ...] = ()
    task: Path | None = None
    conversation: str | None = None
    complete: bool = False
    clock_skew_tolerance: str | None = None
    retain_content: bool = True
    record: RecordChoice = NEW_RECORD


def score_request(request: ScoreRequest, console: Console, output: Output) -> int:
    """Score it, write the reports, and give the exit code. Raises GraderError for what cannot be scored."""
    task_file = _check(request)
    tolerance_ns = _tolerance_ns(request.clock_skew_tolerance)
    task = load_scorable(task_file)
    try:
        evidence = _evidence(request, task.trace.trace_source)
    except NoEvidenceError as error:
        console.say(f"nothing selected: {error.message}")
        return NOTHING_SELECTED
    graded = score_evidence(evidence, task, clock_skew_tolerance_ns=tolerance_ns)
    graded, name = _kept(request, graded, task_file)
    console.warnings(graded.warnings)
    return output.write([as_item(graded, name)])


def _check(request: ScoreRequest) -> Path:
    """The task's path. Raises UsageError for a command line that cannot be meant."""
    if request.task is None:
        raise UsageError("there is no task", hint="grader score EVIDENCE... --task TASK")
    if not request.evidence and request.conversation is None:
        raise UsageError(
            "there is no evidence", hint="grader score EVIDENCE... --task TASK; a folder, or - for standard input"
        )
    if [*request.evidence, request.conversation].count(STDIN) > 1:
        raise UsageError("standard input can be read once only", hint="name files for the others")
    request.record.check()
    return request.task


def _tolerance_ns(written: str | None) -> int | None:
    try:
        return None if written is None else parse_duration_ns(written)
    except ValueError as error:
        raise UsageError(f"--clock-skew-tolerance: {error}", hint="--clock-skew-tolerance 5ms") from error


def _evidence(request: ScoreRequest, source: str | None) -> Evidence:
    if source is not None and not request.evidence:
        assert request.task is not None
        raise needs_folder(source, trace_source_place(request.task), "grader score FOLDER --task TASK")
    traces = [found for named in request.evidence for found in _sources(named, source)]
    if request.evidence and not traces:
        raise NoEvidenceError(f"there is no file in {', '.join(request.evidence)}")
    return Evidence(
        traces=traces,
        conversation=_conversation(request.conversation),
        complete=request.complete,
        rules=ContentRules(retain_content=request.retain_content),
    )


def _sources(named: str, source: str | None) -> Iterator[TraceInput]:
    if named == STDIN:
        yield TraceInput(STDIN_NAME, _standard_input)
    else:
        yield from trace_inputs([Path(named) if source is None else folder_of_source(Path(named), source)])


def _conversation(named: str | None) -> Conversation | None:
    if named is None:
        return None
    if named == STDIN:
        with _standard_input() as stream:
            return read_conversation_stream(stream, STDIN_NAME)
    return read_conversation_file(Path(named))


def _standard_input() -> BinaryIO:
    """Standard input in binary; closing it leaves the process's own open."""
    return open(0, "rb", closefd=False)


def _kept(request: ScoreRequest, graded: Graded, task: Path) -> tuple[Graded, str | None]:
    """What was scored, recorded if that is wanted; and what a user types to name the record."""
    place = request.record.place(_name_of(task))
    if place is None:
        return graded, None
    graded = keep_evidence(graded, place.folder)
    place.has_begun()
    return graded, place.name


def _name_of(task: Path) -> str:
    """The folder's name, or that of the file if it is not named task.yaml."""
    whole = task.resolve()
    if task.is_dir():
        return whole.name
    return whole.parent.name if whole.name == "task.yaml" else whole.stem
