"""Observations of Langfuse: those of its own SDK, and those of its export that have no OpenTelemetry attributes.

Source: langfuse SDK for Python 3: `langfuse.observation.type`, `.input` and `.output`; the name of the observation is
that of the tool. Its callback handlers used to record every step as a plain span.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.core.tools.arguments import ContentRules
from grader.traces.arguments import bound_arguments, json_of
from grader.traces.span import Span
from grader.traces.vocabularies.base import Proposal, Reading, Role
from grader.traces.vocabularies.proposals import in_blocks, in_parts, in_tool_calls, trusted_id

TYPE = "langfuse.observation.type"
INPUT = "langfuse.observation.input"
OUTPUT = "langfuse.observation.output"
_NAMES = ("gen_ai.tool.name", "tool.name")


class Langfuse:
    """Spans with `langfuse.observation.type`."""

    name = "langfuse"
    scopes = ()
    marks = frozenset({TYPE})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the observation is."""
        attributes = span.attributes
        kind = attributes.get(TYPE)
        if not isinstance(kind, str):
            return None
        kind = kind.lower()
        answer = json_of(attributes.get(OUTPUT))
        message = cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
        if kind == "tool":
            return self._tool(span, trusted_id(message.get("tool_call_id")), rules)
        if kind == "generation":
            return Reading(Role.MODEL, self.name, proposals=tuple(_proposals(cast("object", answer))))
        if kind == "agent":
            return Reading(Role.AGENT, self.name)
        if message.get("type") == "tool" or "tool_call_id" in message:
            detail = f"a plain span that gave the answer of a tool ({span.name[:100]})"
            return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
        return None if kind == "span" else Reading(Role.OTHER, self.name)

    def _tool(self, span: Span, call_id: str | None, rules: ContentRules) -> Reading | None:
        attributes = span.attributes
        name = next(filter(None, (attributes.text(key) for key in _NAMES)), None)
        if name is None and span.scope and "langfuse" not in span.scope:
            # The span of another producer, whose name may be anything.
            detail = f"a tool was executed, its name is not recorded ({span.name[:100]})"
            return Reading(Role.POSSIBLE_TOOL, self.name, detail=detail)
        name = name or span.name
        if not name:
            return Reading(Role.POSSIBLE_TOOL, self.name, detail="a tool was executed, its name is not recorded")
        arguments = bound_arguments(attributes.get(INPUT), None, rules)
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id, arguments=arguments)


def _proposals(answer: object) -> Iterator[Proposal]:
    """Calls in the output of a generation: a message, or a list of messages with parts or of blocks."""
    if not isinstance(answer, dict):
        yield from (*in_parts(answer), *in_blocks(answer))
        return
    message = cast("dict[str, object]", answer)
    yield from (
        tuple(in_tool_calls(cast("object", message)))
        or tuple(in_tool_calls(message.get("additional_kwargs")))
        or tuple(in_blocks(message.get("content")))
    )
