"""The library's functions: grade a submission, or score what an agent did; `Runner` for more than one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from grader.capture.sources import Captured, find, folder_of_source, held_by
from grader.core.durations import parse_duration_ns
from grader.core.tool_arguments import ContentRules, Redactor
from grader.core.verdict import Verdict
from grader.errors import UsageError
from grader.messages.conversation import Conversation, read_conversation
from grader.runner.graded import Graded
from grader.runner.runner import EVERYTHING, Choice, Runner, SubmissionLike, TaskLike
from grader.runner.score import Evidence, load_scorable, read_conversation_file, score_evidence
from grader.sandbox.base import Isolation
from grader.traces.files import trace_inputs
from grader.traces.reader import TraceInput

__all__ = ["EVERYTHING", "Choice", "Graded", "Runner", "SubmissionLike", "TaskLike", "grade", "grade_sync", "score"]

EvidenceLike = TraceInput | Captured | Path | str | bytes
ConversationLike = Conversation | Path | str | bytes


async def grade(task: TaskLike, submission: SubmissionLike, *, isolation: Isolation = "submission") -> Verdict:
    """The verdict on one submission: true, false, or undetermined. Nothing is recorded on disk.

    Raises TaskError, SubmissionError or PrerequisiteError before anything ran. For more than one submission a `Runner`
    is faster: it keeps the sandbox open.
    """
    async with Runner(isolation=isolation) as runner:
        graded = await runner.grade(task, submission)
    assert graded.verdict is not None
    return graded.verdict


def grade_sync(task: TaskLike, submission: SubmissionLike, *, isolation: Isolation = "submission") -> Verdict:
    """`grade` for scripts. Raises RuntimeError inside a running event loop: await `grade` there."""

    async def main() -> Verdict:
        return await grade(task, submission, isolation=isolation)

    return anyio.run(main)


def score(  # noqa: PLR0913 - what is said of the evidence, all optional and by name
    evidence: EvidenceLike | Sequence[EvidenceLike],
    task: TaskLike,
    *,
    conversation: ConversationLike | None = None,
    complete: bool = False,
    clock_skew_tolerance: str | int | None = None,
    retain_content: bool = True,
    redactor: Redactor | None = None,
    record: Path | str | None = None,
) -> Graded:
    """Judge the tool conditions of a task on traces of what an agent did, and on its conversation. Runs nothing.

    `evidence`: requests of a `LocalTraceCapture`, paths of files or folders, or traces as bytes; together they are one
    observation. There may be none if there is a `conversation`, or if the task names a `trace_source`. With requests
    among them only their traces count, also of what is in files. `complete` declares that nothing is missing; what
    checks find against it still counts.
    `clock_skew_tolerance`: such as `"5ms"`, or whole nanoseconds; None: the task's. `retain_content=False` keeps names
    and times only; `redactor` gets the name and value of each argument and gives what to keep. `record`: a folder for a
    record, which `replay` judges again; None for none.

    Raises TaskError for a task with other conditions, TraceError for what is no trace or no conversation, UsageError
    for what cannot be meant, PrerequisiteError if a package for a compression is missing or the record cannot be
    written.
    """
    given = [evidence] if isinstance(evidence, TraceInput | Captured | Path | str | bytes) else list(evidence)
    try:
        tolerance_ns = None if clock_skew_tolerance is None else parse_duration_ns(clock_skew_tolerance)
    except ValueError as error:
        raise UsageError(f"clock_skew_tolerance: {error}") from error
    wanted = load_scorable(task)
    return score_evidence(
        Evidence(
            traces=_traces(given, wanted.trace.trace_source),
            conversation=_conversation(conversation),
            complete=complete,
            rules=ContentRules(retain_content=retain_content, redactor=redactor),
        ),
        wanted,
        clock_skew_tolerance_ns=tolerance_ns,
        record=Path(record) if record is not None else None,
    )


def _traces(given: Sequence[EvidenceLike], source: str | None) -> list[TraceInput]:
    """What was given; with a `source`, the folder of it in each folder, or with nothing given the source itself."""
    if source is None:
        return [trace for one in given for trace in _sources(one)]
    if len(given) == 0:
        return list(find(source).evidence())
    if not all(isinstance(one, Path | str) for one in given):
        raise UsageError(
            f"the traces are given twice: the task takes them from the source {source!r}",
            hint="give no evidence, or leave trace_source out of the task",
        )
    return list(trace_inputs(folder_of_source(Path(one), source) for one in given if isinstance(one, Path | str)))


def _sources(evidence: EvidenceLike) -> Sequence[TraceInput]:
    if isinstance(evidence, TraceInput):
        return (evidence,)
    if isinstance(evidence, Captured):
        return held_by(evidence)
    return (TraceInput.of_bytes(evidence),) if isinstance(evidence, bytes) else trace_inputs([Path(evidence)])


def _conversation(conversation: ConversationLike | None) -> Conversation | None:
    if conversation is None or isinstance(conversation, Conversation):
        return conversation
    if isinstance(conversation, bytes):
        return read_conversation(conversation)
    return read_conversation_file(Path(conversation))
