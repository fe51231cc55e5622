"""Which calls the messages of three APIs show as executed: asked for and answered, and not refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ToolsPayload
from grader.messages.base import refusal
from grader.messages.conversation import read_conversation

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "traces"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared trace files are not at {SHARED}")


def payload(document: object, rules: ContentRules | None = None) -> ToolsPayload:
    return read_conversation(json.dumps(document).encode(), "c.json").payload(rules)


def executed(document: object) -> list[str]:
    return ["/".join(call.names) + (call.arguments.text or "") for call in payload(document).calls]


def states(document: object) -> list[tuple[str, str, str | None]]:
    return [(item.name, item.kind.value, item.call_id) for item in payload(document).not_executed]


USER = {"role": "user", "content": "go"}


class Chat:
    @staticmethod
    def ask(name: str, call_id: str, **arguments: object) -> dict[str, object]:
        function = {"name": name, "arguments": json.dumps(arguments)}
        return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]}

    @staticmethod
    def answer(call_id: str, text: str = "ok") -> dict[str, object]:
        return {"role": "tool", "tool_call_id": call_id, "content": text}


class Responses:
    @staticmethod
    def ask(name: str, call_id: str, **arguments: object) -> dict[str, object]:
        return {
            "type": "function_call",
            "id": "fc_1",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(arguments),
        }

    @staticmethod
    def answer(call_id: str, text: str = "ok") -> dict[str, object]:
        return {"type": "function_call_output", "call_id": call_id, "output": text}


class Anthropic:
    @staticmethod
    def ask(name: str, call_id: str, **arguments: object) -> dict[str, object]:
        block = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        return {"role": "assistant", "content": [{"type": "text", "text": "ok"}, block]}

    @staticmethod
    def answer(call_id: str, text: str = "ok") -> dict[str, object]:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}


API = type[Chat] | type[Responses] | type[Anthropic]
all_apis = pytest.mark.parametrize("api", [Chat, Responses, Anthropic])


@all_apis
def test_a_call_counts_only_when_it_is_answered(api: API) -> None:
    asked = [USER, api.ask("send", "c1", to="x")]
    assert (executed(asked), states(asked)) == ([], [("send", "proposed", "c1")])
    assert executed([*asked, api.answer("c1")]) == ['send{"to":"x"}']
    assert executed([*asked, api.answer("c2")]) == []
    assert executed([api.answer("c1"), *asked]) == []


@all_apis
def test_an_answer_belongs_to_the_latest_unanswered_request_of_its_id(api: API) -> None:
    twice = [api.ask("a", "c", n=1), api.ask("b", "c", n=2), api.answer("c")]
    assert executed(twice) == ['b{"n":2}']
    assert executed([*twice, api.answer("c")]) == ['a{"n":1}', 'b{"n":2}']
    again = [api.ask("a", "c", n=1), api.answer("c"), api.ask("b", "c", n=2), api.answer("c")]
    assert executed(again) == ['a{"n":1}', 'b{"n":2}']


@all_apis
def test_replayed_histories_are_not_counted_twice(api: API) -> None:
    first = [USER, api.ask("a", "c1"), api.answer("c1")]
    second = [*first, api.ask("a", "c2"), api.answer("c2")]
    third = [*second, {"role": "assistant", "content": "done"}]
    document = {"requests": [{"messages": messages} for messages in (first[:1], first, second, third)]}
    assert executed(document) == ["a{}", "a{}"]
    trimmed = {"requests": [{"messages": second}, {"messages": second[3:]}]}
    assert executed(trimmed) == ["a{}", "a{}"]


@all_apis
def test_requests_that_have_new_messages_only(api: API) -> None:
    new = [[USER, api.ask("a", "c1")], [api.answer("c1"), api.ask("b", "c2")], [api.answer("c2")]]
    assert executed({"requests": [{"messages": messages} for messages in new]}) == ["a{}", "b{}"]


@all_apis
def test_branches_of_one_history_count_the_common_part_once(api: API) -> None:
    base = [USER, api.ask("a", "c1"), api.answer("c1")]
    left, right = [api.ask("b", "c2"), api.answer("c2")], [api.ask("d", "c3"), api.answer("c3")]
    document = {"requests": [{"messages": [*base, *left]}, {"messages": [*base, *right]}]}
    assert sorted(executed(document)) == ["a{}", "b{}", "d{}"]


REFUSALS = [
    ("not_found", "Error: snd is not a valid tool, try one of [send]."),
    ("not_found", "Unknown tool name: 'snd'. Available tools: 'send'"),
    ("not_found", 'Tool "snd" not found'),
    ("not_found", "No tool named snd"),
    ("invalid_arguments", "1 validation error:\n[{'type': 'missing', 'loc': ['to']}]"),
    ("invalid_arguments", "InputValidationError: to is required"),
    ("invalid_arguments", "send() missing 1 required positional argument: 'to'"),
    ("invalid_arguments", "Error parsing tool arguments: Expecting ',' delimiter"),
    ("denied", "The user doesn't want to proceed with this tool use. The tool use was rejected"),
    ("denied", "Tool call was denied by the approver"),
    ("denied", "Claude requested permissions to use Bash, but you haven't granted it yet."),
]
RAN = [
    "Error: connection refused",
    "File not found: a.txt",
    "permission denied",
    "TimeoutError",
    "",
    "404: page not found",
    "user 7 not found",
    "x" * 700 + " unknown tool",
]


@pytest.mark.parametrize(("why", "text"), REFUSALS)
def test_dispatch_errors(why: str, text: str) -> None:
    found = refusal(text)
    assert found is not None
    assert found.value == why


@pytest.mark.parametrize("text", RAN)
def test_what_a_tool_says_itself_is_no_dispatch_error(text: str) -> None:
    assert refusal(text) is None


@all_apis
def test_a_refused_call_was_not_executed_and_is_kept_with_the_reason(api: API) -> None:
    document = [
        USER,
        api.ask("snd", "c1"),
        api.answer("c1", "Unknown tool name: 'snd'"),
        api.ask("send", "c2"),
        api.answer("c2"),
    ]
    assert executed(document) == ["send{}"]
    assert states(document) == [("snd", "rejected", "c1")]
    excluded = payload(document).excluded
    assert [(item.why.value, item.names) for item in excluded] == [("not_found", ("snd",))]


def test_a_failed_execution_is_an_execution() -> None:
    block = {"type": "tool_result", "tool_use_id": "c1", "content": "boom", "is_error": True}
    calls = payload([Anthropic.ask("a", "c1"), {"role": "user", "content": [block]}]).calls
    assert [(call.names, call.failed) for call in calls] == [(("a",), True)]


@pytest.mark.parametrize(
    ("kind", "ran"), [("parsing", False), ("approval", False), ("timeout", True), ("permission", True), ("limit", True)]
)
def test_stored_error_types(kind: str, ran: bool) -> None:
    answer = {"role": "tool", "tool_call_id": "c1", "content": "", "error": {"type": kind, "message": "x"}}
    assert bool(executed([Chat.ask("a", "c1"), answer])) is ran


def test_old_function_calls_and_custom_tools_of_chat() -> None:
    old = [
        {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    assert executed(old) == ["f{}"]
    custom = {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls"}}],
    }
    assert str(payload([custom, Chat.answer("c")]).calls[0].arguments.state) == "unparsable"


def test_tools_that_the_provider_runs() -> None:
    items = [
        {"type": "web_search_call", "id": "w1", "status": "completed"},
        {"type": "web_search_call", "id": "w2", "status": "in_progress"},
        {"type": "mcp_call", "id": "m1", "name": "look", "arguments": '{"a":1}', "output": "x"},
        {"type": "mcp_call", "id": "m2", "name": "look", "arguments": "{}", "error": "Unknown tool: look"},
        {"type": "mcp_approval_request", "id": "m3", "name": "drop", "arguments": "{}"},
        {"type": "mcp_list_tools", "id": "m4", "tools": [{"name": "x"}]},
    ]
    assert executed({"output": items}) == ["web_search", 'look{"a":1}']
    assert states({"output": items}) == [
        ("web_search", "proposed", "w2"),
        ("look", "rejected", "m2"),
        ("drop", "deferred", "m3"),
    ]
    blocks: list[dict[str, object]] = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result"}]},
        {"type": "mcp_tool_use", "id": "s2", "name": "echo", "server_name": "e", "input": {}},
        {"type": "mcp_tool_result", "tool_use_id": "s2", "is_error": False, "content": "hi"},
    ]
    assert executed([{"role": "assistant", "content": blocks}]) == ['web_search{"query":"q"}', "echo{}"]


def test_arguments_that_are_no_object_are_unparsable() -> None:
    for text in ("", "[1]", "{", '{"a":1}{"a":2}'):
        call = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": text}}]}
        assert str(payload([call, Chat.answer("c")]).calls[0].arguments.state) == "unparsable"


@all_apis
def test_without_content_names_only_are_kept(api: API) -> None:
    found = payload([api.ask("a", "c1", secret="hunter2"), api.answer("c1")], ContentRules(retain_content=False))
    assert "hunter2" not in found.model_dump_json()
    assert [call.names for call in found.calls] == [("a",)]


# --- order


def edges(document: object) -> list[tuple[str, str]]:
    found = payload(document)
    names = {call.key: call.names[0] for call in found.calls}
    return [(names[edge.before], names[edge.after]) for edge in found.order_edges]


@all_apis
def test_a_result_before_a_later_proposal_is_an_order_edge(api: API) -> None:
    chain = [message for n in "abc" for message in (api.ask(n, n), api.answer(n))]
    assert edges(chain) == [("a", "b"), ("b", "c")]
    parallel = [
        api.ask("a", "1"),
        api.ask("b", "2"),
        api.answer("1"),
        api.answer("2"),
        api.ask("c", "3"),
        api.answer("3"),
    ]
    assert edges(parallel) == [("a", "c"), ("b", "c")]
    replayed = {"requests": [{"messages": chain[: n * 2]} for n in (1, 2, 3)]}
    assert edges(replayed) == [("a", "b"), ("b", "c")]
    unanswered = [api.ask("a", "1"), api.answer("1"), api.ask("b", "2"), api.ask("c", "3"), api.answer("3")]
    assert edges(unanswered) == [("a", "c")]


@all_apis
def test_turns_of_one_list_go_on(api: API) -> None:
    document = [USER, api.ask("a", "1"), api.answer("1"), USER, api.ask("b", "2"), api.answer("2")]
    assert len(read_conversation(json.dumps(document).encode()).requests) == 2
    assert edges(document) == [("a", "b")]


def test_many_parallel_calls_are_bounded() -> None:
    many = [Chat.ask("a", str(n), n=n) for n in range(3000)] + [Chat.answer(str(n)) for n in range(3000)]
    document = [
        *many,
        *(Chat.ask("b", f"b{n}", n=n) for n in range(3000)),
        *(Chat.answer(f"b{n}") for n in range(3000)),
    ]
    found = payload(document)
    assert len(found.calls) == 6000
    assert any("the rest was left out" in note for note in found.notes)


# --- real files


@needs_shared
def test_a_transcript_in_an_envelope() -> None:
    found = read_conversation((SHARED / "strands-evals__x_claude_code_skill_tool.json").read_bytes()).payload()
    assert [call.arguments.as_object() for call in found.calls] == [{"skill": "pdf-processing", "args": "report.pdf"}]


def cassette(name: str) -> dict[str, Any]:
    document: Any = yaml.safe_load((SHARED / f"pydantic-ai__{name}.yaml").read_text())
    return {
        "requests": [
            {"request": one["request"]["parsed_body"], "response": one["response"]["parsed_body"]}
            for one in document["interactions"]
        ]
    }


@needs_shared
def test_parallel_calls_in_recorded_requests() -> None:
    document = cassette("anthropic_parallel_tool_calls")
    names = ["Alice", "Bob", "Charlie", "Daisy"]
    assert executed(document) == [f'retrieve_entity_info{{"name":"{name}"}}' for name in names]
    assert edges(document) == []


@needs_shared
def test_a_call_whose_id_the_client_made_up_is_counted_once() -> None:
    document = cassette("tool_calls_without_id")
    assert executed(document) == ["get_current_time{}"]


@needs_shared
def test_answers_without_their_requests_count_for_nothing_and_are_said() -> None:
    samples = json.loads((SHARED / "inspect__log_tool_call_error.json").read_text())["samples"]
    found = payload(samples[0]["messages"])
    assert found.calls == ()
    assert found.notes == ("11 answers belong to no call that was recorded before them",)
