"""Two instrumentations that begin a trace each, and an agent that serves several requests at once."""

from __future__ import annotations

import time

from grader.core.tools.arguments import ContentRules, recorded_arguments
from grader.core.tools.calls import Attempt, EvidenceSource, ToolCall
from grader.traces.across_traces import marked_across

RULES = ContentRules()


def call(
    trace: str, span: str, start_ns: int, end_ns: int | None, to: str = "ann", call_id: str | None = None
) -> ToolCall:
    return ToolCall(
        key=f"{trace}/{span}",
        names=("send",),
        arguments=recorded_arguments({"to": to}, RULES),
        attempts=(Attempt(start_ns=start_ns, end_ns=end_ns),),
        call_id=call_id,
        spans=(f"{trace}/{span}",),
        sources=(EvidenceSource.TRACE,),
    )


def marks(*calls: ToolCall, scopes: dict[str, str] | None = None) -> list[str | None]:
    by_trace = {"a": "openinference", "b": "opentelemetry"} if scopes is None else scopes
    spans = {span: by_trace[span.split("/")[0]] for one in calls for span in one.spans}
    return [one.maybe_same_as for one in marked_across(calls, spans)]


def test_one_call_in_two_traces_of_two_instrumentations_is_between_one_and_two() -> None:
    assert marks(call("a", "1", 0, 9), call("b", "2", 1, 8)) == [None, "a/1"]


def test_equal_calls_at_once_are_paired_one_to_one() -> None:
    found = marks(call("a", "1", 0, 9), call("b", "2", 1, 8), call("a", "3", 2, 9), call("b", "4", 3, 9))
    assert found == [None, "a/1", None, "a/3"]


def test_what_is_surely_different_is_not_marked() -> None:
    first = call("a", "1", 0, 9, call_id="c1")
    assert marks(first, call("b", "2", 1, 8, to="bob")) == [None, None]
    assert marks(first, call("b", "2", 1, 8, call_id="c2")) == [None, None]
    assert marks(first, call("b", "2", 10, 12)) == [None, None]
    assert marks(first, call("a", "2", 1, 8)) == [None, None]
    assert marks(first, call("b", "2", 1, 8), scopes={"a": "one", "b": "one"}) == [None, None]


def test_an_unfinished_call_and_one_without_times() -> None:
    timeless = call("b", "3", 0, 1).model_copy(update={"attempts": ()})
    assert marks(call("a", "1", 0, None), call("b", "2", 50, 60), timeless) == [None, "a/1", None]


def test_very_many_open_calls_take_no_quadratic_time() -> None:
    calls = [call("ab"[number % 2], str(number), number, None, to=str(number)) for number in range(5_000)]
    started = time.monotonic()
    assert set(marks(*calls)) == {None}
    assert time.monotonic() - started < 8
