"""What a span is, all vocabularies together; by attributes, never by the words in a span's name alone.

Where vocabularies disagree, what a producer's own vocabulary knows of its habits overrules the general ones; else the
more careful reading wins: an exclusion over an execution, an execution over anything else, and a span that may be a
tool over one that is none.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments, combined
from grader.core.tools.calls import ExclusionReason
from grader.traces.scrubbed import rules_beside_scrubbing
from grader.traces.span import Span, Unreadable
from grader.traces.vocabularies import vocabularies_for
from grader.traces.vocabularies.base import Proposal, Reading, Role

_PRECEDENCE = (Role.EXCLUDED, Role.TOOL, Role.POSSIBLE_TOOL, Role.MODEL, Role.AGENT, Role.OTHER)
_NO_TOOLS = (Role.MODEL, Role.OTHER, Role.AGENT)
_UNREAD_TOOLS = {
    "mlflow.spanType": frozenset({"TOOL", '"TOOL"'}),
    "lk.function_tool.name": None,
}
"""Marks of an execution in vocabularies that are not read: such a span may be any tool."""
_TELL_WHAT_IT_IS = frozenset(
    {
        *("gen_ai.operation.name", "gen_ai.handoff.to_agent", "openinference.span.kind", "traceloop.span.kind"),
        *("langsmith.span.kind", "langfuse.observation.type", "mcp.method.name", "rpc.method", "ai.operationId"),
        "mlflow.spanType",
    }
)
"""Attributes of which a value that cannot be read may hide an execution."""
_TELL_REFUSALS = frozenset({"error.type", "pydantic_ai.tool.failure_stage"})
"""Attributes of which a value that cannot be read may hide that a call was refused before anything ran."""
_AI_PREFIXES = (
    *("gen_ai.", "llm.", "ai.", "openinference.", "traceloop.", "langsmith.", "langfuse.", "mlflow.", "weave."),
    *("gcp.vertex.agent.", "openai.", "anthropic.", "lk.", "crewai.", "haystack.", "agno.", "tool_call"),
)


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """What one span is, in all vocabularies together. `names` is sorted. `looks_like_ai`: not understood, although it
    has attributes of some instrumentation of models or agents.
    """

    role: Role
    names: tuple[str, ...] = ()
    call_id: str | None = None
    arguments: ToolArguments = NOT_RECORDED
    why_excluded: ExclusionReason | None = None
    detail: str = ""
    proposals: tuple[Proposal, ...] = ()
    vocabularies: tuple[str, ...] = ()
    is_hosted: bool = False
    is_transport: bool = False
    end_is_false: bool = False
    is_pending: bool = False
    looks_like_ai: bool = False
    time_unit_ns: int = 1
    has_returned: bool = False


def classify(span: Span, rules: ContentRules) -> SpanFacts:
    """What a span is."""
    facts = _classified(span, rules)
    doubtful = _TELL_REFUSALS if facts.role is Role.TOOL else _TELL_WHAT_IT_IS
    if facts.role is Role.POSSIBLE_TOOL or doubtful.isdisjoint(span.attributes.raw):
        return facts
    for key in sorted(doubtful & span.attributes.raw.keys()):
        if isinstance(span.attributes.get(key), Unreadable):
            detail = f"its {key} is given twice, differently, or cannot be read"
            return SpanFacts(Role.POSSIBLE_TOOL, detail=detail, is_pending=facts.is_pending)
    return facts


def _classified(span: Span, rules: ContentRules) -> SpanFacts:
    rules = rules_beside_scrubbing(span, rules)
    readings = [
        reading for vocabulary in vocabularies_for(span) if (reading := vocabulary.read(span, rules)) is not None
    ]
    is_pending = span.attributes.get("logfire.span_type") == "pending_span"
    if not readings:
        return _unread(span, is_pending)
    if len(readings) == 1:
        return (_unread_tool(span) if readings[0].role in _NO_TOOLS else None) or _alone(readings[0], is_pending)
    if any(reading.overrules for reading in readings):
        readings = [reading for reading in readings if reading.overrules]
    role = next(role for role in _PRECEDENCE if any(reading.role is role for reading in readings))
    chosen = [reading for reading in readings if reading.role is role]
    return (_unread_tool(span) if role in _NO_TOOLS else None) or _together(role, chosen, readings, is_pending)


def _alone(reading: Reading, is_pending: bool) -> SpanFacts:
    """What the only vocabulary says that has something to say: so it is for most spans."""
    return SpanFacts(
        role=reading.role,
        names=(reading.name,) if reading.name else (),
        call_id=reading.call_id,
        arguments=reading.arguments,
        why_excluded=reading.why_excluded,
        detail=reading.detail,
        proposals=reading.proposals,
        vocabularies=(reading.vocabulary,),
        is_hosted=reading.is_hosted,
        is_transport=reading.is_transport,
        end_is_false=reading.end_is_false,
        is_pending=is_pending,
        time_unit_ns=reading.time_unit_ns,
        has_returned=reading.has_returned,
    )


def _together(role: Role, chosen: list[Reading], readings: list[Reading], is_pending: bool) -> SpanFacts:
    arguments = chosen[0].arguments
    for reading in chosen[1:]:
        arguments = combined(arguments, reading.arguments)
    # Two call ids on one span that differ cannot both be right: neither is trusted.
    ids = {reading.call_id for reading in chosen if reading.call_id is not None}
    return SpanFacts(
        role=role,
        names=tuple(sorted({reading.name for reading in readings if reading.name})),
        call_id=ids.pop() if len(ids) == 1 else None,
        arguments=arguments,
        why_excluded=chosen[0].why_excluded,
        detail=chosen[0].detail,
        proposals=_distinct(chosen),
        vocabularies=tuple(sorted({reading.vocabulary for reading in readings})),
        is_hosted=any(reading.is_hosted for reading in chosen),
        is_transport=any(reading.is_transport for reading in chosen),
        end_is_false=any(reading.end_is_false for reading in chosen),
        is_pending=is_pending,
        time_unit_ns=max(reading.time_unit_ns for reading in chosen),
        has_returned=any(reading.has_returned for reading in chosen),
    )


def _distinct(readings: list[Reading]) -> tuple[Proposal, ...]:
    """The proposals of the vocabulary that has most, with names: all describe the same answer of the model."""
    found = (reading.proposals for reading in readings)
    return max(found, key=lambda proposals: (sum(item.name != "" for item in proposals), len(proposals)), default=())


def _unread(span: Span, is_pending: bool) -> SpanFacts:
    tool = _unread_tool(span)
    if tool is not None:
        return tool
    if span.dropped_attributes > 0:
        detail = f"{span.dropped_attributes} attributes were dropped, what is left does not say what it is"
        return SpanFacts(Role.POSSIBLE_TOOL, detail=detail, is_pending=is_pending)
    looks_like_ai = any(key.startswith(_AI_PREFIXES) for key in span.attributes)
    return SpanFacts(Role.OTHER, looks_like_ai=looks_like_ai, is_pending=is_pending)


def _unread_tool(span: Span) -> SpanFacts | None:
    for key, values in _UNREAD_TOOLS.items():
        if key in span.attributes and (values is None or span.attributes.text(key) in values):
            return SpanFacts(
                Role.POSSIBLE_TOOL, detail=f"{key} marks a tool, in names that are not read", looks_like_ai=True
            )
    return None
