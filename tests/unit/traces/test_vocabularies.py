"""What single spans are: executions, what only looks like one, what may be one, models and agents."""

from __future__ import annotations

import json

import pytest

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ToolsPayload
from grader.traces.reader import ReadOptions
from tests.unit.traces.otlp_samples import S, codes, read, root, tool

OI = "openinference.span.kind"
DETAILS = "gen_ai.client.inference.operation.details"


def one(attributes: dict[str, object], name: str = "x", scope: str = "test", **more: object) -> ToolsPayload:
    return read([root(), S(2, name, attributes=attributes, scope=scope, **more)])  # type: ignore[arg-type]


def oi(tool_name: str | None = "t", **attributes: object) -> dict[str, object]:
    named = {} if tool_name is None else {"tool.name": tool_name}
    return {OI: "TOOL", **named, **{key.replace("__", "."): value for key, value in attributes.items()}}


def genai(tool_name: str | None = "t", **attributes: object) -> dict[str, object]:
    named = {} if tool_name is None else {"gen_ai.tool.name": tool_name}
    return {
        "gen_ai.operation.name": "execute_tool",
        **named,
        **{k.replace("__", "."): v for k, v in attributes.items()},
    }


EXECUTIONS: dict[str, dict[str, object]] = {
    "genai": genai(),
    "genai without an operation, as older producers write it": {"gen_ai.tool.name": "t"},
    "genai with an operation nobody knows": {"gen_ai.operation.name": "call_my_tool", "gen_ai.tool.name": "t"},
    "mcp": {"mcp.method.name": "tools/call", "gen_ai.tool.name": "t"},
    "openinference": oi(),
    "openinference, lower case": {OI: "tool", "tool.name": "t"},
    "openinference, no kind": {"tool.name": "t"},
    "openinference, an unknown kind": {OI: "UNKNOWN", "tool.name": "t"},
    "openinference, a tool recorded as an agent": {OI: "AGENT", "tool.name": "t"},
    "both": {**genai(), **oi()},
    "genai in the clothes of a chain": {**genai(), OI: "CHAIN"},
}


@pytest.mark.parametrize("case", EXECUTIONS)
def test_executions(case: str) -> None:
    payload = one(EXECUTIONS[case])
    assert [call.names for call in payload.calls] == [("t",)]
    assert (payload.excluded, payload.possible, codes(payload)) == ((), (), [])


def test_a_span_in_both_vocabularies_has_the_names_of_both() -> None:
    call = one({**genai("mcp__s__t"), **oi("t")}).calls[0]
    assert call.names == ("mcp__s__t", "t")
    assert call.vocabularies == ("genai", "openinference")


EXCLUDED: dict[str, tuple[str, S]] = {
    "merged": ("merged_span", S(2, "execute_tool (merged)", attributes=genai("(merged tools)"))),
    "handoff, openinference": (
        "handoff",
        S(2, "handoff to Bob", attributes={OI: "TOOL"}, scope="openinference.instrumentation.openai_agents"),
    ),
    "handoff, operation": ("handoff", S(2, attributes={"gen_ai.operation.name": "handoff"})),
    "handoff, attribute": ("handoff", S(2, attributes={**genai(), "gen_ai.handoff.to_agent": "Bob"})),
    "list": ("list_tools", S(2, attributes={**genai(), "mcp.method.name": "tools/list"})),
    "output function": ("output_function", S(2, attributes={**genai(), "logfire.msg": "running output function: f"})),
    "output function, old": (
        "output_function",
        S(2, "running output function", attributes={"gen_ai.tool.name": "f"}, scope="pydantic-ai"),
    ),
    "validation": ("invalid_arguments", S(2, attributes={**genai(), "pydantic_ai.tool.failure_stage": "validation"})),
    "deferred": ("deferred", S(2, attributes={**genai(), "pydantic_ai.tool.deferral.name": "ApprovalRequired"})),
    "mcp unknown tool": (
        "invalid_arguments",
        S(2, attributes={**genai(), "mcp.method.name": "tools/call", "rpc.response.status_code": "-32602"}, status=2),
    ),
    "not found": ("not_found", S(2, attributes={**genai(), "error.type": "tool_not_found"}, status=2)),
    "final answer": (
        "output_function",
        S(2, attributes=oi("final_answer"), scope="openinference.instrumentation.smolagents"),
    ),
}


@pytest.mark.parametrize("case", EXCLUDED)
def test_what_looks_like_an_execution_and_is_none_is_kept_with_its_reason(case: str) -> None:
    why, span = EXCLUDED[case]
    payload = read([root(), span])
    assert payload.calls == ()
    assert [item.why.value for item in payload.excluded] == [why]
    assert payload.excluded[0].spans == (f"{span.trace}/{span.id:016x}",)


def test_a_failed_execution_is_an_execution() -> None:
    call = one(genai("t", error__type="TimeoutError"), status=2).calls[0]
    assert call.failed is True


POSSIBLE: dict[str, S] = {
    "genai without a name": S(2, "execute_tool send", attributes=genai(None), extra={"droppedAttributesCount": 1}),
    "genai, placeholder": S(2, attributes=genai("unknown_tool")),
    "openinference without a name": S(2, attributes=oi(None)),
    "mcp without a name": S(2, attributes={"mcp.method.name": "tools/call"}),
    "dropped attributes, nothing left": S(2, attributes={"x": 1}, extra={"droppedAttributesCount": 4}),
    "traceloop": S(2, attributes={"traceloop.span.kind": "tool"}),
    "vercel, old": S(2, attributes={"ai.operationId": "ai.toolCall"}),
    "livekit": S(2, attributes={"lk.function_tool.name": "t"}),
    "mlflow": S(2, attributes={"mlflow.spanType": '"TOOL"'}),
    "an agent or a tool": S(
        2,
        "route_to_agent",
        attributes={OI: "AGENT", "input.value": "{'a': 1}"},
        scope="openinference.instrumentation.langchain",
    ),
    "a name beyond reason": S(2, attributes=genai("n" * 5000)),
    "a name given twice": S(
        2,
        extra={
            "attributes": [
                {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": "a"}},
                {"key": "gen_ai.tool.name", "value": {"stringValue": "b"}},
            ]
        },
    ),
    "a kind given twice": S(
        2, extra={"attributes": [{"key": OI, "value": {"stringValue": kind}} for kind in ("TOOL", "LLM")]}
    ),
}


@pytest.mark.parametrize("case", POSSIBLE)
def test_a_span_that_may_be_any_tool_is_neither_counted_nor_forgotten(case: str) -> None:
    payload = read([root(), POSSIBLE[case]])
    assert payload.calls == ()
    assert len(payload.possible) == 1
    assert "tool.unnamed" in codes(payload)


NOT_TOOLS: dict[str, dict[str, object]] = {
    "offered tools": {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": '[{"name": "t"}]'},
    "offered tools, openinference": {OI: "LLM", "llm.tools.0.tool.json_schema": '{"name": "t"}'},
    "a word": {"my.tool.name": "t", "toolbox": "t"},
    "a chain": {OI: "CHAIN", "input.value": "x"},
    "an agent": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "t"},
    "a task of another producer": {OI: "TOOL", "tool.name": "t", "traceloop.span.kind": "task"},
    "nothing": {},
}


@pytest.mark.parametrize("case", NOT_TOOLS)
def test_what_is_no_tool(case: str) -> None:
    payload = one(NOT_TOOLS[case], name="execute_tool t" if case == "nothing" else "tool")
    assert (payload.calls, payload.excluded, payload.possible, codes(payload)) == ((), (), (), [])


def test_an_instrumentation_that_is_not_understood_is_a_reason() -> None:
    payload = one({"ai.model.id": "m", "ai.prompt": "x"}, scope="their.library")
    assert codes(payload) == ["scope.unknown"]
    assert "their.library" in str(payload.coverage.reasons[0])
    understood = read([root(), S(2, attributes={"llm.x": 1}, scope="a"), S(3, attributes={OI: "CHAIN"}, scope="a")])
    assert codes(understood) == []


# --- arguments


ARGS, ADK, ADK_RESULT = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response",
)
VALUE, SMOL = "input.value", '{"args":%s,"sanitize_inputs_outputs":false,"kwargs":{"q":1}}'

ARGUMENTS: dict[str, tuple[dict[str, object], str, str | None]] = {
    "json text": ({ARGS: '{"b": 1, "a": "x"}'}, "recorded", '{"a":"x","b":1}'),
    "an object": ({ARGS: {"a": {"b": [1, 2.5]}}}, "recorded", '{"a":{"b":[1,2.5]}}'),
    "json in json": ({ARGS: '"{\\"a\\": 1}"'}, "recorded", '{"a":1}'),
    "really empty": ({ARGS: "{}"}, "recorded", "{}"),
    "older name": ({"tool_arguments": '{"a":1}'}, "recorded", '{"a":1}'),
    "adk": ({ADK: '{"a":1}'}, "recorded", '{"a":1}'),
    "adk, content off": ({ADK: "{}", ADK_RESULT: "{}"}, "absent", None),
    "adk, empty": ({ADK: "{}", ADK_RESULT: '{"r":1}'}, "recorded", "{}"),
    "adk, placeholder": ({ADK: "N/A"}, "absent", None),
    "numbers as written": ({ARGS: '{"a":1.50,"b":1e2}'}, "recorded", '{"a":1.50,"b":1E+2}'),
    "none": ({}, "absent", None),
    "no object": ({ARGS: "[1]"}, "unparsable", None),
    "text": ({ARGS: "paris"}, "unparsable", None),
    "cut": ({ARGS: '{"a": "b'}, "unparsable", None),
    "doubled key": ({ARGS: '{"a":1,"a":2}'}, "unparsable", None),
    "doubled key in a literal": ({ARGS: "{'a':1,'a':2}"}, "unparsable", None),
    "concatenated": ({ARGS: '{"a":1}{"a":2}'}, "unparsable", None),
    "too many digits": ({ARGS: '{"a":1e99999999}'}, "unparsable", None),
    "deep": ({ARGS: '{"a":' + "[" * 5000 + "]" * 5000 + "}"}, "unparsable", None),
    "traceloop": ({ARGS: '{"input_str":"x","inputs":{"a":1},"kwargs":{}}'}, "recorded", '{"a":1}'),
    "traceloop, text": ({ARGS: '{"input_str":"x","kwargs":{}}'}, "unparsable", None),
    "python literal": ({VALUE: "{'city': 'SF', 'n': None}"}, "recorded", '{"city":"SF","n":null}'),
    "redacted": ({VALUE: "__REDACTED__"}, "redacted", None),
    "schema": ({"tool.parameters": '{"q": {"type": "string"}}'}, "absent", None),
    "langchain text": ({VALUE: "SF"}, "unparsable", None),
    "smolagents": ({VALUE: SMOL % "[]"}, "recorded", '{"q":1}'),
    "smolagents, by position": ({VALUE: SMOL % "[1]"}, "unparsable", None),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_arguments(case: str) -> None:
    attributes, state, text = ARGUMENTS[case]
    is_genai = not {VALUE, "tool.parameters"} & attributes.keys()
    found = one({**(genai() if is_genai else oi()), **attributes}).calls[0].arguments
    assert (found.why.value if found.why is not None else found.state.value) == state
    if text is not None:
        assert found.text == text


def test_values_in_tool_parameters_count_only_where_the_producer_writes_values() -> None:
    attributes = oi(tool__parameters='{"q": "x"}')
    assert not one(attributes, scope="openinference.instrumentation.crewai").calls[0].arguments.is_recorded
    strands = "openinference.instrumentation.strands"
    assert one(attributes, scope=strands).calls[0].arguments.as_object() == {"q": "x"}
    schema = oi(tool__parameters='{"type": "object", "properties": {}}')
    assert not one(schema, scope=strands).calls[0].arguments.is_recorded


def test_two_vocabularies_that_disagree_about_arguments_conflict() -> None:
    call = one({**genai(gen_ai__tool__call__arguments='{"a":1}'), **oi(input__value='{"a":2}')}).calls[0]
    assert call.arguments.why is not None
    assert call.arguments.why.value == "conflicting"


def part(call_id: str, arguments: object, name: str = "t") -> dict[str, object]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def messages(*parts: dict[str, object]) -> str:
    return json.dumps([{"role": "assistant", "parts": parts}])


def test_arguments_in_events_old_and_new() -> None:
    old: tuple[tuple[str, dict[str, object]], ...] = (("gen_ai.tool.message", {"content": '{"a":1}', "id": "c1"}),)
    text = messages(part("c1", {"a": 1}), part("c2", {"a": 2}))
    new: tuple[tuple[str, dict[str, object]], ...] = ((DETAILS, {"gen_ai.input.messages": text}),)
    for events in (old, new):
        assert one(genai(gen_ai__tool__call__id="c1"), events=events).calls[0].arguments.as_object() == {"a": 1}
        assert not one(genai(gen_ai__tool__call__id="c9"), events=events).calls[0].arguments.is_recorded


@pytest.mark.parametrize("key", ["tool.id", "tool.call_id", "tool_call.id"])
def test_the_three_spellings_of_the_call_id(key: str) -> None:
    assert one({**oi(), key: "c1"}).calls[0].call_id == "c1"


def test_the_call_id_in_a_langchain_result() -> None:
    output = json.dumps({"type": "constructor", "kwargs": {"content": "x", "tool_call_id": "c7"}})
    scope = "openinference.instrumentation.langchain"
    assert one(oi(output__value=output), scope=scope).calls[0].call_id == "c7"


@pytest.mark.parametrize("call_id", ["<not specified>", "N/A", ""])
def test_call_ids_that_are_none(call_id: str) -> None:
    assert one(genai(gen_ai__tool__call__id=call_id)).calls[0].call_id is None


# --- what is kept


def test_without_content_only_names_and_times_are_kept() -> None:
    options = ReadOptions(content=ContentRules(retain_content=False))
    payload = read([root(), tool(2, arguments={"secret": "hunter2"}), tool(3, arguments="hunter2")], options=options)
    assert "hunter2" not in payload.model_dump_json()
    assert {call.arguments.why.value for call in payload.calls if call.arguments.why} == {"not_retained"}
    assert not payload.retain_content
    assert [attempt.end_ns for call in payload.calls for attempt in call.attempts] != [None, None]


def test_a_redactor_runs_before_hashing_and_cutting() -> None:
    def redact(name: str, value: object) -> object:
        return "__REDACTED__" if name == "password" else value

    def arguments(password: str, limit: int) -> ToolsPayload:
        options = ReadOptions(content=ContentRules(redactor=redact, max_argument_bytes=limit))
        return read(
            [root(), tool(2, arguments={"to": "x", "password": password}), tool(3, arguments=password)], options=options
        )

    kept = arguments("hunter2", 1000)
    assert "hunter2" not in kept.model_dump_json()
    call = kept.calls[0].arguments
    assert call.argument("to").value == "x"
    assert str(call.argument("password").why) == "redacted"
    # The digest tells nothing of what was taken out.
    assert call.sha256 == arguments("other", 1000).calls[0].arguments.sha256
    assert "hunter2" not in arguments("hunter2" * 50, 60).model_dump_json()


# --- hosted tools, false ends, proposals


def test_a_tool_that_the_provider_runs_has_no_times_of_its_own() -> None:
    payload = one(genai(gen_ai__tool__type="extension"))
    assert payload.calls[0].attempts == ()
    assert codes(payload) == ["tool.hosted"]


def test_an_abandoned_span_has_not_ended() -> None:
    scope = "openinference.instrumentation.claude_agent_sdk"
    payload = one(oi(), status=2, message="Abandoned: session ended", scope=scope)
    assert payload.calls[0].attempts[0].end_ns is None
    assert codes(payload) == ["span.unfinished"]


def proposal(kind: str, name: str, call_id: str) -> S:
    asked = messages(part(call_id, {}, name))
    openai = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}]
    chat: dict[str, object] = {"gen_ai.operation.name": "chat"}
    if kind == "new":
        return S(9, attributes={**chat, "gen_ai.output.messages": asked})
    if kind == "event":
        return S(9, attributes=chat, events=((DETAILS, {"gen_ai.output.messages": asked}),))
    if kind == "old event":
        return S(9, attributes=chat, events=(("gen_ai.choice", {"message": json.dumps({"tool_calls": openai})}),))
    if kind == "old attributes":
        key = "gen_ai.completion.0.tool_calls.0."
        return S(9, attributes={"gen_ai.request.model": "m", key + "name": name, key + "id": call_id})
    key = "llm.output_messages.0.message.tool_calls.0.tool_call."
    again = "llm.output_messages.0.message.contents.1.tool_call."
    return S(
        9,
        attributes={
            OI: "LLM",
            **{k + "function.name": name for k in (key, again)},
            **{k + "id": call_id for k in (key, again)},
        },
    )


@pytest.mark.parametrize("kind", ["new", "event", "old event", "old attributes", "openinference"])
def test_a_call_that_was_asked_for_and_never_seen_makes_the_trace_incomplete(kind: str) -> None:
    asked = proposal(kind, "send", "c1")
    lost = read([root(), asked])
    assert codes(lost) == ["proposal.unanswered"]
    assert [(item.name, item.call_id, item.kind.value) for item in lost.not_executed] == [("send", "c1", "proposed")]
    assert codes(read([root(), asked, tool(2, "send", call_id="c1")])) == []
    assert codes(read([root(), asked, tool(2, "send")])) == []
    assert codes(read([root(), asked, tool(2, "send", call_id="c2")])) == []
    assert codes(read([root(), asked, tool(2, "other")])) == ["proposal.unanswered"]
    refused = tool(2, "send", call_id="c1", pydantic_ai__tool__failure_stage="validation")
    assert codes(read([root(), asked, refused])) == []


def test_as_many_executions_as_calls_that_were_asked_for() -> None:
    asked = [proposal("new", "send", ""), S(10, attributes=proposal("new", "send", "").attributes)]
    assert codes(read([root(), *asked, tool(2, "send")])) == ["proposal.unanswered"]
    assert codes(read([root(), *asked, tool(2, "send"), tool(3, "mcp__s__send", start=5, end=6)])) == []
