"""Spans as plain objects, as test suites and log queries of agents dump them: `trace_id`, `span_id`, `attributes`, ...

Also `{"spans": [...]}` of such. Lost: trace flags and dropped counts; times are as exact as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.traces.exports.base import (
    MICROSECOND_NS,
    Json,
    each_span,
    events_of,
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

_NEEDED = frozenset({"trace_id", "span_id", "name", "start_time", "attributes"})


class PlainSpans:
    """`{"trace_id", "span_id", "parent_span_id", "name", "start_time", "end_time", "attributes", ...}`."""

    name = "plain-spans"

    def claims(self, record: Json) -> bool:
        """Whether it is such a span, or an object with a list of them."""
        if record.keys() >= _NEEDED:
            return isinstance(record["attributes"], dict)
        found = record.get("spans")
        return is_list_of_objects(found) and cast("list[Json]", found)[0].keys() >= _NEEDED

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record."""

        def make(item: Json) -> Span:
            return _span(item, notes)

        if record.keys() >= _NEEDED:
            return each_span([record], notes, make)
        return each_span(objects_of(record.get("spans"), notes), notes, make)


def _span(item: Json, notes: ReadNotes) -> Span:
    status, scope = item.get("status"), item.get("scope")
    found = object_of(status)
    code = found.get("code", found.get("status_code")) if found else item.get("status_code", status)
    start = item.get("start_time")
    is_exact = isinstance(start, int) and start > 10**17
    return Span(
        trace_id=trace_id_of(item.get("trace_id"), notes),
        span_id=span_id_of(item.get("span_id"), notes),
        parent_id=parent_id_of(item.get("parent_span_id", item.get("parent_id")), notes),
        name=text_of(item.get("name")),
        start_ns=instant_ns(start),
        end_ns=instant_ns(item.get("end_time")),
        attributes=plain_attributes(object_of(item.get("attributes"))),
        events=events_of(item.get("span_events", item.get("events")), notes),
        failed=failed_of(code),
        status_message=text_of(found.get("message", found.get("description"))),
        scope=text_of(object_of(scope).get("name")) or text_of(scope),
        producer=producer_of_resource(object_of(item.get("resource")).get("attributes", item.get("resource"))),
        time_unit_ns=1 if is_exact else 2 * MICROSECOND_NS,
    )
