"""What speaks against completeness; nothing but a declaration without any of it is complete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from grader.core.reasons import ReasonCode
from grader.core.traces.coverage import CoverageCode
from grader.traces.reader import TraceInput, read_traces
from tests.unit.traces.otlp_samples import OTHER_TRACE, TRACE, S, codes, lines, read, root, tool


def test_silence_is_never_completeness() -> None:
    assert codes(read([root(), tool(2)], declared_by=None)) == ["not_declared"]
    assert read([root(), tool(2)]).coverage.is_complete
    late = read([root(), tool(2)], declared_by=None).declared_complete("the settle rule: 10 s")
    assert late.coverage.is_complete


DROPPED: dict[str, object] = {"droppedAttributesCount": 1}

CASES: dict[str, tuple[str, list[S]]] = {
    "no root": ("root.missing", [S(2, parent=3), S(3, parent=2)]),
    "orphan": ("parent.missing", [root(), S(2, parent=77)]),
    "unfinished root": ("root.unfinished", [S(1, parent=None, end=None)]),
    "unfinished span": ("span.unfinished", [root(), S(2, end=None)]),
    "end zero": ("span.unfinished", [root(), S(2, extra={"endTimeUnixNano": "0"})]),
    "dropped attributes": ("dropped.attributes", [root(), S(2, attributes=tool(2).attributes, extra=DROPPED)]),
    "dropped events": ("dropped.events", [root(), S(2, extra={"droppedEventsCount": 1})]),
    "dropped links": ("dropped.links", [root(), S(2, extra={"droppedLinksCount": 1})]),
    "unsampled": ("unsampled", [root(), S(2, extra={"flags": 2})]),
    "unsampled beside sampled": ("unsampled", [S(1, parent=None, extra={"flags": 257}), S(2, extra={"flags": 256})]),
    "cycle": ("parent.cycle", [root(), S(2, parent=2)]),
    "two records of one id": ("span.conflict", [root(), S(2, "a"), S(2, "b")]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_each_check_finds_its_reason_and_overrides_the_declaration(case: str) -> None:
    code, spans = CASES[case]
    payload = read(spans)
    assert code in codes(payload)
    assert not payload.coverage.is_complete
    assert payload.coverage.reason_code is ReasonCode.EVIDENCE_INCOMPLETE


@pytest.mark.parametrize("flags", [0, 1, 257, 769, 256, 768])
def test_flags_that_say_nothing_against_it(flags: int) -> None:
    sampled = replace(root(), extra={"flags": flags})
    assert codes(read([sampled, S(2, extra={"flags": flags})])) == []
    assert codes(read([replace(root(), extra={"flags": 1}), S(2)])) == []


def test_parents_may_end_before_their_children_and_all_zero_is_no_parent() -> None:
    early = replace(root(), end=1)
    assert codes(read([early, S(2, end=50), S(3, extra={"parentSpanId": "0" * 16})])) == []


def test_a_trace_of_which_no_span_is_known_carries_no_absence() -> None:
    payload = read([S(1, "GET /", parent=None, attributes={"http.method": "GET"}), S(2, "Web-Search")])
    assert codes(payload) == ["scope.unknown"]
    assert codes(read([root(), S(2, "Web-Search")])) == []


def test_the_callers_span_is_a_known_parent() -> None:
    evidence = read_traces([TraceInput.of_bytes(lines([[S(1, parent=170), tool(2)]]))])
    assert codes(evidence.payload(declared_by="x")) == ["parent.missing", "root.missing"]
    assert codes(evidence.payload(known_parents=["00000000000000aa"], declared_by="x")) == []


def test_only_the_chosen_traces_are_judged_and_absent_ones_are_said() -> None:
    other = [
        S(1, parent=None, end=None, trace=OTHER_TRACE),
        S(2, trace=OTHER_TRACE, attributes=tool(2, "b").attributes),
    ]
    evidence = read_traces([TraceInput.of_bytes(lines([[root(), tool(2, "a")], other]))])
    assert evidence.trace_ids == (TRACE, OTHER_TRACE)
    chosen = evidence.payload([TRACE], declared_by="x")
    assert ([call.names for call in chosen.calls], codes(chosen)) == ([("a",)], [])
    assert [call.names for call in evidence.payload([OTHER_TRACE]).calls] == [("b",)]
    absent = evidence.payload([TRACE, "f" * 32], declared_by="x")
    assert codes(absent) == ["trace.absent"]
    assert codes(evidence.payload(["f" * 32], declared_by="x")) == ["trace.absent", "trace.empty"]


PENDING = {"logfire.span_type": "pending_span"}


def test_an_announced_span_that_came_counts_once() -> None:
    real, announced = tool(2, call_id="c"), tool(9, parent=2, start=1, end=1, call_id="c")
    payload = read([root(), real, S(9, announced.name, 2, 1, 1, {**announced.attributes, **PENDING})])
    assert len(payload.calls) == 1
    assert [item.why.value for item in payload.excluded] == ["pending_span"]
    assert codes(payload) == []


def test_an_announced_span_that_never_came_has_started_and_not_ended() -> None:
    payload = read([root(), S(9, "execute_tool send", 2, 1, 1, {**tool(2).attributes, **PENDING})])
    assert payload.calls[0].attempts[0].end_ns is None
    assert payload.calls[0].key == f"{TRACE}/{2:016x}"
    assert codes(payload) == ["span.pending"]


def test_every_code_has_a_text() -> None:
    assert all(code.text for code in CoverageCode)
    assert len({code.text for code in CoverageCode}) == len(CoverageCode)
