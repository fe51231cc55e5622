"""What evidence can prove that a program gives of itself: its spans are its own word.

A program can leave out the call that it hides, and can end before it has sent what it knows. So its spans show what it
says it did, and that it says nothing of a call proves nothing: absences are undetermined, `evidence.self_reported`. A
profile can vouch for the exporter of its programs (`trusts_exporter`); then the evidence is complete if the program
ended by itself, everything that it sent was kept, and no check of the trace finds anything missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.endings import Ending, EndingKind
from grader.core.outcomes import RunOutcome, TraceOutcome
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason


def as_self_reported(
    payload: ToolsPayload, outcome: RunOutcome, ending: Ending, trusted_by: str | None = None
) -> ToolsPayload:
    """The evidence that was read of a run's own spans, with what speaks against its completeness.

    `trusted_by`: who vouches for the exporter, in words; None: nobody.
    """
    reasons = [] if outcome.traces is None else list(_not_kept(outcome.traces))
    if trusted_by is None:
        reasons.append(CoverageReason(code=CoverageCode.SELF_REPORTED))
    else:
        reasons.extend(_stopped(outcome, ending))
    found = payload.coverage.with_reasons(*reasons).reasons
    return payload.model_copy(update={"coverage": Coverage(declared_by=trusted_by, reasons=found)})


def _not_kept(traces: TraceOutcome) -> Iterator[CoverageReason]:
    """What was sent and is not there to be judged."""
    if traces.refused > 0:
        yield CoverageReason(
            code=CoverageCode.RECORD_UNREADABLE,
            count=traces.refused,
            detail=f"refused at the trace endpoint: {traces.refused_detail}",
        )
    if traces.cut > 0:
        detail = "a request to the trace endpoint was not whole when the program had ended"
        yield CoverageReason(code=CoverageCode.FILE_CUT, count=traces.cut, detail=detail)
    if traces.full:
        yield CoverageReason(code=CoverageCode.CAPACITY, detail=traces.full)
    if traces.connections_refused > 0:
        yield CoverageReason(
            code=CoverageCode.CAPACITY,
            count=traces.connections_refused,
            detail="connections to the trace endpoint were closed at once, because there were too many",
        )


def _stopped(outcome: RunOutcome, ending: Ending) -> Iterator[CoverageReason]:
    """Whether somebody of the run may have had more to send."""
    if ending.kind is not EndingKind.EXITED:
        yield CoverageReason(code=CoverageCode.PROGRAM_STOPPED, detail=str(ending))
    elif outcome.measures.survivors != 0:
        count = outcome.measures.survivors
        several = "an unknown number of processes" if count is None else f"{count} of its processes"
        yield CoverageReason(
            code=CoverageCode.PROGRAM_STOPPED, detail=f"{several} were still there when it ended, and were killed"
        )
