"""OpenTelemetry GenAI semantic conventions, old names and new ones.

Source: the `gen_ai` registry of the OpenTelemetry semantic conventions, v1.31 (first `execute_tool`) to v1.41 and the
separate GenAI conventions after it. Names that changed: `gen_ai.system` became `gen_ai.provider.name` (v1.37), events
per message became `gen_ai.input.messages` and `gen_ai.output.messages` (v1.37), arguments and result came in v1.38.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from
from grader.traces.span import Attributes, Span, Unreadable
from grader.traces.vocabularies.base import MERGED_TOOLS, Proposal, Reading, Role
from grader.traces.vocabularies.proposals import (
    UNNAMED,
    finished_with_calls,
    in_blocks,
    in_parts,
    in_tool_calls,
    parts_of,
    proposal,
    trusted_id,
)

OPERATION = "gen_ai.operation.name"
TOOL_NAME = "gen_ai.tool.name"
CALL_ID = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
_RESULT = "gen_ai.tool.call.result"
"""Recorded only if the execution was successful, by the conventions."""
_MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content", "embeddings", "completion"})
_AGENT_OPERATIONS = frozenset({"create_agent", "invoke_agent", "invoke_workflow"})
_OTHER_OPERATIONS = frozenset({"plan", "retrieval"})
_HANDOFF_OPERATIONS = frozenset({"handoff", "agent_handoff"})
_MODEL_MARKS = ("gen_ai.request.model", "gen_ai.response.model", "gen_ai.completion.0.role", "gen_ai.prompt.0.role")
_NO_NAME = frozenset({"", "unknown_tool"})
DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_DISPATCH_ERRORS = {
    "tool_not_found": ExclusionReason.NOT_FOUND,
    "unknown_tool": ExclusionReason.NOT_FOUND,
    "invalid_arguments": ExclusionReason.INVALID_ARGUMENTS,
    "tool_denied": ExclusionReason.DENIED,
}


class GenAI:
    """Spans with `gen_ai.*` attributes."""

    name = "genai"
    scopes = ()
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is, None when it has no `gen_ai` operation, tool or model."""
        attributes = span.attributes
        operation = attributes.get(OPERATION)
        if isinstance(operation, Unreadable):
            return Reading(Role.POSSIBLE_TOOL, self.name, detail="its operation is given twice, differently")
        operation = operation if operation is None or isinstance(operation, str) else str(operation)[:100]
        if operation in _HANDOFF_OPERATIONS or "gen_ai.handoff.to_agent" in attributes:
            return self._excluded(ExclusionReason.HANDOFF, span)
        if self._is_tool(operation, attributes):
            return self._tool(span, rules)
        if operation in _AGENT_OPERATIONS:
            return Reading(Role.AGENT, self.name)
        if operation in _MODEL_OPERATIONS or (operation is None and any(mark in attributes for mark in _MODEL_MARKS)):
            return Reading(Role.MODEL, self.name, proposals=tuple(proposals_of(span)))
        if operation is None:
            return None
        return Reading(Role.OTHER, self.name)

    def _is_tool(self, operation: object, attributes: Attributes) -> bool:
        if operation == "execute_tool":
            return True
        known = operation in _MODEL_OPERATIONS or operation in _AGENT_OPERATIONS or operation in _OTHER_OPERATIONS
        if known:
            return False
        return TOOL_NAME in attributes or CALL_ID in attributes

    def _excluded(self, why: ExclusionReason, span: Span, detail: str = "") -> Reading:
        name, call_id = _name(span.attributes), trusted_id(span.attributes.get(CALL_ID))
        return Reading(
            Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail or span.name[:200]
        )

    def _tool(self, span: Span, rules: ContentRules) -> Reading:
        attributes = span.attributes
        name = _name(attributes)
        why = _DISPATCH_ERRORS.get(str(attributes.get("error.type")))
        if why is not None:
            return self._excluded(why, span, detail=f"error.type is {attributes.get('error.type')}")
        if name == MERGED_TOOLS:
            return self._excluded(ExclusionReason.MERGED_SPAN, span)
        if name is None:
            named = (
                "given twice, differently" if attributes.get(TOOL_NAME) is Unreadable.CONFLICTING else "not recorded"
            )
            return Reading(
                Role.POSSIBLE_TOOL, self.name, detail=f"a tool was executed, its name is {named} ({span.name[:100]})"
            )
        return Reading(
            Role.TOOL,
            self.name,
            name=name,
            call_id=trusted_id(attributes.get(CALL_ID)),
            arguments=_arguments(span, rules),
            is_hosted=attributes.get("gen_ai.tool.type") == "extension",
            has_returned=_RESULT in attributes and "error.type" not in attributes,
        )


def _name(attributes: Attributes) -> str | None:
    name = attributes.text(TOOL_NAME)
    return None if name is None or name in _NO_NAME else name


def _arguments(span: Span, rules: ContentRules) -> ToolArguments:
    value = span.attributes.get(ARGUMENTS)
    if value is not None:
        return arguments_from(value, rules)
    for value in _arguments_in_events(span):
        return arguments_from(value, rules)
    return NOT_RECORDED


def _arguments_in_events(span: Span) -> Iterator[object]:
    """Arguments in events on the tool span itself: `gen_ai.tool.message`, or a tool_call part of the input messages."""
    call_id, name = span.attributes.get(CALL_ID), span.attributes.get(TOOL_NAME)
    for event in span.events:
        if event.name == "gen_ai.tool.message":
            content = event.attributes.get("content")
            if content is not None and event.attributes.get("id") in (None, call_id):
                yield content
        elif event.name == DETAILS_EVENT:
            for part in parts_of(event.attributes.get("gen_ai.input.messages"), "tool_call"):
                same_id = part.get("id") == call_id if call_id is not None else part.get("name") == name
                if same_id and part.get("arguments") is not None:
                    yield part["arguments"]


# --- calls that a model asked for


def proposals_of(span: Span) -> Iterator[Proposal]:
    """All proposals of a model's answer; an unnamed one if it ended with calls and none of them is recorded."""
    attributes, found = span.attributes, False
    for value in (
        attributes.get("gen_ai.output.messages"),
        *(event.attributes.get("gen_ai.output.messages") for event in span.events if event.name == DETAILS_EVENT),
    ):
        for item in in_parts(value):
            found = True
            yield item
    for event in span.events:
        if event.name == "gen_ai.choice":
            for value in (event.attributes.get("tool_calls"), event.attributes.get("message")):
                for item in (*in_tool_calls(value), *in_blocks(value)):
                    found = True
                    yield item
    for key in attributes:
        if key.startswith("gen_ai.completion.") and ".tool_calls." in key and key.endswith(".name"):
            for item in proposal(attributes.get(key), attributes.get(key.removesuffix("name") + "id")):
                found = True
                yield item
    if not found and finished_with_calls(attributes.get("gen_ai.response.finish_reasons")):
        yield UNNAMED
