"""smolagents, as OpenInference's instrumentor records it.

Source: openinference-instrumentation-smolagents: `input.value` is `{"args", "kwargs", "sanitize_inputs_outputs"}`,
`tool.parameters` the schema, name by name; `final_answer` is how the agent gives its answer.
"""

from __future__ import annotations

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import bound_arguments
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME

_MARK = '"sanitize_inputs_outputs"'


class Smolagents:
    """Spans of scopes with `smolagents` in their names, and tool spans whose input is that of `Tool.__call__`."""

    name = "smolagents"
    scopes = ("smolagents",)
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Tools with the arguments of the call, without `final_answer`."""
        attributes = span.attributes
        given, name = attributes.get("input.value"), attributes.text(TOOL_NAME)
        if name is None or (attributes.text(KIND) or "TOOL").upper() != "TOOL":
            return None
        if "smolagents" not in span.scope and not (isinstance(given, str) and _MARK in given):
            return None
        if name == "final_answer":
            why = ExclusionReason.OUTPUT_FUNCTION
            return Reading(Role.EXCLUDED, self.name, name=name, why_excluded=why, detail=span.name[:200])
        arguments = bound_arguments(given, attributes.get("tool.parameters"), rules)
        return Reading(Role.TOOL, self.name, name=name, arguments=arguments, overrules=True)
