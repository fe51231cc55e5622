"""pydantic-ai and Logfire: tools that a model's answer goes through, calls that were refused, and older names.

Source: pydantic-ai `_instrumentation.py` and `capabilities/instrumentation.py`, versions 1 to 5; logfire `tracer.py`.
Before the names of GenAI, arguments and result were `tool_arguments` and `tool_response`. An output function gets the
span of a tool; so does a call that was refused for its arguments, or waits for an approval.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from, json_of
from grader.traces.span import Span
from grader.traces.vocabularies.base import Proposal, Reading, Role
from grader.traces.vocabularies.genai import proposals_of
from grader.traces.vocabularies.proposals import in_tool_calls, objects_in, trusted_id

_ARGUMENTS = "tool_arguments"
_STAGE = "pydantic_ai.tool.failure_stage"
_DEFERRAL = "pydantic_ai.tool.deferral.name"
_OUTPUT_FUNCTION = "running output function"
_REQUEST = "model_request_parameters"
_WRAPPER = re.compile(r"running (?:[0-9]+ )?tools?\Z")


class PydanticAI:
    """Spans of pydantic-ai and of Logfire's integrations."""

    name = "pydantic_ai"
    scopes = ("pydantic-ai", "pydantic_ai", "logfire")
    marks = frozenset({_ARGUMENTS, _STAGE, _DEFERRAL, _REQUEST, "logfire.msg"})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What pydantic-ai's habits say beyond the general vocabularies."""
        attributes = span.attributes
        why = self._why_none(span)
        if why is not None:
            return self._excluded(why, span)
        name = attributes.text("gen_ai.tool.name")
        has_returned = "tool_response" in attributes and "error.type" not in attributes
        if name is not None and (_ARGUMENTS in attributes or has_returned):
            call_id = trusted_id(attributes.get("gen_ai.tool.call.id"))
            arguments = arguments_from(attributes.get(_ARGUMENTS), rules)
            return Reading(
                Role.TOOL, self.name, name=name, call_id=call_id, arguments=arguments, has_returned=has_returned
            )
        if name is None and _WRAPPER.match(span.name) and "gen_ai.operation.name" not in attributes:
            return Reading(Role.OTHER, self.name)
        if name is None and {"agent_name", "model_name"} <= attributes.raw.keys():
            return Reading(Role.AGENT, self.name)
        if "gen_ai.request.model" in attributes and ("events" in attributes or _REQUEST in attributes):
            asked = tuple(_proposals(attributes.get("events"))) or tuple(proposals_of(span))
            output = _output_tools(attributes.get(_REQUEST))
            proposals = tuple(item for item in asked if item.name not in output)
            return Reading(Role.MODEL, self.name, proposals=proposals, overrules=True)
        return None

    def _why_none(self, span: Span) -> ExclusionReason | None:
        attributes = span.attributes
        message = attributes.text("logfire.msg") or ""
        if message.startswith(_OUTPUT_FUNCTION) or span.name.startswith(_OUTPUT_FUNCTION):
            return ExclusionReason.OUTPUT_FUNCTION
        if attributes.get(_STAGE) == "validation":
            return ExclusionReason.INVALID_ARGUMENTS
        return ExclusionReason.DEFERRED if _DEFERRAL in attributes else None

    def _excluded(self, why: ExclusionReason, span: Span) -> Reading:
        name = span.attributes.text("gen_ai.tool.name")
        call_id = trusted_id(span.attributes.get("gen_ai.tool.call.id"))
        return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=span.name[:200])


def _output_tools(request: object) -> frozenset[object]:
    """Names of the tools by which the model gives its final answer: nothing is executed for them."""
    found = json_of(request)
    listed = cast("dict[str, object]", found).get("output_tools") if isinstance(found, dict) else None
    return frozenset(tool.get("name") for tool in objects_in(listed) if isinstance(tool.get("name"), str))


def _proposals(events: object) -> Iterator[Proposal]:
    """The calls in the answer among the events that are kept as one attribute."""
    for event in objects_in(events):
        if event.get("event.name") == "gen_ai.choice":
            yield from in_tool_calls(event.get("message"))
