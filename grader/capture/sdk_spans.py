"""Spans of the OpenTelemetry SDK as the readers of traces know them, and what they are worth in bytes."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

from grader.core.tools.arguments import ContentRules
from grader.traces.classify import classify
from grader.traces.otlp_json import producer_of
from grader.traces.span import Attributes, Span, SpanEvent

_FAILED = {StatusCode.OK: False, StatusCode.ERROR: True}
_KNOWN_PARENT, _REMOTE_PARENT = 1 << 8, 1 << 9
_SPAN_BYTES = 1_000
"""What a span takes beside what it says."""
_NO_CONTENT = ContentRules(retain_content=False)


def read_span(span: ReadableSpan) -> Span:
    """The span as a reader gives it. An open one has no end. Raises nothing for spans that the SDK made."""
    context, parent = span.context, span.parent
    assert context is not None
    remote = _KNOWN_PARENT | (_REMOTE_PARENT if parent is not None and parent.is_remote else 0)
    return Span(
        trace_id=f"{context.trace_id:032x}",
        span_id=f"{context.span_id:016x}",
        parent_id=f"{parent.span_id:016x}" if parent is not None and parent.is_valid else None,
        name=span.name,
        start_ns=span.start_time or None,
        end_ns=span.end_time or None,
        attributes=_attributes(span.attributes),
        events=tuple(SpanEvent(event.name, _attributes(event.attributes)) for event in span.events),
        failed=_FAILED.get(span.status.status_code),
        status_message=span.status.description or "",
        scope=span.instrumentation_scope.name if span.instrumentation_scope is not None else "",
        producer=producer_of(_attributes(span.resource.attributes)),
        flags=int(context.trace_flags) | remote,
        dropped_attributes=span.dropped_attributes,
        dropped_events=span.dropped_events,
        dropped_links=span.dropped_links,
    )


def is_of_an_agent(span: ReadableSpan) -> bool:
    """Whether any vocabulary knows it as a span of an agent, a model or a tool, or it looks like one, or who knows."""
    try:
        facts = classify(read_span(span), _NO_CONTENT)
    except Exception:  # noqa: BLE001 - it is called while an agent ends its span, and an unread span may be anything
        return True
    return len(facts.vocabularies) > 0 or facts.looks_like_ai


def describe(span: ReadableSpan) -> str:
    """The span's name, short, and the trace it is in."""
    context = span.context
    return f"{span.name[:100]!r} of trace {context.trace_id:032x}" if context is not None else repr(span.name[:100])


def content_bytes(span: ReadableSpan) -> int:
    """About how much memory it takes to keep the span."""
    size = _SPAN_BYTES + sum(len(key) + _size(value) for key, value in (span.attributes or {}).items())
    for event in span.events:
        size += _SPAN_BYTES + sum(len(key) + _size(value) for key, value in (event.attributes or {}).items())
    return size


def _size(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(50 + len(str(key)) + _size(item) for key, item in cast("Mapping[object, object]", value).items())
    if isinstance(value, Sequence):
        return sum(50 + _size(item) for item in cast("Sequence[object]", value))
    return 8


def _attributes(attributes: Mapping[str, object] | None) -> Attributes:
    return Attributes({} if attributes is None else _copy(attributes), _plain)


def _copy(attributes: Mapping[str, object]) -> dict[str, object]:
    """A copy. An open span may get attributes in another thread meanwhile: then once more."""
    while True:
        try:
            return dict(attributes)
        except RuntimeError:
            continue


def _plain(value: object) -> object:
    """An attribute's value as it comes out of OTLP: no tuples, bytes as base64, no number that JSON lacks."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value
