"""OpenTelemetry GenAI semantic conventions, old names and new ones.

Source: the `gen_ai` registry of the OpenTelemetry semantic conventions, v1.31 (first `execute_tool`) to v1.41 and the
separate GenAI conventions after it. Names that changed: `gen_ai.system` became `gen_ai.provider.name` (v1.37), events
per message became `gen_ai.input.messages` and `gen_ai.output.messages` (v1.37), arguments and result came in v1.38.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.core.tool_arguments import NOT_RECORDED, ArgumentState, ContentRules, ToolArguments, parse_json
from grader.core.tool_calls import ExclusionReason
from grader.traces.arguments import NOTHING, arguments_from
from grader.traces.span import Attributes, Span, Unreadable
from grader.traces.vocabularies.base import Proposal, Reading, Role

OPERATION = "gen_ai.operation.name"
TOOL_NAME = "gen_ai.tool.name"
CALL_ID = "gen_ai.tool.call.id"
ARGUMENTS = "gen_ai.tool.call.arguments"
_OLD_ARGUMENTS = ("tool_arguments", "gcp.vertex.agent.tool_call_args")
_MODEL_OPERATIONS = frozenset({"chat", "text_completion", "generate_content", "embeddings", "completion"})
_AGENT_OPERATIONS = frozenset({"create_agent", "invoke_agent", "invoke_workflow"})
_OTHER_OPERATIONS = frozenset({"plan", "retrieval"})
_HANDOFF_OPERATIONS = frozenset({"handoff", "agent_handoff"})
_MODEL_MARKS = ("gen_ai.request.model", "gen_ai.response.model", "gen_ai.completion.0.role", "gen_ai.prompt.0.role")
_NO_NAME = frozenset({"", "unknown_tool"})
_MERGED = "(merged tools)"
_DETAILS_EVENT = "gen_ai.client.inference.operation.details"
_RPC_CODES = ("rpc.response.status_code", "rpc.jsonrpc.error_code", "error.type")
_DISPATCH_ERRORS = {
    "-32601": ExclusionReason.NOT_FOUND,
    "-32602": ExclusionReason.INVALID_ARGUMENTS,
    "tool_not_found": ExclusionReason.NOT_FOUND,
    "unknown_tool": ExclusionReason.NOT_FOUND,
}
_MAX_MESSAGES_TEXT = 16 << 20


class GenAI:
    """Spans with `gen_ai.*` attributes."""

    name = "genai"

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is, None when it has no `gen_ai` operation, tool or model."""
        attributes = span.attributes
        operation = attributes.get(OPERATION)
        if isinstance(operation, Unreadable):
            return Reading(Role.POSSIBLE_TOOL, self.name, detail="its operation is given twice, differently")
        operation = operation if operation is None or isinstance(operation, str) else str(operation)[:100]
        is_tool = self._is_tool(operation, attributes)
        if is_tool or "mcp.method.name" in attributes:
            excluded = self._excluded_span(span)
            if excluded is not None:
                return excluded
        if operation in _HANDOFF_OPERATIONS or "gen_ai.handoff.to_agent" in attributes:
            return self._excluded(ExclusionReason.HANDOFF, span)
        if is_tool:
            return self._tool(span, rules)
        if operation in _AGENT_OPERATIONS:
            return Reading(Role.AGENT, self.name)
        if operation in _MODEL_OPERATIONS or (operation is None and any(mark in attributes for mark in _MODEL_MARKS)):
            return Reading(Role.MODEL, self.name, proposals=tuple(_proposals(span)))
        if operation is None:
            return None
        return Reading(Role.OTHER, self.name)

    def _is_tool(self, operation: object, attributes: Attributes) -> bool:
        if operation == "execute_tool":
            return True
        known = operation in _MODEL_OPERATIONS or operation in _AGENT_OPERATIONS or operation in _OTHER_OPERATIONS
        if known:
            return False
        return TOOL_NAME in attributes or CALL_ID in attributes or attributes.get("mcp.method.name") == "tools/call"

    def _excluded_span(self, span: Span) -> Reading | None:
        attributes = span.attributes
        if attributes.get("mcp.method.name") == "tools/list":
            return self._excluded(ExclusionReason.LIST_TOOLS, span)
        if attributes.get(TOOL_NAME) == _MERGED:
            return self._excluded(ExclusionReason.MERGED_SPAN, span)
        message = attributes.text("logfire.msg") or ""
        if message.startswith("running output function") or span.name.startswith("running output function"):
            return self._excluded(ExclusionReason.OUTPUT_FUNCTION, span)
        if attributes.get("pydantic_ai.tool.failure_stage") == "validation":
            return self._excluded(ExclusionReason.INVALID_ARGUMENTS, span)
        if "pydantic_ai.tool.deferral.name" in attributes:
            return self._excluded(ExclusionReason.DEFERRED, span)
        for key in _RPC_CODES:
            why = _DISPATCH_ERRORS.get(str(attributes.get(key)))
            if why is not None and (key == "error.type" or "mcp.method.name" in attributes):
                return self._excluded(why, span, detail=f"{key} is {attributes.get(key)}")
        return None

    def _excluded(self, why: ExclusionReason, span: Span, detail: str = "") -> Reading:
        name, call_id = _name(span.attributes), _trusted_id(span.attributes)
        return Reading(
            Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail or span.name[:200]
        )

    def _tool(self, span: Span, rules: ContentRules) -> Reading:
        attributes = span.attributes
        name = _name(attributes)
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
            call_id=_trusted_id(attributes),
            arguments=_arguments(span, rules),
            is_hosted=attributes.get("gen_ai.tool.type") == "extension",
            is_transport="mcp.method.name" in attributes,
        )


def _name(attributes: Attributes) -> str | None:
    name = attributes.text(TOOL_NAME)
    return None if name is None or name in _NO_NAME else name


def _trusted_id(attributes: Attributes) -> str | None:
    call_id = attributes.text(CALL_ID)
    return None if call_id is None or call_id in NOTHING else call_id


def _arguments(span: Span, rules: ContentRules) -> ToolArguments:
    for key in (ARGUMENTS, *_OLD_ARGUMENTS):
        value = span.attributes.get(key)
        if value is not None:
            found = arguments_from(value, rules)
            return NOT_RECORDED if _is_adk_without_content(span, key, found) else found
    for value in _arguments_in_events(span):
        return arguments_from(value, rules)
    return NOT_RECORDED


def _is_adk_without_content(span: Span, key: str, found: ToolArguments) -> bool:
    """ADK writes `{}` for arguments and response when content is off; with a response, `{}` is really empty."""
    if key != "gcp.vertex.agent.tool_call_args" or found.state is not ArgumentState.RECORDED or found.text != "{}":
        return False
    return span.attributes.get("gcp.vertex.agent.tool_response") in (None, "{}", {})


def _arguments_in_events(span: Span) -> Iterator[object]:
    """Arguments in events on the tool span itself: `gen_ai.tool.message`, or a tool_call part of the input messages."""
    call_id, name = span.attributes.get(CALL_ID), span.attributes.get(TOOL_NAME)
    for event in span.events:
        if event.name == "gen_ai.tool.message":
            content = event.attributes.get("content")
            if content is not None and event.attributes.get("id") in (None, call_id):
                yield content
        elif event.name == _DETAILS_EVENT:
            for part in _parts(event.attributes.get("gen_ai.input.messages"), "tool_call"):
                same_id = part.get("id") == call_id if call_id is not None else part.get("name") == name
                if same_id and part.get("arguments") is not None:
                    yield part["arguments"]


# --- calls that a model asked for


def _proposals(span: Span) -> Iterator[Proposal]:
    attributes = span.attributes
    for value in (
        attributes.get("gen_ai.output.messages"),
        *(event.attributes.get("gen_ai.output.messages") for event in span.events if event.name == _DETAILS_EVENT),
    ):
        for part in _parts(value, "tool_call"):
            yield from _proposal(part.get("name"), part.get("id"))
    for event in span.events:
        if event.name == "gen_ai.choice":
            for call in _tool_calls(event.attributes):
                function = call.get("function")
                inner = cast("dict[str, object]", function) if isinstance(function, dict) else call
                yield from _proposal(inner.get("name"), call.get("id"))
    for key in attributes:
        if key.startswith("gen_ai.completion.") and ".tool_calls." in key and key.endswith(".name"):
            yield from _proposal(attributes.get(key), attributes.get(key.removesuffix("name") + "id"))


def _proposal(name: object, call_id: object) -> Iterator[Proposal]:
    if isinstance(name, str) and name:
        yield Proposal(name, call_id if isinstance(call_id, str) and call_id and call_id not in NOTHING else None)


def _tool_calls(attributes: Attributes) -> Iterator[dict[str, object]]:
    for value in (attributes.get("tool_calls"), attributes.get("message")):
        found = _json(value)
        if isinstance(found, dict):
            found = cast("dict[str, object]", found).get("tool_calls")
        if isinstance(found, list):
            yield from (
                cast("dict[str, object]", item) for item in cast("list[object]", found) if isinstance(item, dict)
            )


def _parts(value: object, kind: str) -> Iterator[dict[str, object]]:
    """The parts of a type in messages of the form `[{"role": ..., "parts": [{"type": ...}]}]`, or their JSON text."""
    if isinstance(value, str) and f'"{kind}"' not in value:
        return
    messages = _json(value)
    for message in cast("list[object]", messages) if isinstance(messages, list) else []:
        parts = cast("dict[str, object]", message).get("parts") if isinstance(message, dict) else None
        for part in cast("list[object]", parts) if isinstance(parts, list) else []:
            if isinstance(part, dict) and cast("dict[str, object]", part).get("type") == kind:
                yield cast("dict[str, object]", part)


def _json(value: object) -> object:
    if not isinstance(value, str):
        return value
    if len(value) > _MAX_MESSAGES_TEXT:
        return None
    try:
        return parse_json(value)
    except ValueError:
        return None
