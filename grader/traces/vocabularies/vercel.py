"""The AI SDK of Vercel: `ai.*` attributes of its first telemetry; the newer one writes GenAI names.

Source: vercel/ai `legacy-open-telemetry.ts` and `packages/otel`. A tool that the provider runs has no span of its own
in the first, and in the second one that is made up after the model's answer (`gen_ai.tool.type` is `extension`).
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import ContentRules
from grader.traces.arguments import arguments_from
from grader.traces.span import Span
from grader.traces.vocabularies.base import Proposal, Reading, Role
from grader.traces.vocabularies.proposals import UNNAMED, finished_with_calls, objects_in, proposal, trusted_id

_OPERATION = "ai.operationId"
_TOOL_NAME = "ai.toolCall.name"
_MODEL_CALLS = (".doGenerate", ".doStream", ".doEmbed")


class Vercel:
    """Spans with `ai.operationId` or `ai.toolCall.name`."""

    name = "vercel"
    scopes = ()
    marks = frozenset({_OPERATION, _TOOL_NAME})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is."""
        attributes = span.attributes
        operation = attributes.text(_OPERATION)
        if operation == "ai.toolCall" or (operation is None and _TOOL_NAME in attributes):
            name = attributes.text(_TOOL_NAME)
            if name is None:
                detail = f"a tool was executed, its name is not recorded ({span.name[:100]})"
                return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
            return Reading(
                Role.TOOL,
                self.name,
                name=name,
                call_id=trusted_id(attributes.get("ai.toolCall.id")),
                arguments=arguments_from(attributes.get("ai.toolCall.args"), rules),
            )
        if operation is None:
            return None
        if operation.endswith(_MODEL_CALLS):
            calls = list(objects_in(attributes.get("ai.response.toolCalls")))
            is_hosted = any(call.get("providerExecuted") is True for call in calls)
            return Reading(Role.MODEL, self.name, proposals=tuple(_proposals(span, calls)), is_hosted=is_hosted)
        return Reading(Role.AGENT if operation.startswith("ai.") else Role.OTHER, self.name)


def _proposals(span: Span, calls: list[dict[str, object]]) -> Iterator[Proposal]:
    if not calls and finished_with_calls(span.attributes.get("ai.response.finishReason")):
        yield UNNAMED
    for call in calls:
        if call.get("providerExecuted") is not True:
            yield from proposal(call.get("toolName"), call.get("toolCallId"))
