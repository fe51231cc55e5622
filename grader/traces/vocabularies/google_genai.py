"""Google's Gen AI SDK, whose OpenTelemetry instrumentation writes each argument as an attribute of its own.

Source: opentelemetry-instrumentation-google-genai `tool_call_wrapper.py`: `code.function.parameters.NAME.value`. Unless
content is captured there are only `.type`s; values that are no text are written as the text of a Python value.
"""

from __future__ import annotations

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments, recorded_arguments
from grader.traces.arguments import arguments_from
from grader.traces.span import Attributes, Span, Unreadable
from grader.traces.vocabularies.base import Reading, Role

_PREFIX, _VALUE, _TYPE = "code.function.parameters.", ".value", ".type"
_RESULT = "code.function.return.value"


class GoogleGenAI:
    """Tool spans of scopes with `google_genai` in their names."""

    name = "google_genai"
    scopes = ("google_genai", "google-genai")
    marks = frozenset({_RESULT, "code.function.parameters"})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """The arguments of a tool, gathered."""
        attributes = span.attributes
        name = attributes.text("gen_ai.tool.name")
        if name is None or not any(key.startswith("code.function.") for key in attributes):
            return None
        has_returned = _RESULT in attributes and not span.failed
        arguments = _arguments(attributes, rules)
        return Reading(Role.TOOL, self.name, name=name, arguments=arguments, has_returned=has_returned)


def _arguments(attributes: Attributes, rules: ContentRules) -> ToolArguments:
    """All values, if each parameter that has a type has one; a single one that is missing makes the rest a part."""
    names = {
        key.removeprefix(_PREFIX).rsplit(".", 1)[0]
        for key in attributes
        if key.startswith(_PREFIX) and key.endswith((_VALUE, _TYPE))
    }
    values = {name: attributes.get(f"{_PREFIX}{name}{_VALUE}") for name in names}
    if not names or any(value is None for value in values.values()):
        return NOT_RECORDED
    if any(isinstance(value, Unreadable) for value in values.values()):
        return arguments_from(Unreadable.CONFLICTING, rules)
    return recorded_arguments(values, rules)
