"""OpenLLMetry: spans with `traceloop.span.kind`, of its instrumentations and of the decorators of Traceloop's SDK.

Source: traceloop/openllmetry. Newer instrumentations write GenAI names as well, which are read first; a `task` is no
tool, although OpenInference's bridge gives it the kind TOOL.
"""

from __future__ import annotations

from typing import cast

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments
from grader.traces.arguments import arguments_from, bound_arguments, json_of
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role

_KIND = "traceloop.span.kind"


class Traceloop:
    """Spans with `traceloop.span.kind`."""

    name = "traceloop"
    scopes = ()
    marks = frozenset({_KIND})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Tools by the name of their entity; agents, tasks and workflows."""
        attributes = span.attributes
        kind = attributes.get(_KIND)
        if kind == "tool":
            name = attributes.text("traceloop.entity.name")
            if "gen_ai.tool.name" in attributes:
                return Reading(Role.OTHER, self.name)
            if name is None:
                detail = f"a tool was executed, its name is not recorded ({span.name[:100]})"
                return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
            return Reading(Role.TOOL, self.name, name=name, arguments=_arguments(span, rules), overrules=True)
        if kind == "agent":
            return Reading(Role.AGENT, self.name)
        if kind == "task" and attributes.get("gen_ai.operation.name") != "execute_tool":
            return Reading(Role.OTHER, self.name, overrules=True)
        return Reading(Role.OTHER, self.name) if kind == "workflow" else None


def _arguments(span: Span, rules: ContentRules) -> ToolArguments:
    """`{"inputs": {...}}` of LangChain, `{"args", "kwargs"}` of a decorated function, `{"arguments": ...}` of MCP."""
    value = span.attributes.get("traceloop.entity.input")
    if value is None:
        return NOT_RECORDED
    found = json_of(value)
    if not isinstance(found, dict):
        return arguments_from(value, rules)
    entries = cast("dict[str, object]", found)
    if isinstance(entries.get("arguments"), dict) and entries.keys() <= {"arguments", "name", "tool_name", "_meta"}:
        return arguments_from(entries["arguments"], rules)
    return bound_arguments(value, None, rules)
