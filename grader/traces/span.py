"""One span as it was read: identity, times, status, and attributes that are decoded only when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from grader.core.traces.coverage import CoverageCode


class Unreadable(Enum):
    """The value of an attribute that is there and cannot be used."""

    CONFLICTING = "conflicting"
    """The same key was given twice with different values: the standard leaves open which one counts."""
    MALFORMED = "malformed"
    """Nested too deeply, or no value of the format."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes by key. `raw` holds what the encoding has; `decode` makes a JSON value of it."""

    raw: Mapping[str, object]
    decode: Callable[[object], object]

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw)

    def get(self, key: str) -> object:
        """The JSON value (str, bool, int, Decimal, float, list, dict), None when it is not there or empty, or
        `Unreadable`.
        """
        raw = self.raw.get(key)
        if raw is None or isinstance(raw, Unreadable):
            return raw
        try:
            return self.decode(raw)
        except (ValueError, RecursionError):
            return Unreadable.MALFORMED

    def text(self, key: str) -> str | None:
        """The value when it is a string that is not empty, else None."""
        value = self.get(key)
        return value if isinstance(value, str) and value else None


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something a span logged while it was open."""

    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Span:
    """A span of a trace. Ids are lower-case hex (32 and 16 digits); times are Unix nanoseconds, None when missing or 0.

    `failed` is True for status ERROR, False for OK, None when the status is unset. `producer` tells processes apart
    (service name, instance and language). `flags` are those of OTLP: bits 0-7 are the W3C trace flags. `time_unit_ns`
    is how exact the times are: an export may have cut them.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int | None
    end_ns: int | None
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    failed: bool | None = None
    status_message: str = ""
    scope: str = ""
    producer: str = ""
    flags: int = 0
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0
    time_unit_ns: int = 1

    @property
    def ref(self) -> str:
        """`TRACE_ID/SPAN_ID`."""
        return f"{self.trace_id}/{self.span_id}"


@dataclass(slots=True)
class ReadNotes:
    """What was noticed while one source was read: mutable while reading, turned into a report at the end."""

    unknown_fields: int = 0
    spans: int = 0
    unreadable_spans: int = 0
    unreadable_detail: str = ""
    unreadable_records: int = 0
    record_detail: str = ""
    is_cut: bool = False
    is_lossy: bool = False
    capacity: str = ""
    other_signals: int = 0
    exports: set[str] = field(default_factory=set[str])
    """Names of the exports that records were instead of OTLP."""
    warnings: set[str] = field(default_factory=set[str])
    reported: dict[tuple[CoverageCode, str], int] = field(default_factory=dict[tuple[CoverageCode, str], int])
    """What whoever captured the source says against its completeness: (reason, detail) -> how often."""
    awaited: set[str] = field(default_factory=set[str])
    """Digests of what a sender was told to send again, and did not send until now."""

    def report(self, code: CoverageCode, detail: str = "", count: int = 1) -> None:
        """A reason against completeness, told by whoever captured the source."""
        self.reported[code, detail] = self.reported.get((code, detail), 0) + count

    def bad_span(self, why: str) -> None:
        """A span that had to be left out."""
        self.unreadable_spans += 1
        self.unreadable_detail = min(filter(None, (self.unreadable_detail, why)))

    def bad_record(self, why: str) -> None:
        """A record (line, message) that had to be left out."""
        self.unreadable_records += 1
        self.record_detail = self.record_detail or why
