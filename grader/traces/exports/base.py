"""What an export is: JSON that a person copied out of an SDK or a platform, and that is no OTLP.

To add an export, add one file beside this one with a class that has `name`, `claims` and `spans`, and list it in
`__init__`. An export says nothing of what was dropped before it, so every one of them marks the source as lossy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Protocol, cast
from uuid import UUID

from grader.core.tools.arguments import MAX_DEPTH
from grader.traces.arguments import json_of
from grader.traces.ids import SPAN_ID_BYTES, TRACE_ID_BYTES, hex_id
from grader.traces.otlp_json import producer_of
from grader.traces.span import Attributes, ReadNotes, Span, SpanEvent, Unreadable

Json = Mapping[str, object]
SECOND_NS, MILLISECOND_NS, MICROSECOND_NS = 1_000_000_000, 1_000_000, 1_000
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d{0,20})?\s?(Z|z|UTC|[+-]\d\d(?::?\d\d)?)?\Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAGNITUDES = ((10**11, SECOND_NS), (10**14, MILLISECOND_NS), (10**17, MICROSECOND_NS), (2**63, 1))
"""A number below each of these is a time since 1970 in this unit: good for the years 1973 to 2262."""


class Export(Protocol):
    """One kind of export."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        ...

    def claims(self, record: Json) -> bool:
        """Whether a decoded JSON object is of this kind. Cheap, and by its keys."""
        ...

    def spans(self, record: Json, notes: ReadNotes) -> Iterator[Span]:
        """The spans of one record. What cannot be used is counted in `notes`; nothing raises."""
        ...


def each_span(items: Iterable[Json], notes: ReadNotes, make: Callable[[Json], Span]) -> Iterator[Span]:
    """A span of each item. One that cannot be made is counted, with the reason."""
    for item in items:
        notes.spans += 1
        try:
            span = make(item)
        except ValueError as error:
            notes.bad_span(str(error))
            continue
        yield span


def text_of(value: object) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Json:
    """The value when it is an object, or the JSON text of one, else an empty one."""
    found = json_of(value) if isinstance(value, str) else value
    return cast("Json", found) if isinstance(found, dict) else {}


def objects_of(value: object, notes: ReadNotes) -> Iterator[Json]:
    """The objects of a list. What is no object among them is counted as damage."""
    for item in cast("list[object]", value) if isinstance(value, list) else []:
        if isinstance(item, dict):
            yield cast("Json", item)
        else:
            notes.bad_record(f"an object was expected, found {type(item).__name__}")
    if value is not None and not isinstance(value, list):
        notes.bad_record(f"a list was expected, found {type(value).__name__}")


def is_list_of_objects(value: object) -> bool:
    """Whether a value is a list that begins with an object."""
    return isinstance(value, list) and isinstance(next(iter(cast("list[object]", value)), None), dict)


# --- ids


def trace_id_of(value: object, notes: ReadNotes) -> str:
    """A trace id of OpenTelemetry as it is; a UUID as its 32 digits; any other text as a digest of 32 hex digits.

    Raises ValueError when there is none.
    """
    return _required(_id(value, TRACE_ID_BYTES, notes))


def span_id_of(value: object, notes: ReadNotes) -> str:
    """A span id of OpenTelemetry as it is, any other text as a digest of 16 hex digits.

    Raises ValueError when there is none.
    """
    return _required(_id(value, SPAN_ID_BYTES, notes))


def parent_id_of(value: object, notes: ReadNotes) -> str | None:
    """The id of a parent, read like that of a span; None when there is none."""
    return _id(value, SPAN_ID_BYTES, notes)


def _required(found: str | None) -> str:
    if found is None:
        raise ValueError("a span without trace id or span id")
    return found


def _id(value: object, size: int, notes: ReadNotes) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ValueError(f"an id that is not a string but {type(value).__name__}")
    try:
        found, warning = hex_id(value, size)
    except ValueError:
        notes.warnings.add("ids are not those of OpenTelemetry: digests of them are shown")
        return _foreign(value, size)
    if warning is not None:
        notes.warnings.add(warning)
    return found


def _foreign(text: str, size: int) -> str:
    if size == TRACE_ID_BYTES:
        try:
            return UUID(text).hex
        except ValueError:
            pass
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


# --- times


def instant_ns(value: object) -> int | None:
    """A time in Unix nanoseconds, exactly as it is written; None when there is none.

    Read are ISO 8601 (without a zone: UTC) and numbers, whose unit is told by their size. Raises ValueError for
    anything else.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str) and not (value.isascii() and value.removeprefix("+").isdecimal()):
        return _of_iso(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise ValueError(f"not a time: {value!r:.40}")
    number = Decimal(value)
    if not number.is_finite() or number < 0:
        raise ValueError(f"not a time: {value!r:.40}")
    unit = next((unit for below, unit in _MAGNITUDES if number < below), None)
    if unit is None:
        raise ValueError(f"not a time: {value!r:.40}")
    return int(number * unit) or None


def _of_iso(text: str) -> int:
    match = _ISO.match(text.strip())
    if match is None:
        raise ValueError(f"not a time: {text!r:.60}")
    day, clock, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{clock}+00:00")
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - _offset_s(zone or "Z")
    if seconds < 0:
        raise ValueError(f"a time before 1970: {text!r:.60}")
    return seconds * SECOND_NS + int((fraction or "").ljust(9, "0"))


def _offset_s(zone: str) -> int:
    if zone in {"Z", "z", "UTC"}:
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    return (-1 if zone[0] == "-" else 1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


# --- attributes


def plain_attributes(values: Json) -> Attributes:
    """Attributes from an object of plain JSON values."""
    return Attributes(values, _plain)


def _plain(value: object) -> object:
    _check_depth(value, MAX_DEPTH)
    return value


def _check_depth(value: object, depth: int) -> None:
    if isinstance(value, dict | list):
        if depth <= 0:
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        inner = cast("Json", value).values() if isinstance(value, dict) else cast("list[object]", value)
        for item in inner:
            if isinstance(item, Unreadable):
                raise ValueError("a doubled key")
            _check_depth(item, depth - 1)


def events_of(value: object, notes: ReadNotes) -> tuple[SpanEvent, ...]:
    """Events from a list of `{"name", "attributes"}` (or `event_name`, or `body` beside the attributes)."""
    found: list[SpanEvent] = []
    for event in objects_of(value, notes):
        name = text_of(event.get("name")) or text_of(event.get("event_name"))
        found.append(SpanEvent(name, plain_attributes(object_of(event.get("attributes")))))
    return tuple(found)


def producer_of_resource(resource: object) -> str:
    """What tells processes apart, from the resource attributes of an export."""
    return producer_of(plain_attributes(object_of(resource)))


def failed_of(status: object) -> bool | None:
    """Whether a status says ERROR or OK, in any of the ways to write it; None for anything else."""
    text = text_of(status).upper().rsplit(".", 1)[-1].removeprefix("STATUS_CODE_")
    return {"ERROR": True, "ERRORED": True, "OK": False, "SUCCESS": False}.get(text)
