"""Traces of DeepEval: `{"baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans"}`.

They have no OpenTelemetry attributes; what they say is put under the names of GenAI. Lost: call ids, dropped counts;
times have milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.traces.exports.base import (
    MILLISECOND_NS,
    Json,
    each_span,
    failed_of,
    instant_ns,
    objects_of,
    parent_id_of,
    plain_attributes,
    span_id_of,
    text_of,
    trace_id_of,
)
from grader.traces.span import ReadNotes, Span

_KINDS = ("baseSpans", "agentSpans", "llmSpans", "retrieverSpans", "toolSpans")


class DeepEval:
    """One trace, its spans in a list for each kind."""

    name = "deepeval"

    def claims(self, record: Json) -> bool:
        """Whether it is a trace of DeepEval."""
        return "toolSpans" in record and "llmSpans" in record

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of the trace."""
        for kind in _KINDS:

            def make(item: Json, kind: str = kind) -> Span:
                return _span(item, kind, record, notes)

            yield from each_span(objects_of(record.get(kind), notes), notes, make)


def _span(item: Json, kind: str, trace: Json, notes: ReadNotes) -> Span:
    return Span(
        trace_id=trace_id_of(trace.get("uuid"), notes),
        span_id=span_id_of(item.get("uuid"), notes),
        parent_id=parent_id_of(item.get("parentUuid"), notes),
        name=text_of(item.get("name")),
        start_ns=instant_ns(item.get("startTime")),
        end_ns=instant_ns(item.get("endTime")),
        attributes=plain_attributes(_attributes(item, kind)),
        failed=failed_of(item.get("status")),
        status_message=text_of(item.get("error")),
        scope="deepeval",
        time_unit_ns=MILLISECOND_NS,
    )


def _attributes(item: Json, kind: str) -> Json:
    if kind == "toolSpans":
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": item.get("name"),
            "gen_ai.tool.call.arguments": item.get("input"),
            "gen_ai.tool.call.result": item.get("output"),
        }
    if kind == "llmSpans":
        asked = item.get("toolsCalled")
        parts = [
            {"type": "tool_call", "name": cast("Json", call).get("name")}
            for call in (cast("list[object]", asked) if isinstance(asked, list) else [])
            if isinstance(call, dict)
        ]
        messages = [{"role": "assistant", "parts": parts}]
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": item.get("model"),
            "gen_ai.output.messages": messages,
        }
    if kind == "agentSpans":
        return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": item.get("name")}
    return {"gen_ai.operation.name": "retrieval"} if kind == "retrieverSpans" else {}
