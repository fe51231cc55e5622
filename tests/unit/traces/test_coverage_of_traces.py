"""What only one trace of several lacks, and calls of which it is known only that a model asked for some."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.traces.otlp_samples import OTHER_TRACE, S, codes, read, root, tool

UNKNOWN = S(1, "work", parent=None, attributes={"x": 1}, trace=OTHER_TRACE)


def test_an_unknown_trace_beside_a_known_one_is_a_reason() -> None:
    payload = read([root(), tool(2), UNKNOWN])
    assert codes(payload) == ["scope.unknown"]
    assert OTHER_TRACE in str(payload.coverage.reasons[0])
    assert codes(read([root(), tool(2), replace(root(), trace=OTHER_TRACE)])) == []


def test_names_that_are_not_understood_count_for_their_own_trace() -> None:
    models = S(2, attributes={"llm.model": "m"}, scope="their.library")
    known = S(2, attributes={"gen_ai.operation.name": "chat"}, scope="their.library", trace=OTHER_TRACE)
    other_root = replace(root(), trace=OTHER_TRACE)
    assert codes(read([root(), models, other_root, known])) == ["scope.unknown"]
    assert codes(read([root(), replace(models, trace=OTHER_TRACE), other_root, replace(known, id=3)])) == []


def chat(number: int, reasons: object = '["tool_calls"]', **more: object) -> S:
    found: dict[str, object] = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": reasons}
    return S(number, attributes={**found, **{key.replace("__", "."): value for key, value in more.items()}})


@pytest.mark.parametrize("reasons", ['["tool_calls"]', ["tool_use"], "tool_calls", ["stop", "tool_call"]])
def test_an_answer_that_ended_with_calls_and_does_not_say_which(reasons: object) -> None:
    assert codes(read([root(), chat(9, reasons)])) == ["proposal.unanswered"]
    assert [item.name for item in read([root(), chat(9, reasons)]).not_executed] == ["(not recorded)"]
    assert codes(read([root(), chat(9, reasons), tool(2, call_id="c1")])) == []
    assert codes(read([root(), chat(8, reasons), chat(9, reasons), tool(2)])) == ["proposal.unanswered"]


@pytest.mark.parametrize("reasons", ['["stop"]', None, 7, {"a": 1}, "tool_calls" * 3])
def test_an_answer_that_ended_otherwise(reasons: object) -> None:
    assert codes(read([root(), chat(9, reasons)])) == []


def test_a_call_that_is_named_is_looked_for_by_its_name() -> None:
    asked = json.dumps([{"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "send"}]}])
    named = chat(9, gen_ai__output__messages=asked)
    assert codes(read([root(), named, tool(2, "other")])) == ["proposal.unanswered"]
    assert codes(read([root(), named, tool(2, "send", call_id="c1")])) == []


# --- producers that contradict each other on one span


def both(first: dict[str, object], second: dict[str, object], scope: str = "test") -> S:
    return S(2, "x", attributes={**first, **second}, scope=scope)


GENAI: dict[str, object] = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "a",
    "gen_ai.tool.call.arguments": '{"n": 1}',
}
VERCEL: dict[str, object] = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "b", "ai.toolCall.args": '{"n": 2}'}
TRACELOOP: dict[str, object] = {"traceloop.span.kind": "task", "traceloop.entity.name": "c"}
OPENINFERENCE: dict[str, object] = {"openinference.span.kind": "LLM"}
MCP_LIST: dict[str, object] = {"mcp.method.name": "tools/list"}


def test_two_producers_with_two_names_and_two_arguments() -> None:
    (call,) = read([root(), both(GENAI, VERCEL)]).calls
    assert call.names == ("a", "b")
    assert str(call.arguments.why) == "conflicting"


def test_two_call_ids_are_none() -> None:
    ids: dict[str, object] = {"gen_ai.tool.call.id": "c1", "ai.toolCall.id": "c2"}
    (call,) = read([root(), both({**GENAI, **ids}, VERCEL)]).calls
    assert call.call_id is None


@pytest.mark.parametrize("other", [OPENINFERENCE, TRACELOOP])
def test_one_says_a_call_and_the_other_something_else(other: dict[str, object]) -> None:
    payload = read([root(), both(GENAI, other)])
    assert [call.names for call in payload.calls] == [("a",)]


def test_an_exclusion_wins() -> None:
    payload = read([root(), both(GENAI, MCP_LIST)])
    assert (payload.calls, [item.why.value for item in payload.excluded]) == ((), ["list_tools"])


WRONG: list[object] = [1, True, 2.5, [], ["a"], {"a": 1}, {"a": {"b": [1]}}, "x" * 3_000_000]
KEYS = [
    *("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments"),
    *("gen_ai.response.finish_reasons", "gen_ai.output.messages", "openinference.span.kind", "tool.name"),
    *("input.value", "output.value", "tool.parameters", "ai.operationId", "ai.toolCall.name", "ai.toolCall.args"),
    *("ai.response.toolCalls", "traceloop.span.kind", "traceloop.entity.name", "traceloop.entity.input"),
    *("mcp.method.name", "rpc.method", "request", "response", "langsmith.span.kind", "gen_ai.completion"),
    *("langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output", "logfire.msg"),
    *("logfire.msg_template", "logfire.span_type", "name", "input", "error", "events", "model_request_parameters"),
    *("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response", "gcp.vertex.agent.llm_response"),
    *("gen_ai.tool.status", "gen_ai.tool.type", "error.type", "tool_arguments", "gen_ai.request.model"),
]
SCOPES = ["", *(f"openinference.instrumentation.{name}" for name in ("langchain", "openai_agents", "llama_index"))]


@pytest.mark.parametrize("scope", [*SCOPES, "pydantic-ai", "langsmith", "gcp.vertex.agent", "logfire.mcp"])
def test_attributes_of_any_type_never_raise(scope: str) -> None:
    usual: dict[str, object] = {**GENAI, **VERCEL, "openinference.span.kind": "TOOL", "tool.name": "d"}
    for number, key in enumerate(KEYS):
        for more in ({}, usual):
            value = WRONG[(number + len(more)) % len(WRONG)]
            span = S(2, "x", attributes={**more, key: value}, scope=scope, status=2, message="Error running tool")
            payload = read([root(), span])
            assert type(payload).model_validate_json(payload.model_dump_json()) == payload


# --- spans whose scope an export has lost


LOST: dict[str, tuple[dict[str, object], list[str]]] = {
    "a tool": ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}, ["genai"]),
    "a chain that mentions one": ({"openinference.span.kind": "CHAIN", "tool.name": "t"}, []),
    "adk": ({"gen_ai.tool.name": "t", "gcp.vertex.agent.tool_call_args": "{}"}, ["genai", "google_adk"]),
    "strands": ({"gen_ai.tool.name": "t", "gen_ai.tool.status": "success"}, ["genai", "strands"]),
}


@pytest.mark.parametrize("case", LOST)
def test_without_a_scope_only_those_speak_that_have_something_to_go_by(case: str) -> None:
    attributes, vocabularies = LOST[case]
    payload = read([root(), S(2, "x", attributes=attributes, scope="")])
    assert [list(call.vocabularies) for call in payload.calls] == ([vocabularies] if vocabularies else [])
    assert payload.possible == ()


def test_an_agent_with_the_name_of_a_tool_and_without_a_scope_may_be_either() -> None:
    attributes: dict[str, object] = {"openinference.span.kind": "AGENT", "tool.name": "t"}
    assert [call.names for call in read([root(), S(2, "t", attributes=attributes, scope="")]).calls] == [("t",)]
    payload = read([root(), S(2, "Agent.run", attributes=attributes, scope="")])
    assert (payload.calls, len(payload.possible)) == ((), 1)
