"""Exports are read like the traces they were made of, and never prove that something did not happen."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from grader import score
from grader.core.expectation import Task
from grader.core.tools.calls import ToolsPayload
from grader.core.tools.conditions import ToolCondition, ToolsCalled, ToolsNotCalled
from grader.errors import TraceError
from grader.traces.exports.base import instant_ns
from grader.traces.reader import TraceInput, read_traces
from tests.unit.scorers.tool_samples import tool as wanted
from tests.unit.traces.exports.export_samples import END_NS, SAMPLES, START_NS, langfuse, otel_sdk, phoenix
from tests.unit.traces.otlp_samples import codes, read

ENCODINGS: dict[str, Callable[[Any], bytes]] = {
    "one document": lambda value: json.dumps(value, indent=1).encode(),
    "one line": lambda value: json.dumps(value).encode(),
    "records one a line": lambda value: b"\n".join(json.dumps(item).encode() for item in records(value)),
    "records one after the other": lambda value: b"\n".join(
        json.dumps(item, indent=2).encode() for item in records(value)
    ),
    "gzip": lambda value: gzip.compress(json.dumps(value).encode()),
}


def records(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_export_in_every_encoding(name: str, encoding: str) -> None:
    make, unit = SAMPLES[name]
    payload = read(ENCODINGS[encoding](make()))
    assert payload.sources[0].encoding.startswith(name.split(" ", maxsplit=1)[0])
    (call,) = payload.calls
    assert call.names == ("send",)
    assert call.arguments.as_object() == {"to": "ann"}
    assert call.call_id == (None if name == "deepeval" else "c1")
    assert [(attempt.start_ns, attempt.end_ns) for attempt in call.attempts] == [(START_NS - unit, END_NS + unit)]
    assert codes(payload) == ["format.lossy"]


def judged(data: bytes, condition: ToolCondition) -> str:
    verdict = score(data, Task(conditions=(condition,)), complete=True).verdict
    assert verdict is not None
    return verdict.value.value


@pytest.mark.parametrize("name", SAMPLES)
def test_an_export_confirms_and_refutes_by_what_it_has_and_never_by_what_it_has_not(name: str) -> None:
    data = json.dumps(SAMPLES[name][0]()).encode()
    assert judged(data, ToolsCalled(tools=(wanted("send", 1, None, to="ann"),))) == "true"
    assert judged(data, ToolsNotCalled(tools=("send",))) == "false"
    assert judged(data, ToolsCalled(tools=(wanted("other"),))) == "undetermined"
    assert judged(data, ToolsNotCalled(tools=("other",))) == "undetermined"
    assert judged(data, ToolsCalled(tools=(wanted("send", 1, None, to="bob"),))) == "undetermined"


def test_what_the_sdk_really_writes() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("x")
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}
    with (
        tracer.start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}),
        tracer.start_as_current_span("t", attributes={**attributes, "gen_ai.tool.call.arguments": '{"n": 1.50}'}),
        pytest.raises(ValueError, match="no such address"),
        tracer.start_as_current_span("t", attributes={**attributes, "gen_ai.tool.name": "fail"}),
    ):
        raise ValueError("no such address")
    spans = exporter.get_finished_spans()
    payload = read("\n".join(span.to_json() for span in spans).encode())
    by_name = {call.names[0]: call for call in payload.calls}
    assert by_name["send"].arguments.text == '{"n":1.50}'
    assert by_name["fail"].failed is True
    real = next(span for span in spans if span.attributes and span.attributes.get("gen_ai.tool.name") == "send")
    (attempt,) = by_name["send"].attempts
    assert attempt.start_ns is not None
    assert attempt.end_ns is not None
    assert attempt.start_ns <= (real.start_time or 0) < (real.end_time or 0) <= attempt.end_ns
    assert codes(payload) == ["format.lossy"]


# --- what single exports do to spans


def test_attributes_that_phoenix_opened_up() -> None:
    spans = phoenix()
    spans[2]["attributes"] = {
        "openinference": {"span": {"kind": "TOOL"}},
        "tool": {"name": "send", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}},
        "input": {"value": '{"to": "ann"}', "mime_type": "application/json"},
        "llm": {"output_messages": [{"message": {"role": "assistant"}}]},
    }
    assert read(json.dumps(spans).encode()).calls[0].arguments.as_object() == {"to": "ann"}
    flat = phoenix()
    flat[2]["attributes"] = {
        "tool.name": "web_search",
        "input.value": '{"args": ["x"], "sanitize_inputs_outputs": false, "kwargs": {}}',
        "tool.parameters.query.type": "string",
    }
    assert read(json.dumps(flat).encode()).calls[0].arguments.as_object() == {"query": "x"}


def test_what_langfuse_took_out_of_the_attributes() -> None:
    value = langfuse()
    tool = value["observations"][2]
    tool["metadata"] = {"attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}}
    tool["input"] = {"to": "ann"}
    call = read(json.dumps(value).encode()).calls[0]
    assert (call.names, call.arguments.as_object()) == (("send",), {"to": "ann"})


def test_observations_without_attributes() -> None:
    value = langfuse()
    for item in value["observations"]:
        item["metadata"] = {}
        item["name"] = "send" if item["type"] == "TOOL" else item["name"]
    value["observations"][2] |= {"input": '{"to": "ann"}', "id": "not an id of OpenTelemetry", "level": "ERROR"}
    payload = read(json.dumps(value).encode())
    assert [(call.names, call.failed) for call in payload.calls] == [(("send",), True)]
    assert payload.sources[0].warnings == ("ids are not those of OpenTelemetry: digests of them are shown",)


def test_an_observation_that_has_not_ended_and_an_event() -> None:
    value = langfuse()
    value["observations"][2]["endTime"] = None
    assert codes(read(json.dumps(value).encode())) == ["format.lossy", "span.unfinished"]
    value = langfuse()
    value["observations"][1] |= {"endTime": None, "type": "EVENT"}
    assert codes(read(json.dumps(value).encode())) == ["format.lossy"]


def test_pages_and_limits_of_apis_are_a_reason() -> None:
    page = {"data": phoenix(), "next_cursor": "abc"}
    assert "capacity" in codes(read(json.dumps(page).encode()))
    found = {"data": langfuse()["observations"], "meta": {"page": 1, "totalPages": 3}}
    assert "capacity" in codes(read(json.dumps(found).encode()))
    rows = SAMPLES["logfire"][0]()
    rows["rows"] = rows["rows"] * 167
    assert "capacity" in codes(read(json.dumps({**rows, "rows": rows["rows"][:500]}).encode()))


def test_pending_spans_of_logfire() -> None:
    value = SAMPLES["logfire"][0]()
    row = value["rows"][2]
    value["rows"] += [{**row, "span_id": "00000000000000b1", "parent_span_id": row["span_id"], "kind": "pending_span"}]
    assert len(read(json.dumps(value).encode()).calls) == 1
    value["rows"].pop(2)
    alone = read(json.dumps(value).encode())
    assert [attempt.end_ns for call in alone.calls for attempt in call.attempts] == [None]
    assert "span.pending" in codes(alone)


def test_several_samples_of_inspect_are_several_traces_and_what_did_not_run_is_told() -> None:
    sample = SAMPLES["inspect"][0]()
    refused = json.loads(json.dumps(sample))
    refused["events"][2]["error"] = {"type": "parsing", "message": "no JSON"}
    pending = json.loads(json.dumps(sample))
    pending["events"][2]["pending"] = True
    log: dict[str, Any] = {
        "eval": {},
        "samples": [{"id": 1, "epoch": 1, **sample}, {"id": 2, **refused}, {"id": 3, **pending}],
    }
    payload = read(json.dumps(log).encode())
    assert (len(payload.trace_ids), len(payload.calls)) == (3, 2)
    assert [item.why.value for item in payload.excluded] == ["invalid_arguments"]
    assert "span.unfinished" in codes(payload)


# --- hostile input


def test_a_key_that_stands_twice_with_different_values_is_no_value() -> None:
    text = json.dumps(otel_sdk()[2]).replace(
        '"gen_ai.tool.name": "send"', '"gen_ai.tool.name": "send", "gen_ai.tool.name": "other"'
    )
    payload = read(text.encode())
    assert (payload.calls, len(payload.possible)) == ((), 1)
    same = text.replace('"other"', '"send"')
    assert [call.names for call in read(same.encode()).calls] == [("send",)]


WRONG: list[Any] = [None, True, -1, 3.5, "x", [], [[]], {}, {"a": {"b": []}}, "9" * 5000]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(cast("list[Any]", value)):
            yield from places(inner, (*path, number))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_value_of_any_type_anywhere_gives_an_error_in_words_or_a_reason(name: str) -> None:
    whole = SAMPLES[name][0]()
    for number, path in enumerate(places(whole)):
        value = json.loads(json.dumps(whole))
        inner = value
        for part in path[:-1]:
            inner = inner[part]
        inner[path[-1]] = WRONG[number % len(WRONG)]
        payload = quietly(json.dumps(value).encode())
        # Without its attributes an observation of the type TOOL has the name that Langfuse gives it.
        known = {"send", "x"} | ({"execute_tool send"} if name == "langfuse" else set[str]())
        assert payload is None or {name for call in payload.calls for name in call.names} <= known


def quietly(data: bytes) -> ToolsPayload | None:
    try:
        payload = read(data)
    except TraceError as error:
        return None if error.hint else pytest.fail(f"no mend: {error}")
    assert type(payload).model_validate_json(payload.model_dump_json()) == payload
    return payload


def test_deep_and_giant_attributes() -> None:
    deep = otel_sdk()
    deep[2]["attributes"]["gen_ai.tool.call.arguments"] = json.loads("[" * 200 + "]" * 200)
    assert not read(json.dumps(deep).encode()).calls[0].arguments.is_recorded
    giant = otel_sdk()
    giant[2]["attributes"]["gen_ai.tool.call.arguments"] = {"to": "x" * 2_000_000, "n": 1}
    arguments = read(json.dumps(giant).encode()).calls[0].arguments
    assert (arguments.argument("n").value, str(arguments.argument("to").why)) == (1, "truncated")


def test_cycles_in_an_export_are_roots_and_a_reason() -> None:
    spans = otel_sdk()
    spans[0]["parent_id"] = spans[2]["context"]["span_id"]
    payload = read(json.dumps(spans).encode())
    assert [call.names for call in payload.calls] == [("send",)]
    assert "parent.cycle" in codes(payload)


NO_TRACES: list[tuple[Any, str]] = [
    ({"eval_set_id": "x", "eval_cases": []}, "an eval set of ADK"),
    ([{"role": "user", "content": "hi"}], "--conversation"),
    ({"contents": [{"parts": []}]}, "--conversation"),
    ({"interactions": []}, "--conversation"),
    ({"events": [{"type": "item.completed", "item": {}}]}, "--conversation"),
    ({"id": "x", "observations": ["a", "b"]}, "export the trace with its observations"),
    ({"a": 1}, "no key resourceSpans"),
]


@pytest.mark.parametrize(("value", "says"), NO_TRACES)
def test_what_is_no_trace_is_told_what_it_is(value: object, says: str) -> None:
    with pytest.raises(TraceError, match=says) as caught:
        read_traces([TraceInput.of_bytes(json.dumps(value, indent=1).encode(), "f.json")])
    assert caught.value.where is not None
    assert caught.value.hint


def test_an_export_beside_otlp_in_one_list_is_read_too() -> None:
    data = json.dumps([{"resourceSpans": []}, *otel_sdk()]).encode()
    assert [call.names for call in read(data).calls] == [("send",)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-01T00:00:01Z", 1_767_225_601_000_000_000),
        ("2026-01-01 00:00:01.5", 1_767_225_601_500_000_000),
        ("2026-01-01T02:00:01.123456789+02:00", 1_767_225_601_123_456_789),
        ("2025-12-31T19:30:01.1-0430", 1_767_225_601_100_000_000),
        (1_767_225_601, 1_767_225_601_000_000_000),
        (1_767_225_601_123, 1_767_225_601_123_000_000),
        (1_767_225_601_123_456_789, 1_767_225_601_123_456_789),
        ("1767225601123456789", 1_767_225_601_123_456_789),
        (None, None),
        ("", None),
        (0, None),
    ],
)
def test_times_are_exact(text: object, expected: int | None) -> None:
    assert instant_ns(text) == expected


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01T00:00:00Z", "1969-01-01T00:00:00Z", -1, True, [], 1 << 70])
def test_what_is_no_time(text: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        instant_ns(text)
