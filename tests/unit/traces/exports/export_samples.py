"""One and the same run as every export writes it: an agent asks for one call of `send`, and it is made."""

from __future__ import annotations

import json
from typing import Any

TRACE, ROOT, CHAT, TOOL = "0af7651916cd43dd8448eb211c80319c", "00000000000000a1", "00000000000000a2", "00000000000000a3"
START = "2026-01-01T00:00:01"
ARGUMENTS = '{"to": "ann"}'
ASKED = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "send"}]}])
ATTRIBUTES: dict[str, dict[str, Any]] = {
    ROOT: {"gen_ai.operation.name": "invoke_agent"},
    CHAT: {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.output.messages": ASKED},
    TOOL: {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "send",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": ARGUMENTS,
        "gen_ai.tool.call.result": "sent",
    },
}
NAMES = {ROOT: "invoke_agent a", CHAT: "chat m", TOOL: "execute_tool send"}
SECONDS = {ROOT: ("00", "09"), CHAT: ("01", "02"), TOOL: ("03.250000", "04.500000")}
START_NS, END_NS = 1_767_225_603_250_000_000, 1_767_225_604_500_000_000


def at(span: str, end: bool) -> str:
    return f"2026-01-01T00:00:{SECONDS[span][end]}"


def parent(span: str) -> str | None:
    return None if span == ROOT else ROOT


def otel_sdk() -> Any:
    return [
        {
            "name": NAMES[span],
            "context": {"trace_id": f"0x{TRACE}", "span_id": f"0x{span}", "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": f"0x{parent(span)}" if parent(span) else None,
            "start_time": at(span, False) + "Z",
            "end_time": at(span, True) + "Z",
            "status": {"status_code": "UNSET"},
            "attributes": attributes,
            "events": [],
            "links": [],
            "resource": {"attributes": {"service.name": "a"}, "schema_url": ""},
        }
        for span, attributes in ATTRIBUTES.items()
    ]


def phoenix() -> Any:
    return [
        {
            "name": NAMES[span],
            "context": {"trace_id": TRACE, "span_id": span},
            "span_kind": "TOOL" if span == TOOL else "UNKNOWN",
            "parent_id": parent(span),
            "start_time": at(span, False) + "+00:00",
            "end_time": at(span, True) + "+00:00",
            "status_code": "OK",
            "status_message": "",
            "attributes": {**attributes, **({"tool.name": "send"} if span == TOOL else {})},
            "events": [],
        }
        for span, attributes in ATTRIBUTES.items()
    ]


def phoenix_page() -> Any:
    return {"data": phoenix(), "next_cursor": None}


def phoenix_frame() -> Any:
    found: list[dict[str, Any]] = []
    for item in phoenix():
        flat = {f"attributes.{key}": value for key, value in item.pop("attributes").items()}
        context = item.pop("context")
        found.append({**item, **flat, "context.trace_id": context["trace_id"], "context.span_id": context["span_id"]})
    return found


def langfuse() -> Any:
    kinds = {ROOT: "AGENT", CHAT: "GENERATION", TOOL: "TOOL"}
    observations = [
        {
            "id": span,
            "traceId": TRACE,
            "type": kinds[span],
            "name": NAMES[span],
            "startTime": at(span, False)[:23].ljust(23, "0") + "Z"
            if "." in SECONDS[span][0]
            else at(span, False) + ".000Z",
            "endTime": at(span, True)[:23] + "Z" if "." in SECONDS[span][1] else at(span, True) + ".000Z",
            "parentObservationId": parent(span),
            "level": "DEFAULT",
            "metadata": json.dumps({"attributes": attributes, "scope": {"name": "x"}, "resourceAttributes": {}}),
            "input": None,
            "output": None,
        }
        for span, attributes in ATTRIBUTES.items()
    ]
    return {"trace": {"id": TRACE, "name": "a"}, "observations": observations}


def logfire_rows() -> Any:
    rows = [
        {
            "trace_id": TRACE,
            "span_id": span,
            "parent_span_id": parent(span),
            "kind": "span",
            "span_name": NAMES[span],
            "start_timestamp": at(span, False) + "Z",
            "end_timestamp": at(span, True) + "Z",
            "attributes": attributes,
            "otel_scope_name": "pydantic-ai",
            "otel_status_code": "OK",
            "otel_events": "[]",
            "otel_resource_attributes": {"service.name": "a"},
        }
        for span, attributes in ATTRIBUTES.items()
    ]
    return {"columns": [{"name": name, "datatype": "Utf8"} for name in rows[0]], "rows": rows}


def logfire_columns() -> Any:
    rows = logfire_rows()["rows"]
    return {"columns": [{"name": name, "values": [row[name] for row in rows]} for name in rows[0]]}


def plain_spans() -> Any:
    return [
        {
            "trace_id": TRACE,
            "span_id": span,
            "parent_span_id": parent(span),
            "name": NAMES[span],
            "start_time": START_NS if span == TOOL else START_NS - 3_000_000_000,
            "end_time": END_NS,
            "attributes": attributes,
            "scope": {"name": "x", "version": "1"},
            "status": {"code": "OK"},
            "span_events": [],
        }
        for span, attributes in ATTRIBUTES.items()
    ]


def deepeval() -> Any:
    def span(uuid: str, kind: str, **more: object) -> dict[str, object]:
        times = {"startTime": at(TOOL, False)[:23] + "Z", "endTime": at(TOOL, True)[:23] + "Z"}
        return {"uuid": uuid, "name": "send", "type": kind, "status": "SUCCESS", **times, **more}

    return {
        "uuid": "e690e4e1-ffac-4abf-ba3c-2ea9a7663c2d",
        "baseSpans": [span("r", "base")],
        "agentSpans": [],
        "llmSpans": [span("l", "llm", parentUuid="r", model="m", toolsCalled=[{"name": "send"}])],
        "retrieverSpans": [],
        "toolSpans": [span("t", "tool", parentUuid="r", input={"to": "ann"}, output="sent")],
    }


def inspect() -> Any:
    call = {"id": "c1", "function": "send", "arguments": {"to": "ann"}, "type": "function"}
    output = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
    times = {ROOT: at(ROOT, False) + "+00:00", CHAT: at(CHAT, False) + "+00:00"}
    return {
        "events": [
            {"event": "span_begin", "id": "A", "name": "a", "type": "agent", "timestamp": times[ROOT]},
            {"event": "model", "span_id": "A", "model": "m", "output": output, "timestamp": times[CHAT]},
            {
                "event": "tool",
                "span_id": "A",
                "id": "c1",
                "function": "send",
                "arguments": {"to": "ann"},
                "result": "sent",
                "timestamp": at(TOOL, False) + "+00:00",
                "completed": at(TOOL, True) + "+00:00",
            },
            {"event": "span_end", "id": "A", "timestamp": at(ROOT, True) + "+00:00"},
        ]
    }


SAMPLES = {
    "otel-sdk-json": (otel_sdk, 2_000),
    "phoenix": (phoenix, 2_000),
    "phoenix page": (phoenix_page, 2_000),
    "phoenix frame": (phoenix_frame, 2_000),
    "langfuse": (langfuse, 1_000_000),
    "logfire": (logfire_rows, 1_000),
    "logfire columns": (logfire_columns, 1_000),
    "plain-spans": (plain_spans, 0),
    "deepeval": (deepeval, 1_000_000),
    "inspect": (inspect, 2_000),
}
"""Name (of the export, maybe with a word after it): how to make it, and its unit of time."""
