"""Strands, the Claude Agent SDK, OpenLLMetry's own names, and Langfuse's."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, oi, once

CLAUDE = "openinference.instrumentation.claude_agent_sdk"


# --- Strands


def strands(*events: tuple[str, Mapping[str, object]], **more: object) -> S:
    found: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}
    found |= {"gen_ai.tool.call.id": "c1", **{key.replace("__", "."): value for key, value in more.items()}}
    return S(2, "execute_tool send", attributes=found, events=events, scope="strands.telemetry.tracer")


def test_strands_keeps_arguments_in_events() -> None:
    spans = of(strands(("gen_ai.tool.message", {"id": "c1", "content": '{"to": "ann"}'})))
    assert called(spans, "send", to="ann") == "true"
    assert called(of(strands()), "send", to="ann") == "undetermined arguments.not_recorded"


def test_strands_makes_a_span_for_a_tool_that_does_not_exist() -> None:
    answer = ("gen_ai.choice", {"id": "c1", "message": json.dumps([{"text": "Unknown tool: send"}])})
    spans = of(strands(answer, gen_ai__tool__status="error"))
    assert (not_called(spans, "send"), excluded(spans)) == ("true", [("send", "not_found")])
    failed = ("gen_ai.choice", {"id": "c1", "message": json.dumps([{"text": "no such address"}])})
    assert called(of(strands(failed, gen_ai__tool__status="error")), "send") == "true"


def test_strands_refuses_arguments_and_has_a_tool_for_the_answer() -> None:
    answer = ("gen_ai.choice", {"message": json.dumps([{"text": "Error: Validation failed for input parameters: 1"}])})
    spans = of(strands(answer, gen_ai__tool__status="error"))
    assert (not_called(spans, "send"), excluded(spans)) == ("true", [("send", "invalid_arguments")])
    described = "IMPORTANT: This StructuredOutputTool should only be invoked as the last and final tool"
    output = of(strands(gen_ai__tool__status="success", gen_ai__tool__description=described))
    assert (nothing_but(output), excluded(output)) == ("true", [("send", "output_function")])


def test_strands_asks_in_blocks_of_bedrock() -> None:
    message = json.dumps([{"toolUse": {"toolUseId": "c1", "name": "send", "input": {}}}])
    chat = S(3, attributes={"gen_ai.operation.name": "chat"}, events=(("gen_ai.choice", {"message": message}),))
    assert codes(evidence(of(chat))) == ["proposal.unanswered"]
    assert codes(evidence(of(chat, strands()))) == []


def test_openinference_for_strands_writes_values_where_others_write_the_schema() -> None:
    span = S(2, attributes=oi("send", tool__parameters='{"to": "ann"}', tool__call_id="c1"))
    spans = of(span, scope="openinference.instrumentation.strands_agents")
    assert called(spans, "send", to="ann") == "true"
    assert evidence(spans).calls[0].call_id == "c1"


# --- the Claude Agent SDK


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("<tool_use_error>Error: No such tool available: Bash</tool_use_error>", "not_found"),
        (
            "<tool_use_error>InputValidationError: Bash failed due to the following issue</tool_use_error>",
            "invalid_arguments",
        ),
        ("Input validation error: 'command' is a required property", "invalid_arguments"),
        ("Permission to use Bash has been denied.", "denied"),
    ],
)
def test_claude_makes_spans_for_calls_that_were_not_run(said: str, why: str) -> None:
    spans = of(S(2, attributes=oi("Bash", {"command": "ls"}), status=2, message=said), scope=CLAUDE)
    assert (not_called(spans, "Bash"), excluded(spans)) == ("true", [("Bash", why)])
    failed = of(S(2, attributes=oi("Bash"), status=2, message=f"ls: {said}"), scope=CLAUDE)
    assert called(failed, "Bash") == "true"


def test_an_end_that_is_none() -> None:
    abandoned = S(2, attributes=oi("Bash", {"command": "ls"}), status=2, message="Abandoned")
    launched = S(2, attributes=oi("Agent", {"prompt": "go"}, output__value='{"status": "async_launched"}'))
    for span, name in ((abandoned, "Bash"), (launched, "Agent")):
        spans = of(span, scope=CLAUDE)
        assert called(spans, name) == "true"
        assert once(spans, name) == "undetermined evidence.incomplete"
        assert evidence(spans).calls[0].attempts[0].end_ns is None
    done = of(S(2, attributes=oi("Agent", {}, output__value='{"status": "completed"}')), scope=CLAUDE)
    assert once(done, "Agent") == "true"


# --- OpenLLMetry


def entity(kind: str, given: object = None, **more: object) -> S:
    found: dict[str, object] = {"traceloop.span.kind": kind, "traceloop.entity.name": "send", **more}
    if given is not None:
        found["traceloop.entity.input"] = json.dumps(given)
    return S(2, f"send.{kind}", attributes=found, scope="opentelemetry.instrumentation.mcp")


@pytest.mark.parametrize(
    "given",
    [
        {"args": [], "kwargs": {"to": "ann"}},
        {"input_str": "x", "inputs": {"to": "ann"}, "tags": []},
        {"tool_name": "send", "arguments": {"to": "ann"}},
        {"to": "ann"},
    ],
)
def test_a_tool_of_openllmetry(given: object) -> None:
    spans = of(entity("tool", given))
    assert called(spans, "send", to="ann") == "true"
    assert called(spans, "send", to="bob") == "false tool.arguments"


@pytest.mark.parametrize("kind", ["task", "workflow"])
def test_a_task_is_no_tool_even_if_a_bridge_calls_it_one(kind: str) -> None:
    assert nothing_but(of(entity(kind))) == "true"
    bridged = entity("task", **{"openinference.span.kind": "TOOL", "tool.name": "send"})
    assert nothing_but(of(bridged)) == "true"


def test_a_tool_of_openllmetry_without_a_name_may_be_any() -> None:
    spans = of(S(2, attributes={"traceloop.span.kind": "tool"}))
    assert not_called(spans, "send") == "undetermined evidence.incomplete"


# --- Langfuse


def langfuse(kind: str, given: object = None, got: object = None) -> S:
    found: dict[str, object] = {"langfuse.observation.type": kind}
    if given is not None:
        found["langfuse.observation.input"] = json.dumps(given)
    if got is not None:
        found["langfuse.observation.output"] = json.dumps(got)
    return S(2, "send", attributes=found, scope="langfuse-sdk")


def test_an_observation_of_the_type_tool() -> None:
    assert called(of(langfuse("tool", {"args": [], "kwargs": {"to": "ann"}})), "send", to="ann") == "true"
    assert called(of(langfuse("tool", {"args": ["ann"], "kwargs": {}})), "send", to="ann").startswith("undetermined")


def test_a_plain_span_that_gave_the_answer_of_a_tool_may_be_one() -> None:
    spans = of(langfuse("span", {"to": "ann"}, {"type": "tool", "content": "sent", "tool_call_id": "c1"}))
    assert not_called(spans, "send") == "undetermined evidence.incomplete"


def test_a_generation_asks() -> None:
    call = {"id": "c1", "function": {"name": "send", "arguments": "{}"}}
    for got in ({"tool_calls": [call]}, {"role": "assistant", "additional_kwargs": {"tool_calls": [call]}}):
        assert codes(evidence(of(langfuse("generation", got=got)))) == ["proposal.unanswered"]


# --- Google's Gen AI SDK


def google(**parameters: object) -> S:
    found: dict[str, object] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}
    for name, value in parameters.items():
        found[f"code.function.parameters.{name}.type"] = type(value).__name__
        if value is not None:
            found[f"code.function.parameters.{name}.value"] = value
    return S(2, attributes=found, scope="opentelemetry.instrumentation.google_genai")


def test_arguments_that_are_scattered_over_attributes() -> None:
    assert called(of(google(to="ann", n=2)), "send", to="ann") == "true"
    assert called(of(google(to="ann", n=2)), "send", to="bob") == "false tool.arguments"
    assert called(of(google(to="ann", n=None)), "send", to="ann") == "undetermined arguments.not_recorded"
    assert called(of(google()), "send", to="ann") == "undetermined arguments.not_recorded"
