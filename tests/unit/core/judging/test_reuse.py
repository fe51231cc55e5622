"""A stored judgement stands in on the same evidence, or when only worse evidence can be got."""

from __future__ import annotations

import pytest

from grader.core.judging.reuse import why_reusable
from grader.core.observation import Observation
from grader.core.tools.calls import EvidenceSource, SourceRead
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason
from grader.core.traces.execution_trace import ExecutionTrace, observe_trace
from tests.unit.core.judging.samples import TRACE, step

GAP = CoverageReason(code=CoverageCode.CAPACITY)


def seen(steps: int, *, complete: bool = False, scope: str = TRACE, name: str = "a") -> Observation:
    declared = Coverage(declared_by="the caller") if complete else Coverage()
    source = SourceRead(name=name, kind=EvidenceSource.TRACE, encoding="otlp")
    return observe_trace(
        ExecutionTrace(
            steps=tuple(step(number) for number in range(1, steps + 1)),
            coverage=declared,
            scope_ids=(scope,),
            sources=(source,),
        )
    )


@pytest.mark.parametrize(
    ("stored", "now", "why"),
    [
        (None, None, "the evidence is the same: no trace"),
        (seen(2), seen(2), "the evidence is the same"),
        (seen(2), seen(2, name="another file"), "the evidence is the same"),
        (seen(2, complete=True), seen(2), "the trace is partial now, and was complete"),
        (seen(2, complete=True), seen(3), "the trace is partial now, and was complete"),
        (seen(2), seen(0), "the trace is unavailable now, and was partial"),
        (seen(3), seen(2), "1 of 3 steps are gone now"),
        (seen(2), None, "no trace can be got now"),
        # Not: more or other evidence, or the evidence of something else.
        (None, seen(1), None),
        (None, seen(0), None),
        (seen(2), seen(3), None),
        (seen(2), seen(2, complete=True), None),
        (seen(0), seen(1), None),
        (seen(3), seen(2, scope="b" * 32), None),
        (seen(2, complete=True), seen(2, scope="b" * 32), None),
        (seen(0), None, None),
    ],
)
def test_reuse(stored: Observation | None, now: Observation | None, why: str | None) -> None:
    assert why_reusable(stored, now, (TRACE,)) == why


def test_without_a_source_the_scope_must_be_the_same() -> None:
    assert why_reusable(seen(2), None, ("b" * 32,)) is None


def test_other_steps_are_other_evidence() -> None:
    payload = seen(2).payload
    assert isinstance(payload, ExecutionTrace)
    changed = payload.model_copy(update={"steps": (step(1), step(2, got="changed"))})
    assert why_reusable(seen(2), observe_trace(changed)) is None
