"""Ask a judge from Python: about a conversation and its trace; by default the judge that the environment names."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from grader.capture.sources import EvidenceLike, traces_of
from grader.core.conditions import Condition
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeSettings, MatchesObjective, MeetsDimensions
from grader.core.judging.dimensions import Dimension
from grader.core.tools.arguments import ContentRules, Redactor
from grader.core.traces.content import TextRedactor, TextRules
from grader.errors import PrerequisiteError, RecordError, UsageError
from grader.formats.task_file import load_task
from grader.judge.base import Judge
from grader.judge.endpoint import Endpoint, endpoint_from_environment
from grader.messages.conversation import Conversation, read_conversation
from grader.runner.blocking import run_blocking
from grader.runner.graded import Graded
from grader.runner.judging.conversation import JudgedEvidence, judge_evidence
from grader.runner.score import read_conversation_file
from grader.store import RecordedEntry, find_record, open_record
from grader.traces.reader import TraceInput


@dataclass(frozen=True)
class Asked:
    """What is asked: presets by name, dimensions of one's own, an objective in words; or a whole task."""

    presets: Sequence[str] = ()
    dimensions: Sequence[Dimension] = ()
    objective: str | None = None
    task: Task | Path | str | None = None

    def as_task(self, settings: JudgeSettings | None) -> Task:
        """The task. `settings` instead of those of a task that was given. Raises UsageError if nothing is asked."""
        conditions: list[Condition] = [MeetsDimensions(preset=name) for name in self.presets]
        if self.dimensions:
            conditions.append(MeetsDimensions(dimensions=tuple(self.dimensions)))
        if self.objective is not None:
            conditions.append(MatchesObjective(objective=self.objective))
        given = self.task
        if given is not None:
            if conditions:
                raise UsageError("a task, and questions beside it: which is meant?", hint="put them into the task")
            task = given if isinstance(given, Task) else load_task(given)
        elif not conditions:
            raise UsageError("there is nothing to ask", hint="name a preset, an objective, or a task")
        else:
            task = Task(objective=self.objective, conditions=tuple(conditions))
        return task if settings is None else task.model_copy(update={"judge": settings})


async def judge_conversation(  # noqa: PLR0913 - what is asked about, all optional and by name
    conversation: Conversation | Path | str | bytes,
    *,
    trace: EvidenceLike | Sequence[EvidenceLike] | None = None,
    presets: Sequence[str] = (),
    dimensions: Sequence[Dimension] = (),
    objective: str | None = None,
    task: Task | Path | str | None = None,
    settings: JudgeSettings | None = None,
    by: Judge | None = None,
    complete: bool = False,
    retain_content: bool = True,
    redactor: TextRedactor | None = None,
    argument_redactor: Redactor | None = None,
    record: Path | str | None = None,
    reuse: Path | str | None = None,
) -> Graded:
    """Ask a judge about a conversation and what its trace shows. One acquisition serves all samples.

    `trace`: requests of a `LocalTraceCapture`, files, folders or bytes. None: there is no source of traces, unless the
    task names a `trace_source`; of each folder that is given, its part of that source counts then, as for `score`.
    `presets`, `dimensions` and `objective` say what is asked, or a `task` with judge and tool conditions.
    `settings`: samples, voting rule, what trace is required; None: those of the task. `by`: the judge, such as an
    open `HttpJudge`; None: the one that GRADER_JUDGE_URL, GRADER_JUDGE_MODEL and GRADER_JUDGE_KEY name. `complete`
    declares that nothing is missing in the trace. `redactor` gets what a text is and the text, before it is hashed,
    cut or sent; `argument_redactor` is the one of `score`. `record`: a folder for a record, which `replay` judges
    again without asking; `reuse`: an earlier record, whose answers stand in where they rest on the same evidence,
    or on better.

    Raises UsageError or TaskError for what cannot be asked, TraceError for what is no conversation or trace,
    PrerequisiteError if there is no judge. A judge that fails raises nothing: the verdict is undetermined.
    """
    wanted = Asked(presets, dimensions, objective, task).as_task(settings)
    evidence = JudgedEvidence(
        conversation=_conversation(conversation),
        traces=_traces(trace, wanted.trace.trace_source),
        complete=complete,
        rules=ContentRules(retain_content=retain_content, redactor=argument_redactor),
        text_rules=TextRules(retain_content=retain_content, redactor=redactor),
    )
    folder, earlier = Path(record) if record is not None else None, earlier_entry(reuse)
    if by is not None:
        return await judge_evidence(evidence, wanted, by, record=folder, reuse=earlier)
    async with http_judge(endpoint_from_environment()) as asked:
        return await judge_evidence(evidence, wanted, asked, record=folder, reuse=earlier)


def judge_conversation_sync(  # noqa: PLR0913 - as `judge_conversation`
    conversation: Conversation | Path | str | bytes,
    *,
    trace: EvidenceLike | Sequence[EvidenceLike] | None = None,
    presets: Sequence[str] = (),
    dimensions: Sequence[Dimension] = (),
    objective: str | None = None,
    task: Task | Path | str | None = None,
    settings: JudgeSettings | None = None,
    complete: bool = False,
    record: Path | str | None = None,
) -> Graded:
    """`judge_conversation` for scripts. Raises RuntimeError inside a running event loop: await that there."""

    async def main() -> Graded:
        return await judge_conversation(
            conversation,
            trace=trace,
            presets=presets,
            dimensions=dimensions,
            objective=objective,
            task=task,
            settings=settings,
            complete=complete,
            record=record,
        )

    return run_blocking(main, instead="grader.judge_conversation")


@asynccontextmanager
async def http_judge(endpoint: Endpoint) -> AsyncGenerator[Judge]:
    """An open client. Raises PrerequisiteError if the package that it needs is missing."""
    try:
        from grader.judge.http import HttpJudge
    except ImportError as error:
        hint = "install grader with its extra: pip install 'grader[judge]'"
        raise PrerequisiteError("asking a judge needs the package httpx", hint=hint) from error
    async with HttpJudge(endpoint) as judge:
        yield judge


def earlier_entry(record: Path | str | None) -> RecordedEntry | None:
    """The one entry of an earlier record. Raises RecordError if there is another number of them."""
    if record is None:
        return None
    entries = list(open_record(find_record(str(record))))
    if len(entries) != 1:
        raise RecordError(f"a record with one entry can be reused; this has {len(entries)}")
    return entries[0]


def _traces(trace: EvidenceLike | Sequence[EvidenceLike] | None, source: str | None) -> tuple[TraceInput, ...] | None:
    """The traces that were given, or those of the source that the task names; None if there is neither."""
    if trace is None and source is None:
        return None
    found = traces_of(trace if trace is not None else (), source)
    named = [one.name for one in found if one.name != "<bytes>" and not one.trace_ids]
    doubled = sorted({name for name in named if named.count(name) > 1})
    if doubled:
        raise UsageError(f"a source of traces is given twice: {doubled[0]}", hint="name it once")
    return found


def _conversation(conversation: Conversation | Path | str | bytes) -> Conversation:
    if isinstance(conversation, Conversation):
        return conversation
    if isinstance(conversation, bytes):
        return read_conversation(conversation)
    return read_conversation_file(Path(conversation))
