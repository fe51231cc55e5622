"""What a program's own spans can prove: positives stand, absences only where a profile trusts the exporter."""

from __future__ import annotations

from typing import Any

import pytest

from grader.core.endings import Ending, EndingKind
from grader.core.outcomes import Measures, RunOutcome, StreamOutcome, TraceOutcome, parse_captured
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason
from grader.core.traces.self_reported import as_self_reported

EXITED = Ending(EndingKind.EXITED, 0)
NOTHING = StreamOutcome(captured=parse_captured({"text": ""}))


def ran(traces: TraceOutcome | None = None, **measures: Any) -> RunOutcome:
    base: dict[str, Any] = {"wall_time_ns": 1000, "exit_code": 0, "survivors": 0}
    return RunOutcome(
        command=(b"python3",),
        command_is_submission=False,
        measures=Measures(**{**base, **measures}),
        stdout=NOTHING,
        stderr=NOTHING,
        traces=traces if traces is not None else TraceOutcome(batches=1, connections=1),
    )


def coverage(
    outcome: RunOutcome, ending: Ending = EXITED, trusted_by: str | None = None, found: Coverage | None = None
) -> Coverage:
    payload = ToolsPayload(coverage=found if found is not None else Coverage())
    return as_self_reported(payload, outcome, ending, trusted_by).coverage


def test_by_default_they_are_the_programs_own_word() -> None:
    found = coverage(ran())
    assert not found.is_complete
    assert found.reason_code is ReasonCode.EVIDENCE_SELF_REPORTED
    assert [str(reason) for reason in found.why_not_complete()] == ["the spans are the program's own word"]


def test_a_trusted_exporter_of_a_program_that_ended_by_itself_is_complete() -> None:
    found = coverage(ran(), trusted_by="the profile p")
    assert found.is_complete
    assert found.declared_by == "the profile p"
    assert coverage(ran(exit_code=3), Ending(EndingKind.EXITED, 3), "the profile p").is_complete


@pytest.mark.parametrize("kind", [kind for kind in EndingKind if kind is not EndingKind.EXITED])
def test_a_program_that_was_stopped_may_not_have_sent_everything(kind: EndingKind) -> None:
    found = coverage(ran(), Ending(kind, 9), "the profile p")
    assert found.has(CoverageCode.PROGRAM_STOPPED)
    assert found.reason_code is ReasonCode.EVIDENCE_INCOMPLETE


@pytest.mark.parametrize("survivors", [1, 7, None])
def test_nor_may_a_child_that_was_killed_with_it(survivors: int | None) -> None:
    assert coverage(ran(survivors=survivors), trusted_by="the profile p").has(CoverageCode.PROGRAM_STOPPED)


@pytest.mark.parametrize(
    ("traces", "code"),
    [
        (TraceOutcome(refused=3, refused_detail="no trace"), CoverageCode.RECORD_UNREADABLE),
        (TraceOutcome(cut=1), CoverageCode.FILE_CUT),
        (TraceOutcome(full="too much"), CoverageCode.CAPACITY),
        (TraceOutcome(connections_refused=1), CoverageCode.CAPACITY),
    ],
)
def test_what_was_sent_and_not_kept_is_missing(traces: TraceOutcome, code: CoverageCode) -> None:
    found = coverage(ran(traces), trusted_by="the profile p")
    assert found.has(code)
    assert not found.is_complete


def test_what_checks_of_the_trace_found_stays() -> None:
    checked = Coverage(reasons=(CoverageReason(code=CoverageCode.ROOT_MISSING),))
    assert coverage(ran(), trusted_by="the profile p", found=checked).has(CoverageCode.ROOT_MISSING)
    assert coverage(ran(), found=checked).reason_code is ReasonCode.EVIDENCE_SELF_REPORTED


def test_trust_does_not_outlive_a_declaration_that_somebody_else_made() -> None:
    """Nobody but the profile can declare a program's own spans complete."""
    assert not coverage(ran(), found=Coverage(declared_by="the caller")).is_complete
