"""What an agent did, step by step: the payload of an `execution_trace` observation, judged by nobody yet.

Unlike a `tools` observation it holds every span, with what went in and came out: it is what a judge reads. Steps are in
the order of the tree (a parent before its children), so that every parent that is named stands above.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from grader.core.observation import Acquisition, Observation, Payload, register_payload
from grader.core.tools.calls import SourceRead
from grader.core.traces.content import TraceContent
from grader.core.traces.coverage import Coverage
from grader.core.values import Frozen

PAYLOAD_KIND = "execution_trace"
SCHEMA_VERSION = 1
MOST_STEPS = 20_000
"""How many steps one observation holds."""


class StepKind(StrEnum):
    """What a step is."""

    TOOL = "tool"
    MODEL = "model"
    AGENT = "agent"
    RETRIEVER = "retriever"
    OTHER = "other"


class StepStatus(StrEnum):
    """How a step ended, as its producer says; unset is no success."""

    OK = "ok"
    ERROR = "error"
    UNSET = "unset"


class WhyRoot(StrEnum):
    """Why a step that names a parent is shown as a root."""

    PARENT_MISSING = "parent missing"
    PARENT_CYCLE = "parent in a cycle"


class StepEvent(Frozen):
    """Something that was logged while a step ran, such as an exception."""

    name: str
    content: TraceContent


class ExecutionStep(Frozen):
    """One span of a trace. Times are Unix nanoseconds, None where they are not known."""

    id: str = Field(pattern=r"^T[1-9][0-9]{0,6}$")
    """Names the step to a judge, and in what it cites: `T1`, `T2`, ... in the order of the payload."""
    kind: StepKind
    name: str
    parent: str | None = None
    """The id of the step that it is part of; None for a root."""
    why_root: WhyRoot | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    status: StepStatus = StepStatus.UNSET
    status_description: TraceContent | None = None
    events: tuple[StepEvent, ...] = ()
    input: TraceContent | None = None
    output: TraceContent | None = None
    trace_id: str
    span_id: str
    vocabulary: str | None = None
    """The naming convention in which its content was found."""

    @property
    def span(self) -> str:
        """`TRACE_ID/SPAN_ID`: the same step in another reading of the trace."""
        return f"{self.trace_id}/{self.span_id}"


@register_payload
class ExecutionTrace(Payload):
    """All steps that were read of the traces of one conversation."""

    payload_kind: ClassVar[str] = PAYLOAD_KIND

    schema_version: Literal[1] = SCHEMA_VERSION
    steps: tuple[ExecutionStep, ...] = Field(default=(), max_length=MOST_STEPS)
    coverage: Coverage = Coverage()
    scope_ids: tuple[str, ...] = ()
    """The traces that were asked for, sorted; with none, all that were read count."""
    trace_ids: tuple[str, ...] = ()
    """The traces that were read, sorted."""
    sources: tuple[SourceRead, ...] = ()
    retain_content: bool = True
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _ids_count_up_and_parents_stand_above(self) -> ExecutionTrace:
        seen: set[str] = set()
        for number, step in enumerate(self.steps, start=1):
            if step.id != f"T{number}":
                raise ValueError(f"step {number} has the id {step.id!r}")
            if step.parent is not None and step.parent not in seen:
                raise ValueError(f"the parent of {step.id} does not stand above it")
            seen.add(step.id)
        return self

    @property
    def spans(self) -> frozenset[str]:
        """`TRACE_ID/SPAN_ID` of every step."""
        return frozenset(step.span for step in self.steps)


def observe_trace(payload: ExecutionTrace) -> Observation:
    """The observation: complete if the coverage is, unavailable without any step, else partial, with the reasons."""
    reasons = tuple(str(reason) for reason in payload.coverage.why_not_complete())
    if len(payload.steps) == 0:
        return Observation(
            acquisition=Acquisition.UNAVAILABLE, acquisition_reasons=reasons or ("there is no span",), payload=payload
        )
    acquisition = Acquisition.PARTIAL if reasons else Acquisition.COMPLETE
    return Observation(acquisition=acquisition, acquisition_reasons=reasons, payload=payload)
