"""Rows of the table `records` (or `records_all`) of Pydantic Logfire, as its query API gives them in JSON.

Lost: trace flags and dropped counts; a query has a limit on its rows; times have microseconds. Pending spans come only
with `records_all`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.traces.arguments import json_of
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

_NEEDED = frozenset({"trace_id", "span_id", "span_name", "start_timestamp"})
_MOST_ROWS = frozenset({500, 10_000})
"""The number of rows that a query gives unless told otherwise, and at most."""


class Logfire:
    """`{"rows": [...]}`, `{"columns": [{"name", "values"}]}`, or rows one by one."""

    name = "logfire"

    def claims(self, record: Json) -> bool:
        """Whether it is a row of `records`, or the answer to a query that has such."""
        if record.keys() >= _NEEDED:
            return True
        rows = record.get("rows")
        if is_list_of_objects(rows):
            return cast("list[Json]", rows)[0].keys() >= _NEEDED
        columns = record.get("columns")
        if not is_list_of_objects(columns):
            return False
        listed = [object_of(column) for column in cast("list[object]", columns)[:500]]
        return {text_of(column.get("name")) for column in listed if "values" in column} >= _NEEDED

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record."""

        def make(item: Json) -> Span:
            return _span(item, notes)

        if record.keys() >= _NEEDED:
            return each_span([record], notes, make)
        rows = list(objects_of(record.get("rows"), notes)) if "rows" in record else list(_rows(record, notes))
        if len(rows) in _MOST_ROWS:
            notes.capacity = f"exactly {len(rows)} rows, which is a limit of Logfire's queries"
        return each_span(rows, notes, make)


def _rows(record: Json, notes: ReadNotes) -> Iterator[Json]:
    columns = [
        (text_of(column.get("name")), cast("list[object]", column.get("values")))
        for column in objects_of(record.get("columns"), notes)
        if isinstance(column.get("values"), list)
    ]
    lengths = {len(values) for _, values in columns}
    if len(lengths) != 1:
        notes.bad_record("columns of different lengths")
        return
    for number in range(lengths.pop()):
        yield {name: values[number] for name, values in columns}


def _span(item: Json, notes: ReadNotes) -> Span:
    start, kind = instant_ns(item.get("start_timestamp")), text_of(item.get("kind"))
    end = instant_ns(item.get("end_timestamp"))
    attributes = dict(object_of(item.get("attributes")))
    parent = item.get("parent_span_id")
    if kind == "pending_span":
        attributes["logfire.span_type"] = "pending_span"
    events = item.get("otel_events")
    return Span(
        trace_id=trace_id_of(item.get("trace_id"), notes),
        span_id=span_id_of(item.get("span_id"), notes),
        parent_id=parent_id_of(parent, notes),
        name=text_of(item.get("span_name")),
        start_ns=start,
        end_ns=start if end is None and kind in {"log", "span_event"} else end,
        attributes=plain_attributes(attributes),
        events=events_of(json_of(events), notes),
        failed=failed_of(item.get("otel_status_code")),
        status_message=text_of(item.get("otel_status_message")),
        scope=text_of(item.get("otel_scope_name")),
        producer=producer_of_resource(item.get("otel_resource_attributes")),
        time_unit_ns=MICROSECOND_NS,
    )
