"""Values that no reader can be sure of: numbers beyond all bounds, two values where one belongs. They never end the
reading, and never hide a call.
"""

from __future__ import annotations

import json

import pytest

from grader.core.tools.arguments import ArgumentState, ContentRules, parse_json, recorded_arguments
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.coverage import CoverageCode
from grader.traces.exports.base import instant_ns
from grader.traces.otlp_protobuf import any_value
from grader.traces.reader import TraceInput, read_traces

TRACE = "0af7651916cd43dd8448eb211c80319c"
ROOT = '{"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}'
CHAT = '{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}'
OPERATION = '{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}}'
NAME = '{"key": "gen_ai.tool.name", "value": {"stringValue": "send"}}'
HUGE = "1" + "0" * 400


def span(number: int, attributes: str) -> str:
    return (
        f'{{"traceId": "{TRACE}", "spanId": "{number:016x}", "parentSpanId": "{"" if number == 1 else f"{1:016x}"}",'
        f' "name": "x", "startTimeUnixNano": "5", "endTimeUnixNano": "9", "attributes": [{attributes}]}}'
    )


def read(attributes: str) -> ToolsPayload:
    spans = ", ".join((span(1, ROOT), span(2, CHAT), span(3, attributes)))
    text = f'{{"resourceSpans": [{{"scopeSpans": [{{"scope": {{"name": "s"}}, "spans": [{spans}]}}]}}]}}'
    return read_traces([TraceInput.of_bytes(text.encode())]).payload(declared_by="the caller")


@pytest.mark.parametrize(
    "value",
    [
        f'{{"doubleValue": {HUGE}}}',
        f'{{"kvlistValue": {{"values": [{{"key": "a", "value": {{"doubleValue": -{HUGE}}}}}]}}}}',
        json.dumps({"stringValue": '{"a": 1e99999999999999999999}'}),
        json.dumps({"stringValue": '{"a": -0.1e-99999999999999999999}'}),
    ],
)
def test_arguments_with_a_number_beyond_all_bounds_cannot_be_read_and_end_nothing(value: str) -> None:
    (call,) = read(f'{OPERATION}, {NAME}, {{"key": "gen_ai.tool.call.arguments", "value": {value}}}').calls
    assert call.arguments.state is ArgumentState.UNPARSABLE


def test_every_attribute_may_hold_such_a_number() -> None:
    for key in ("gen_ai.tool.name", "gen_ai.operation.name", "gen_ai.tool.call.id", "logfire.span_type"):
        payload = read(f'{OPERATION}, {{"key": "{key}", "value": {{"doubleValue": {HUGE}}}}}')
        assert payload.coverage.has(CoverageCode.TOOL_UNNAMED)


@pytest.mark.parametrize("text", ["1e99999999999999999999", "-1E-99999999999999999999", "[0e99999999999999999999]"])
def test_json_with_an_exponent_beyond_all_bounds_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="too many digits"):
        parse_json(text)
    assert recorded_arguments({"a": text}, ContentRules()).is_recorded


@pytest.mark.parametrize("value", ["++5", "+", "٣", "+٣", "1_0"])
def test_a_time_that_only_looks_like_a_number_is_a_value_error(value: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        instant_ns(value)
    assert instant_ns("+1700000000") == 1_700_000_000 * 10**9


@pytest.mark.parametrize(
    "attributes",
    [
        '{"key": "gen_ai.operation.name", "value": {"stringValue": "chat", "string_value": "execute_tool"}}',
        '{"key": "gen_ai.operation.name", "value": {"stringValue": "chat", "arrayValue": {"values": []}}}',
        '{"key": "traceloop.span.kind", "value": {"stringValue": "task"}}, '
        '{"key": "traceloop.span.kind", "value": {"stringValue": "tool"}}, '
        '{"key": "traceloop.entity.name", "value": {"stringValue": "send"}}',
        '{"key": "mcp.method.name", "value": {"stringValue": "tools/list"}}, '
        '{"key": "mcp.method.name", "value": {"stringValue": "tools/call"}}',
        '{"key": "langfuse.observation.type", "value": {"stringValue": "span"}}, '
        '{"key": "langfuse.observation.type", "value": {"stringValue": "tool"}}',
        '{"key": "ai.operationId", "value": {"stringValue": "ai.toolCall"}}, '
        '{"key": "ai.operationId", "value": {"stringValue": "ai.generateText"}}',
    ],
)
def test_two_answers_to_what_a_span_is_hide_no_call(attributes: str) -> None:
    payload = read(attributes)
    assert payload.calls == ()
    assert payload.coverage.has(CoverageCode.TOOL_UNNAMED)


def test_a_kind_that_is_null_is_none() -> None:
    payload = read(f'{OPERATION}, {{"key": "gen_ai.tool.name", "value": {{"stringValue": "send", "intValue": null}}}}')
    assert payload.calls[0].names == ("send",)
    assert payload.coverage.is_complete


def test_two_answers_to_whether_a_call_was_refused_are_no_sure_execution() -> None:
    twice = ", ".join(
        f'{{"key": "error.type", "value": {{"stringValue": "{word}"}}}}' for word in ("tool_not_found", "timeout")
    )
    payload = read(f"{OPERATION}, {NAME}, {twice}")
    assert payload.calls == ()
    assert payload.coverage.has(CoverageCode.TOOL_UNNAMED)


def test_a_protobuf_value_of_two_kinds_is_malformed() -> None:
    text, whole = b"\x0a\x04chat", b"\x18\x05"
    assert any_value(memoryview(text)) == "chat"
    for both in (text + whole, whole + text, text + text):
        with pytest.raises(ValueError, match="two kinds"):
            any_value(memoryview(both))
