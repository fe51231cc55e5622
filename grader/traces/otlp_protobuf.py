"""OTLP protobuf: spans from one `ExportTraceServiceRequest` message, decoded here field by field.

Why not the generated classes: a decoder of its own needs no extra package, streams, keeps what stands before a cut,
counts unknown fields, and bounds nesting (docs/decisions).

Field numbers: trace.proto and common.proto of opentelemetry-proto.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from typing import cast

from grader.core.tools.arguments import MAX_DEPTH
from grader.traces.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, id_of_bytes
from grader.traces.otlp_json import producer_of
from grader.traces.span import Attributes, ReadNotes, Span, SpanEvent, Unreadable

VARINT, FIXED64, LEN, FIXED32 = 0, 1, 2, 5
_STATUS = {1: False, 2: True}
_SPAN_FIELDS = frozenset(range(1, 17))


class WireError(ValueError):
    """Bytes that are no protobuf message."""


class CutError(WireError):
    """The message ends in the middle of a field."""


Field = tuple[int, int, int | memoryview]
"""Field number, wire type, and the value: an integer, or the bytes of a length-delimited field."""


def fields(data: memoryview) -> Iterator[Field]:
    """The fields of a message in order. Raises CutError at an end in the middle of one, WireError for other damage."""
    position, size = 0, len(data)
    while position < size:
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise WireError("field number 0")
        if wire_type == VARINT:
            value, position = _varint(data, position)
            yield number, wire_type, value
            continue
        if wire_type == LEN:
            length, position = _varint(data, position)
        elif wire_type in {FIXED64, FIXED32}:
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise WireError(f"wire type {wire_type}")
        end = position + length
        if end > size:
            if wire_type == LEN:
                yield -number, wire_type, data[position:]
            raise CutError("the message ends in the middle of a field")
        part = data[position:end]
        yield number, wire_type, part if wire_type == LEN else int.from_bytes(part, "little")
        position = end


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    result = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, index + 1
        shift += 7
    if position + 10 <= len(data):
        raise WireError("an integer of more than ten bytes")
    raise CutError("the message ends in the middle of an integer")


def spans_of_message(data: memoryview, notes: ReadNotes) -> Iterator[Span]:
    """The spans of one request message. A cut is noted, and what stands before it is kept.

    Raises WireError when the bytes are no message at all.
    """
    for resource_spans in _submessages(data, (1,), frozenset({1}), notes):
        producer = ""
        groups: list[memoryview] = []
        for number, part in _parts(resource_spans, (1, 2, 1000), frozenset({1, 2, 3, 1000}), notes):
            if number == 1:
                producer = producer_of(Attributes(_attributes(part, 1, notes), any_value))
            else:
                groups.append(part)
        for group in groups:
            scope = ""
            spans: list[memoryview] = []
            for number, part in _parts(group, (1, 2), frozenset({1, 2, 3}), notes, whole=(2,)):
                if number == 1:
                    scope = _first_string(part, 1)
                else:
                    spans.append(part)
            for item in spans:
                span = _span(item, scope, producer, notes)
                if span is not None:
                    yield span


def _submessages(
    data: memoryview, wanted: tuple[int, ...], known: frozenset[int], notes: ReadNotes
) -> Iterator[memoryview]:
    for _, part in _parts(data, wanted, known, notes):
        yield part


def _parts(
    data: memoryview, wanted: tuple[int, ...], known: frozenset[int], notes: ReadNotes, whole: tuple[int, ...] = ()
) -> Iterator[tuple[int, memoryview]]:
    """The wanted submessages. A cut one is given as far as it goes, unless its number is in `whole`."""
    try:
        for number, wire_type, value in fields(data):
            if abs(number) not in known:
                notes.unknown_fields += 1
            elif abs(number) in wanted and not isinstance(value, int):
                if number > 0 or abs(number) not in whole:
                    yield abs(number), value
            elif abs(number) in wanted:
                raise WireError(f"field {number} has wire type {wire_type}")
    except CutError:
        notes.is_cut = True


def _span(data: memoryview, scope: str, producer: str, notes: ReadNotes) -> Span | None:
    notes.spans += 1
    numbers: dict[int, int] = {}
    texts: dict[int, memoryview] = {}
    attributes: dict[str, object] = {}
    events: list[SpanEvent] = []
    try:
        for number, _, value in fields(data):
            if number not in _SPAN_FIELDS:
                notes.unknown_fields += number > 0
            elif isinstance(value, int):
                numbers[number] = value
            elif number == 9:
                _put(attributes, value)
            elif number == 11:
                events.append(_event(value))
            elif number != 13:
                texts[number] = value
        trace_id = id_of_bytes(bytes(texts.get(1, b"")), TRACE_ID_BYTES)
        span_id = id_of_bytes(bytes(texts.get(2, b"")), SPAN_ID_BYTES)
        parent_id = id_of_bytes(bytes(texts.get(4, b"")), SPAN_ID_BYTES)
        if trace_id is None or span_id is None:
            raise ValueError("a span without trace id or span id")
        failed, message = _status(texts.get(15))
    except ValueError as error:
        notes.bad_span(str(error))
        return None
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        name=_string(texts.get(5)),
        start_ns=numbers.get(7) or None,
        end_ns=numbers.get(8) or None,
        attributes=Attributes(attributes, any_value),
        events=tuple(events),
        failed=failed,
        status_message=message,
        scope=scope,
        producer=producer,
        flags=numbers.get(16, 0),
        dropped_attributes=numbers.get(10, 0),
        dropped_events=numbers.get(12, 0),
        dropped_links=numbers.get(14, 0),
    )


def _event(data: memoryview) -> SpanEvent:
    name = ""
    attributes: dict[str, object] = {}
    for number, _, value in fields(data):
        if number == 2 and not isinstance(value, int):
            name = _string(value)
        elif number == 3 and not isinstance(value, int):
            _put(attributes, value)
    return SpanEvent(name, Attributes(attributes, any_value))


def _status(data: memoryview | None) -> tuple[bool | None, str]:
    failed, message = None, ""
    for number, _, value in fields(data) if data is not None else ():
        if number == 2 and not isinstance(value, int):
            message = _string(value)
        elif number == 3 and isinstance(value, int):
            failed = _STATUS.get(value)
    return failed, message


def _attributes(data: memoryview, number: int, notes: ReadNotes) -> dict[str, object]:
    result: dict[str, object] = {}
    for _, part in _parts(data, (number,), frozenset({1, 2, 3}), notes):
        _put(result, part)
    return result


def _put(attributes: dict[str, object], pair: memoryview) -> None:
    key, value = _key_value(pair)
    if key in attributes and not _same(attributes[key], value):
        attributes[key] = Unreadable.CONFLICTING
    elif key not in attributes:
        attributes[key] = value


def _key_value(pair: memoryview) -> tuple[str, memoryview | None]:
    key: str | None = None
    found: memoryview | None = None
    for number, _, value in fields(pair):
        if number == 1 and not isinstance(value, int):
            if key is not None:
                raise WireError("an attribute with two keys")
            key = _string(value)
        elif number == 2 and not isinstance(value, int):
            if found is not None:
                raise WireError("an attribute with two values")
            found = value
    return key or "", found


def _same(first: object, second: memoryview | None) -> bool:
    if first == second:
        return True
    if not isinstance(first, memoryview) or second is None:
        return False
    try:
        return any_value(cast("memoryview", first)) == any_value(second)
    except ValueError:
        return False


def any_value(data: object, depth: int = MAX_DEPTH) -> object:
    """A JSON value from the bytes of an `AnyValue`; None when empty. Raises ValueError when malformed or too deep."""
    if depth < 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    result: object = None
    kinds = 0
    for number, _, value in fields(cast("memoryview", data)):
        kinds += 1 <= number <= 7
        if kinds > 1:
            raise ValueError("a value of two kinds")
        if number == 1 and not isinstance(value, int):
            result = _string(value)
        elif number == 2 and isinstance(value, int):
            result = value != 0
        elif number == 3 and isinstance(value, int):
            result = value - 2**64 if value >= 2**63 else value
        elif number == 4 and isinstance(value, int):
            result = _double(value)
        elif number == 5 and not isinstance(value, int):
            result = _list(value, depth)
        elif number == 6 and not isinstance(value, int):
            result = _map(value, depth)
        elif number == 7 and not isinstance(value, int):
            result = base64.b64encode(value).decode("ascii")
    return result


def _double(bits: int) -> object:
    number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    if not math.isfinite(number):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]
    return number


def _list(data: memoryview, depth: int) -> list[object]:
    return [
        any_value(value, depth - 1) for number, _, value in fields(data) if number == 1 and not isinstance(value, int)
    ]


def _map(data: memoryview, depth: int) -> dict[str, object]:
    result: dict[str, object] = {}
    for number, _, pair in fields(data):
        if number != 1 or isinstance(pair, int):
            continue
        key, value = _key_value(pair)
        if key in result:
            raise ValueError("a doubled key")
        result[key] = None if value is None else any_value(value, depth - 1)
    return result


def _first_string(data: memoryview, wanted: int) -> str:
    try:
        for number, _, value in fields(data):
            if number == wanted and not isinstance(value, int):
                return _string(value)
    except WireError:
        pass
    return ""


def _string(data: memoryview | None) -> str:
    return "" if data is None else bytes(data).decode("utf-8", "replace")
