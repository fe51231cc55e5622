"""Traces of Langfuse: what its interface and its API give, `{"trace", "observations"}` or observations alone.

Lost: trace flags, dropped counts, events, and whether a status was set to OK; times have milliseconds. Langfuse takes
arguments, results and messages out of the attributes into `input` and `output`; they are read there.
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
    is_list_of_objects,
    object_of,
    objects_of,
    parent_id_of,
    plain_attributes,
    producer_of_resource,
    span_id_of,
    text_of,
    trace_id_of,
)
from grader.traces.span import ReadNotes, Span
from grader.traces.vocabularies.langfuse import INPUT, OUTPUT, TYPE

_CONTENT = frozenset(
    {"input.value", "output.value", "tool.parameters", "tool_arguments", "events", "ai.toolCall.args", "input"}
    | {"gen_ai.tool.call.arguments", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.prompt"}
    | {"gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.llm_response", "traceloop.entity.input"}
    | {"ai.response.toolCalls", "request"}
)
"""Attributes that hold content: where one of them is left, nothing was taken out."""


class Langfuse:
    """`{"trace": {...}, "observations": [...]}`, a trace with its observations inside, or observations."""

    name = "langfuse"

    def claims(self, record: Json) -> bool:
        """Whether it is a trace of Langfuse, an observation, or a page of them."""
        if _is_observation(record):
            return True
        for key in ("observations", "data"):
            found = record.get(key)
            if is_list_of_objects(found) and _is_observation(cast("list[Json]", found)[0]):
                return True
        return False

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record."""
        trace = object_of(record.get("trace")) or record

        def make(item: Json) -> Span:
            return _span(item, trace, notes)

        if _is_observation(record):
            return each_span([record], notes, make)
        found = record.get("observations", record.get("data"))
        meta = object_of(record.get("meta"))
        pages, page = meta.get("totalPages"), meta.get("page")
        if isinstance(pages, int) and isinstance(page, int) and pages > 1:
            notes.capacity = f"page {page} of {pages} of Langfuse's API"
        return each_span(objects_of(found, notes), notes, make)


def _is_observation(record: Json) -> bool:
    has_trace = "traceId" in record or "trace_id" in record
    return has_trace and "type" in record and "id" in record and ("startTime" in record or "start_time" in record)


def _field(item: Json, name: str, snake: str) -> object:
    return item.get(name, item.get(snake))


def _span(item: Json, trace: Json, notes: ReadNotes) -> Span:
    metadata = object_of(item.get("metadata"))
    start = instant_ns(_field(item, "startTime", "start_time"))
    end = instant_ns(_field(item, "endTime", "end_time"))
    kind = text_of(item.get("type")).lower()
    if kind == "event" and end is None:
        end = start
    attributes = dict(object_of(metadata.get("attributes")))
    if _CONTENT.isdisjoint(attributes):
        attributes |= {TYPE: kind, INPUT: item.get("input"), OUTPUT: item.get("output")}
    level = text_of(item.get("level"))
    trace_id = _field(item, "traceId", "trace_id")
    return Span(
        trace_id=trace_id_of(trace_id if trace_id is not None else trace.get("id"), notes),
        span_id=span_id_of(item.get("id"), notes),
        parent_id=parent_id_of(_field(item, "parentObservationId", "parent_observation_id"), notes),
        name=text_of(item.get("name")),
        start_ns=start,
        end_ns=end,
        attributes=plain_attributes(attributes),
        failed=failed_of(level),
        status_message=text_of(_field(item, "statusMessage", "status_message")),
        scope=text_of(object_of(metadata.get("scope")).get("name")),
        producer=producer_of_resource(metadata.get("resourceAttributes")),
        time_unit_ns=MILLISECOND_NS,
    )
