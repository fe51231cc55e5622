"""Spans for tests, written once and encoded in every way that OTLP has."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import zstandard
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from grader.core.tools.calls import ToolsPayload
from grader.traces.reader import ReadOptions, TraceInput, read_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER_TRACE = "1bf7651916cd43dd8448eb211c80319d"
SECOND = 1_000_000_000
BASE = 1_700_000_000 * SECOND
SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"


@dataclass(frozen=True)
class S:
    """A span: `id` and `parent` are small numbers, times are seconds after a base."""

    id: int
    name: str = "x"
    parent: int | None = 1
    start: float | None = 1
    end: float | None = 2
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    events: Sequence[tuple[str, Mapping[str, object]]] = ()
    status: int | None = None
    message: str = ""
    scope: str = "test"
    trace: str = TRACE
    extra: dict[str, object] = field(default_factory=dict[str, object])


def root() -> S:
    """The root that every trace of these tests has."""
    return S(1, "invoke_agent a", parent=None, start=0, end=100, attributes={"gen_ai.operation.name": "invoke_agent"})


def tool(
    number: int,
    name: str = "send",
    *,
    parent: int | None = 1,
    start: float | None = 1,
    end: float | None = 2,
    arguments: object = None,
    call_id: str | None = None,
    scope: str = "test",
    **attributes: object,
) -> S:
    """A GenAI execution."""
    found: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        found["gen_ai.tool.call.arguments"] = text
    if call_id is not None:
        found["gen_ai.tool.call.id"] = call_id
    more = {key.replace("__", "."): value for key, value in attributes.items()}
    return S(number, f"execute_tool {name}", parent, start, end, {**found, **more}, scope=scope)


def ns(seconds: float | None) -> int | None:
    return None if seconds is None else BASE + round(seconds * SECOND)


def any_value(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return {"doubleValue": names.get(str(value), value)}
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(item) for item in cast("list[object]", value)]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(cast("dict[str, object]", value))}}
    return {}


def pairs(attributes: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span_json(span: S) -> dict[str, object]:
    found: dict[str, object] = {
        "traceId": span.trace,
        "spanId": f"{span.id:016x}",
        "name": span.name,
        "kind": 1,
        "attributes": pairs(span.attributes),
    }
    if span.parent is not None:
        found["parentSpanId"] = f"{span.parent:016x}"
    if span.start is not None:
        found["startTimeUnixNano"] = str(ns(span.start))
    if span.end is not None:
        found["endTimeUnixNano"] = str(ns(span.end))
    if span.events:
        found["events"] = [{"name": name, "timeUnixNano": "1", "attributes": pairs(a)} for name, a in span.events]
    if span.status is not None:
        found["status"] = {"code": span.status, "message": span.message}
    return {**found, **span.extra}


def request_json(spans: Sequence[S]) -> dict[str, object]:
    """One request; neighbours of one scope share a scope entry."""
    groups: list[tuple[str, list[dict[str, object]]]] = []
    for span in spans:
        if not groups or groups[-1][0] != span.scope:
            groups.append((span.scope, []))
        groups[-1][1].append(span_json(span))
    scopes = [{"scope": {"name": scope, "version": "1"}, "spans": found} for scope, found in groups]
    resource = {"attributes": pairs({"service.name": "demo"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}


def request_protobuf(spans: Sequence[S]) -> bytes:
    """One message, made by the generated classes of the standard."""
    plain = cast("Any", request_json(spans))
    for scope in plain["resourceSpans"][0]["scopeSpans"]:
        for span in scope["spans"]:
            for key in {"traceId", "spanId", "parentSpanId"} & span.keys():
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    return ParseDict(plain, ExportTraceServiceRequest()).SerializeToString()


def framed(messages: Sequence[bytes]) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def lines(batches: Sequence[Sequence[S]]) -> bytes:
    return b"".join(json.dumps(request_json(batch)).encode() + b"\n" for batch in batches)


ENCODINGS: dict[str, Callable[[Sequence[Sequence[S]]], bytes]] = {
    "json": lambda batches: json.dumps(request_json([s for batch in batches for s in batch]), indent=1).encode(),
    "list": lambda batches: json.dumps([request_json(batch) for batch in batches]).encode(),
    "lines": lines,
    "indented, one after the other": lambda batches: b"\n".join(
        json.dumps(request_json(batch), indent=2).encode() for batch in batches
    ),
    "protobuf": lambda batches: request_protobuf([s for batch in batches for s in batch]),
    "length-prefixed": lambda batches: framed([request_protobuf(batch) for batch in batches]),
    "lines, gzip": lambda batches: gzip.compress(lines(batches)),
    "lines, zstd": lambda batches: zstandard.compress(lines(batches)),
    "length-prefixed, gzip members": lambda batches: b"".join(
        gzip.compress(framed([request_protobuf(batch)])) for batch in batches
    ),
    "length-prefixed, zstd": lambda batches: zstandard.compress(framed([request_protobuf(batch) for batch in batches])),
}


def read(
    *sources: bytes | S | Sequence[S], declared_by: str | None = "the caller", options: ReadOptions | None = None
) -> ToolsPayload:
    """The evidence of sources: bytes as they are, spans as JSON."""
    inputs: list[TraceInput] = []
    for number, source in enumerate(sources):
        spans = [source] if isinstance(source, S) else source
        data = spans if isinstance(spans, bytes) else json.dumps(request_json(spans)).encode()
        inputs.append(TraceInput.of_bytes(data, f"file {number}"))
    return read_traces(inputs, options).payload(declared_by=declared_by)


def content(payload: ToolsPayload) -> ToolsPayload:
    """The evidence without what tells how it was stored."""
    return payload.model_copy(update={"sources": ()})


def codes(payload: ToolsPayload) -> list[str]:
    return [str(reason.code) for reason in payload.coverage.why_not_complete()]
