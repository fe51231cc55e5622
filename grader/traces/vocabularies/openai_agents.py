"""The OpenAI Agents SDK, as OpenInference, OpenLLMetry, OpenTelemetry and Logfire record it.

Source: openinference-instrumentation-openai-agents `_processor.py` (handoffs have the kind TOOL and no tool's name,
times come from ISO texts with microseconds), logfire `openai_agents.py` (the span's message template tells what it is,
`name`, `input` and `output` are plain attributes). Tools that OpenAI runs stand only in the answer of the model.
"""

from __future__ import annotations

import re

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from, fit
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME
from grader.traces.vocabularies.proposals import has_hosted_items, in_response

_TEMPLATE = "logfire.msg_template"
_ISO_TIME_NS = 2_000
"""Microseconds that were cut, and went through a 64-bit float."""
_TOOL_FAILED = "Error running tool"
_REFUSED = "Invalid JSON input for tool"
_HIDDEN = "Error details are redacted"
_NOT_FOUND = re.compile(r"Tool not found: \{'tool_name': '([^'{}]{1,200})'")
"""The status of a turn of an agent in which the model asked for a tool that does not exist."""
_ANSWERS = ("output.value", "response", "gen_ai.output.messages", "gen_ai.completion.0.content")


class OpenAIAgents:
    """Spans of scopes with `openai_agents` in their names, and those that Logfire makes."""

    name = "openai_agents"
    scopes = ("openai_agents", "openai-agents", "openai.agents")
    marks = frozenset({_TEMPLATE})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the SDK's habits say beyond the general vocabularies."""
        attributes = span.attributes
        template = attributes.get(_TEMPLATE)
        if isinstance(template, str) and template.startswith("Handoff: "):
            return self._handoff(span)
        if template == "Function: {name}":
            return self._of_logfire(span, rules)
        if template is not None and "openai_agents" not in span.scope:
            return None
        kind, name = attributes.text(KIND), attributes.text(TOOL_NAME)
        if kind == "TOOL" and name is None:
            return self._handoff(span) if span.name.startswith("handoff to ") else None
        if span.failed and _TOOL_FAILED in span.status_message:
            return self._failed(span)
        if kind == "TOOL" and span.scope:
            return Reading(Role.TOOL, self.name, name=name, time_unit_ns=_ISO_TIME_NS)
        unknown = _NOT_FOUND.match(span.status_message) if span.failed else None
        if unknown is not None:
            why = ExclusionReason.NOT_FOUND
            return Reading(
                Role.EXCLUDED, self.name, name=unknown[1], why_excluded=why, detail=span.status_message[:200]
            )
        if kind == "LLM" or "gen_ai.request.model" in attributes:
            is_hosted = any(has_hosted_items(attributes.get(key)) for key in _ANSWERS)
            asked = tuple(in_response(attributes.get("response")))
            return Reading(Role.MODEL, self.name, proposals=asked, is_hosted=is_hosted) if is_hosted or asked else None
        return None

    def _of_logfire(self, span: Span, rules: ContentRules) -> Reading:
        name = span.attributes.text("name")
        if name is None:
            detail = f"a function was executed, its name is not recorded ({span.name[:100]})"
            return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
        error = span.attributes.text("error") or ""
        if _TOOL_FAILED in error:
            refused = self._why_none(name, error, None, None)
            if refused is not None:
                return refused
        arguments = arguments_from(span.attributes.get("input"), rules)
        has_returned = "output" in span.attributes and not error and not span.failed
        return Reading(Role.TOOL, self.name, name=name, arguments=arguments, has_returned=has_returned)

    def _failed(self, span: Span) -> Reading | None:
        """A call of which the SDK says that it failed: the tool raised something, or its arguments were refused."""
        attributes = span.attributes
        name = attributes.text(TOOL_NAME) or attributes.text("gen_ai.tool.name")
        given = attributes.get("input.value")
        given = attributes.get("gen_ai.tool.call.arguments") if given is None else given
        refused = self._why_none(name, span.status_message, given, attributes.get("tool.parameters"))
        if refused is not None or name is None:
            return refused
        return Reading(Role.TOOL, self.name, name=name, time_unit_ns=_ISO_TIME_NS)

    def _why_none(self, name: str | None, said: str, given: object, schema: object) -> Reading | None:
        """An exclusion if the arguments were refused; a possible tool if that is not known; None if the tool ran.

        `said` is the SDK's error. Where it hides the tool's own words, only the schema of the arguments tells.
        """
        is_fit = fit(given, schema) if _HIDDEN in said else True
        if _REFUSED in said or is_fit is False:
            why = ExclusionReason.INVALID_ARGUMENTS
            return Reading(Role.EXCLUDED, self.name, name=name, why_excluded=why, detail=said[:200])
        if is_fit is None:
            detail = f"{name or 'a tool'} failed or its arguments were refused, and which is not recorded"
            return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail, overrules=True)
        return None

    def _handoff(self, span: Span) -> Reading:
        why = ExclusionReason.HANDOFF
        return Reading(Role.EXCLUDED, self.name, why_excluded=why, detail=span.name[:200])
