"""Conversation files: shapes, links to traces, what is refused; and messages together with the trace."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolsPayload
from grader.core.tools.union import with_messages
from grader.core.traces.coverage import CoverageCode
from grader.errors import TraceError
from grader.messages.conversation import Link, read_conversation
from grader.traces.reader import TraceInput, read_traces
from tests.unit.traces.otlp_samples import OTHER_TRACE, TRACE, S, codes, lines, root, tool

ASK = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "send", "arguments": '{"to":"x"}'}}]}
ANSWER = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
USER = {"role": "user", "content": "go"}
SPAN = "00f067aa0ba902b7"


def test_a_plain_yaml_conversation_with_a_link_per_request() -> None:
    text = f"""
requests:
  - traceparent: 00-{TRACE}-{SPAN}-01
    messages:
      - {{role: user, content: go}}
      - role: assistant
        tool_calls: [{{id: c1, function: {{name: send, arguments: '{{"to": "x"}}'}}}}]
      - {{role: tool, tool_call_id: c1, content: ok}}
  - trace_id: {OTHER_TRACE.upper()!r}
    messages: [{{role: user, content: more}}]
  - messages: [{{role: user, content: no link}}]
"""
    conversation = read_conversation(text.encode(), "c.yaml")
    assert [request.link for request in conversation.requests] == [Link(TRACE, SPAN), Link(OTHER_TRACE), None]
    assert conversation.trace_ids == (TRACE, OTHER_TRACE)
    assert conversation.parent_span_ids == (SPAN,)
    payload = conversation.payload()
    assert [call.arguments.as_object() for call in payload.calls] == [{"to": "x"}]
    assert payload.conversation is not None
    assert payload.conversation.unlinked == ("request 3",)
    assert payload.has_unlinked_requests


def test_evidence_for_a_message_is_what_was_done_up_to_it() -> None:
    document = {
        "requests": [
            {"trace_id": TRACE, "messages": [USER]},
            {"trace_id": OTHER_TRACE, "messages": [USER, ASK, ANSWER]},
        ]
    }
    conversation = read_conversation(json.dumps(document).encode())
    assert conversation.until(1).trace_ids == (TRACE,)
    assert conversation.until(1).payload().calls == ()
    assert len(conversation.until(2).payload().calls) == 1


def test_links_on_messages_of_one_list() -> None:
    linked = [{**USER, "trace_id": TRACE}, ASK, ANSWER, {**USER, "trace_id": OTHER_TRACE}]
    conversation = read_conversation(json.dumps(linked).encode())
    assert [request.link for request in conversation.requests] == [Link(TRACE), Link(OTHER_TRACE)]
    assert read_conversation(json.dumps({"trace_id": TRACE, "messages": [USER, ASK]}).encode()).trace_ids == (TRACE,)


SHAPES: dict[str, object] = {
    "messages": [USER, ASK, ANSWER],
    "an object": {"messages": [USER, ASK, ANSWER]},
    "request and response": [
        {"request": {"messages": [USER]}, "response": {"choices": [{"message": ASK}]}},
        {"messages": [USER, ASK, ANSWER]},
    ],
    "a response beside the messages": [{"messages": [USER], "choices": [{"message": ASK}]}, {"messages": [ANSWER]}],
    "lists": {"requests": [[USER, ASK], [USER, ASK, ANSWER]]},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: str) -> None:
    data = json.dumps(SHAPES[shape]).encode()
    assert [call.names for call in read_conversation(data).payload().calls] == [("send",)]
    assert [call.names for call in read_conversation(b"\xef\xbb\xbf" + data).payload().calls] == [("send",)]


def test_json_lines() -> None:
    data = b"\n".join(json.dumps({"messages": messages}).encode() for messages in ([USER, ASK], [USER, ASK, ANSWER]))
    conversation = read_conversation(data)
    assert (len(conversation.requests), len(conversation.payload().calls)) == (2, 1)


def test_messages_of_two_formats_and_strange_entries_in_one_list() -> None:
    use: dict[str, object] = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}],
    }
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}
    payload = read_conversation(json.dumps([USER, ASK, ANSWER, use, result, {"what": 1}]).encode()).payload()
    assert [call.names for call in payload.calls] == [("send",), ("look",)]
    assert payload.sources[0].encoding == "anthropic, openai_chat"
    assert payload.notes == ("1 entries are no messages of a known format",)


BAD = {
    "empty": b"",
    "no object": b"3",
    "text": b"hello there",
    "nothing in it": b"[]",
    "no messages": b'{"requests": [{"trace_id": "%s"}]}' % TRACE.encode(),
    "requests of the wrong kind": b'{"requests": {}}',
    "a request of the wrong kind": b'{"requests": [3]}',
    "cut": b'{"messages": [',
    "deep": b"[" * 100_000,
    "no utf-8": b'{"messages": ["\xff"]}',
    "yaml": b"requests:\n  - messages: [",
    "doubled key": b"requests: []\nrequests: []\n",
    "short trace id": b'{"trace_id": "abc", "messages": [{"role": "user"}]}',
    "zero trace id": b'{"trace_id": "%s", "messages": [{"role": "user"}]}' % (b"0" * 32),
    "a number as trace id": b'{"trace_id": 7, "messages": [{"role": "user"}]}',
    "traceparent": b'{"traceparent": "00-x-y-01", "messages": [{"role": "user"}]}',
    "traceparent, version ff": b'{"traceparent": "ff-%s-%s-01", "messages": []}' % (TRACE.encode(), SPAN.encode()),
    "two links": f'{{"traceparent": "00-{TRACE}-{SPAN}-01", "trace_id": "{OTHER_TRACE}", "messages": []}}'.encode(),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_conversation_is_a_clear_error(case: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_conversation(BAD[case], "c.json").payload()
    assert caught.value.where is not None
    assert caught.value.where.file == "c.json"
    assert caught.value.hint


WORDS = ["assistant", "user", "tool", "tool_use", "function_call", "c1"]
KEYS = [
    *("role", "content", "type", "tool_calls", "function", "name", "id", "tool_call_id", "input", "output"),
    *("messages", "requests", "error", "request", "response", "choices", "message", "arguments"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(VALUES)
def test_any_json_is_a_conversation_or_a_clear_error(value: object) -> None:
    try:
        payload = read_conversation(json.dumps(value).encode()).payload()
    except TraceError:
        return
    assert ToolsPayload.model_validate_json(payload.model_dump_json()) == payload


# --- together with the trace


def both(spans: list[S], document: object) -> ToolsPayload:
    evidence = read_traces([TraceInput.of_bytes(lines([spans]))])
    conversation = read_conversation(json.dumps(document).encode())
    trace = evidence.payload(conversation.trace_ids or None, conversation.parent_span_ids, declared_by="x")
    return with_messages(trace, conversation.payload())


def linked(*messages: object, trace_id: str | None = TRACE) -> dict[str, object]:
    return {"requests": [{"trace_id": trace_id, "messages": list(messages)}]}


def test_one_call_that_both_show_is_one_call() -> None:
    payload = both([root(), tool(2, call_id="c1")], linked(USER, ASK, ANSWER))
    assert len(payload.calls) == 1
    call = payload.calls[0]
    assert [str(source) for source in call.sources] == ["messages", "trace"]
    assert call.arguments.as_object() == {"to": "x"}
    assert call.attempts
    assert call.messages == ("request 1 message 1", "request 1 message 2")
    assert payload.coverage.is_complete
    assert payload.only_in_messages == ()


def test_a_call_of_the_trace_without_an_id_is_matched_by_name_and_arguments() -> None:
    payload = both(
        [root(), tool(2, arguments={"to": "y"}), tool(3, arguments={"to": "x"}, start=4, end=5)],
        linked(USER, ASK, ANSWER),
    )
    assert [len(call.sources) for call in payload.calls] == [1, 2]
    differing = both([root(), tool(2, arguments={"to": "y"})], linked(USER, ASK, ANSWER))
    assert len(differing.calls) == 2


def test_a_call_with_another_id_is_another_call() -> None:
    assert len(both([root(), tool(2, call_id="c9", arguments={"to": "x"})], linked(USER, ASK, ANSWER)).calls) == 2


def test_a_call_that_a_complete_trace_does_not_have_is_a_conflict() -> None:
    payload = both([root(), tool(2, "look")], linked(USER, ASK, ANSWER))
    assert [call.names for call in payload.calls] == [("look",), ("send",)]
    assert payload.only_in_messages == ("messages/0",)
    assert codes(payload) == ["messages.conflict"]
    assert payload.coverage.reason_code is ReasonCode.EVIDENCE_CONFLICT
    assert payload.coverage.has(CoverageCode.MESSAGES_CONFLICT)
    assert ToolsPayload.model_validate_json(payload.model_dump_json()) == payload


def test_a_call_of_a_request_without_a_link_is_no_conflict() -> None:
    payload = both([root(), tool(2, "look")], linked(USER, ASK, ANSWER, trace_id=None))
    assert (len(payload.calls), payload.only_in_messages) == (2, ())
    assert payload.has_unlinked_requests


def test_arguments_that_trace_and_messages_tell_differently_conflict() -> None:
    payload = both([root(), tool(2, call_id="c1", arguments={"to": "y"})], linked(USER, ASK, ANSWER))
    assert [str(call.arguments.why) for call in payload.calls] == ["conflicting"]
    other = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "send", "arguments": '{"to":"y"}'}}]}
    again = both([root(), tool(2, call_id="c1", arguments={"to": "y"})], linked(USER, ASK, ANSWER, other, ANSWER))
    assert [call.arguments.as_object() for call in again.calls] == [{"to": "y"}, {"to": "x"}]


def test_ids_that_are_used_again_are_paired_in_order() -> None:
    other = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "send", "arguments": '{"to":"z"}'}}]}
    spans = [root(), tool(2, call_id="c1", start=1, end=2), tool(3, call_id="c1", start=5, end=6)]
    payload = both(spans, linked(USER, ASK, ANSWER, other, ANSWER))
    assert [call.arguments.as_object() for call in payload.calls] == [{"to": "x"}, {"to": "z"}]


def test_order_edges_follow_the_calls_and_answered_proposals_vanish() -> None:
    second = {"role": "assistant", "tool_calls": [{"id": "c2", "function": {"name": "look", "arguments": "{}"}}]}
    spans = [root(), tool(2, "send", call_id="c1"), tool(3, "look", call_id="c2")]
    payload = both(spans, linked(USER, ASK, ANSWER, second, {**ANSWER, "tool_call_id": "c2"}))
    assert [(edge.before[-1], edge.after[-1]) for edge in payload.order_edges] == [("2", "3")]
    open_proposal = both(spans, linked(USER, ASK, ANSWER, second))
    assert open_proposal.not_executed == ()
    assert both([root()], linked(USER, ASK)).not_executed[0].name == "send"


def test_a_trace_that_a_request_names_and_that_is_not_there() -> None:
    document = {"requests": [{"trace_id": OTHER_TRACE, "messages": [USER]}]}
    assert codes(both([root()], document)) == ["trace.absent", "trace.empty"]
