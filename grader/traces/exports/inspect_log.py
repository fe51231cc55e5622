"""Event logs of Inspect AI: `{"events": [...]}` with `span_begin`, `span_end`, `model` and `tool` events.

They have no OpenTelemetry attributes; what they say is put under the names of GenAI. A log of several samples has a
trace for each. Lost: dropped counts; times are as exact as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.traces.exports.base import (
    MICROSECOND_NS,
    Json,
    each_span,
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

_STEPS = frozenset({"span_begin", "model", "tool"})
_NOT_RUN = {"parsing": "invalid_arguments", "approval": "tool_denied"}
"""Types of errors of a call that say that nothing ran, as the GenAI vocabulary knows them."""


class InspectLog:
    """The events of one sample, or a whole log whose samples have events."""

    name = "inspect"

    def claims(self, record: Json) -> bool:
        """Whether it has events of Inspect."""
        if _has_events(record):
            return True
        samples = record.get("samples")
        return is_list_of_objects(samples) and any(_has_events(sample) for sample in cast("list[Json]", samples)[:100])

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record."""
        if _has_events(record):
            yield from _of_sample(record, "", notes)
            return
        for number, sample in enumerate(objects_of(record.get("samples"), notes)):
            yield from _of_sample(sample, f"{number} {sample.get('id')} {sample.get('epoch')}", notes)


def _has_events(record: Json) -> bool:
    events = record.get("events")
    if not is_list_of_objects(events):
        return False
    first = cast("list[Json]", events)[0]
    return "event" in first and "timestamp" in first


def _of_sample(sample: Json, name: str, notes: ReadNotes) -> Iterator[Span]:
    events = list(objects_of(sample.get("events"), notes))
    ends = {text_of(event.get("id")): event for event in events if event.get("event") == "span_end"}
    uuid = text_of(sample.get("uuid")) or f"{name} {events[0].get('timestamp')} {len(events)}"

    def make(event: Json) -> Span:
        kind = event.get("event")
        is_span = kind == "span_begin"
        last: object = ends.get(text_of(event.get("id"))) if is_span else event
        end = object_of(last).get("completed", object_of(last).get("timestamp"))
        error = object_of(event.get("error"))
        return Span(
            trace_id=trace_id_of(uuid, notes),
            span_id=span_id_of(event.get("id") if is_span else event.get("grader_id"), notes),
            parent_id=parent_id_of(event.get("parent_id" if is_span else "span_id"), notes),
            name=text_of(event.get("name")) or text_of(kind),
            start_ns=instant_ns(event.get("timestamp")),
            end_ns=None if event.get("pending") is True else instant_ns(end),
            attributes=plain_attributes(_attributes(event)),
            failed=True if error else None,
            status_message=text_of(error.get("message")),
            scope="inspect_ai",
            time_unit_ns=2 * MICROSECOND_NS,
        )

    numbered = ({**event, "grader_id": event.get("uuid") or f"event {number}"} for number, event in enumerate(events))
    yield from each_span((event for event in numbered if text_of(event.get("event")) in _STEPS), notes, make)


def _attributes(event: Json) -> Json:
    kind = event.get("event")
    if kind == "tool":
        error = _NOT_RUN.get(text_of(object_of(event.get("error")).get("type")))
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.get("function"),
            "gen_ai.tool.call.id": event.get("id"),
            "gen_ai.tool.call.arguments": event.get("arguments"),
            "gen_ai.tool.call.result": event.get("result"),
            **({"error.type": error} if error else {}),
        }
    if kind == "model":
        choices = object_of(event.get("output")).get("choices")
        first = cast("list[object]", choices)[0] if isinstance(choices, list) and choices else None
        calls = object_of(object_of(first).get("message")).get("tool_calls")
        parts = [
            {"type": "tool_call", "id": cast("Json", call).get("id"), "name": cast("Json", call).get("function")}
            for call in (cast("list[object]", calls) if isinstance(calls, list) else [])
            if isinstance(call, dict)
        ]
        messages = [{"role": "assistant", "parts": parts}]
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": event.get("model"),
            "gen_ai.output.messages": messages,
        }
    return {"gen_ai.operation.name": "invoke_agent"} if event.get("type") == "agent" else {}
