"""LangChain and LangGraph: OpenInference's instrumentor, OpenLLMetry's, and the OpenTelemetry export of LangSmith.

Source: openinference-instrumentation-langchain `_tracer.py` (the kind AGENT for every run with "agent" in its name, an
input of one key without its key, the call id only in the result, times made through floating point, interrupts with
the status OK); opentelemetry-instrumentation-langchain (arguments in an envelope); LangSmith (the name of the tool only
in that of the span).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.traces.arguments import arguments_from, json_of
from grader.traces.span import Attributes, Span
from grader.traces.vocabularies.base import Proposal, Reading, Role
from grader.traces.vocabularies.openinference import KIND, TOOL_NAME, call_id_of
from grader.traces.vocabularies.proposals import in_tool_calls, objects_in, trusted_id

_LANGSMITH_KIND = "langsmith.span.kind"
_FLOAT_TIME_NS = 256
"""How exact nanoseconds are that went through a 64-bit float."""
_NO_TOOLS = frozenset({"LLM", "CHAIN", "RETRIEVER", "EMBEDDING", "PROMPT"})
_BAD_ARGUMENTS = re.compile(r"langchain_core/tools/base\.py\", line [0-9]+, in (?:_parse_input|_to_args_and_kwargs)\b")
_TITLE = re.compile(r"[0-9]{1,9} validation errors? for ([^\n]{1,300})(?:\n|\Z)")
_ENVELOPES = ("output", "kwargs", "data", "update")
_RESULTS = ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output", "gen_ai.completion")


class LangChain:
    """Spans of scopes with `langchain` or `langgraph` in their names, and those of LangSmith."""

    name = "langchain"
    scopes = ("langchain", "langgraph", "langsmith")
    marks = frozenset({_LANGSMITH_KIND})

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What LangChain's habits say beyond the general vocabularies."""
        attributes = span.attributes
        if _LANGSMITH_KIND in attributes or "langsmith" in span.scope:
            return self._of_langsmith(span, rules)
        if not any(part in span.scope for part in ("langchain", "langgraph")):
            return None
        kind, name = attributes.text(KIND), attributes.text(TOOL_NAME) or attributes.text("gen_ai.tool.name")
        if kind == "AGENT" and name is None and "agent" in span.name.lower() and not _is_agent_input(attributes):
            return Reading(
                Role.POSSIBLE_TOOL, self.name, detail=f"an agent or a tool with agent in its name: {span.name[:100]}"
            )
        if name is None or (kind is not None and kind in _NO_TOOLS):
            return None
        call_id = call_id_of(attributes) or trusted_id(attributes.get("gen_ai.tool.call.id")) or _id_in_result(span)
        refused = _refusal(span, name)
        if refused is not None:
            return self._excluded(refused, name, call_id)
        unit = _FLOAT_TIME_NS if "openinference" in span.scope else 1
        return Reading(Role.TOOL, self.name, name=name, call_id=call_id, time_unit_ns=unit)

    def _excluded(self, refused: tuple[ExclusionReason, str], name: str, call_id: str | None) -> Reading:
        why, detail = refused
        return Reading(Role.EXCLUDED, self.name, name=name, call_id=call_id, why_excluded=why, detail=detail)

    def _of_langsmith(self, span: Span, rules: ContentRules) -> Reading | None:
        attributes = span.attributes
        kind = attributes.text(_LANGSMITH_KIND)
        operation = attributes.get("gen_ai.operation.name")
        if kind == "tool" or (operation == "execute_tool" and "gen_ai.tool.name" not in attributes):
            name = attributes.text("gen_ai.tool.name") or span.name
            if not name:
                return None
            call_id = trusted_id(attributes.get("gen_ai.tool.call.id")) or _id_in_result(span)
            refused = _refusal(span, name)
            if refused is not None:
                return self._excluded(refused, name, call_id)
            given = json_of(attributes.get("gen_ai.prompt"))
            inner: object = given
            if isinstance(given, dict):
                inner = cast("dict[str, object]", given).get("input", cast("object", given))
            arguments = arguments_from(inner, rules)
            return Reading(Role.TOOL, self.name, name=name, call_id=call_id, arguments=arguments, overrules=True)
        if kind == "llm":
            return Reading(Role.MODEL, self.name, proposals=tuple(_asked_in(attributes.get("gen_ai.completion"))))
        return (
            Reading(Role.OTHER, self.name) if kind in {"chain", "retriever", "embedding", "prompt", "parser"} else None
        )


def _is_agent_input(attributes: Attributes) -> bool:
    """LangGraph runs an agent on a state with messages; a tool gets its arguments."""
    value = attributes.get("input.value")
    return not isinstance(value, str) or "messages" in value


def _refusal(span: Span, name: str) -> tuple[ExclusionReason, str] | None:
    """Why the tool's function did not run to its end, or not at all: an interrupt, or its arguments.

    Arguments are checked inside `BaseTool.run`: then its steps for that stand in the stack trace, or the model that
    refused them has the tool's name.
    """
    for event in span.events:
        if event.name != "exception":
            continue
        kind = str(event.attributes.get("exception.type")).rsplit(".", 1)[-1]
        text, trace = (event.attributes.text(f"exception.{key}") or "" for key in ("message", "stacktrace"))
        # LangSmith writes all there is into the message, and no type.
        if kind == "GraphInterrupt" or (kind == "Exception" and text.startswith("GraphInterrupt(")):
            return ExclusionReason.DEFERRED, "interrupted, to be run again"
        is_validation = kind == "ValidationError" or "ValidationError: " in text
        is_of_arguments = _BAD_ARGUMENTS.search(f"{trace}\n{text}") or (
            kind == "ValidationError" and (found := _TITLE.match(text)) is not None and found[1] == name
        )
        if is_validation and is_of_arguments:
            return ExclusionReason.INVALID_ARGUMENTS, text.split("\n", 1)[0][:200]
    return None


def _asked_in(completion: object) -> Iterator[Proposal]:
    """Calls in the answer of a model as LangSmith serializes it."""
    value = json_of(completion)
    generations = cast("dict[str, object]", value).get("generations") if isinstance(value, dict) else None
    for batch in cast("list[object]", generations) if isinstance(generations, list) else []:
        for generation in objects_in(batch):
            message = generation.get("message")
            if isinstance(message, dict):
                found = cast("dict[str, object]", message)
                yield from in_tool_calls(found.get("kwargs", found))


def _id_in_result(span: Span) -> str | None:
    """The id in a recorded `ToolMessage`, which may stand in one or two envelopes."""
    for key in _RESULTS:
        text = span.attributes.get(key)
        if isinstance(text, str) and "tool_call_id" not in text:
            continue
        value = json_of(text)
        for _ in range(4):
            if not isinstance(value, dict):
                break
            entries = cast("dict[str, object]", value)
            found = trusted_id(entries.get("tool_call_id"))
            if found is not None:
                return found
            value = next((entries[key] for key in _ENVELOPES if entries.get(key)), None)
    return None
