"""Spans made to mislead whoever reads them, or to hold them up: corrections of what was said, thousands all alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from grader.capture.http_body import BodyError
from grader.capture.otlp_body import OtlpEncoding, count_spans
from grader.core.tools.calls import ToolsPayload, observe_tools
from grader.core.tools.conditions import ToolsCalled
from grader.core.traces.coverage import CoverageCode
from grader.core.tri import Tri
from grader.scorers.tool_scorers import tool_scorers
from grader.traces import coverage, unify
from grader.traces.reader import TraceInput, read_traces
from grader.traces.span_store import ToolSpan

MANY = 1_000


def span(number: int, scope: str = "s", parent: int = 1, **attributes: Any) -> dict[str, Any]:
    listed = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    content = {
        "traceId": f"{7:032x}",
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "execute_tool",
        "startTimeUnixNano": "1",
        "endTimeUnixNano": "9",
        "attributes": listed,
    }
    return {"scope": {"name": scope}, "spans": [content]}


def tool(number: int, name: str, scope: str = "s", **more: Any) -> dict[str, Any]:
    return span(number, scope, gen_ai__operation__name="execute_tool", gen_ai__tool__name=name, **more)


ROOT = span(1, parent=0, gen_ai__operation__name="invoke_agent")


def read(*scopes: dict[str, Any]) -> ToolsPayload:
    return read_requests(*({"resourceSpans": [{"scopeSpans": [one]}]} for one in (ROOT, *scopes)))


def read_requests(*requests: dict[str, Any]) -> ToolsPayload:
    lines = [json.dumps(one) for one in requests]
    return read_traces([TraceInput.of_bytes("\n".join(lines).encode())]).payload(declared_by="the caller")


@pytest.mark.parametrize(
    ("said", "corrected"),
    [
        (tool(2, "delete"), tool(2, "search")),
        (tool(2, "search", gen_ai__tool__call__id="a"), tool(2, "search", gen_ai__tool__call__id="b")),
        (
            tool(2, "search", gen_ai__tool__call__arguments='{"x": 1}'),
            tool(2, "search", gen_ai__tool__call__arguments='{"x": 2}'),
        ),
        (tool(2, "delete"), span(2, gen_ai__operation__name="chat", gen_ai__tool__name="delete")),
    ],
)
def test_a_span_that_is_corrected_later_is_a_conflict(said: dict[str, Any], corrected: dict[str, Any]) -> None:
    assert read(said, said, tool(3, "search")).coverage.is_complete
    for order in ((said, corrected), (corrected, said)):
        assert read(*order, tool(3, "search")).coverage.has(CoverageCode.SPAN_CONFLICT)


def test_another_name_for_the_same_span_does_not_hide_a_call() -> None:
    only = ToolsCalled.model_validate({"tools": [{"name": "search"}], "exhaustive": True})
    (scorer,) = (scorer for scorer in tool_scorers(clock_skew_tolerance_ns=0) if scorer.reads is ToolsCalled)
    verdict = scorer.score(only, observe_tools(read(tool(2, "delete"), tool(2, "search"))))
    assert verdict.value is Tri.UNDETERMINED


def counting(counted: list[int], real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        counted.append(1)
        return real(*arguments)

    return call


def test_overlapping_spans_of_a_thousand_scopes_are_compared_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(unify, "_may_be_one", counting(looks, unify._may_be_one))  # pyright: ignore[reportPrivateUsage]
    spans = [tool(number, "a", f"s{number}", gen_ai__tool__call__id=f"c{number}") for number in range(2, MANY + 2)]
    payload = read(*spans)
    assert len(payload.calls) == MANY
    assert len(looks) < 100 * MANY
    # What was not compared is not counted as so many executions.
    unsure = sum(call.maybe_same_as is not None for call in payload.calls)
    assert unsure > MANY / 2


def test_records_of_one_span_are_compared_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    monkeypatch.setattr(ToolSpan, "__eq__", counting(looks, ToolSpan.__eq__))
    (call,) = read(*(tool(2, f"a{number}") for number in range(MANY))).calls
    assert len(call.names) == MANY
    assert len(looks) < 10 * MANY


def test_proposals_and_calls_of_other_names_are_compared_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []
    monkeypatch.setattr(coverage, "same_tool", counting(looks, coverage.same_tool))

    def asks(number: int, name: str) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"type": "tool_call", "name": name, "arguments": {}}]
        said = json.dumps([{"role": "assistant", "parts": parts}])
        return span(number, gen_ai__operation__name="chat", gen_ai__output__messages=said)

    tools = [tool(number, f"a{number}") for number in range(2, MANY + 2)]
    asked = [asks(number + MANY, f"z{number}") for number in range(2, MANY + 2)]
    known = asks(2 * MANY + 2, "a2")
    payload = read(*tools, *asked, known)
    assert len(payload.not_executed) == MANY
    assert payload.coverage.has(CoverageCode.PROPOSAL_UNANSWERED)
    assert len(looks) < 100 * MANY


def test_spans_under_two_names_of_one_key_are_read_or_said_to_be_missing() -> None:
    both = {"scopeSpans": [ROOT, tool(2, "search")], "instrumentationLibrarySpans": [tool(3, "delete")]}
    payload = read_requests({"resourceSpans": [both]})
    assert [call.names for call in payload.calls] == [("search",), ("delete",)]
    hidden = {"resourceSpans": [{"scopeSpans": [tool(3, "delete")]}], "resource_spans": []}
    payload = read_requests({"resourceSpans": [{"scopeSpans": [ROOT, tool(2, "search")]}]}, hidden)
    assert payload.coverage.has(CoverageCode.RECORD_UNREADABLE)
    with pytest.raises(BodyError, match="something else is"):
        count_spans(json.dumps(hidden).encode(), OtlpEncoding.JSON)


_ROOT, _DELETE = (json.dumps(one["spans"][0]) for one in (ROOT, tool(2, "delete")))
_ONE_KEY = '"value": {"stringValue": "delete"}'


@pytest.mark.parametrize(
    "request_text",
    [
        f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{_ROOT}, {_DELETE}]}}]}}],'
        f' "resourceSpans": [{{"scopeSpans": [{{"spans": [{_ROOT}]}}]}}]}}',
        f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{_DELETE}]}}], "scopeSpans": [{{"spans": [{_ROOT}]}}]}}]}}',
        f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{_DELETE}], "spans": [{_ROOT}]}}]}}]}}',
        *(
            f'{{"resourceSpans": [{{"scopeSpans": [{{{scope}, "spans": [{_ROOT}]}}]}}]}}'
            for scope in ('"scope": {"name": "a"}, "scope": {"name": "b"}', '"scope": {"name": "a", "name": "b"}')
        ),
        *(
            f'{{"resourceSpans": [{{"scopeSpans": [{{"spans": [{_ROOT}, {changed}]}}]}}]}}'
            for changed in (
                _DELETE[:-1] + ', "attributes": []}',
                _DELETE[:-1] + f', "spanId": "{1:016x}"}}',
                _DELETE.replace(_ONE_KEY, '"value": {"stringValue": "delete", "stringValue": "search"}'),
                _DELETE.replace(_ONE_KEY, _ONE_KEY + ', "value": {"stringValue": "search"}'),
                _DELETE.replace('"key": "gen_ai.tool.name"', '"key": "gen_ai.tool.name", "key": "other"'),
                # No list of attributes at all.
                _DELETE.replace('"attributes": [', '"attributes": {"a": [').replace("]}", "]}}"),
                _DELETE.replace('{"key": "gen_ai.operation.name"', '"text", {"key": "gen_ai.operation.name"'),
                _DELETE.replace('"key": "gen_ai.tool.name"', '"key": 7'),
            )
        ),
    ],
)
@pytest.mark.parametrize("lines", [True, False])
def test_a_key_that_is_there_twice_or_a_wrong_list_hides_no_call(request_text: str, lines: bool) -> None:
    """JSON parsers take the last of two values; what they drop might be the call that no condition allows."""
    content = (request_text + "\n" if lines else request_text.replace("[{", "[\n{", 1)).encode()
    payload = read_traces([TraceInput.of_bytes(content)]).payload(declared_by="the caller")
    assert not payload.coverage.is_complete
