"""LlamaIndex, CrewAI, smolagents: arguments of a Python call, and what is none of theirs."""

from __future__ import annotations

import json

import pytest

from tests.unit.traces.otlp_samples import S
from tests.unit.traces.vocabularies.scored import called, evidence, excluded, not_called, nothing_but, of, oi, once

LLAMA, CREW, SMOL = (f"openinference.instrumentation.{name}" for name in ("llama_index", "crewai", "smolagents"))
ONE = json.dumps({"city": {"type": "string", "description": "a city"}})
ONE_SCHEMA = json.dumps({"type": "object", "properties": {"city": {"type": "string"}}})
TWO = json.dumps({"city": {"type": "string"}, "unit": {"type": "string"}})


def tool(given: object, scope: str, schema: str = ONE, number: int = 2, parent: int = 1) -> S:
    return S(number, "weather", parent, attributes=oi("weather", given, tool__parameters=schema), scope=scope)


@pytest.mark.parametrize("scope", [LLAMA, CREW, SMOL])
@pytest.mark.parametrize("schema", [ONE, ONE_SCHEMA])
def test_keywords_and_the_one_argument_by_position(scope: str, schema: str) -> None:
    for text in ('{"kwargs": {"city": "Oslo"}}', '{"args": [], "kwargs": {"city": "Oslo"}}', '{"args": ["Oslo"]}'):
        assert called(of(tool(text, scope, schema)), "weather", city="Oslo") == "true"
        assert called(of(tool(text, scope, schema)), "weather", city="Rome") == "false tool.arguments"


@pytest.mark.parametrize("scope", [LLAMA, CREW, SMOL])
def test_more_than_one_argument_by_position_has_no_sure_name(scope: str) -> None:
    spans = of(tool({"args": ["Oslo", "C"], "kwargs": {}}, scope, TWO))
    assert called(spans, "weather", city="Oslo") == "undetermined arguments.unparsable"
    assert called(of(tool({"args": ["Oslo"], "kwargs": {}}, scope, TWO)), "weather", city="Oslo").startswith("undet")
    assert called(spans, "weather") == "true"


def test_an_envelope_in_an_unknown_scope_is_taken_off_and_never_taken_for_arguments() -> None:
    spans = of(tool({"args": [], "kwargs": {"city": "Oslo"}}, "their.instrumentation"))
    assert called(spans, "weather", city="Oslo") == "true"
    positional = of(tool({"args": ["Oslo"], "kwargs": {}}, "their.instrumentation"))
    assert called(positional, "weather", city="Rome") == "undetermined arguments.unparsable"


def test_tools_that_really_have_arguments_of_these_names() -> None:
    assert called(of(tool({"args": "x", "more": 1}, LLAMA)), "weather", args="x") == "true"


def test_the_span_of_a_llamaindex_agent_that_mentions_a_tool_is_no_call() -> None:
    agent = S(2, "run", attributes=oi("weather", "what is it like in Oslo?", kind="AGENT"))
    assert nothing_but(of(agent, scope=LLAMA)) == "true"
    both = of(agent, tool({"kwargs": {"city": "Oslo"}}, LLAMA, number=3, parent=2), scope=LLAMA)
    assert once(both, "weather") == "true"


def test_acall_and_call_of_one_execution_are_one() -> None:
    given = {"kwargs": {"city": "Oslo"}}
    assert once(of(tool(given, LLAMA), tool(given, LLAMA, number=3, parent=2)), "weather") == "true"


def test_the_final_answer_of_smolagents_is_none_even_where_the_scope_was_lost() -> None:
    given: dict[str, object] = {"args": ["42"], "sanitize_inputs_outputs": False, "kwargs": {}}
    for scope in (SMOL, ""):
        answer = S(2, "FinalAnswerTool", attributes=oi("final_answer", given), scope=scope)
        assert excluded(of(answer)) == [("final_answer", "output_function")]
        assert nothing_but(of(answer)) == "true"
    assert not_called(of(S(2, attributes=oi("final_answer", {"a": 1}))), "final_answer") == "false tool.forbidden"


def test_llamaindex_gives_the_context_of_its_workflow_which_is_no_argument_of_the_model() -> None:
    given = {"kwargs": {"city": "Oslo", "ctx": "<workflows.context.Context object at 0x7fef23003cd0>"}}
    assert evidence(of(tool(given, LLAMA))).calls[0].arguments.as_object() == {"city": "Oslo"}
    repeated = json.dumps({"tool_name": "weather", "raw_input": {"args": [], "kwargs": {"city": "Rome"}}})
    span = S(2, "weather", attributes=oi("weather", given, output__value=repeated), scope=LLAMA)
    assert called(of(span), "weather", city="Rome") == "true"


def test_a_call_that_python_refused_and_a_handoff_are_none_of_llamaindex() -> None:
    def failed(message: str) -> list[S]:
        event = ("exception", {"exception.type": "TypeError", "exception.message": message})
        attributes = oi("weather", {"kwargs": {"town": 7}}, tool__parameters=ONE_SCHEMA)
        return of(S(2, attributes=attributes, events=[event], status=2, scope=LLAMA))

    assert not_called(failed("weather() got an unexpected keyword argument 'town'"), "weather") == "true"
    assert not_called(failed("Tools.weather() missing 1 required positional argument: 'city'"), "weather") == "true"
    assert called(failed("unsupported operand type(s) for +"), "weather") == "true"
    assert called(failed("helper() missing 1 required positional argument: 'x'"), "weather") == "true"
    described = "Useful for handing off to another agent.\nIf you are ..."
    handoff = of(S(2, attributes=oi("handoff", {"kwargs": {}}, tool__description=described), scope=LLAMA))
    assert (nothing_but(handoff), excluded(handoff)) == ("true", [("handoff", "handoff")])


def test_crewai_says_that_it_refused_the_arguments() -> None:
    message = "Tool 'weather' arguments validation failed: 1 validation error for Weather"
    refused = S(2, attributes=oi("weather", {"town": 7}), status=2, message=message, scope=CREW)
    assert (not_called(of(refused), "weather"), excluded(of(refused))) == ("true", [("weather", "invalid_arguments")])
    failed = S(2, attributes=oi("weather", {"city": "Oslo"}), status=2, message="no such town", scope=CREW)
    assert called(of(failed), "weather", city="Oslo") == "true"
