"""LangChain and LangGraph."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, oi, once

SCOPE = "openinference.instrumentation.langchain"
RESULT = json.dumps({"type": "tool", "data": {"content": "sunny", "tool_call_id": "c1"}})
CALL = "llm.output_messages.0.message.tool_calls.0.tool_call."


def asked(arguments: object, call_id: str = "c1", name: str = "weather") -> S:
    text = json.dumps(arguments)
    more = {f"{CALL}function.name": name, f"{CALL}function.arguments": text, f"{CALL}id": call_id}
    return S(9, "ChatModel", attributes=oi(None, kind="LLM", **more))


def weather(given: object, **more: object) -> S:
    return S(2, "weather", attributes=oi("weather", given, output__value=RESULT), **more)  # type: ignore[arg-type]


def test_an_argument_without_its_name_is_completed_from_what_the_model_asked_for() -> None:
    spans = of(asked({"city": "Oslo"}), weather("Oslo"), scope=SCOPE)
    assert called(spans, "weather", city="Oslo") == "true"
    assert called(spans, "weather", city="Rome") == "false tool.arguments"


@pytest.mark.parametrize("request_", [{"city": "Rome"}, {"city": "Oslo", "unit": "C"}, {"city": 7}])
def test_it_is_not_completed_from_something_else(request_: object) -> None:
    spans = of(asked(request_), weather("Oslo"), scope=SCOPE)
    assert called(spans, "weather", city="Oslo") == "undetermined arguments.unparsable"


def test_a_text_that_is_json_is_no_object_of_arguments_when_it_was_one_argument() -> None:
    spans = of(asked({"query": '{"a": 1}'}), weather('{"a": 1}'), scope=SCOPE)
    assert called(spans, "weather", query='{"a": 1}') == "true"
    assert called(spans, "weather", a="1") == "false tool.arguments"


def test_without_its_request_it_stays_unknown() -> None:
    assert called(of(weather("Oslo"), scope=SCOPE), "weather", city="Oslo") == "undetermined arguments.unparsable"
    other = asked({"city": "Oslo"}, call_id="c2")
    assert called(of(other, weather("Oslo"), scope=SCOPE), "weather", city="Oslo").startswith("undetermined")


def exception(kind: str, message: str = "", stack: str = "") -> tuple[tuple[str, dict[str, str]], ...]:
    found = {"exception.type": kind, "exception.message": message, "exception.stacktrace": stack}
    return (("exception", found),)


def test_a_call_with_bad_arguments_never_ran() -> None:
    stack = 'File "/x/langchain_core/tools/base.py", line 835, in _parse_input\n'
    for events in (
        exception("pydantic_core._pydantic_core.ValidationError", "1 validation error for Args", stack),
        exception("pydantic.ValidationError", "2 validation errors for weather\ncity"),
    ):
        spans = of(weather({"town": 7}, events=events, status=2), scope=SCOPE)
        assert not_called(spans, "weather") == "true"
        assert excluded(spans) == [("weather", "invalid_arguments")]


def test_a_tool_that_raises_a_validation_error_of_its_own_ran() -> None:
    events = exception("pydantic.ValidationError", "1 validation error for Report")
    assert called(of(weather({"city": "Oslo"}, events=events, status=2), scope=SCOPE), "weather") == "true"


def test_an_interrupted_call_is_not_counted_although_its_status_is_ok() -> None:
    events = exception("langgraph.errors.GraphInterrupt")
    first = S(3, "weather", attributes=oi("weather", {"city": "Oslo"}), events=events, status=1)
    spans = of(first, weather({"city": "Oslo"}, start=5, end=6), scope=SCOPE)
    assert once(spans, "weather") == "true"
    assert excluded(spans) == [("weather", "deferred")]


def test_a_tool_whose_name_has_agent_in_it() -> None:
    is_state = S(2, "research_agent", attributes=oi(None, {"messages": []}, kind="AGENT"))
    assert nothing_but(of(is_state, scope=SCOPE)) == "true"
    may_be = S(2, "route_to_agent", attributes=oi(None, "{'to': 'x'}", kind="AGENT"))
    assert nothing_but(of(may_be, scope=SCOPE)) == "undetermined evidence.incomplete"
    is_tool = S(2, "route_to_agent", attributes=oi("route_to_agent", {"to": "x", "why": "y"}, kind="AGENT"))
    assert called(of(is_tool, scope=SCOPE), "route_to_agent", to="x") == "true"


def test_openllmetry_wraps_the_arguments_and_hides_the_id_in_the_result() -> None:
    given: dict[str, object] = {
        "input_str": "{'city': 'Oslo'}",
        "tags": [],
        "metadata": {},
        "inputs": {"city": "Oslo"},
        "kwargs": {},
    }
    attributes: dict[str, object] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.arguments": json.dumps(given),
        "gen_ai.tool.call.result": json.dumps({"output": {"kwargs": {"tool_call_id": "c7"}}, "kwargs": {}}),
    }
    spans = of(S(2, "weather.tool", attributes=attributes), scope="opentelemetry.instrumentation.langchain")
    assert called(spans, "weather", city="Oslo") == "true"
    assert evidence(spans).calls[0].call_id == "c7"


def test_langsmith_has_the_name_only_in_that_of_the_span() -> None:
    attributes: dict[str, object] = {
        "langsmith.span.kind": "tool",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.prompt": json.dumps({"input": {"city": "Oslo"}}),
    }
    spans = of(S(2, "weather", attributes=attributes), scope="langsmith")
    assert called(spans, "weather", city="Oslo") == "true"
    assert codes(evidence(of(S(2, attributes={"langsmith.span.kind": "unheard-of"}), scope="langsmith"))) != []


def langsmith(kind: str, **more: object) -> S:
    found: dict[str, object] = {"langsmith.span.kind": kind, "gen_ai.prompt": '{"city": "Oslo"}'}
    found |= {key.replace("__", "."): value for key, value in more.items() if key != "events"}
    return S(2 if kind == "tool" else 9, "weather", attributes=found, scope="langsmith")


def test_langsmith_asks_and_refuses_in_its_own_words() -> None:
    message: dict[str, object] = {
        "kwargs": {"tool_calls": [{"name": "weather", "args": {}, "id": "c1", "type": "tool_call"}]}
    }
    asked = langsmith("llm", gen_ai__completion=json.dumps({"generations": [[{"message": message}]]}))
    assert codes(evidence(of(asked))) == ["proposal.unanswered"]
    assert codes(evidence(of(asked, langsmith("tool", gen_ai__tool__call__id="c1")))) == []
    text = (
        '1 validation error for weather\ncityTraceback (most recent call last):\n  File "/langchain_core/tools/base.py"'
        ", line 835, in _parse_input\npydantic_core._pydantic_core.ValidationError: 1 validation error for weather"
    )
    spans = of(replace(langsmith("tool"), events=exception("Exception", text), status=2))
    assert (not_called(spans, "weather"), excluded(spans)) == ("true", [("weather", "invalid_arguments")])
    failed = of(replace(langsmith("tool"), events=exception("Exception", "no such town"), status=2))
    assert called(failed, "weather", city="Oslo") == "true"
