"""Scores evidence of what an agent did: reads traces and a conversation, judges them, records them. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from grader.core.expectation import Task
from grader.core.observation import Observation
from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ToolsPayload, observe_tools
from grader.core.tools.union import with_messages
from grader.errors import Place, TraceError, UsageError
from grader.formats.task_file import leaf_places, load_task
from grader.messages.conversation import MAX_BYTES, Conversation, read_conversation
from grader.runner.graded import Graded
from grader.runner.verdicts import check_scorable, judge_tools
from grader.store import EntryHeader, RecordFacts, RecordWriter
from grader.traces.reader import CAPTURED, ReadOptions, TraceEvidence, TraceInput, read_traces
from grader.traces.span import Span

DECLARED_BY = "the caller"
"""Who declares evidence complete that is scored with `complete`."""


class NoEvidenceError(UsageError):
    """What was named as evidence holds no file at all."""


@dataclass(frozen=True)
class Evidence:
    """What is scored: sources of traces, a conversation, or both."""

    traces: Sequence[TraceInput] = ()
    conversation: Conversation | None = None
    complete: bool = False
    """The caller declares that nothing is missing; what checks find against it still counts."""
    rules: ContentRules = field(default_factory=ContentRules)


def score_evidence(
    evidence: Evidence, task: Task, *, clock_skew_tolerance_ns: int | None = None, record: Path | None = None
) -> Graded:
    """Judge evidence under a task, and keep both in a new record if a folder is given.

    `clock_skew_tolerance_ns`: instead of the task's.

    Raises TaskError for a task that cannot be judged from evidence, before any of it is read; TraceError for what is no
    trace; PrerequisiteError when a package for its compression is missing; and for the record what
    `RecordWriter.create` raises.
    """
    check_scorable(task)
    effective = with_tolerance(task, clock_skew_tolerance_ns)
    observation = observe_tools(read_evidence(evidence))
    verdict, warnings = judge_tools(effective, observation)
    graded = Graded(
        submission_name=evidence_name(observation),
        task=effective,
        observation=observation,
        verdict=verdict,
        warnings=(*warnings, *_nothing_captured(observation)),
    )
    return graded if record is None else keep_evidence(graded, record)


def keep_evidence(graded: Graded, folder: Path) -> Graded:
    """Keep what was scored, or asked of a judge, in a new record, which `replay` judges again.

    Raises what `RecordWriter.create` does.
    """
    assert graded.task is not None
    assert graded.observation is not None
    assert graded.verdict is not None
    with RecordWriter.create(folder, RecordFacts(grader_version=version("grader"))) as writer:
        entry = writer.begin(EntryHeader(task=graded.task))
        for observation in graded.observations or (graded.observation,):
            writer.append_observation(entry, observation)
        writer.append_verdict(entry, graded.verdict)
    return replace(graded, record=folder, entry=entry)


def load_scorable(task: Task | Path | str) -> Task:
    """The task, if it can be judged from evidence.

    Raises TaskError with all problems: those of the file, or the conditions that cannot be judged, with their places.
    """
    if isinstance(task, Task):
        check_scorable(task)
        return task
    loaded = load_task(task)
    check_scorable(loaded, leaf_places(task))
    return loaded


def read_evidence(evidence: Evidence, also: Callable[[Span], None] | None = None) -> ToolsPayload:
    """Everything that the sources show. With a conversation that has links, of the traces that it links to.

    `also` gets every span of the sources too, as it is read.
    """
    conversation, rules = evidence.conversation, evidence.rules
    declared_by = DECLARED_BY if evidence.complete else _declared_by(evidence.traces)
    if len(evidence.traces) == 0:
        if conversation is None:
            raise NoEvidenceError("there is no evidence", hint="name a trace, a folder of traces, or a conversation")
        payload = conversation.payload(rules)
        return payload.declared_complete(DECLARED_BY) if evidence.complete else payload
    read = read_traces(evidence.traces, ReadOptions(content=rules), also)
    captured = sorted({trace_id for source in evidence.traces for trace_id in source.trace_ids}) or None
    if conversation is None:
        return read.payload(captured, declared_by=declared_by)
    linked = conversation.trace_ids
    # Without any link nobody knows which trace belongs to it: all count, and absences are undetermined.
    trace_ids = linked if len(linked) > 0 else captured
    payload = read.payload(trace_ids, conversation.parent_span_ids, declared_by=declared_by)
    return _with_left_out(with_messages(payload, conversation.payload(rules)), read, linked)


def _declared_by(sources: Sequence[TraceInput]) -> str | None:
    """Who declares the sources complete, if somebody does for every one of them."""
    declared = {source.declared_by for source in sources}
    return None if None in declared else "; ".join(sorted(one for one in declared if one is not None)) or None


def _nothing_captured(observation: Observation) -> tuple[str, ...]:
    """A warning for each captured request with no span but its own: most likely nothing records the agent."""
    payload = observation.payload
    if not isinstance(payload, ToolsPayload):
        return ()
    return tuple(
        f"{source.name} has no span of an agent: is it instrumented, with the capture's tracer provider?"
        for source in payload.sources
        if source.encoding == CAPTURED and source.spans <= 1
    )


def read_conversation_file(path: Path) -> Conversation:
    """The conversation in a file. Raises TraceError if it cannot be read, or is none."""
    try:
        with path.open("rb") as stream:
            return read_conversation_stream(stream, str(path))
    except (OSError, ValueError) as error:
        said = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise TraceError(f"cannot be read: {said}", where=Place(str(path)), hint="check the path") from error


def read_conversation_stream(stream: BinaryIO, name: str) -> Conversation:
    """The conversation in a stream, of which no more is read than a conversation may have."""
    return read_conversation(stream.read(MAX_BYTES + 1), name)


def evidence_name(observation: Observation | None) -> str:
    """A name for what was scored: the source that was read first, and how many there were besides."""
    payload = observation.payload if observation is not None else None
    if not isinstance(payload, ToolsPayload) or len(payload.sources) == 0:
        return "evidence"
    first, more = payload.sources[0].name, len(payload.sources) - 1
    return first if more == 0 else f"{first} and {more} more"


def with_tolerance(task: Task, clock_skew_tolerance_ns: int | None) -> Task:
    """The task with another clock skew tolerance; None: its own."""
    if clock_skew_tolerance_ns is None:
        return task
    trace = task.trace.model_copy(update={"clock_skew_tolerance_ns": clock_skew_tolerance_ns})
    return task.model_copy(update={"trace": trace})


def _with_left_out(payload: ToolsPayload, read: TraceEvidence, linked: Sequence[str]) -> ToolsPayload:
    """The payload, with a note of the traces that no request of the conversation is linked to."""
    left_out = [trace_id for trace_id in read.trace_ids if trace_id not in set(linked)] if linked else []
    if len(left_out) == 0:
        return payload
    several = f"{len(left_out)} traces are" if len(left_out) > 1 else "1 trace is"
    note = f"{several} linked to no request of the conversation and do not count: {', '.join(left_out[:3])}"
    return payload.model_copy(update={"notes": (*payload.notes, note + (", ..." if len(left_out) > 3 else ""))})
