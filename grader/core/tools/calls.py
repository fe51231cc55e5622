"""What an agent did with its tools: the payload of a `tools` observation, judged by nobody yet.

Three kinds of evidence are never mixed: a call that was *executed* (`ToolsPayload.calls`), one that a model only
*proposed* or that never ran (`ToolsPayload.not_executed`), and what looked like an execution and was not counted
(`ToolsPayload.excluded`). Everything is immutable, is written to JSON and read back unchanged, and holds no verdict:
the same payload is judged again under other conditions.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from grader.core.observation import Acquisition, Observation, Payload, register_payload
from grader.core.tools.arguments import NOT_RECORDED, ToolArguments
from grader.core.traces.coverage import Coverage
from grader.core.values import Frozen

PAYLOAD_KIND = "tools"
SCHEMA_VERSION = 1


class EvidenceSource(StrEnum):
    """Where a call is known from."""

    TRACE = "trace"
    MESSAGES = "messages"


class Attempt(Frozen):
    """When a call ran: an interval in Unix nanoseconds, both ends included.

    `start_ns` is None when the start is not known, `end_ns` is None when the attempt had not ended (or its end is not
    known). A recorded end before the recorded start is widened to its hull by the reader and reported in the coverage.
    """

    start_ns: int | None = None
    end_ns: int | None = None

    @model_validator(mode="after")
    def _ends_after_it_starts(self) -> Attempt:
        if self.start_ns is not None and self.end_ns is not None and self.end_ns < self.start_ns:
            raise ValueError("an attempt cannot end before it starts")
        return self


class ToolCall(Frozen):
    """One executed call of a tool: all spans and messages that describe it, unified. A failed call was executed too.

    `key` is unique in the payload and stable under reordering of the input. `names` is the sorted set of the names
    that its spans use; any of them counts. `attempts` is empty when nothing is known of the time (messages), else it
    has one interval. `failed` is None when the source does not say. `maybe_same_as` is the key of another call that
    may be the same execution: such a pair counts as "between 1 and 2".
    """

    key: str = Field(min_length=1)
    names: tuple[str, ...] = Field(min_length=1)
    arguments: ToolArguments = NOT_RECORDED
    attempts: tuple[Attempt, ...] = ()
    call_id: str | None = None
    spans: tuple[str, ...] = ()
    """`TRACE_ID/SPAN_ID` of every span that describes the call, sorted."""
    messages: tuple[str, ...] = ()
    """Places of the request and the answer in the conversation, such as `request 2 message 3`."""
    sources: tuple[EvidenceSource, ...] = Field(min_length=1)
    vocabularies: tuple[str, ...] = ()
    failed: bool | None = None
    maybe_same_as: str | None = None

    def is_named(self, name: str) -> bool:
        """Whether one of its names is exactly `name`."""
        return name in self.names


class ExclusionReason(StrEnum):
    """Why something that looks like an execution is none."""

    PENDING_SPAN = "pending_span"
    MERGED_SPAN = "merged_span"
    HANDOFF = "handoff"
    LIST_TOOLS = "list_tools"
    OUTPUT_FUNCTION = "output_function"
    INVALID_ARGUMENTS = "invalid_arguments"
    DEFERRED = "deferred"
    NOT_FOUND = "not_found"
    DENIED = "denied"

    @property
    def text(self) -> str:
        """The reason in words."""
        return _EXCLUSION_TEXTS[self]


_EXCLUSION_TEXTS = {
    ExclusionReason.PENDING_SPAN: "an announcement of a span that is recorded itself",
    ExclusionReason.MERGED_SPAN: "a summary of parallel calls that have their own spans",
    ExclusionReason.HANDOFF: "a handoff to another agent",
    ExclusionReason.LIST_TOOLS: "a listing of the tools on offer",
    ExclusionReason.OUTPUT_FUNCTION: "the agent framework's way to give the final answer",
    ExclusionReason.INVALID_ARGUMENTS: "refused for its arguments before the tool ran",
    ExclusionReason.DEFERRED: "deferred, or waiting for an approval",
    ExclusionReason.NOT_FOUND: "no tool of this name: nothing ran",
    ExclusionReason.DENIED: "denied: nothing ran",
}


class Excluded(Frozen):
    """Something that looks like an execution and was not counted, and why."""

    why: ExclusionReason
    names: tuple[str, ...] = ()
    call_id: str | None = None
    spans: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    detail: str = ""


class PossibleToolSpan(Frozen):
    """A span that may be an execution of a tool whose name is not recorded: it may be any tool."""

    span: str
    why: str
    attempts: tuple[Attempt, ...] = ()


class NotExecutedKind(StrEnum):
    """How far a call got that is not known to have been executed."""

    PROPOSED = "proposed"
    """A model asked for it; nothing shows that it ran."""
    DEFERRED = "deferred"
    """It waits for an approval or for someone else to run it."""
    REJECTED = "rejected"
    """It was answered by a dispatch error: not found, invalid arguments, denied."""


class NotExecuted(Frozen):
    """A call that was proposed, deferred or rejected: never counted as an execution."""

    kind: NotExecutedKind
    name: str
    call_id: str | None = None
    where: str
    """The place in the conversation, or `span TRACE_ID/SPAN_ID`."""
    detail: str = ""


class OrderEdge(Frozen):
    """The call with key `before` had given its result before the call with key `after` was even proposed.

    Edges are transitive; those that follow from others are left out.
    """

    before: str
    after: str


class VocabularyCount(Frozen):
    """How many spans a vocabulary recognised (its tool, model and agent spans)."""

    vocabulary: str
    spans: int = Field(ge=0)


class SourceRead(Frozen):
    """What was read, and what of it could not be understood."""

    name: str
    kind: EvidenceSource
    encoding: str
    """Such as `otlp-json lines, gzip` or `openai_chat`."""
    spans: int = Field(default=0, ge=0)
    requests: int = Field(default=0, ge=0)
    unknown_fields: int = Field(default=0, ge=0)
    warnings: tuple[str, ...] = ()


class ConversationLinks(Frozen):
    """How the requests of a conversation are linked to traces. `unlinked` has the places of those that are not."""

    requests: int = Field(default=0, ge=0)
    trace_ids: tuple[str, ...] = ()
    unlinked: tuple[str, ...] = ()


@register_payload
class ToolsPayload(Payload):
    """All that is known of an agent's tool calls. Pure data: judged by the scorers, and again by `replay`."""

    payload_kind: ClassVar[str] = PAYLOAD_KIND

    schema_version: Literal[1] = SCHEMA_VERSION
    calls: tuple[ToolCall, ...] = ()
    excluded: tuple[Excluded, ...] = ()
    possible: tuple[PossibleToolSpan, ...] = ()
    not_executed: tuple[NotExecuted, ...] = ()
    order_edges: tuple[OrderEdge, ...] = ()
    coverage: Coverage = Coverage()
    conversation: ConversationLinks | None = None
    """None when no conversation was read."""
    only_in_messages: tuple[str, ...] = ()
    """Keys of calls that the messages show and the trace, which was read too, does not have."""
    sources: tuple[SourceRead, ...] = ()
    vocabularies: tuple[VocabularyCount, ...] = ()
    trace_ids: tuple[str, ...] = ()
    retain_content: bool = True
    """False: names and times only were kept, no arguments."""
    notes: tuple[str, ...] = ()
    """What was noticed and does not speak against completeness."""

    @model_validator(mode="after")
    def _keys_are_unique_and_known(self) -> ToolsPayload:
        keys = {call.key for call in self.calls}
        if len(keys) != len(self.calls):
            raise ValueError("two calls have the same key")
        named = {edge.before for edge in self.order_edges} | {edge.after for edge in self.order_edges}
        named |= set(self.only_in_messages)
        named |= {call.maybe_same_as for call in self.calls if call.maybe_same_as is not None}
        if not named <= keys:
            raise ValueError(f"no call has the key {sorted(named - keys)[0]!r}")
        return self

    def calls_of(self, name: str) -> tuple[ToolCall, ...]:
        """The calls that have `name` among their names, in the order of the payload."""
        return tuple(call for call in self.calls if name in call.names)

    def at_least_once_each(self) -> tuple[ToolCall, ...]:
        """The calls without those that may be another record of a call that is counted already."""
        return tuple(call for call in self.calls if call.maybe_same_as is None)

    @property
    def has_unlinked_requests(self) -> bool:
        """Whether a conversation was read that has requests without a trace link."""
        return self.conversation is not None and len(self.conversation.unlinked) > 0

    def declared_complete(self, by: str) -> ToolsPayload:
        """The payload with completeness declared by `by` (such as "the caller"). Failed checks still override it."""
        return self.model_copy(update={"coverage": self.coverage.declared(by)})


def observe_tools(payload: ToolsPayload) -> Observation:
    """The observation: complete if an absence in it proves something, else partial, with the reasons."""
    reasons = tuple(str(reason) for reason in payload.coverage.why_not_complete())
    acquisition = Acquisition.PARTIAL if reasons else Acquisition.COMPLETE
    return Observation(acquisition=acquisition, acquisition_reasons=reasons, payload=payload)
