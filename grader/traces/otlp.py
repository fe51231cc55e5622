"""Spans from bytes in any of the encodings of OTLP, and of exports, detected by content, one record at a time.

JSON: one request, a list of them, one per line (the collector's file exporter), or several after each other, indented.
Protobuf: one bare message, or messages with a 4-byte big-endian length before each (the file exporter again). All of it
plain, gzip or zstd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import BinaryIO, cast

from grader.errors import Place, TraceError
from grader.traces import otlp_json, otlp_protobuf, received
from grader.traces.compression import pieces
from grader.traces.exports import export_of
from grader.traces.exports.not_traces import why_no_trace
from grader.traces.span import ReadNotes, Span, Unreadable

MAX_RECORD_BYTES = 256 << 20
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"
_GAP = re.compile(r"[\s\x1e,]*")
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Bounds of the reader: bytes of one record (a line, a message, a whole indented document)."""

    max_record_bytes: int = MAX_RECORD_BYTES


class _Window:
    """The pieces of a source as a buffer that can be looked into and taken from."""

    def __init__(self, source: Iterator[bytes]) -> None:
        self._source = source
        self.data = bytearray()
        self.is_at_end = False

    def fill(self, size: int) -> None:
        """Have at least `size` bytes, or all there are."""
        while len(self.data) < size and not self.is_at_end:
            self.more()

    def more(self) -> None:
        piece = next(self._source, b"")
        self.is_at_end = not piece
        self.data += piece

    def take(self, size: int) -> bytes:
        part = bytes(self.data[:size])
        del self.data[:size]
        return part


def read_spans(
    stream: BinaryIO, name: str, notes: ReadNotes, limits: ReadLimits | None = None
) -> tuple[Iterator[Span], str]:
    """The spans of one source, read as they are asked for, and the name of its encoding.

    What is damaged inside is counted in `notes`. Raises TraceError, here or while iterating, when the source is no
    trace at all, and PrerequisiteError when a package for its compression is missing.
    """
    limits = limits if limits is not None else ReadLimits()
    source, compression = pieces(stream, notes)
    window = _Window(source)
    window.fill(_LENGTH_BYTES)
    if window.data.startswith(_BOM):
        window.take(len(_BOM))
    while window.data.startswith((b" ", b"\t", b"\r")):
        window.take(len(window.data) - len(window.data.lstrip(b" \t\r")))
        window.fill(_LENGTH_BYTES)
    first = bytes(window.data[:1])
    if not first:
        raise _not_a_trace(name, "it is empty", notes)
    if first in b"{[" or (first == b"\n" and _first_mark(window) in (b"{", b"[")):
        spans, encoding = _json(window, name, notes, limits)
    else:
        spans, encoding = _protobuf(window, name, notes, limits)
    return spans, f"{encoding}, {compression}" if compression else encoding


def _first_mark(window: _Window) -> bytes:
    """The first byte that is no white space. (0x0A also begins a bare protobuf message: its length follows.)"""
    window.fill(1024)
    return bytes(window.data[:1024].lstrip(_WHITE)[:1])


def _not_a_trace(name: str, why: str, notes: ReadNotes) -> TraceError:
    cut = "; it ends in the middle of a record" if notes.is_cut else ""
    return TraceError(
        f"this is no OTLP trace: {why}{cut}",
        where=Place(name),
        hint="give OTLP/JSON, JSON lines of the collector's file exporter, or OTLP protobuf; each plain, gzip or zstd; "
        "or an export of the OpenTelemetry SDK for Python, Phoenix, Langfuse or Logfire; a conversation is given apart",
    )


# --- JSON


def _json(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> tuple[Iterator[Span], str]:
    line = _peek_line(window, limits)
    try:
        loads(line.decode("utf-8"))
    except ValueError:
        if line.rstrip(_WHITE).endswith((b"}", b"]")) and len(line.rstrip(_WHITE)) > 1:
            return _of_lines(window, name, notes, limits), "otlp-json lines"
        return _of_document(window, name, notes, limits), "otlp-json"
    return _of_lines(window, name, notes, limits), "otlp-json lines"


def _peek_line(window: _Window, limits: ReadLimits) -> bytes:
    """The first line that is not blank, left in the window; blank lines before it are taken."""
    scanned = 0
    while True:
        while window.data[:1].isspace():
            window.take(len(window.data) - len(window.data.lstrip(_WHITE)))
            scanned = 0
        end = window.data.find(b"\n", scanned)
        if end > 0:
            return bytes(window.data[:end])
        if window.is_at_end or len(window.data) > limits.max_record_bytes:
            return bytes(window.data[: limits.max_record_bytes])
        scanned = len(window.data)
        window.more()


def loads(text: str) -> object:
    """A JSON value, its integers exact and other numbers as `Decimal`. Raises ValueError, also for deep nesting.

    A key that an object has twice with different values is marked as such: which of them another reader takes is its
    own affair, and a value that is silently dropped would be an absence that proves nothing.
    """
    try:
        return json.loads(text, parse_float=_decimal, object_pairs_hook=_marked)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _marked(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        for key, value in pairs:
            if found[key] is not Unreadable.CONFLICTING and found[key] != value:
                found[key] = Unreadable.CONFLICTING
    return found


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError("a number with too many digits") from None


def _of_lines(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> Iterator[Span]:
    records = number = 0
    for line in _lines(window, limits):
        number += 1
        if line is None:
            notes.bad_record(f"line {number} is longer than {limits.max_record_bytes} bytes")
            continue
        text, is_last = line
        if not text or not (stripped := text.strip(_WHITE)):
            continue
        try:
            value = loads(stripped.decode("utf-8"))
        except ValueError as error:
            if is_last:
                notes.is_cut = True
            else:
                notes.bad_record(f"line {number}: {_short(error)}")
            continue
        if _is_trace(value, notes):
            records += 1
            yield from _of_value(value, notes)
        else:
            notes.bad_record(f"line {number}: {why_no_trace(value) or 'no OTLP request'}")
    if records == 0 and not (notes.other_signals > 0 and notes.unreadable_records == 0 and not notes.is_cut):
        raise _not_a_trace(name, notes.record_detail or "no line of it is an OTLP request", notes)


def _lines(window: _Window, limits: ReadLimits) -> Iterator[tuple[bytes, bool] | None]:
    """(line, whether it is the last and has no line feed), or None for a line that is too long."""
    scanned, too_long = 0, False
    while True:
        end = window.data.rfind(b"\n", scanned)
        if end >= 0:
            for line in window.take(end + 1).split(b"\n")[:-1]:
                yield None if too_long else (line, False)
                too_long = False
            scanned = 0
        elif window.is_at_end:
            if window.data or too_long:
                yield None if too_long else (window.take(len(window.data)), True)
            return
        else:
            scanned = len(window.data)
            if scanned > limits.max_record_bytes:
                window.data.clear()
                scanned, too_long = 0, True
            window.more()


def _of_document(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> Iterator[Span]:
    window.fill(limits.max_record_bytes + 1)
    if len(window.data) > limits.max_record_bytes:
        raise TraceError(
            f"one JSON document of more than {limits.max_record_bytes} bytes",
            where=Place(name),
            hint="write JSON lines, one request a line, as the collector's file exporter does",
        )
    try:
        text = window.take(len(window.data)).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_a_trace(name, f"it is not UTF-8 at byte {error.start}", notes) from None
    decoder, position, records = json.JSONDecoder(parse_float=_decimal, object_pairs_hook=_marked), 0, 0
    while (position := _after_gap(text, position)) < len(text):
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            if records == 0:
                raise _not_a_trace(name, _short(error), notes) from None
            notes.is_cut = True
            return
        if not _is_trace(value, notes):
            notes.bad_record(why_no_trace(value) or "it has no key resourceSpans")
            continue
        records += 1
        yield from _of_value(value, notes)
    if records == 0 and notes.other_signals == 0:
        raise _not_a_trace(name, notes.record_detail, notes)


def _after_gap(text: str, position: int) -> int:
    match = _GAP.match(text, position)
    return match.end() if match is not None else position


def _is_trace(value: object, notes: ReadNotes) -> bool:
    if isinstance(value, list):
        items = cast("list[object]", value)
        return len(items) == 0 or any(_is_trace(item, notes) for item in items if not isinstance(item, list))
    if otlp_json.is_request(value) or otlp_json.is_other_signal(value) or received.is_note(value):
        return True
    return isinstance(value, dict) and export_of(cast("otlp_json.Json", value)) is not None


def _of_value(value: object, notes: ReadNotes) -> Iterator[Span]:
    """The spans of one decoded record."""
    for item in cast("list[object]", value) if isinstance(value, list) else [value]:
        if otlp_json.is_request(item):
            yield from otlp_json.spans_of_request(cast("otlp_json.Json", item), notes)
        elif otlp_json.is_other_signal(item):
            notes.other_signals += 1
        elif received.is_note(item):
            received.read_note(item, notes)
        else:
            yield from _of_export(item, notes)


def _of_export(item: object, notes: ReadNotes) -> Iterator[Span]:
    export = export_of(cast("otlp_json.Json", item)) if isinstance(item, dict) else None
    if export is None:
        notes.bad_record(why_no_trace(cast("object", item)) or "an entry of a list that is no OTLP request")
        return
    notes.exports.add(export.name)
    notes.is_lossy = True
    yield from export.spans(cast("otlp_json.Json", item), notes)


def _short(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)[:200]


# --- protobuf


def _protobuf(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> tuple[Iterator[Span], str]:
    if window.data.startswith(b"\x0a"):
        return _bare(window, name, notes, limits), "otlp-protobuf"
    return _delimited(window, name, notes, limits), "otlp-protobuf, length-prefixed"


def _bare(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> Iterator[Span]:
    window.fill(limits.max_record_bytes + 1)
    if len(window.data) > limits.max_record_bytes:
        raise TraceError(
            f"one protobuf message of more than {limits.max_record_bytes} bytes",
            where=Place(name),
            hint="write length-prefixed messages, as the collector's file exporter does",
        )
    data = window.take(len(window.data))
    before = notes.spans
    try:
        yield from otlp_protobuf.spans_of_message(memoryview(data), notes)
    except otlp_protobuf.WireError as error:
        if notes.spans == before:
            raise _not_a_trace(name, str(error), notes) from None
        notes.bad_record(str(error))
    if notes.spans == before and notes.is_cut:
        raise _not_a_trace(name, "no span of it can be read", notes)


def _delimited(window: _Window, name: str, notes: ReadNotes, limits: ReadLimits) -> Iterator[Span]:
    messages = 0
    while True:
        window.fill(_LENGTH_BYTES)
        if not window.data:
            break
        size = int.from_bytes(window.data[:_LENGTH_BYTES], "big")
        if len(window.data) < _LENGTH_BYTES or size > limits.max_record_bytes:
            if messages == 0:
                raise _not_a_trace(name, "it is neither JSON nor protobuf", notes)
            notes.is_cut = len(window.data) < _LENGTH_BYTES or notes.is_cut
            if len(window.data) >= _LENGTH_BYTES:
                notes.bad_record(f"message {messages + 1} claims {size} bytes")
            break
        window.fill(_LENGTH_BYTES + size)
        notes.is_cut = notes.is_cut or len(window.data) < _LENGTH_BYTES + size
        window.take(_LENGTH_BYTES)
        message = window.take(min(size, len(window.data)))
        before = notes.spans
        try:
            yield from otlp_protobuf.spans_of_message(memoryview(message), notes)
        except otlp_protobuf.WireError as error:
            if messages == 0 and notes.spans == before:
                raise _not_a_trace(name, "it is neither JSON nor protobuf", notes) from None
            notes.bad_record(f"message {messages + 1}: {error}")
        messages += 1
    if notes.spans == 0 and (notes.is_cut or messages == 0):
        raise _not_a_trace(name, "no span of it can be read", notes)
