"""What a body of OTLP/HTTP holds, checked before it is kept so that what is kept can be read; and bodies of answers."""

from __future__ import annotations

import json
from enum import Enum
from typing import cast

from grader.capture.http_body import BodyError
from grader.traces import otlp_json, otlp_protobuf
from grader.traces.otlp import loads
from grader.traces.span import ReadNotes


class OtlpEncoding(Enum):
    """The two encodings of OTLP over HTTP; the value is the content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


def count_spans(body: bytes, encoding: OtlpEncoding) -> int:
    """How many spans a request for traces holds; all of them were read. An empty request has none.

    Raises BodyError (400) for what is no such request, is cut, or has no span that can be used.
    """
    notes = ReadNotes()
    usable = _read_protobuf(body, notes) if encoding is OtlpEncoding.PROTOBUF else _read_json(body, notes)
    if usable == 0 and notes.spans > 0:
        raise BodyError(400, f"none of its {notes.spans} spans can be used: {notes.unreadable_detail}")
    if usable == 0 and (notes.unknown_fields > 0 or notes.unreadable_records > 0):
        raise BodyError(400, "the body is no OTLP request for traces: no span is in it, and something else is")
    return notes.spans


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
