"""Strands Agents: spans of its own tracer, and OpenInference's processor that rewrites them.

Source: strands-agents/sdk-python `telemetry/tracer.py`: arguments and results are in events of the span, which the
GenAI vocabulary reads; a tool that the agent does not have gets a span too, and so does the one by which a model gives
its structured answer.
"""

from __future__ import annotations

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.proposals import trusted_id

_UNKNOWN_TOOL = "Unknown tool: "
_REFUSED = "Validation failed for input parameters"
_OUTPUT_TOOL = "IMPORTANT: This StructuredOutputTool should only be invoked"


class Strands:
    """Spans of scopes with `strands` in their names, and those with `gen_ai.tool.status`."""

    name = "strands"
    scopes = ("strands",)
    marks = frozenset({"gen_ai.tool.status", "tool.status"})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Spans of calls that never ran; of all others the general vocabularies know enough."""
        attributes = span.attributes
        name = attributes.text("gen_ai.tool.name") or attributes.text("tool.name")
        if name is None or ("strands" not in span.scope and self.marks.isdisjoint(attributes.raw)):
            return None
        call_id = trusted_id(attributes.get("gen_ai.tool.call.id")) or trusted_id(attributes.get("tool.call_id"))
        why = _why_none(span, name)
        if why is not None:
            detail = _result(span)[:200]
            return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail)
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id)


def _why_none(span: Span, name: str) -> ExclusionReason | None:
    attributes = span.attributes
    described = attributes.text("gen_ai.tool.description") or attributes.text("tool.description") or ""
    if described.startswith(_OUTPUT_TOOL):
        return ExclusionReason.OUTPUT_FUNCTION
    if "error" not in (attributes.get("gen_ai.tool.status"), attributes.get("tool.status")):
        return None
    result = _result(span)
    if f"{_UNKNOWN_TOOL}{name}" in result:
        return ExclusionReason.NOT_FOUND
    return ExclusionReason.INVALID_ARGUMENTS if _REFUSED in result else None


def _result(span: Span) -> str:
    """The first texts of what the call gave, wherever it is recorded."""
    texts = [span.status_message, span.attributes.get("output.value"), span.attributes.get("gen_ai.tool.call.result")]
    for event in span.events[-4:]:
        texts.extend((event.attributes.get("message"), event.attributes.get("gen_ai.output.messages")))
    return "\n".join(text[:2000] for text in texts if isinstance(text, str))
