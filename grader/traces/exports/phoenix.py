"""Spans of Arize Phoenix: its REST API and clients, its JSON Lines, and its data frames as JSON records.

Lost: resource, instrumentation scope, span kind, links, trace flags and all dropped counts; times have microseconds.
Attributes may come nested, and JSON texts among them opened up: they are put back under their keys.
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
    span_id_of,
    text_of,
    trace_id_of,
)
from grader.traces.span import ReadNotes, Span

_WHOLE = ("tool.parameters", "metadata", "llm.invocation_parameters", "input.value", "output.value")
"""Attributes whose value is a JSON text, which Phoenix may have opened up."""
_MOST_DEPTH = 60


class Phoenix:
    """`{"context": {"trace_id", "span_id"}, "span_kind", ...}`, or the same with flat keys."""

    name = "phoenix"

    def claims(self, record: Json) -> bool:
        """Whether it is a span of Phoenix, or a page of its REST API."""
        if "context.trace_id" in record and "context.span_id" in record:
            return True
        if isinstance(record.get("context"), dict) and "span_kind" in record:
            return True
        data = record.get("data")
        return is_list_of_objects(data) and self.claims(cast("list[Json]", data)[0])

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record."""

        def make(item: Json) -> Span:
            context = object_of(item.get("context"))
            attributes = dict(_attributes(item))
            kind = item.get("span_kind", item.get("spanKind"))
            if isinstance(kind, str) and kind and kind.upper() != "UNKNOWN":
                attributes.setdefault("openinference.span.kind", kind.upper())
            return Span(
                trace_id=trace_id_of(context.get("trace_id", item.get("context.trace_id")), notes),
                span_id=span_id_of(context.get("span_id", item.get("context.span_id")), notes),
                parent_id=parent_id_of(item.get("parent_id"), notes),
                name=text_of(item.get("name")),
                start_ns=instant_ns(item.get("start_time")),
                end_ns=instant_ns(item.get("end_time")),
                attributes=plain_attributes(attributes),
                events=events_of(item.get("events"), notes),
                failed=failed_of(item.get("status_code")),
                status_message=text_of(item.get("status_message")),
                time_unit_ns=2 * MICROSECOND_NS,
            )

        if isinstance(record.get("data"), list):
            if record.get("next_cursor"):
                notes.capacity = "the page of Phoenix's API has a next one, which is not here"
            return each_span(objects_of(record.get("data"), notes), notes, make)
        return each_span([record], notes, make)


def _attributes(item: Json) -> Json:
    nested: dict[str, object] = dict(object_of(item.get("attributes")))
    for key, value in item.items():
        if key.startswith("attributes.") and value is not None:
            nested[key.removeprefix("attributes.")] = value
    found: dict[str, object] = {}
    opened: dict[str, dict[str, object]] = {}
    for key, value in nested.items():
        for flat, leaf in _flat(key, value, _MOST_DEPTH):
            whole = next((name for name in _WHOLE if flat.startswith(f"{name}.")), None)
            if whole is None:
                found[flat] = leaf
            else:
                _put(opened.setdefault(whole, {}), flat.removeprefix(f"{whole}.").split("."), leaf)
    for key, value in opened.items():
        found.setdefault(key, value)
    return found


def _flat(key: str, value: object, depth: int) -> Iterator[tuple[str, object]]:
    """`{"a": {"b": [{"c": 1}]}}` as `a.b.0.c`; values that are JSON texts by their nature stay whole."""
    if key not in _WHOLE and depth > 0:
        if isinstance(value, dict) and value:
            for name, inner in cast("dict[str, object]", value).items():
                yield from _flat(f"{key}.{name}", inner, depth - 1)
            return
        if is_list_of_objects(cast("object", value)):
            for number, inner in enumerate(cast("list[object]", value)):
                yield from _flat(f"{key}.{number}", inner, depth - 1)
            return
    yield key, value


def _put(tree: dict[str, object], path: list[str], leaf: object) -> None:
    for part in path[:-1][:_MOST_DEPTH]:
        inner = tree.setdefault(part, {})
        if not isinstance(inner, dict):
            return
        tree = cast("dict[str, object]", inner)
    tree.setdefault(path[-1], leaf)
