"""Gemini, Bedrock, Codex, recorded HTTP, and the sessions that agents keep: calls that were asked for and answered."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from grader import score
from grader.core.expectation import Task
from grader.core.tools.calls import ToolsPayload
from grader.core.tools.conditions import ToolCondition, ToolsCalled, ToolsNotCalled
from grader.errors import TraceError
from grader.messages.conversation import read_conversation
from grader.messages.turns import turns_of
from tests.unit.scorers.tool_samples import tool as wanted


def payload(document: object) -> ToolsPayload:
    return read_conversation(json.dumps(document).encode(), "c.json").payload()


def told(document: object) -> list[str]:
    """`name{arguments}` of every execution, in order."""
    return ["/".join(call.names) + (call.arguments.text or "") for call in payload(document).calls]


def left_out(document: object) -> list[tuple[str, str]]:
    return [("/".join(item.names), item.why.value) for item in payload(document).excluded]


# --- Gemini


def gemini(*calls: tuple[str, dict[str, Any]], snake: bool = False, **more: object) -> dict[str, Any]:
    key = "function_call" if snake else "functionCall"
    return {"role": "model", "parts": [{key: {"name": name, "args": args, **more}} for name, args in calls]}


def gave(*answers: tuple[str, dict[str, Any]], snake: bool = False) -> dict[str, Any]:
    key = "function_response" if snake else "functionResponse"
    return {"role": "user", "parts": [{key: {"name": name, "response": got}} for name, got in answers]}


SAY = {"role": "user", "parts": [{"text": "go"}]}


@pytest.mark.parametrize("snake", [False, True])
def test_gemini(snake: bool) -> None:
    contents = [SAY, gemini(("f", {"a": 1}), snake=snake), gave(("f", {"result": "x"}), snake=snake)]
    assert told({"contents": contents}) == ['f{"a":1}']
    assert len(read_conversation(json.dumps({"contents": contents}).encode()).requests) == 1
    assert told({"contents": contents[:2]}) == []


def test_parallel_calls_without_ids_are_answered_in_their_order() -> None:
    contents = [
        SAY,
        gemini(("f", {"a": 1}), ("g", {}), ("f", {"a": 2})),
        gave(("f", {"error": "Invalid arguments"}), ("g", {"result": 1}), ("f", {"result": 2})),
    ]
    assert told({"contents": contents}) == ["g{}", 'f{"a":2}']
    assert left_out({"contents": contents}) == [("f", "invalid_arguments")]


def test_adk_answers_a_call_that_it_did_not_make_with_a_code_or_in_its_words() -> None:
    for got in (
        {"error": "x", "error_code": "INVALID_ARGUMENTS"},
        {"error": "Invoking `f()` failed as the following mandatory input parameters are not present:\na"},
    ):
        assert left_out({"contents": [SAY, gemini(("f", {})), gave(("f", got))]}) == [("f", "invalid_arguments")]
    ran = {"contents": [SAY, gemini(("f", {})), gave(("f", {"error": "no such page"}))]}
    assert [call.failed for call in payload(ran).calls] == [True]


# --- Bedrock


def bedrock(status: str | None = "success", text: str = "ok") -> list[dict[str, Any]]:
    use = {"toolUseId": "t1", "name": "f", "input": {"a": 1}}
    result: dict[str, Any] = {"toolUseId": "t1", "content": [{"text": text}]}
    if status is not None:
        result["status"] = status
    return [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [{"text": "I ask."}, {"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]


def test_bedrock() -> None:
    assert told(bedrock()) == ['f{"a":1}']
    assert [call.failed for call in payload(bedrock("error")).calls] == [True]
    assert left_out(bedrock("error", "Unknown tool: f")) == [("f", "not_found")]
    assert told(bedrock()[:2]) == []
    turns = turns_of(read_conversation(json.dumps(bedrock()).encode()))
    assert [turn.role.value for turn in turns] == ["user", "assistant", "tool"]
    assert "ok" in (turns[2].content.text or "")


# --- Codex


def item(kind: str, state: str = "completed", number: int = 1, **more: object) -> dict[str, Any]:
    return {"type": f"item.{state}", "item": {"id": f"item_{number}", "type": kind, **more}}


def test_an_item_that_comes_with_every_change_of_its_state_is_one_call() -> None:
    started = item("command_execution", "started", command="ls", status="in_progress", exit_code=None)
    ended = item("command_execution", command="ls", status="completed", exit_code=2)
    assert told({"events": [started, ended]}) == ['command_execution{"command":"ls"}']
    assert [call.failed for call in payload({"events": [started, ended]}).calls] == [True]
    assert told({"events": [started]}) == []
    declined = item("command_execution", command="rm -rf /", status="declined")
    assert left_out({"events": [declined]}) == [("command_execution", "denied")]


def test_other_items_of_codex() -> None:
    events = [
        {"type": "thread.started", "thread_id": "x"},
        item("mcp_tool_call", number=1, server="mail", tool="send", arguments={"to": "ann"}, status="completed"),
        item("web_search", number=2, query="weather"),
        item("file_change", number=3, changes=[{"path": "a", "kind": "add"}], status="failed"),
        item("agent_message", number=4, text="done"),
        {"type": "turn.completed"},
    ]
    lines = b"\n".join(json.dumps(event).encode() for event in events)
    read = read_conversation(lines).payload()
    assert [call.names[0] for call in read.calls] == ["send", "web_search", "file_change"]
    assert read.calls[0].arguments.as_object() == {"to": "ann"}
    assert read.notes == ()


# --- what agents keep, and recorded HTTP


def test_sessions_with_a_message_a_line() -> None:
    claude: list[Any] = [
        {"type": "user", "message": {"role": "user", "content": "go"}},
        {
            "type": "assistant",
            "message": {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        },
        {
            "type": "user",
            "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
        },
    ]
    call = {"type": "function_call", "call_id": "c", "name": "shell", "arguments": '{"a":1}'}
    codex: list[Any] = [
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "ok"}},
    ]
    for session, expected in ((claude, ["f"]), (codex, ["shell"])):
        lines = b"\n".join(json.dumps(line).encode() for line in session)
        assert [call.names[0] for call in read_conversation(lines).payload().calls] == expected


def chat(name: str, call_id: str, answer: str | None = "ok") -> list[dict[str, Any]]:
    asked = {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}
    found: list[dict[str, Any]] = [{"role": "assistant", "tool_calls": [asked]}]
    return found if answer is None else [*found, {"role": "tool", "tool_call_id": call_id, "content": answer}]


def interaction(history: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
    return {"request": {"parsed_body": {"messages": history}}, "response": {"parsed_body": {"choices": [answer]}}}


def test_recorded_http_counts_each_call_once_however_often_the_history_repeats_it() -> None:
    user: list[Any] = [{"role": "user", "content": "go"}]
    first, second = chat("f", "c1", None), chat("f", "c2", None)
    recorded = {
        "interactions": [
            interaction(user, {"message": first[0]}),
            {"request": {"uri": "https://example.org", "body": "not JSON"}, "response": {}},
            interaction(user + chat("f", "c1"), {"message": second[0]}),
            interaction(user + chat("f", "c1") + chat("f", "c2"), {"message": {"role": "assistant", "content": "x"}}),
        ]
    }
    assert [call.call_id for call in payload(recorded).calls] == ["c1", "c2"]


def test_a_call_without_an_id_is_found_again_under_the_id_that_the_client_made_up() -> None:
    user: list[Any] = [{"role": "user", "content": "go"}]
    for made_up, asked in ((chat("f", "made-up"), chat("f", "", None)), (chat("f", ""), chat("f", "own", None))):
        recorded = {
            "interactions": [
                interaction(user, {"message": asked[0]}),
                interaction(user + made_up, {"message": {"role": "assistant", "content": "x"}}),
            ]
        }
        assert len(payload(recorded).calls) == 1, made_up
    # Two calls of one request are two, id or not.
    both = user + chat("f", "") + chat("f", "own")
    assert len(payload({"messages": both}).calls) == 2


def test_bodies_as_json_text_and_in_the_other_places_for_them() -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "go"}, *chat("f", "c1")]})
    for side in ({"body": body}, {"body": {"string": body}}, {"json_body": json.loads(body)}):
        assert told({"interactions": [{"request": side, "response": {}}]}) == ["f{}"]


NO_CONVERSATIONS: list[tuple[Any, str]] = [
    ({"eval_set_id": "x", "eval_cases": []}, "eval set of ADK"),
    ({"one": {"messages": []}, "two": {"contents": []}}, "holds 2 conversations: one, two"),
    ({"eval": {}, "samples": [{"messages": []}, {"messages": []}]}, "2 samples"),
    ({"interactions": []}, "no message"),
]


@pytest.mark.parametrize(("document", "says"), NO_CONVERSATIONS)
def test_what_is_no_conversation_is_told_what_it_is(document: object, says: str) -> None:
    with pytest.raises(TraceError, match=says) as caught:
        read_conversation(json.dumps(document).encode(), "c.json")
    assert caught.value.where is not None
    assert caught.value.hint


DOCUMENTS: list[Any] = [
    {"contents": [SAY, gemini(("f", {"a": 1})), gave(("f", {"result": "x"}))]},
    bedrock(),
    {"events": [item("command_execution", command="ls", status="completed")]},
    {"interactions": [interaction([{"role": "user", "content": "go"}, *chat("f", "c1")], {"message": None})]},
]


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
def test_messages_confirm_and_refute_and_never_prove_an_absence(number: int) -> None:
    conversation = json.dumps(DOCUMENTS[number]).encode()
    name = "command_execution" if number == 2 else "f"

    def judged(condition: ToolCondition) -> str:
        verdict = score([], Task(conditions=(condition,)), conversation=conversation, complete=True).verdict
        assert verdict is not None
        return verdict.value.value

    assert judged(ToolsCalled(tools=(wanted(name),))) == "true"
    assert judged(ToolsNotCalled(tools=(name,))) == "false"
    assert judged(ToolsCalled(tools=(wanted("other"),))) == "undetermined"
    assert judged(ToolsNotCalled(tools=("other",))) == "undetermined"


@pytest.mark.parametrize("number", range(len(DOCUMENTS)))
@pytest.mark.parametrize("wrong", [None, 1, "x", [], [[]], {}, {"a": 1}])
def test_values_of_any_type_are_passed_over(number: int, wrong: object) -> None:
    def damaged(value: Any, path: str = "") -> Any:
        if isinstance(value, dict):
            entries = cast("dict[str, Any]", value)
            return {key: damaged(entries[key], f"{path}.{key}") for key in entries} if path.count(".") < 6 else wrong
        return [damaged(entry, f"{path}.") for entry in cast("list[Any]", value)] if isinstance(value, list) else value

    for value in (damaged(DOCUMENTS[number]), {"contents": [wrong]}, {"events": [wrong]}, {"interactions": [wrong]}):
        try:
            found = payload(value)
        except TraceError as error:
            assert error.hint  # noqa: PT017 - an error is as good as evidence
            continue
        assert type(found).model_validate_json(found.model_dump_json()) == found
