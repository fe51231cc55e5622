"""Spans as `ReadableSpan.to_json()` of the OpenTelemetry SDK for Python writes them, also to the console.

Lost: the instrumentation scope, the trace flags, all dropped counts, and nanoseconds (microseconds are kept, made
through floating point).
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.traces.exports.base import (
    MICROSECOND_NS,
    Json,
    each_span,
    events_of,
    failed_of,
    instant_ns,
    object_of,
    parent_id_of,
    plain_attributes,
    producer_of_resource,
    span_id_of,
    text_of,
    trace_id_of,
)
from grader.traces.span import ReadNotes, Span


class OTelSDK:
    """One object a span, with `context`, `kind` as `SpanKind.INTERNAL` and ISO times."""

    name = "otel-sdk-json"

    def claims(self, record: Json) -> bool:
        """Whether it is such a span."""
        return (
            isinstance(record.get("context"), dict)
            and "span_kind" not in record
            and {"name", "start_time", "parent_id", "attributes"} <= record.keys()
        )

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The span."""

        def make(item: Json) -> Span:
            context, status = object_of(item.get("context")), object_of(item.get("status"))
            return Span(
                trace_id=trace_id_of(context.get("trace_id"), notes),
                span_id=span_id_of(context.get("span_id"), notes),
                parent_id=parent_id_of(item.get("parent_id"), notes),
                name=text_of(item.get("name")),
                start_ns=instant_ns(item.get("start_time")),
                end_ns=instant_ns(item.get("end_time")),
                attributes=plain_attributes(object_of(item.get("attributes"))),
                events=events_of(item.get("events"), notes),
                failed=failed_of(status.get("status_code")),
                status_message=text_of(status.get("description")),
                producer=producer_of_resource(object_of(item.get("resource")).get("attributes")),
                time_unit_ns=2 * MICROSECOND_NS,
            )

        return each_span([record], notes, make)
