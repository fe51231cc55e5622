"""Google ADK, its own spans and those that OpenInference makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, once

ADK, OPENINFERENCE = "gcp.vertex.agent", "openinference.instrumentation.google_adk"
ARGS, RESPONSE = "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"


def tool(more: Mapping[str, object], name: str = "send", number: int = 2, scope: str = ADK) -> S:
    found: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return S(number, f"execute_tool {name}", attributes={**found, **more}, scope=scope)


def test_arguments() -> None:
    spans = of(tool({ARGS: '{"to": "ann"}', RESPONSE: '{"ok": true}'}))
    assert called(spans, "send", to="ann") == "true"
    assert called(spans, "send", to="bob") == "false tool.arguments"


def test_empty_arguments_of_a_trace_without_content_say_nothing() -> None:
    assert called(of(tool({ARGS: "{}", RESPONSE: "{}"})), "send", to="ann") == "undetermined arguments.not_recorded"
    assert called(of(tool({ARGS: "{}", RESPONSE: '{"ok": 1}'})), "send", to="ann") == "false tool.arguments"
    placeholder = of(tool({ARGS: "<not serializable>"}))
    assert called(placeholder, "send", to="ann") == "undetermined arguments.not_recorded"


def test_content_of_openinference_counts_where_adk_wrote_none() -> None:
    more = {"openinference.span.kind": "TOOL", "tool.name": "send", "tool.parameters": '{"to": "ann"}'}
    spans = of(tool({ARGS: "{}", RESPONSE: "{}", **more}, scope=OPENINFERENCE))
    assert called(spans, "send", to="ann") == "true"
    assert once(spans, "send") == "true"


def test_the_sum_of_parallel_calls_and_the_transfer_to_an_agent_are_none() -> None:
    merged = tool({ARGS: "N/A"}, "(merged tools)", 3)
    transfer = tool({ARGS: '{"agent_name": "bob"}'}, "transfer_to_agent", 4)
    spans = of(tool({ARGS: "{}"}), merged, transfer)
    assert nothing_but(spans, "send") == "true"
    assert excluded(spans) == [("(merged tools)", "merged_span"), ("transfer_to_agent", "handoff")]
    elsewhere = of(tool({}, "transfer_to_agent", scope="their.framework"))
    assert called(elsewhere, "transfer_to_agent") == "true"


@pytest.mark.parametrize("answer", [RESPONSE, "gen_ai.tool.call.result", "output.value"])
def test_a_tool_that_does_not_exist_and_a_call_that_was_refused(answer: str) -> None:
    nobody = tool({"gen_ai.tool.type": "BaseTool", "gen_ai.tool.description": "Tool not found"}, "launch")
    assert excluded(of(nobody)) == [("launch", "not_found")]
    said = json.dumps({"error": "Invoking `send()` failed as the following mandatory input parameters are not present"})
    refused = of(tool({"error.type": "TOOL_ERROR", ARGS: "{}", answer: said}))
    assert (not_called(refused, "send"), excluded(refused)) == ("true", [("send", "invalid_arguments")])


def test_an_error_whose_answer_is_not_recorded_may_be_either() -> None:
    spans = of(tool({"error.type": "TOOL_ERROR"}))
    assert called(spans, "send") == "undetermined evidence.incomplete"
    assert not_called(spans, "send") == "undetermined evidence.incomplete"
    told = of(tool({"error.type": "TOOL_ERROR", ARGS: "{}", RESPONSE: '{"error": "no such address"}'}))
    assert called(told, "send") == "true"


def test_what_the_model_asked_for_is_looked_up() -> None:
    parts: list[object] = [
        {"function_call": {"name": "send", "args": {}}},
        {"function_call": {"name": "transfer_to_agent"}},
    ]
    answer = {"gen_ai.request.model": "m", "gcp.vertex.agent.llm_response": json.dumps({"content": {"parts": parts}})}
    model = S(5, "call_llm", attributes=answer, scope=ADK)
    assert codes(evidence(of(model))) == ["proposal.unanswered"]
    assert codes(evidence(of(model, tool({ARGS: "{}"})))) == []
