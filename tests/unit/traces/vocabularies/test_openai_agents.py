"""The OpenAI Agents SDK through four instrumentations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, in_order, not_called, nothing_but, of, oi

OPENINFERENCE = "openinference.instrumentation.openai_agents"
SCHEMA = json.dumps(
    {"type": "object", "properties": {"to": {"type": "string"}, "n": {"type": "integer"}}, "required": ["to"]}
)


def send(number: int = 2, arguments: object = None, **more: object) -> S:
    given = {"to": "ann"} if arguments is None else arguments
    return S(number, "send", attributes=oi("send", given, tool__parameters=SCHEMA), scope=OPENINFERENCE, **more)  # type: ignore[arg-type]


def test_values_are_read_and_not_the_schema() -> None:
    assert called(of(send()), "send", to="ann") == "true"
    assert called(of(send()), "send", to="bob") == "false tool.arguments"
    no_values = S(2, "send", attributes=oi("send", tool__parameters=SCHEMA), scope=OPENINFERENCE)
    assert called(of(no_values), "send", to="ann") == "undetermined arguments.not_recorded"


def test_a_handoff_is_no_call() -> None:
    spans = of(S(2, "handoff to Bob", attributes=oi(None)), scope=OPENINFERENCE)
    assert nothing_but(spans) == "true"
    assert excluded(spans) == [("", "handoff")]


def test_the_request_for_a_handoff_is_answered_by_it() -> None:
    key = "llm.output_messages.0.message.tool_calls.0.tool_call.function.name"
    asked = S(3, attributes=oi(None, kind="LLM", **{key: "transfer_to_bob"}))
    assert codes(evidence(of(asked, S(2, "handoff to Bob", attributes=oi(None)), scope=OPENINFERENCE))) == []
    assert codes(evidence(of(asked, scope=OPENINFERENCE))) == ["proposal.unanswered"]


FAILED = "Error running tool (non-fatal): {'tool_name': 'send', 'error': %r}"
HIDDEN = FAILED % "Tool execution failed. Error details are redacted."


@pytest.mark.parametrize("arguments", [{"n": 1}, {"to": 7}, {}])
def test_a_failed_call_whose_arguments_cannot_fit_was_refused(arguments: object) -> None:
    refused = of(send(arguments=arguments, status=2, message=HIDDEN))
    assert not_called(refused, "send") == "true"
    assert excluded(refused) == [("send", "invalid_arguments")]
    assert called(of(send(arguments=arguments, status=1)), "send") == "true"
    said = of(send(status=2, message=FAILED % "Invalid JSON input for tool send: 1 validation error"))
    assert not_called(said, "send") == "true"


@pytest.mark.parametrize("message", [HIDDEN, FAILED % "no such address"])
def test_a_failed_call_whose_arguments_fit_was_executed(message: str) -> None:
    assert called(of(send(status=2, message=message)), "send") == "true"


def test_a_failed_call_may_be_either_where_the_error_is_hidden_and_no_schema_is_recorded() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}
    span = S(2, attributes={**attributes, "gen_ai.tool.call.arguments": "{}"}, status=2, message=HIDDEN)
    spans = of(span, scope="opentelemetry.instrumentation.openai_agents")
    assert called(spans, "send") == "undetermined evidence.incomplete"
    assert not_called(spans, "send") == "undetermined evidence.incomplete"


def test_a_tool_that_does_not_exist() -> None:
    turn = S(2, "turn", attributes=oi(None, kind="CHAIN"), status=2, message="Tool not found: {'tool_name': 'launch'}")
    assert excluded(of(turn, scope=OPENINFERENCE)) == [("launch", "not_found")]
    assert not_called(of(turn, scope=OPENINFERENCE), "launch") == "true"


def test_tools_that_openai_runs_stand_only_in_the_answer() -> None:
    answer = json.dumps({"output": [{"type": "web_search_call", "status": "completed"}]})
    spans = of(S(2, attributes=oi(None, kind="LLM", output__value=answer)), scope=OPENINFERENCE)
    assert nothing_but(spans) == "undetermined evidence.incomplete"
    assert codes(evidence(spans)) == ["tool.hosted"]
    quoted = json.dumps({"output": [{"type": "message", "text": 'a "web_search_call"'}]})
    assert codes(evidence(of(S(2, attributes=oi(None, kind="LLM", output__value=quoted)), scope=OPENINFERENCE))) == []


def test_times_are_known_to_two_microseconds() -> None:
    spans = of(send(2, start=1, end=2), S(3, attributes=oi("log", {}), start=2.000003, end=3, scope=OPENINFERENCE))
    assert in_order(spans, "send", "log") == "undetermined order.overlap"
    later = of(send(2, start=1, end=2), S(3, attributes=oi("log", {}), start=2.000005, end=3, scope=OPENINFERENCE))
    assert in_order(later, "send", "log") == "true"


def logfire(number: int, template: str, parent: int = 1, **attributes: object) -> S:
    found = {"logfire.msg_template": template, "logfire.span_type": "span", **attributes}
    return S(number, template, parent, attributes=found, scope="logfire.openai_agents")


def test_logfire_tells_a_function_by_the_template_of_its_message() -> None:
    spans = of(logfire(2, "Function: {name}", name="send", input='{"to": "ann"}', output="sent"))
    assert called(spans, "send", to="ann") == "true"
    assert nothing_but(of(logfire(2, "Agent run: {name!r}", name="send"))) == "true"
    nameless = of(logfire(2, "Function: {name}", input="{}"))
    assert not_called(nameless, "send") == "undetermined evidence.incomplete"


def test_logfire_keeps_the_answer_of_the_model_and_the_error_of_a_call() -> None:
    output = [{"type": "function_call", "name": "send", "call_id": "c1"}, {"type": "message"}]
    more: dict[str, Any] = {"gen_ai.request.model": "m", "response": json.dumps({"output": output})}
    asked = logfire(3, "Responses API with {gen_ai.request.model!r}", **more)
    assert [(item.name, item.call_id) for item in evidence(of(asked)).not_executed] == [("send", "c1")]
    assert codes(evidence(of(asked, logfire(2, "Function: {name}", name="send", input="{}", output="ok")))) == []
    error = json.dumps({"message": "Error running tool (non-fatal)", "data": {"error": HIDDEN}})
    failed = of(logfire(2, "Function: {name}", name="send", input="{}", error=error))
    assert called(failed, "send") == "undetermined evidence.incomplete"
    told = of(logfire(2, "Function: {name}", name="send", input="{}", error=error.replace("Error details", "")))
    assert called(told, "send") == "true"
    assert excluded(of(logfire(2, "Handoff: {from_agent} → {to_agent}"))) == [("", "handoff")]


def test_openllmetry_without_a_name_may_be_any_tool() -> None:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "unknown_tool"}
    spans = of(S(2, "unknown_tool.tool", attributes=attributes), scope="opentelemetry.instrumentation.openai_agents")
    assert not_called(spans, "send") == "undetermined evidence.incomplete"
