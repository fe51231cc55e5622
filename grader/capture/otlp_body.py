"""What a body of OTLP/HTTP holds, checked before it is kept so that what is kept can be read; and bodies of answers."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import cast

from grader.capture.http_body import BodyError
from grader.traces import otlp_json, otlp_protobuf
from grader.traces.otlp import loads
from grader.traces.span import ReadNotes

MOST_PARTS = 500_000
"""Fields of protobuf messages, or brackets and commas of JSON, in one body: those of about 5,000 spans."""
_FIXED_BYTES = {otlp_protobuf.FIXED64: 8, otlp_protobuf.FIXED32: 4}
_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)

_Schema = dict[int, "_Schema"]
_LEAF: _Schema = {}
_SPAN: _Schema = {9: _LEAF, 11: {3: _LEAF}, 15: _LEAF}
_SCOPE_SPANS: _Schema = {1: _LEAF, 2: _SPAN}
_REQUEST: _Schema = {1: {1: {1: _LEAF}, 2: _SCOPE_SPANS, 1000: _SCOPE_SPANS}}
"""Which fields of a request hold messages that are read on arrival (trace.proto): number -> that message's."""


class OtlpEncoding(Enum):
    """The two encodings of OTLP over HTTP; the value is the content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def count_spans(body: bytes, encoding: OtlpEncoding) -> int:
    """How many spans a request for traces holds; all of them were read. An empty request has none.

    Raises BodyError: 400 for what is no such request, is cut, or has no span that can be used; 413 for too many parts.
    """
    check_density(body, encoding)
    notes = ReadNotes()
    usable = _read_protobuf(body, notes) if encoding is OtlpEncoding.PROTOBUF else _read_json(body, notes)
    if usable == 0 and notes.spans > 0:
        raise BodyError(400, f"none of its {notes.spans} spans can be used: {notes.unreadable_detail}")
    if usable == 0 and (notes.unknown_fields > 0 or notes.unreadable_records > 0):
        raise BodyError(400, "the body is no OTLP request for traces: no span is in it, and something else is")
    return notes.spans


def check_density(body: bytes, encoding: OtlpEncoding) -> None:
    """Raises BodyError (413) for more than `MOST_PARTS` parts: to read them takes seconds, and in JSON much memory.

    A small body cannot have that many, and is not looked at.
    """
    if encoding is OtlpEncoding.PROTOBUF:
        is_dense = len(body) > 2 * MOST_PARTS and _has_more_fields(body, MOST_PARTS)
    else:
        # What stands in texts is counted only when there is a doubt: texts may hold JSON of their own.
        is_dense = _marks(body) > MOST_PARTS and _marks(_TEXT.sub(b"", body)) > MOST_PARTS
    if is_dense:
        raise BodyError(413, f"the body has more than {MOST_PARTS:,} parts: send smaller batches")


def _marks(body: bytes) -> int:
    return sum(body.count(mark) for mark in (b",", b"{", b"["))


def _has_more_fields(body: bytes, most: int) -> bool:
    """Whether the messages that are read on arrival have more fields together. Damage ends the count; others tell it.

    Written out by hand: it is to be much faster than what it protects.
    """
    waiting, count = [(0, len(body), _REQUEST)], 0
    try:
        while waiting:
            at, end, inner = waiting.pop()
            while at < end:
                count += 1
                if count > most:
                    return True
                key, at = _varint_at(body, at)
                if key & 7 == otlp_protobuf.LEN:
                    size, at = _varint_at(body, at)
                    message = inner.get(key >> 3)
                    if message is not None and size:
                        waiting.append((at, min(at + size, end), message))
                    at += size
                elif key & 7 == otlp_protobuf.VARINT:
                    _, at = _varint_at(body, at)
                else:
                    at += _FIXED_BYTES[key & 7]
    except (IndexError, KeyError):
        return False
    return False


def _varint_at(body: bytes, at: int) -> tuple[int, int]:
    """An integer and where it ends. Raises IndexError at the end of the body."""
    value = body[at]
    if value < 0x80:
        return value, at + 1
    shift, value = 7, value & 0x7F
    while (byte := body[at := at + 1]) >= 0x80 and shift < 63:
        value |= (byte & 0x7F) << shift
        shift += 7
    return value | (byte & 0x7F) << shift, at + 1


def _read_protobuf(body: bytes, notes: ReadNotes) -> int:
    try:
        usable = sum(1 for _ in otlp_protobuf.spans_of_message(memoryview(body), notes))
    except otlp_protobuf.WireError as error:
        raise BodyError(400, f"the body is no OTLP request in protobuf: {error}") from None
    if notes.is_cut:
        raise BodyError(400, "the body is no OTLP request in protobuf: it ends in the middle")
    return usable


def _read_json(body: bytes, notes: ReadNotes) -> int:
    try:
        value = loads(body.decode("utf-8"))
    except ValueError as error:
        raise BodyError(400, f"the body is no OTLP request in JSON: {str(error)[:200]}") from None
    if not isinstance(value, dict):
        raise BodyError(400, "the body is no OTLP request in JSON: it is no object")
    if not value or otlp_json.is_request(cast("object", value)):
        return sum(1 for _ in otlp_json.spans_of_request(cast("otlp_json.Json", value), notes))
    raise BodyError(400, "the body is no OTLP request for traces: it has no key resourceSpans")


def one_line(body: bytes) -> bytes:
    """A JSON text on one line: JSON strings have escapes for line breaks, so those that are here are white space."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ")


def success_body(encoding: OtlpEncoding) -> bytes:
    """An `ExportTraceServiceResponse` without a partial success."""
    return b"" if encoding is OtlpEncoding.PROTOBUF else b"{}"


def error_body(encoding: OtlpEncoding, why: str) -> bytes:
    """A `google.rpc.Status` with a message, as OTLP/HTTP wants it for errors."""
    if encoding is OtlpEncoding.JSON:
        return json.dumps({"message": why}).encode()
    text = why.encode()
    return b"\x12" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
