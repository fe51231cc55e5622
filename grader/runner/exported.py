"""From what a run sent to its trace endpoint to evidence: read outside the box, by the same readers as trace files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from grader.core.endings import Ending, decide_ending
from grader.core.observation import Acquisition, Observation, ProgramRuns
from grader.core.outcomes import RunOutcome, TraceOutcome
from grader.core.plan import Plan, PlannedRun, ProfileInForce
from grader.core.tools.calls import EvidenceSource, SourceRead, ToolsPayload, observe_tools
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.core.traces.self_reported import as_self_reported
from grader.errors import TraceError
from grader.scorers.traced_runs import Evidence
from grader.traces.reader import ReadOptions, TraceInput, read_traces
from grader.traces.span import Span
from grader.traces.span_store import StoreLimits

ENDPOINT = "the trace endpoint"
"""How the source of a program's own spans is called."""
_LIMITS = StoreLimits(max_spans=500_000, max_tool_spans=50_000, max_argument_bytes=32 << 20, max_proposals=50_000)
"""One run's spans are those of one program; what it sends is bounded before, and this is a second line."""


def exported_evidence(profiles: Sequence[ProfileInForce]) -> Evidence:
    """Reads the traces of runs under these profiles, those of each run once."""
    by_name = {profile.name: profile for profile in profiles}
    known: dict[int, tuple[RunOutcome, Observation]] = {}

    def evidence(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        read = known.get(planned.index)
        if read is None or read[0] is not outcome:
            profile = by_name[planned.profile]
            read = known[planned.index] = (outcome, observe_exported(outcome, ending, trusted_by(profile)))
        return read[1]

    return evidence


def tools_of_runs(plan: Plan, runs: ProgramRuns) -> dict[int, ToolsPayload]:
    """What the runs of a plan say they did, by their place in it; those that are missing are left out."""
    evidence = exported_evidence(plan.profiles)
    last = runs.last_attempts()
    found: dict[int, ToolsPayload] = {}
    for planned in plan.runs:
        record = last.get(planned.index)
        if record is None or record.outcome is None:
            continue
        ending = decide_ending(record.outcome, planned.invocation.limits)
        if isinstance(ending, Ending):
            payload = evidence(planned, record.outcome, ending).payload
            assert isinstance(payload, ToolsPayload)
            found[planned.index] = payload
    return found


def observe_exported(outcome: RunOutcome, ending: Ending, vouched_by: str | None = None) -> Observation:
    """What a run's own spans show. `vouched_by`: who vouches for its exporter; None: nobody.

    Without a trace endpoint, unavailable. Raises nothing for anything that a program may have sent.
    """
    if outcome.traces is None:
        why = ("the run had no trace endpoint (its profile does not say `traces: otlp`)",)
        return Observation(acquisition=Acquisition.UNAVAILABLE, acquisition_reasons=why, payload=ToolsPayload())
    payload = read_exported(outcome.traces)
    return observe_tools(as_self_reported(payload, outcome, ending, vouched_by))


def trusted_by(profile: ProfileInForce) -> str | None:
    """Who vouches for the exporter of programs under this profile, in words; None: nobody."""
    return f"the profile {profile.name}, which trusts its exporter" if profile.trusts_exporter else None


def read_exported(traces: TraceOutcome, also: Callable[[Span], None] | None = None) -> ToolsPayload:
    """What a run sent, as evidence of nobody's word yet. `also` gets every span too, as it is read."""
    sources = [
        TraceInput.of_bytes(captured.kept, ENDPOINT)
        for captured in (traces.messages, traces.lines)
        if len(captured.kept) > 0
    ]
    try:
        payload = read_traces(sources, ReadOptions(store_limits=_LIMITS), also).payload()
    except TraceError as error:
        # Only in a record that was not written here: what is no trace is refused when it arrives.
        reason = CoverageReason(code=CoverageCode.RECORD_UNREADABLE, detail=error.message[:500])
        payload = ToolsPayload().model_copy(update={"coverage": ToolsPayload().coverage.with_reasons(reason)})
    if len(payload.sources) > 0:
        return payload
    nothing = SourceRead(name=ENDPOINT, kind=EvidenceSource.TRACE, encoding="nothing was sent")
    return payload.model_copy(update={"sources": (nothing,)})
