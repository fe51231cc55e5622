"""Spans that describe one call are one call; what may be one or two is marked, never guessed."""

from __future__ import annotations

import pytest

from grader.core.tools.calls import ToolsPayload
from grader.core.tools.names import same_tool
from tests.unit.traces.otlp_samples import BASE, SECOND, TRACE, S, codes, read, root, tool

MCP = "mcp.sdk"


def calls(*spans: S) -> list[tuple[int, ...]]:
    """The spans of each call, by their small numbers."""
    return [tuple(int(ref.rsplit("/", 1)[1], 16) for ref in call.spans) for call in read([root(), *spans]).calls]


def doubts(*spans: S) -> list[tuple[int, int]]:
    payload: ToolsPayload = read([root(), *spans])
    number = {call.key: int(call.key.rsplit("/", 1)[1], 16) for call in payload.calls}
    return [(number[c.key], number[c.maybe_same_as]) for c in payload.calls if c.maybe_same_as is not None]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("t", "t", True),
        ("mcp__s__t", "t", True),
        ("s/t", "t", True),
        ("my_t", "t", False),
        ("x__t", "t", False),
        ("mcp__s__t", "s", False),
        ("T", "t", False),
        ("t", "", False),
    ],
)
def test_names_of_one_tool(one: str, other: str, same: bool) -> None:
    assert same_tool([one], [other]) is same
    assert same_tool([other], [one]) is same


def test_the_client_and_the_server_of_one_mcp_call_inside_the_tool_span_are_one_call() -> None:
    spans = (
        tool(2, "mcp__s__send", start=1, end=6, arguments={"to": "x"}, call_id="c1"),
        tool(3, "send", parent=2, start=2, end=5, scope=MCP, mcp__method__name="tools/call"),
        tool(4, "send", parent=3, start=3, end=7, scope="server", mcp__method__name="tools/call"),
    )
    assert calls(*spans) == [(2, 3, 4)]
    call = read([root(), *spans]).calls[0]
    assert call.names == ("mcp__s__send", "send")
    assert (call.attempts[0].start_ns, call.attempts[0].end_ns) == (BASE + SECOND, BASE + 7 * SECOND)
    assert call.arguments.as_object() == {"to": "x"}
    assert call.call_id == "c1"


def test_two_instrumentations_with_one_call_id_are_one_call_when_they_overlap() -> None:
    one, other = tool(2, call_id="c", scope="a", start=1, end=3), tool(3, call_id="c", scope="b", start=2, end=4)
    assert calls(one, other) == [(2, 3)]
    later = tool(3, call_id="c", scope="b", start=5, end=6)
    assert calls(one, later) == [(2,), (3,)]
    assert doubts(one, later) == []


def test_one_call_id_used_again_by_parallel_agents_is_marked_and_not_merged() -> None:
    one, other = tool(2, call_id="call_0", start=1, end=3), tool(3, call_id="call_0", start=2, end=4)
    assert calls(one, other) == [(2,), (3,)]
    assert doubts(one, other) == [(3, 2)]
    differing = (tool(2, call_id="c", arguments={"a": 1}), tool(3, call_id="c", arguments={"a": 2}, scope="b"))
    assert (calls(*differing), doubts(*differing)) == ([(2,), (3,)], [])


def test_one_call_id_with_two_tools_is_two_calls() -> None:
    assert calls(tool(2, "a", call_id="c", scope="x"), tool(3, "b", call_id="c", scope="y")) == [(2,), (3,)]


def test_a_tool_that_calls_itself_with_other_arguments_is_two_calls() -> None:
    inner = tool(3, parent=2, arguments={"n": 1})
    assert calls(tool(2, arguments={"n": 2}), inner) == [(2,), (3,)]
    assert doubts(tool(2, arguments={"n": 2}), inner) == []


def test_nested_spans_of_one_scope_without_arguments_may_be_one_or_two() -> None:
    assert calls(tool(2), tool(3, parent=2)) == [(2,), (3,)]
    assert doubts(tool(2), tool(3, parent=2)) == [(3, 2)]
    same = {"n": 1}
    assert calls(tool(2, arguments=same), tool(3, parent=2, arguments=same)) == [(2, 3)]


def test_two_calls_inside_an_outer_span_of_the_tool_stay_two_and_the_outer_is_in_doubt() -> None:
    spans = (
        tool(2, start=1, end=9, scope="a"),
        tool(3, parent=2, start=2, end=3, scope=MCP),
        tool(4, parent=2, start=4, end=5, scope=MCP),
    )
    assert calls(*spans) == [(2,), (3,), (4,)]
    assert {late for late, _ in doubts(*spans)} == {3, 4}


def test_an_agent_or_model_between_means_another_call() -> None:
    agent = S(3, parent=2, attributes={"gen_ai.operation.name": "invoke_agent"})
    plain = S(3, parent=2)
    assert calls(tool(2, scope="a"), agent, tool(4, parent=3, scope="b", start=1.1, end=1.2)) == [(2,), (4,)]
    assert calls(tool(2, scope="a"), plain, tool(4, parent=3, scope="b", start=1.1, end=1.2)) == [(2, 4)]


def test_different_call_ids_are_different_calls() -> None:
    assert calls(tool(2, call_id="a", scope="x"), tool(3, parent=2, call_id="b", scope="y")) == [(2,), (3,)]


def test_parallel_calls_of_one_scope_are_two_calls() -> None:
    same = {"n": 1}
    assert calls(tool(2, arguments=same), tool(3, arguments=same)) == [(2,), (3,)]
    assert doubts(tool(2, arguments=same), tool(3, arguments=same)) == []


def test_spans_of_two_scopes_side_by_side_are_marked_one_to_one() -> None:
    spans = [tool(n, scope="a" if n < 4 else "b", start=1 + n / 10, end=3) for n in (2, 3, 4, 5)]
    assert len(calls(*spans)) == 4
    assert len(doubts(*spans)) == 2
    apart = (tool(2, scope="a", start=1, end=2), tool(3, scope="b", start=5, end=6))
    assert doubts(*apart) == []
    known = (tool(2, scope="a", call_id="1"), tool(3, scope="b", call_id="2"))
    assert doubts(*known) == []


def test_records_of_one_call_that_disagree_about_arguments_conflict() -> None:
    first = tool(2, arguments={"a": 1})
    second = tool(2, arguments={"a": 2})
    payload = read([root(), first], [second])
    assert len(payload.calls) == 1
    assert str(payload.calls[0].arguments.why) == "conflicting"


def test_a_record_without_an_end_wins_over_one_with_an_end() -> None:
    payload = read([root(), tool(2, end=None)], [tool(2, end=5)])
    assert payload.calls[0].attempts[0].end_ns is None
    assert "span.conflict" in codes(payload)


def test_a_span_that_ends_before_it_starts_is_widened_and_reported() -> None:
    payload = read([root(), tool(2, start=4, end=2)])
    assert payload.calls[0].attempts[0].start_ns == BASE + 2 * SECOND
    assert payload.calls[0].attempts[0].end_ns == BASE + 4 * SECOND
    assert f"{TRACE}/{2:016x}" in payload.notes[0]
    assert payload.coverage.is_complete


def test_cycles_hide_no_call() -> None:
    spans = (tool(2, "a", parent=3), tool(3, "b", parent=2), tool(4, "c", parent=4), tool(5, "d", parent=2))
    assert calls(*spans) == [(2,), (3,), (4,), (5,)]
    payload = read([root(), *spans])
    reason = next(r for r in payload.coverage.reasons if str(r.code) == "parent.cycle")
    assert reason.count == 3


@pytest.mark.timeout(20)
def test_a_cycle_above_a_tool_ends_the_search_for_its_outer_span() -> None:
    assert calls(S(2, parent=3), S(3, parent=2), tool(4, parent=2), tool(5, parent=3)) == [(4,), (5,)]


def test_a_long_chain_of_spans_is_no_problem() -> None:
    chain = [S(n, parent=n - 1) for n in range(2, 5000)]
    assert calls(*chain, tool(6000, parent=4999)) == [(6000,)]
    tools = [tool(n, parent=n - 1, arguments={"n": 1}) for n in range(2, 3000)]
    assert len(calls(*tools)) == 1
