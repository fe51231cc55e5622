"""pydantic-ai and Logfire."""

from __future__ import annotations

import json

import pytest

from tests.unit.traces.otlp_samples import S, codes
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, once

SCOPE = "pydantic-ai"


def tool(number: int = 2, name: str = "running tool", parent: int = 1, **more: object) -> S:
    found: dict[str, object] = {"gen_ai.tool.name": "send", "gen_ai.tool.call.id": "c1"}
    return S(
        number, name, parent, attributes={**found, **{k.replace("__", "."): v for k, v in more.items()}}, scope=SCOPE
    )


def test_older_names() -> None:
    spans = of(
        S(3, "running 1 tool", attributes={"tools": ["send"], "logfire.msg": "running 1 tool"}, scope=SCOPE),
        tool(parent=3, tool_arguments='{"to": "ann"}', tool_response="sent"),
    )
    assert called(spans, "send", to="ann") == "true"
    assert nothing_but(spans, "send") == "true"
    assert evidence(spans).calls[0].failed is False


NEVER_RAN = {
    "output_function": {"logfire.msg": "running output function: send"},
    "invalid_arguments": {"pydantic_ai.tool.failure_stage": "validation"},
    "deferred": {"pydantic_ai.tool.deferral.name": "ApprovalRequired"},
}


@pytest.mark.parametrize("why", NEVER_RAN)
def test_spans_of_calls_that_never_ran(why: str) -> None:
    attributes = {"gen_ai.tool.name": "send", "gen_ai.operation.name": "execute_tool", **NEVER_RAN[why]}
    spans = of(S(2, "send", attributes=attributes, scope=SCOPE))
    assert not_called(spans, "send") == "true"
    assert called(spans, "send") == "false tool.missing"
    assert excluded(spans) == [("send", why)]


def test_a_call_that_failed_while_it_ran_is_one() -> None:
    spans = of(tool(gen_ai__operation__name="execute_tool", pydantic_ai__tool__failure_stage="execution"))
    assert called(spans, "send") == "true"


def test_no_content_means_no_arguments() -> None:
    assert called(of(tool()), "send", to="ann") == "undetermined arguments.not_recorded"


def test_output_tools_of_the_request_are_not_waited_for() -> None:
    asked = [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c9", "name": "report"}]}]
    chat: dict[str, object] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.output.messages": json.dumps(asked),
    }
    tools = json.dumps({"output_tools": [{"name": "report"}]})
    assert codes(evidence(of(S(2, attributes=chat, scope=SCOPE)))) == ["proposal.unanswered"]
    named = {**chat, "model_request_parameters": tools}
    assert codes(evidence(of(S(2, attributes=named, scope=SCOPE)))) == []


def test_requests_in_the_events_that_are_kept_as_one_attribute() -> None:
    call = {"id": "c1", "function": {"name": "send", "arguments": "{}"}}
    events = [{"event.name": "gen_ai.choice", "message": {"role": "assistant", "tool_calls": [call]}}]
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": json.dumps(events)}
    assert codes(evidence(of(S(3, attributes=chat, scope=SCOPE)))) == ["proposal.unanswered"]
    assert codes(evidence(of(S(3, attributes=chat, scope=SCOPE), tool(tool_arguments="{}")))) == []


def pending(number: int, parent: int) -> S:
    return tool(number, "send", parent, logfire__span_type="pending_span", tool_arguments='{"to": "ann"}')


def test_an_announcement_beside_its_span_is_not_counted_and_alone_it_is_a_call_without_end() -> None:
    real = tool(5, tool_arguments='{"to": "ann"}')
    assert once(of(pending(4, 5), real), "send") == "true"
    alone = of(pending(4, 5))
    assert called(alone, "send", to="ann") == "true"
    assert once(alone, "send") == "undetermined evidence.incomplete"
    assert codes(evidence(alone)) == ["span.pending"]


def test_an_agent_between_two_calls_of_one_tool_keeps_them_apart() -> None:
    agent = S(3, "a run", 2, attributes={"agent_name": "a", "model_name": "m", "logfire.msg": "a run"}, scope=SCOPE)
    inner = tool(4, parent=3, gen_ai__tool__call__id="c2", tool_arguments="{}")
    assert once(of(tool(tool_arguments="{}"), agent, inner), "send") == "false tool.count"


def scrubbed(*paths: list[object] | str) -> str:
    return json.dumps([{"path": path, "matched_substring": "password"} for path in paths])


def test_a_value_that_logfire_scrubbed_is_not_what_the_tool_got() -> None:
    arguments = '{"to": "ann", "body": "[Scrubbed due to \'password\']"}'
    paths = scrubbed(["attributes", "gen_ai.tool.call.arguments", "body"])
    spans = of(tool(gen_ai__tool__call__arguments=arguments, logfire__scrubbed=paths))
    assert called(spans, "send", body="hello") == "undetermined arguments.not_recorded"
    assert called(spans, "send", to="ann") == "true"
    assert called(spans, "send", to="bob") == "false tool.arguments"
    assert called(of(tool(gen_ai__tool__call__arguments=arguments)), "send", body="hello") == "false tool.arguments"


def test_scrubbing_inside_an_argument_and_scrubbing_that_cannot_be_read() -> None:
    arguments = '{"to": "ann", "options": {"password": "[Scrubbed due to \'password\']"}}'
    inside = scrubbed(["attributes", "gen_ai.tool.call.arguments", "options", "password"])
    spans = of(tool(gen_ai__tool__call__arguments=arguments, logfire__scrubbed=inside))
    assert called(spans, "send", options="{}") == "undetermined arguments.not_recorded"
    for broken in ("{", scrubbed("attributes"), "[1]"):
        spans = of(tool(gen_ai__tool__call__arguments=arguments, logfire__scrubbed=broken))
        assert called(spans, "send", to="ann") == "undetermined arguments.not_recorded"
