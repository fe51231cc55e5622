"""CrewAI, as OpenInference's instrumentor records it: its wrappers or its event listener.

Source: openinference-instrumentation-crewai `_wrappers.py` and `_event_listener.py`: `tool.parameters` is the schema,
`input.value` has the arguments of the Python call.
"""

from __future__ import annotations

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import bound_arguments
from grader.traces.span import Span
from grader.traces.vocabularies.base import Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME, call_id_of


class CrewAI:
    """Spans of scopes with `crewai` in their names."""

    name = "crewai"
    scopes = ("crewai",)
    marks = frozenset[str]()

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """Tools with the arguments of the call, and calls that were refused for them."""
        attributes = span.attributes
        name = attributes.text(TOOL_NAME)
        if "crewai" not in span.scope.lower() or name is None or attributes.text(KIND) != "TOOL":
            return None
        if span.failed and span.status_message.startswith(f"Tool '{name}' arguments validation failed"):
            why = ExclusionReason.INVALID_ARGUMENTS
            return Reading(Role.EXCLUDED, self.name, name=name, why_excluded=why, detail=span.status_message[:200])
        return Reading(
            Role.TOOL,
            self.name,
            name=name,
            call_id=call_id_of(attributes),
            arguments=bound_arguments(attributes.get("input.value"), attributes.get("tool.parameters"), rules),
            overrules=True,
        )
