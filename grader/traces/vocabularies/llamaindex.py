"""LlamaIndex, as OpenInference's instrumentor records it.

Source: openinference-instrumentation-llama-index `_handler.py`: `tool.parameters` is the schema; the agent's own span
gets the name of the tool that it called last; one call may have a span for `acall` and one inside it for `call`.
"""

from __future__ import annotations

from grader.core.tool_arguments import ContentRules
from grader.traces.arguments import bound_arguments
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME, call_id_of


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
        return Reading(
            Role.TOOL,
            self.name,
            name=name,
            call_id=call_id_of(attributes),
            arguments=bound_arguments(attributes.get("input.value"), attributes.get("tool.parameters"), rules),
            overrules=True,
        )
