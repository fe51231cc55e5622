"""The bounded memory of a capture: states of traces, eviction, late spans, spans of no request."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.capture.trace_buffer import BufferLimits, KeptTrace, TraceBuffer, TraceState
from grader.core.traces.coverage import CoverageCode

C = CoverageCode


def buffer(**limits: int) -> TraceBuffer[str]:
    """Spans are texts; those of agents begin with `agent`."""
    return TraceBuffer(
        BufferLimits(**limits), is_of_an_agent=lambda span: span.startswith("agent"), describe=lambda span: span
    )


def complete(held: TraceBuffer[str], trace_id: int, spans: int = 1) -> KeptTrace[str]:
    """A trace of that many spans in all, ended."""
    trace = held.begin(trace_id, 1, "root")
    for number in range(2, spans + 1):
        held.start(trace_id, number, "inner")
        held.end(trace_id, number, "inner", 10)
    held.end(trace_id, 1, "root", 10)
    return trace


def codes(held: TraceBuffer[str], trace: KeptTrace[str]) -> set[CoverageCode]:
    return {code for code, _, _ in held.snapshot(trace).reasons}


def test_a_trace_is_complete_once_its_root_and_all_its_spans_have_ended() -> None:
    held = buffer()
    trace = held.begin(7, 1, "root")
    held.start(7, 2, "a")
    held.start(7, 3, "b")
    held.end(7, 1, "root", 0)
    assert trace.state is TraceState.OPEN
    held.end(7, 2, "a", 0)
    assert trace.state is TraceState.OPEN
    assert held.snapshot(trace).open == ("b",)
    held.end(7, 3, "b", 0)
    assert held.snapshot(trace).is_complete
    assert held.snapshot(trace).ended == ("root", "a", "b")


def test_the_root_ends_last_or_not_it_is_the_same() -> None:
    held = buffer()
    trace = held.begin(7, 1, "root")
    held.start(7, 2, "a")
    held.end(7, 2, "a", 0)
    assert trace.state is TraceState.OPEN
    held.end(7, 1, "root", 0)
    assert held.snapshot(trace).is_complete


def test_a_span_that_begins_when_all_had_ended_is_late_and_kept() -> None:
    held = buffer()
    trace = complete(held, 7)
    before = held.snapshot(trace)
    held.start(7, 9, "late")
    assert codes(held, trace) == {C.SPAN_LATE}
    held.end(7, 9, "late", 0)
    assert held.snapshot(trace).ended == ("root", "late")
    assert (before.is_complete, held.snapshot(trace).is_complete) == (True, False)


def test_a_span_whose_begin_was_not_seen_is_kept_and_told() -> None:
    held = buffer()
    trace = held.begin(7, 1, "root")
    held.end(7, 5, "a", 0)
    held.end(7, 1, "root", 0)
    assert held.snapshot(trace).ended == ("a", "root")
    assert codes(held, trace) == {C.CAPTURE_FAILED}


def test_a_span_told_twice_counts_once() -> None:
    held = buffer()
    trace = held.begin(7, 1, "root")
    for tell in (held.start, held.start):
        tell(7, 2, "a")
    for _ in range(2):
        held.end(7, 2, "a", 5)
    held.end(7, 1, "root", 0)
    assert held.snapshot(trace).is_complete
    assert held.spans == 2


def test_a_failure_stays_with_its_trace() -> None:
    held = buffer()
    first, second = held.begin(1, 1, "root"), held.begin(2, 1, "root")
    held.fail(1, "broken")
    held.fail(99, "of nobody")
    for trace_id in (1, 2):
        held.end(trace_id, 1, "root", 0)
    assert (first.state, codes(held, first)) == (TraceState.FAILED, {C.CAPTURE_FAILED})
    assert (second.state, codes(held, second)) == (TraceState.COMPLETE, set())
    held.fail(2, "later")
    assert second.state is TraceState.FAILED


def test_what_goes_first_is_complete_then_failed_then_the_oldest_open_one() -> None:
    held = buffer(max_traces=4)
    oldest, newer = held.begin(1, 1, "root"), held.begin(2, 1, "root")
    failed = held.begin(3, 1, "root")
    held.fail(3, "broken")
    held.end(3, 1, "root", 0)
    done = complete(held, 4)
    order: list[KeptTrace[str]] = []
    for trace_id in range(5, 9):
        held.begin(trace_id, 1, "root")
        order.extend(t for t in (oldest, newer, failed, done) if t.state is TraceState.EVICTED and t not in order)
    assert order == [done, failed, oldest, newer]
    assert codes(held, oldest) == {C.CAPACITY}
    assert held.snapshot(oldest).ended == held.snapshot(oldest).open == ()
    assert held.traces == 4


def test_spans_count_over_all_traces_open_ones_too() -> None:
    held = buffer(max_spans=10)
    first, second = complete(held, 1, spans=4), complete(held, 2, spans=4)
    third = held.begin(3, 1, "root")
    held.start(3, 2, "a")
    assert (held.spans, first.state) == (10, TraceState.COMPLETE)
    held.start(3, 3, "b")
    assert (held.spans, first.state, second.state) == (7, TraceState.EVICTED, TraceState.COMPLETE)
    assert third.state is TraceState.OPEN


def test_content_is_bounded_and_given_back() -> None:
    held = buffer(max_content_bytes=100)
    first = complete(held, 1, spans=8)
    second = complete(held, 2, spans=3)
    assert (first.state, second.state) == (TraceState.EVICTED, TraceState.COMPLETE)
    third = complete(held, 3, spans=7)
    assert (second.state, third.state) == (TraceState.COMPLETE, TraceState.COMPLETE)


def test_a_trace_larger_than_everything_keeps_its_first_spans_and_ends() -> None:
    held = buffer(max_spans=5)
    trace = complete(held, 1, spans=20)
    assert (trace.state, held.spans) == (TraceState.FAILED, 5)
    assert codes(held, trace) == {C.CAPACITY}
    after = complete(held, 2)
    assert (after.state, trace.state) == (TraceState.COMPLETE, TraceState.EVICTED)


def test_spans_of_a_trace_that_went_are_no_business_of_others() -> None:
    held = buffer(max_traces=1)
    held.begin(1, 1, "root")
    trace = held.begin(2, 1, "root")
    held.start(1, 5, "agent of the trace that went")
    held.end(1, 5, "agent of the trace that went", 0)
    held.end(2, 1, "root", 0)
    assert held.snapshot(trace).is_complete
    assert held.spans == 1


def test_how_many_traces_that_went_are_remembered_is_bounded() -> None:
    held = buffer(max_traces=2)
    for trace_id in range(1, 6):
        held.begin(trace_id, 1, "root")
    trace = held.begin(6, 1, "root")
    held.start(4, 5, "agent of a trace that went")
    assert codes(held, trace) == set()
    held.start(1, 5, "agent of a trace that went long ago")  # nobody can tell any more: it speaks against those open
    assert codes(held, trace) == {C.SPAN_UNLINKED}


@pytest.mark.parametrize("ends", [True, False])
def test_an_agents_span_of_no_request_speaks_against_those_open_beside_it(ends: bool) -> None:
    held = buffer()
    before = complete(held, 1)
    beside = held.begin(2, 1, "root")
    held.start(99, 5, "agent")
    held.end(2, 1, "root", 0)
    later = held.begin(3, 1, "root")
    if ends:
        held.end(99, 5, "agent", 0)
    held.end(3, 1, "root", 0)
    after = complete(held, 4)
    found = [held.snapshot(trace).is_complete for trace in (before, beside, later, after)]
    assert found == [True, False, False, ends]
    assert codes(held, beside) == {C.SPAN_UNLINKED}


def test_other_spans_of_no_request_speak_against_nobody() -> None:
    held = buffer()
    trace = held.begin(1, 1, "root")
    held.start(99, 5, "web server")
    held.start(98, 6, "open web server")
    held.end(99, 5, "web server", 0)
    held.end(1, 1, "root", 0)
    assert held.snapshot(trace).is_complete


def test_more_spans_of_no_request_than_are_remembered_count_as_those_of_agents() -> None:
    held = buffer(max_strays=3)
    before = held.begin(1, 1, "root")
    for number in range(10):
        held.start(99, 50 + number, "web server")
    held.end(1, 1, "root", 0)
    assert codes(held, before) == {C.SPAN_UNLINKED}
    assert held.snapshot(complete(held, 2)).is_complete


def test_closing_and_forking_fail_what_is_open_and_nothing_else() -> None:
    for event in ("close", "forked"):
        held = buffer()
        done, still_open = complete(held, 1), held.begin(2, 1, "root")
        getattr(held, event)()
        held.end(2, 1, "root", 0)
        assert held.snapshot(done).is_complete, event
        assert codes(held, still_open) == {C.CAPTURE_FAILED}, event


def test_a_child_process_begins_anew() -> None:
    held = buffer()
    inherited = held.begin(1, 1, "root")
    held.reset_in_child()
    held.end(1, 1, "root", 0)
    assert (inherited.state, codes(held, inherited)) == (TraceState.EVICTED, {C.CAPTURE_FAILED})
    assert held.snapshot(complete(held, 2)).is_complete


EVENTS = st.lists(
    st.tuples(st.sampled_from(["begin", "start", "end", "root", "fail"]), st.integers(1, 6), st.integers(2, 9)),
    max_size=80,
)


@given(EVENTS, st.integers(1, 12), st.integers(1, 4))
def test_whatever_happens_bounds_hold_and_complete_means_complete(
    events: list[tuple[str, int, int]], max_spans: int, max_traces: int
) -> None:
    held = buffer(max_spans=max_spans, max_traces=max_traces, max_content_bytes=60)
    traces: dict[int, KeptTrace[str]] = {}
    begun: dict[int, set[int]] = {}
    ended: dict[int, set[int]] = {}
    for event, trace_id, span_id in events:
        if event == "begin" and trace_id not in traces:
            traces[trace_id] = held.begin(trace_id, 1, "1")
            begun[trace_id], ended[trace_id] = {1}, set()
        elif trace_id not in traces:
            continue
        elif event == "start" and span_id not in begun[trace_id]:
            begun[trace_id].add(span_id)
            held.start(trace_id, span_id, str(span_id))
        elif event == "end" and span_id in begun[trace_id] - ended[trace_id]:
            ended[trace_id].add(span_id)
            held.end(trace_id, span_id, str(span_id), 5)
        elif event == "root" and 1 not in ended[trace_id]:
            ended[trace_id].add(1)
            held.end(trace_id, 1, "1", 5)
        elif event == "fail":
            held.fail(trace_id, "broken")
        kept = held.kept()
        assert held.spans == sum(trace.spans for trace in kept) <= max_spans
        assert sum(trace.content_bytes for trace in kept) <= 60
        assert len(kept) <= max_traces
        for number, trace in traces.items():
            snapshot = held.snapshot(trace)
            if snapshot.is_complete:
                assert begun[number] == ended[number] == {int(span) for span in snapshot.ended}
