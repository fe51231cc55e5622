"""The Claude Agent SDK, as OpenInference's instrumentor records it.

Source: openinference-instrumentation-claude-agent-sdk `_wrappers.py`: `tool.parameters` has the values; at the end of a
session unfinished spans are closed with an error; the tool `Agent` may only have launched its agent when it ends. Calls
that were never run have a span as well, made of the messages: what the model is told of them is the span's error.
"""

from __future__ import annotations

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME, call_id_of

_REFUSALS = (
    ("Error: No such tool available", ExclusionReason.NOT_FOUND),
    ("InputValidationError", ExclusionReason.INVALID_ARGUMENTS),
    ("Input validation error", ExclusionReason.INVALID_ARGUMENTS),
    ("Permission to use", ExclusionReason.DENIED),
    ("Claude requested permissions to", ExclusionReason.DENIED),
    ("The user doesn't want to proceed with this tool use", ExclusionReason.DENIED),
)
"""How the error of a call begins that was not run."""


class ClaudeAgent:
    """Spans of scopes with `claude_agent_sdk` in their names."""

    name = "claude_agent"
    scopes = ("claude_agent_sdk", "claude-agent-sdk")
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Tools whose recorded end is not that of their work, and calls that were not run.

        A scope that an export lost cannot be told.
        """
        attributes = span.attributes
        name = attributes.text(TOOL_NAME)
        if name is None or attributes.text(KIND) != "TOOL":
            return None
        is_abandoned = span.failed is True and "Abandoned" in span.status_message
        if not is_abandoned and not any(part in span.scope for part in self.scopes):
            return None
        why = _refusal(span)
        if why is not None:
            detail = span.status_message[:200]
            return Reading(
                Role.EXCLUDED, self.name, name=name, call_id=call_id_of(attributes), why_excluded=why, detail=detail
            )
        output = attributes.get("output.value")
        is_launched = isinstance(output, str) and '"async_launched"' in output
        return Reading(
            Role.TOOL, self.name, name=name, call_id=call_id_of(attributes), end_is_false=is_abandoned or is_launched
        )


def _refusal(span: Span) -> ExclusionReason | None:
    if span.failed is not True:
        return None
    said = span.status_message.removeprefix("<tool_use_error>")
    return next((why for begin, why in _REFUSALS if said.startswith(begin)), None)
