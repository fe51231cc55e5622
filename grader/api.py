"""The library's functions: grade a submission, or score what an agent did; `Runner` for more than one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path

from grader.capture.sources import EvidenceLike, traces_of
from grader.core.durations import parse_duration_ns
from grader.core.tools.arguments import ContentRules, Redactor
from grader.core.verdict import Verdict
from grader.errors import UsageError
from grader.judge.base import Judge
from grader.messages.conversation import Conversation, read_conversation
from grader.runner.blocking import run_blocking
from grader.runner.choice import EVERYTHING, Choice
from grader.runner.graded import Graded
from grader.runner.runner import Runner, SubmissionLike, TaskLike
from grader.runner.score import Evidence, load_scorable, read_conversation_file, score_evidence
from grader.sandbox.base import Isolation

__all__ = ["EVERYTHING", "Choice", "Graded", "Runner", "SubmissionLike", "TaskLike", "grade", "grade_sync", "score"]

ConversationLike = Conversation | Path | str | bytes


async def grade(
    task: TaskLike, submission: SubmissionLike, *, isolation: Isolation = "submission", judge: Judge | None = None
) -> Verdict:
    """The verdict on one submission: true, false, or undetermined. Nothing is recorded on disk.

    `isolation`: what two runs may share. `judge`: who is asked where the task has conditions for a judge, such as an
    open `HttpJudge`.

    Raises TaskError, SubmissionError or PrerequisiteError before anything ran, and UsageError for a task that asks a
    judge where there is none. For more than one submission a `Runner` is faster: it keeps the sandbox open.
    """
    async with Runner(isolation=isolation, judge=judge) as runner:
        graded = await runner.grade(task, submission)
    assert graded.verdict is not None
    return graded.verdict


def grade_sync(
    task: TaskLike, submission: SubmissionLike, *, isolation: Isolation = "submission", judge: Judge | None = None
) -> Verdict:
    """`grade` for scripts. A `judge` that has to be opened, such as an `HttpJudge`, is opened and closed here.

    Raises RuntimeError inside a running event loop: await `grade` there.
    """

    async def main() -> Verdict:
        async with AsyncExitStack() as stack:
            if isinstance(judge, AbstractAsyncContextManager):
                await stack.enter_async_context(judge)
            return await grade(task, submission, isolation=isolation, judge=judge)

    return run_blocking(main, instead="grader.grade")


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
    try:
        tolerance_ns = None if clock_skew_tolerance is None else parse_duration_ns(clock_skew_tolerance)
    except ValueError as error:
        raise UsageError(f"clock_skew_tolerance: {error}") from error
    wanted = load_scorable(task)
    return score_evidence(
        Evidence(
            traces=traces_of(evidence, wanted.trace.trace_source),
            conversation=_conversation(conversation),
            complete=complete,
            rules=ContentRules(retain_content=retain_content, redactor=redactor),
        ),
        wanted,
        clock_skew_tolerance_ns=tolerance_ns,
        record=Path(record) if record is not None else None,
    )


def _conversation(conversation: ConversationLike | None) -> Conversation | None:
    if conversation is None or isinstance(conversation, Conversation):
        return conversation
    if isinstance(conversation, bytes):
        return read_conversation(conversation)
    return read_conversation_file(Path(conversation))
