"""OTLP/JSON: spans from one decoded request (`ExportTraceServiceRequest`, the same shape as `TracesData`).

Source of the rules: opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding", and trace.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import chain
from typing import cast

from grader.core.tools.arguments import MAX_DEPTH
from grader.traces.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, exact_int, hex_id, time_ns
from grader.traces.span import Attributes, ReadNotes, Span, SpanEvent, Unreadable

Json = Mapping[str, object]

SIGNALS = ("resourceSpans", "resource_spans")
OTHER_SIGNALS = ("resourceLogs", "resourceMetrics", "resourceProfiles", "resource_logs", "resource_metrics")

_SNAKE = {
    "resourceSpans": "resource_spans",
    "scopeSpans": "scope_spans",
    "schemaUrl": "schema_url",
    "traceId": "trace_id",
    "spanId": "span_id",
    "parentSpanId": "parent_span_id",
    "traceState": "trace_state",
    "startTimeUnixNano": "start_time_unix_nano",
    "endTimeUnixNano": "end_time_unix_nano",
    "timeUnixNano": "time_unix_nano",
    "droppedAttributesCount": "dropped_attributes_count",
    "droppedEventsCount": "dropped_events_count",
    "droppedLinksCount": "dropped_links_count",
}
_REQUEST_KEYS = frozenset({"resourceSpans"})
_RESOURCE_KEYS = frozenset({"resource", "scopeSpans", "schemaUrl", "instrumentationLibrarySpans"})
_SCOPE_KEYS = frozenset({"scope", "spans", "schemaUrl", "instrumentationLibrary"})
_SPAN_KEYS = frozenset(
    {"traceId", "spanId", "parentSpanId", "traceState", "name", "kind", "startTimeUnixNano", "endTimeUnixNano"}
    | {"attributes", "events", "links", "status", "flags"}
    | {"droppedAttributesCount", "droppedEventsCount", "droppedLinksCount"}
)
_NAMED_KEYS = frozenset({"name", "version", "attributes", "droppedAttributesCount"})
_EVENT_KEYS = frozenset({"timeUnixNano", "name", "attributes", "droppedAttributesCount"})
_STATUS_KEYS = frozenset({"code", "message"})
_STATUS_CODES: Mapping[object, bool | None] = {1: False, 2: True, "STATUS_CODE_OK": False, "STATUS_CODE_ERROR": True}
_VALUE_KINDS = {
    name: camel
    for camel, snake in (
        *(("stringValue", "string_value"), ("boolValue", "bool_value"), ("bytesValue", "bytes_value")),
        *(("intValue", "int_value"), ("doubleValue", "double_value")),
        *(("arrayValue", "array_value"), ("kvlistValue", "kvlist_value")),
    )
    for name in (camel, snake)
}
"""The kinds of an `AnyValue`, in both spellings."""
_FROM_SNAKE = {snake: camel for camel, snake in _SNAKE.items()}


def is_request(value: object) -> bool:
    """Whether a decoded JSON value has the shape of an OTLP request for traces."""
    return isinstance(value, dict) and any(key in value for key in SIGNALS)


def is_other_signal(value: object) -> bool:
    """Whether it is an OTLP request for logs, metrics or profiles."""
    return isinstance(value, dict) and any(key in value for key in OTHER_SIGNALS)


def spans_of_request(request: Json, notes: ReadNotes) -> Iterator[Span]:
    """The spans of one request. What cannot be used is counted in `notes`; nothing raises."""
    for resource_spans in _objects(_camel(request, _REQUEST_KEYS, notes).get("resourceSpans"), notes):
        entry = _camel(resource_spans, _RESOURCE_KEYS, notes)
        producer = _producer(entry.get("resource"), notes)
        groups = (_objects(entry.get(key), notes) for key in ("scopeSpans", "instrumentationLibrarySpans"))
        for scope_spans in chain.from_iterable(groups):
            group = _camel(scope_spans, _SCOPE_KEYS, notes)
            scope = group.get("scope")
            if scope is None:
                scope = group.get("instrumentationLibrary")
            name = _name_of(_camel(_object(scope), _NAMED_KEYS, notes))
            for item in _objects(group.get("spans"), notes):
                span = _span(item, name, producer, notes)
                if span is not None:
                    yield span


def _span(item: Json, scope: str, producer: str, notes: ReadNotes) -> Span | None:
    notes.spans += 1
    fields = _camel(item, _SPAN_KEYS, notes)
    try:
        trace_id = _id(fields.get("traceId"), TRACE_ID_BYTES, notes)
        span_id = _id(fields.get("spanId"), SPAN_ID_BYTES, notes)
        parent_id = _id(fields.get("parentSpanId"), SPAN_ID_BYTES, notes)
        if trace_id is None or span_id is None:
            raise ValueError("a span without trace id or span id")
        if any(value is Unreadable.CONFLICTING for value in fields.values()):
            raise ValueError("a span with a key twice")
        start_ns, end_ns = time_ns(fields.get("startTimeUnixNano")), time_ns(fields.get("endTimeUnixNano"))
        status = _camel(_object(fields.get("status")), _STATUS_KEYS, notes)
        return Span(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id,
            name=_string(fields.get("name")),
            start_ns=start_ns,
            end_ns=end_ns,
            attributes=attributes_of(fields.get("attributes")),
            events=tuple(_event(event, notes) for event in _objects(fields.get("events"), notes)),
            failed=_failed(status.get("code")),
            status_message=_string(status.get("message")),
            scope=scope,
            producer=producer,
            flags=_count(fields.get("flags")),
            dropped_attributes=_count(fields.get("droppedAttributesCount")),
            dropped_events=_count(fields.get("droppedEventsCount")),
            dropped_links=_count(fields.get("droppedLinksCount")),
            time_unit_ns=1 if fields is item else _unit_ns(item),
        )
    except ValueError as error:
        notes.bad_span(str(error))
        return None


def _unit_ns(item: Json) -> int:
    """Phoenix, which writes snake case, keeps microseconds and computes nanoseconds in floating point."""
    return 2_000 if "trace_id" in item else 1


def _event(item: Json, notes: ReadNotes) -> SpanEvent:
    fields = _camel(item, _EVENT_KEYS, notes)
    return SpanEvent(_string(fields.get("name")), attributes_of(fields.get("attributes")))


def attributes_of(items: object) -> Attributes:
    """Attributes from a list of `{"key": ..., "value": AnyValue}`.

    Raises ValueError for what is no such list: without its attributes a span would only look like one of no tool.
    """
    raw: dict[str, object] = {}
    if items is not None:
        if not isinstance(items, list):
            raise ValueError("attributes that are no list")
        for item in cast("list[object]", items):
            entry = _object(item)
            key, value = entry.get("key"), entry.get("value")
            if not isinstance(key, str):
                raise ValueError("an attribute without a key")
            if key in raw and not _same(raw[key], value):
                raw[key] = Unreadable.CONFLICTING
            elif key not in raw:
                raw[key] = value
    return Attributes(raw, any_value)


def any_value(value: object, depth: int = MAX_DEPTH) -> object:
    """A JSON value from an `AnyValue`; None when it is empty. Raises ValueError when it is malformed or too deep."""
    if depth < 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if not isinstance(value, dict):
        raise ValueError("an attribute value that is no object")
    entries = cast("Json", value)
    if len(entries) == 1:
        ((name, item),) = entries.items()
        kind = _VALUE_KINDS.get(name)
        if kind is None or item is None:
            return None
    else:
        given = [
            (_VALUE_KINDS[name], item) for name, item in entries.items() if name in _VALUE_KINDS and item is not None
        ]
        if len(given) != 1:
            if len(given) > 1:
                raise ValueError("a value of two kinds: which of them another reader takes is its own affair")
            return None
        kind, item = given[0]
    if kind == "stringValue":
        return item
    if kind == "intValue":
        return exact_int(item)
    if kind == "doubleValue":
        return _double(item)
    if kind == "arrayValue":
        return [any_value(entry, depth - 1) for entry in _values(item)]
    if kind == "kvlistValue":
        return _kvlist(item, depth)
    return item


def _double(item: object) -> object:
    if not isinstance(item, int | Decimal):
        return item
    try:
        return float(item)
    except OverflowError:
        raise ValueError("a number that no double can hold") from None


def _kvlist(item: object, depth: int) -> dict[str, object]:
    result: dict[str, object] = {}
    for entry in _values(item):
        pair = _object(entry)
        key = _string(pair.get("key"))
        if key in result:
            raise ValueError("a doubled key")
        value = pair.get("value")
        result[key] = None if value is None else any_value(value, depth - 1)
    return result


def _values(item: object) -> list[object]:
    values = _object(item).get("values")
    return cast("list[object]", values) if isinstance(values, list) else []


def _same(first: object, second: object) -> bool:
    if first == second:
        return True
    try:
        return not isinstance(first, Unreadable) and any_value(first) == any_value(second)
    except (ValueError, RecursionError):
        return False


def _camel(item: Json, known: frozenset[str], notes: ReadNotes) -> Json:
    """The object with lowerCamelCase keys; unknown fields are counted. Snake case is read, and marks a lossy export."""
    if Unreadable.CONFLICTING in item.values():
        notes.bad_record("an object has a key twice, with different values")
    if item.keys() <= known:
        return item
    result = {_FROM_SNAKE.get(key, key): value for key, value in item.items()}
    if any(key in _FROM_SNAKE for key in item):
        notes.is_lossy = True
        notes.warnings.add("keys are written in snake_case, which OTLP does not allow")
    if len(result) < len(item):
        notes.bad_record("an object has a key in both spellings, and only one of them is read")
    notes.unknown_fields += len(result.keys() - known)
    return result


def _id(value: object, size: int, notes: ReadNotes) -> str | None:
    text, warning = hex_id(value, size)
    if warning is not None:
        notes.warnings.add(warning)
    return text


def _objects(value: object, notes: ReadNotes) -> Iterator[Json]:
    if value is None:
        return
    if not isinstance(value, list):
        notes.bad_record(f"a list was expected, found {type(value).__name__}")
        return
    for item in cast("list[object]", value):
        if isinstance(item, dict):
            yield cast("Json", item)
        else:
            notes.bad_record(f"an object was expected, found {type(item).__name__}")


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _name_of(scope: object) -> str:
    return _string(_object(scope).get("name"))


def _count(value: object) -> int:
    return 0 if value is None or value == "" else max(0, exact_int(value))


def _failed(code: object) -> bool | None:
    return _STATUS_CODES.get(code) if isinstance(code, int | str) and not isinstance(code, bool) else None


def _producer(resource: object, notes: ReadNotes) -> str:
    try:
        return producer_of(attributes_of(_object(resource).get("attributes")))
    except ValueError as error:
        notes.bad_record(f"a resource with {error}")
        return ""


def producer_of(attributes: Attributes) -> str:
    """What tells one process from another: service name, instance id and SDK language."""
    keys = ("service.name", "service.instance.id", "telemetry.sdk.language")
    return "\x1f".join(attributes.text(key) or "" for key in keys)
