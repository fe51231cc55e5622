"""Google's Agent Development Kit: spans of its own tracer, and OpenInference's instrumentor for it.

Source: google/adk-python `telemetry/tracing.py`. Content is in `gcp.vertex.agent.*`; parallel calls get one span more
that sums them up; the status is often left unset; a tool's span lies inside that of the model call that asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.core.tools.arguments import NOT_RECORDED, ArgumentState, ContentRules, ToolArguments
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import NOTHING, arguments_from, json_of
from grader.traces.span import Attributes, Span
from grader.traces.vocabularies.base import MERGED_TOOLS, Proposal, Reading, Role
from grader.traces.vocabularies.proposals import proposal, trusted_id

_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
_RESPONSE = "gcp.vertex.agent.tool_response"
_RESPONSES = (_RESPONSE, "gen_ai.tool.call.result", "output.value")
"""ADK's own name for the answer, the one it writes since 2.x, and OpenInference's."""
_LLM_RESPONSE = "gcp.vertex.agent.llm_response"
_TOOL_ERROR = "TOOL_ERROR"
_REFUSED = "mandatory input parameters are not present"
"""How ADK answers a call that it did not make."""
_TRANSFER = "transfer_to_agent"
"""ADK hands over to another agent by a function of this name."""


class GoogleADK:
    """Spans of the scope `gcp.vertex.agent`, and those that OpenInference makes of them."""

    name = "google_adk"
    scopes = ("gcp.vertex.agent", "google_adk", "google-adk")
    marks = frozenset({_ARGUMENTS, _LLM_RESPONSE})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is."""
        attributes = span.attributes
        if not any(part in span.scope for part in self.scopes) and self.marks.isdisjoint(attributes.raw):
            return None
        name = attributes.text("gen_ai.tool.name") or attributes.text("tool.name")
        is_tool = attributes.get("gen_ai.operation.name") == "execute_tool" or _ARGUMENTS in attributes
        if is_tool and (name == MERGED_TOOLS or span.name == "execute_tool (merged)"):
            return self._excluded(ExclusionReason.MERGED_SPAN, name, span)
        if is_tool and name == _TRANSFER:
            return self._excluded(ExclusionReason.HANDOFF, name, span)
        if is_tool and name is not None:
            why = _why_none(attributes)
            if why is not None:
                return self._excluded(why, name, span)
            if attributes.get("error.type") == _TOOL_ERROR and _response(attributes) == "":
                # The tool's own answer that it failed, or ADK's that it did not run: it was not recorded which.
                detail = f"{name} failed or was refused, and its answer is not recorded"
                return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail, overrules=True)
            call_id = trusted_id(attributes.get("gen_ai.tool.call.id"))
            return Reading(Role.TOOL, self.name, name=name, call_id=call_id, arguments=_arguments(attributes, rules))
        if _LLM_RESPONSE in attributes and "gen_ai.request.model" in attributes:
            return Reading(Role.MODEL, self.name, proposals=tuple(_proposals(attributes)))
        return None

    def _excluded(self, why: ExclusionReason, name: str | None, span: Span) -> Reading:
        call_id = trusted_id(span.attributes.get("gen_ai.tool.call.id"))
        return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=span.name[:200])


def _why_none(attributes: Attributes) -> ExclusionReason | None:
    """Why nothing ran: ADK makes a span, with a tool of no kind, for a tool that it does not have."""
    is_nobody = attributes.get("gen_ai.tool.type") == "BaseTool"
    if is_nobody and attributes.get("gen_ai.tool.description") == "Tool not found":
        return ExclusionReason.NOT_FOUND
    return ExclusionReason.INVALID_ARGUMENTS if _REFUSED in _response(attributes) else None


def _response(attributes: Attributes) -> str:
    """The recorded answer, empty when there is none."""
    for key in _RESPONSES:
        value = attributes.get(key)
        text = value if isinstance(value, str) else "" if value is None else str(value)
        if text not in NOTHING and text not in ("", "{}"):
            return text
    return ""


def _arguments(attributes: Attributes, rules: ContentRules) -> ToolArguments:
    """ADK writes `{}` for arguments and response when content is off; with a response, `{}` is really empty."""
    found = arguments_from(attributes.get(_ARGUMENTS), rules)
    if found.state is ArgumentState.RECORDED and found.text == "{}":
        return NOT_RECORDED if attributes.get(_RESPONSE) in (None, "{}", {}) else found
    return found


def _proposals(attributes: Attributes) -> Iterator[Proposal]:
    """The function calls in the content of the model's answer."""
    answer = json_of(attributes.get(_LLM_RESPONSE))
    content = cast("dict[str, object]", answer).get("content") if isinstance(answer, dict) else None
    parts = cast("dict[str, object]", content).get("parts") if isinstance(content, dict) else None
    for part in cast("list[object]", parts) if isinstance(parts, list) else []:
        call = cast("dict[str, object]", part).get("function_call") if isinstance(part, dict) else None
        if isinstance(call, dict):
            found = cast("dict[str, object]", call)
            if found.get("name") != _TRANSFER:
                yield from proposal(found.get("name"), found.get("id"))
