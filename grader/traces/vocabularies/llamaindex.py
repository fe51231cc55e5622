"""LlamaIndex, as OpenInference's instrumentor records it.

Source: openinference-instrumentation-llama-index `_handler.py`: `tool.parameters` is the schema; the agent's own span
gets the name of the tool that it called last; one call may have a span for `acall` and one inside it for `call`; the
workflow's context is among the arguments, and a handoff to another agent is a tool of LlamaIndex's own.
"""

from __future__ import annotations

import re
from typing import cast

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import bound_arguments, fit, json_of
from grader.traces.span import Attributes, Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME, call_id_of

_HANDOFF = "Useful for handing off to another agent."
_OBJECT = re.compile(r"<.{1,300} object at 0x[0-9a-f]{1,16}>\Z")
_BAD_CALL = re.compile(r"\(\) (?:got an unexpected keyword argument|missing [0-9]+ required)")


class LlamaIndex:
    """Spans of scopes with `llama_index` in their names."""

    name = "llamaindex"
    scopes = ("llama_index", "llama-index", "llamaindex")
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Tools with the arguments of the call, and agents that only mention a tool."""
        attributes = span.attributes
        if not any(part in span.scope.lower() for part in self.scopes):
            return None
        kind, name = attributes.text(KIND), attributes.text(TOOL_NAME)
        if name is None or kind is None:
            return None
        if kind != "TOOL":
            return Reading(Role.AGENT if kind == "AGENT" else Role.OTHER, self.name, overrules=True)
        call_id, why = call_id_of(attributes), _why_none(span, name)
        if why is not None:
            detail = span.status_message[:200] or span.name[:200]
            return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail)
        arguments = bound_arguments(_given(attributes), attributes.get("tool.parameters"), rules)
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id, arguments=arguments, overrules=True)


def _given(attributes: Attributes) -> object:
    """The arguments that the model gave: as the result repeats them, else without what is no value of JSON."""
    output = json_of(attributes.get("output.value"))
    raw = cast("dict[str, object]", output).get("raw_input") if isinstance(output, dict) else None
    if isinstance(raw, dict) and "kwargs" in raw:
        return cast("object", raw)
    given = json_of(attributes.get("input.value"))
    named = cast("dict[str, object]", given).get("kwargs") if isinstance(given, dict) else None
    if not isinstance(named, dict):
        return attributes.get("input.value")
    kept = {
        key: value
        for key, value in cast("dict[str, object]", named).items()
        if not isinstance(value, str) or _OBJECT.match(value) is None
    }
    return {**cast("dict[str, object]", given), "kwargs": kept}


def _why_none(span: Span, name: str) -> ExclusionReason | None:
    """A handoff; or arguments that Python refused when the tool's function was to be called."""
    if (span.attributes.text("tool.description") or "").startswith(_HANDOFF):
        return ExclusionReason.HANDOFF
    for event in span.events:
        if event.name == "exception" and event.attributes.get("exception.type") == "TypeError":
            text = event.attributes.text("exception.message") or ""
            given = json_of(span.attributes.get("input.value"))
            named = cast("dict[str, object]", given).get("kwargs") if isinstance(given, dict) else None
            is_of_tool = text.split("(", 1)[0].rsplit(".", 1)[-1] == name
            if _BAD_CALL.search(text) and (is_of_tool or fit(named, span.attributes.get("tool.parameters")) is False):
                return ExclusionReason.INVALID_ARGUMENTS
    return None
