"""What went into a step and came out of it, by the naming conventions; OpenInference is read first.

Source: semantic conventions of OpenInference (`input.value`, `llm.input_messages.*`, `retrieval.documents.*`) and of
OpenTelemetry GenAI (`gen_ai.tool.call.*`, `gen_ai.input.messages`, the events and indexed attributes before v1.37).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from grader.core.tools.arguments import REMOVED, compact_json
from grader.core.traces.content import REDACTED, UNREADABLE, TextRules, TraceContent, kept_content
from grader.core.traces.execution_trace import StepKind
from grader.traces.classify import SpanFacts
from grader.traces.span import Attributes, Span, Unreadable
from grader.traces.vocabularies.base import Role
from grader.traces.vocabularies.genai import DETAILS_EVENT, OPERATION
from grader.traces.vocabularies.openinference import KIND

_OPENINFERENCE_KINDS = {
    "TOOL": StepKind.TOOL,
    "LLM": StepKind.MODEL,
    "AGENT": StepKind.AGENT,
    "RETRIEVER": StepKind.RETRIEVER,
    "RERANKER": StepKind.RETRIEVER,
}
_ROLE_KINDS = {
    Role.TOOL: StepKind.TOOL,
    Role.POSSIBLE_TOOL: StepKind.TOOL,
    Role.MODEL: StepKind.MODEL,
    Role.AGENT: StepKind.AGENT,
}


@dataclass(frozen=True, slots=True)
class _Convention:
    """The attributes of one convention, the first that is there counts; prefixes gather indexed attributes."""

    name: str
    inputs: tuple[str, ...]
    input_prefixes: tuple[str, ...]
    outputs: tuple[str, ...]
    output_prefixes: tuple[str, ...]
    input_events: tuple[str, ...] = ()
    output_events: tuple[str, ...] = ()


_CONVENTIONS = (
    _Convention(
        name="openinference",
        inputs=("input.value",),
        input_prefixes=("llm.input_messages.", "reranker.input_documents."),
        outputs=("output.value",),
        output_prefixes=("llm.output_messages.", "retrieval.documents.", "reranker.output_documents."),
    ),
    _Convention(
        name="genai",
        inputs=(
            *("gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args"),
            *("gen_ai.input.messages", "gen_ai.prompt", "gcp.vertex.agent.llm_request", "traceloop.entity.input"),
            *("ai.toolCall.args", "ai.prompt.messages", "ai.prompt"),
            *("langfuse.observation.input", "request", "request_data", "input"),
        ),
        input_prefixes=("gen_ai.prompt.",),
        outputs=(
            *("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response"),
            *("gen_ai.output.messages", "gen_ai.completion", "gcp.vertex.agent.llm_response"),
            *("traceloop.entity.output", "ai.toolCall.result", "ai.response.text", "final_result"),
            *("langfuse.observation.output", "response", "response_data", "output"),
        ),
        output_prefixes=("gen_ai.completion.",),
        input_events=("gen_ai.system.message", "gen_ai.user.message", "gen_ai.tool.message"),
        output_events=("gen_ai.choice",),
    ),
)


@dataclass(frozen=True, slots=True)
class StepContent:
    """What kind of step a span is, and what it holds."""

    kind: StepKind
    name: str
    input: TraceContent | None
    output: TraceContent | None
    vocabulary: str | None


def step_content(span: Span, facts: SpanFacts, rules: TextRules) -> StepContent:
    """The step that a span is; must not raise for any span."""
    given, by = _found(span, rules, is_input=True)
    got, also_by = _found(span, rules, is_input=False)
    kind = _kind(span, facts)
    is_named = kind is StepKind.TOOL and facts.role is Role.TOOL and len(facts.names) > 0
    return StepContent(kind, " = ".join(facts.names) if is_named else span.name, given, got, by or also_by)


def event_text(attributes: Attributes) -> str:
    """The attributes of an event, a line each."""
    return _lines(attributes, attributes)


def _kind(span: Span, facts: SpanFacts) -> StepKind:
    kind = span.attributes.get(KIND)
    if isinstance(kind, str) and facts.role in {Role.TOOL, Role.MODEL, Role.AGENT, Role.OTHER}:
        found = _OPENINFERENCE_KINDS.get(kind.upper())
        if found is not None:
            return found
    if facts.role is Role.OTHER and span.attributes.get(OPERATION) == "retrieval":
        return StepKind.RETRIEVER
    return _ROLE_KINDS.get(facts.role, StepKind.OTHER)


def _found(span: Span, rules: TextRules, *, is_input: bool) -> tuple[TraceContent | None, str | None]:
    what = "input" if is_input else "output"
    for convention in _CONVENTIONS:
        keys = convention.inputs if is_input else convention.outputs
        prefixes = convention.input_prefixes if is_input else convention.output_prefixes
        events = convention.input_events if is_input else convention.output_events
        for key in keys:
            value = span.attributes.get(key)
            if value is not None:
                return _content(value, what, rules), convention.name
        indexed = [key for key in span.attributes if key.startswith(prefixes)]
        if indexed:
            text = _lines(span.attributes, sorted(indexed, key=_by_number), prefixes)
            return kept_content(text, what, rules), convention.name
        logged = [event_text(event.attributes) for event in span.events if event.name in events]
        if logged:
            return kept_content("\n".join(logged), what, rules), convention.name
        for event in span.events if convention.name == "genai" else ():
            value = event.attributes.get(f"gen_ai.{what}.messages") if event.name == DETAILS_EVENT else None
            if value is not None:
                return _content(value, what, rules), convention.name
    return None, None


def _content(value: object, what: str, rules: TextRules) -> TraceContent:
    if isinstance(value, Unreadable):
        return UNREADABLE
    if value == REMOVED:
        return REDACTED
    text = _text(value)
    return UNREADABLE if text is None else kept_content(text, what, rules)


def _lines(attributes: Attributes, keys: Iterable[str], prefixes: tuple[str, ...] = ()) -> str:
    """`KEY: VALUE` for each key, without the prefix that all of them share."""
    found: list[str] = []
    for key in keys:
        value = attributes.get(key)
        text = None if isinstance(value, Unreadable) else _text(value)
        short = next((key.removeprefix(prefix) for prefix in prefixes if key.startswith(prefix)), key)
        found.append(f"{short}: {text if text is not None else '(unreadable)'}")
    return "\n".join(found)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    try:
        return compact_json(value)
    except (ValueError, RecursionError):
        return None


def _by_number(key: str) -> tuple[str, ...]:
    """`a.2.b` before `a.10.b`."""
    return tuple(part.zfill(12) if part.isdecimal() else part for part in re.split(r"([0-9]+)", key)[:20])
