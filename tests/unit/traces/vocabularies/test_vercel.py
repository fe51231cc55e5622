"""The AI SDK of Vercel."""

from __future__ import annotations

import json

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, in_order, not_called, nothing_but, of

CALL: dict[str, object] = {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "send", "ai.toolCall.id": "c1"}


def model(*calls: dict[str, object], operation: str = "ai.generateText.doGenerate", **more: object) -> S:
    found: dict[str, object] = {"ai.operationId": operation, "ai.response.toolCalls": json.dumps(calls)}
    return S(7, operation, attributes={**found, **more}, scope="ai")


def test_a_call_and_its_arguments() -> None:
    spans = of(S(2, "ai.toolCall", attributes={**CALL, "ai.toolCall.args": '{"to": "ann"}'}), scope="ai")
    assert called(spans, "send", to="ann") == "true"
    assert called(spans, "send", to="bob") == "false tool.arguments"
    without = of(S(2, "ai.toolCall", attributes=CALL), scope="ai")
    assert called(without, "send", to="ann") == "undetermined arguments.not_recorded"


def test_what_was_only_asked_for() -> None:
    asked = model({"toolCallId": "c1", "toolName": "send", "args": "{}"})
    assert called(of(asked), "send") == "undetermined evidence.incomplete"
    assert codes(evidence(of(asked, S(2, attributes=CALL)))) == []
    outer = model({"toolCallId": "c1", "toolName": "send"}, operation="ai.generateText")
    assert codes(evidence(of(outer))) == []


def test_a_tool_that_the_provider_runs() -> None:
    asked = model({"toolCallId": "c1", "toolName": "web_search", "providerExecuted": True})
    assert codes(evidence(of(asked))) == ["tool.hosted"]
    made_up = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "web_search",
        "gen_ai.tool.type": "extension",
    }
    spans = of(S(2, attributes=made_up, start=1, end=1), S(3, attributes=CALL, start=5, end=6), scope="ai")
    assert called(spans, "web_search") == "true"
    assert in_order(spans, "web_search", "send").startswith("undetermined")


def test_calls_asked_for_without_content() -> None:
    silent = model(**{"ai.response.finishReason": "tool-calls"})
    assert not_called(of(silent), "send") == "undetermined evidence.incomplete"
    assert codes(evidence(of(silent, S(2, attributes=CALL)))) == []


def test_a_call_without_a_name_may_be_any() -> None:
    spans = of(S(2, attributes={"ai.operationId": "ai.toolCall"}), scope="ai")
    assert nothing_but(spans) == "undetermined evidence.incomplete"
