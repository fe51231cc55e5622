"""Strands Agents: spans of its own tracer, and OpenInference's processor that rewrites them.

Source: strands-agents/sdk-python `telemetry/tracer.py`: arguments and results are in events of the span, which the
GenAI vocabulary reads; a tool that the agent does not have gets a span too.
"""

from __future__ import annotations

from grader.core.tool_arguments import ContentRules
from grader.core.tool_calls import ExclusionReason
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.proposals import trusted_id

_UNKNOWN_TOOL = "Unknown tool: "


class Strands:
    """Spans of scopes with `strands` in their names, and those with `gen_ai.tool.status`."""

    name = "strands"
    scopes = ("strands",)
    marks = frozenset({"gen_ai.tool.status", "tool.status"})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """A span for a tool that does not exist; of all others the general vocabularies know enough."""
        attributes = span.attributes
        name = attributes.text("gen_ai.tool.name") or attributes.text("tool.name")
        if name is None:
            return None
        call_id = trusted_id(attributes.get("gen_ai.tool.call.id")) or trusted_id(attributes.get("tool.call_id"))
        is_error = "error" in (attributes.get("gen_ai.tool.status"), attributes.get("tool.status"))
        if is_error and f"{_UNKNOWN_TOOL}{name}" in _result(span):
            return Reading(
                Role.EXCLUDED,
                self.name,
                name=name,
                call_id=call_id,
                why_excluded=ExclusionReason.NOT_FOUND,
                detail="the answer is that there is no such tool",
            )
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id)


def _result(span: Span) -> str:
    """The first texts of what the call gave, wherever it is recorded."""
    texts = [span.attributes.get("output.value"), span.attributes.get("gen_ai.tool.call.result")]
    for event in span.events[-4:]:
        texts.extend((event.attributes.get("message"), event.attributes.get("gen_ai.output.messages")))
    return "\n".join(text[:2000] for text in texts if isinstance(text, str))
