"""Turns of a conversation: every message once, with the calls it asks for."""

from __future__ import annotations

import json
from typing import Any

from grader.core.judging.turns import Turn, TurnRole
from grader.core.traces.content import TextRules
from grader.messages.conversation import read_conversation
from grader.messages.turns import turns_of

LINK = "a" * 32


def turns(document: Any, rules: TextRules | None = None) -> tuple[Turn, ...]:
    return turns_of(read_conversation(json.dumps(document).encode()), rules)


def shown(document: Any) -> list[tuple[str, str, str | None]]:
    return [(turn.id, turn.role.value, turn.content.text) for turn in turns(document)]


def test_openai_chat() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "pay", "arguments": '{"eur": 3}'}}
    assert shown(
        [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": [{"type": "text", "text": "pay"}, {"type": "image_url", "image_url": {}}]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "paid"},
            {"role": "assistant", "content": "Done."},
        ]
    ) == [
        ("M1", "system", "be kind"),
        ("M2", "user", "pay\n(a part of type image_url, which is not shown)"),
        ("M3", "assistant", '(asks for the call pay {"eur":3})'),
        ("M4", "tool", "paid"),
        ("M5", "assistant", "Done."),
    ]


def test_anthropic_and_responses() -> None:
    anthropic = [
        {"role": "user", "content": "pay"},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"},
                                          {"type": "tool_use", "id": "1", "name": "pay", "input": {"eur": 3}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "paid"}]},
    ]  # fmt: skip
    assert [item[1:] for item in shown(anthropic)] == [
        ("user", "pay"),
        ("assistant", 'ok\n(asks for the call pay {"eur":3})'),
        ("tool", "paid"),
    ]
    items = [
        {"role": "user", "content": "pay"},
        {"type": "function_call", "call_id": "1", "name": "pay", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "paid"},
    ]
    assert [item[1:] for item in shown({"input": items})] == [
        ("user", "pay"),
        ("assistant", "(asks for the call pay {})"),
        ("tool", "paid"),
    ]


def test_a_replayed_history_is_no_new_turn() -> None:
    first = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}]
    second = [*first, {"role": "user", "content": "two"}, {"role": "assistant", "content": "2"}]
    document = {"requests": [{"messages": first, "trace_id": LINK}, {"messages": second, "trace_id": "b" * 32}]}
    found = turns(document)
    assert [turn.content.text for turn in found] == ["one", "1", "two", "2"]
    assert [turn.trace_id for turn in found] == [LINK, LINK, "b" * 32, "b" * 32]


def test_what_only_looks_like_a_replay_is_kept() -> None:
    first = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "1"}]
    again = [{"role": "user", "content": "one"}]
    assert len(turns({"requests": [{"messages": first}, {"messages": again}]})) == 3
    same_twice = [*first, *first]
    assert [turn.content.text for turn in turns(same_twice)] == ["one", "1", "one", "1"]


def test_turns_are_redacted_and_cut_but_long_ones_are_kept() -> None:
    rules = TextRules(max_characters=5, redactor=lambda what, text: text.replace("Ann", f"<{what}>"))
    (turn,) = turns([{"role": "user", "content": "Ann is here"}], rules)
    assert (turn.content.text, turn.content.total_characters) == ("<turn", len("<turn> is here"))
    (long,) = turns([{"role": "user", "content": "x" * 50_000}])
    assert not long.content.is_cut


def test_strange_messages_are_turns_too() -> None:
    found = turns([{"role": "critic", "content": "hm"}, {"role": "assistant", "content": ["a", {"deep": 1}]}])
    assert [turn.role for turn in found] == [TurnRole.OTHER, TurnRole.ASSISTANT]
