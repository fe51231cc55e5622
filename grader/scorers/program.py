"""Judges `ProgramBehaves`: runs fold into cells, cells into cases, cases into the condition.

A cell is true or false only if all its repetitions are there, determined and equal. What a run says is in `runs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.conditions import Condition
from grader.core.expectation import Task
from grader.core.observation import CompileRecord, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.plan import Plan, PlannedRun
from grader.core.reasons import ReasonCode, ReasonKind
from grader.core.tri import Tri, all_of
from grader.core.verdict import CaseVerdict, CellVerdict, ConditionVerdict, Finding, RunVerdict, explaining, merged
from grader.scorers.runs import judge_compile, judge_run

SCORER_VERSION = 1


class ProgramExecutionScorer:
    """Judges `ProgramBehaves` on the runs of one plan.

    `plan` must be that of the task under the profiles of the observation that is scored: the caller checks it.
    `cells`: by `PlannedRun.cell`, what `judge_cell` has said already of the same runs; they are not judged again.
    """

    reads: type[Condition] = ProgramBehaves
    payload_kind = ProgramRuns.payload_kind
    identity = f"ProgramExecutionScorer/{SCORER_VERSION}"

    def __init__(self, task: Task, plan: Plan, cells: Mapping[tuple[int, int, str], CellVerdict] | None = None) -> None:
        self._task = task
        self._cells: Mapping[tuple[int, int, str], CellVerdict] = cells if cells is not None else {}
        self._index = {program.fingerprint: index for index, program in enumerate(task.programs())}
        self._planned: dict[int, dict[int, dict[str, list[PlannedRun]]]] = {}
        for run in plan.runs:
            cases = self._planned.setdefault(run.program, {})
            cases.setdefault(run.case, {}).setdefault(run.profile, []).append(run)

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The verdict on a `ProgramBehaves` of the task. Raises ValueError for any other condition or payload."""
        payload = observation.payload
        index = self._index.get(condition.fingerprint)
        if index is None or not isinstance(condition, ProgramBehaves) or not isinstance(payload, ProgramRuns):
            raise ValueError("this scorer judges program_behaves conditions of its task on program runs")
        attempts, compiles = payload.last_attempts(), payload.last_compiles()

        def cell(case: ProgramCase, runs: Sequence[PlannedRun]) -> CellVerdict:
            known = self._cells.get(runs[0].cell)
            return known if known is not None else judge_cell(self._task, case, runs, attempts, compiles)

        verdict = _judge_program(condition, self._planned[index], cell)
        return verdict.model_copy(update={"scorer": self.identity, "observation": observation.digest})

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """Nothing to warn of: what was not collected says so in the verdict."""
        del condition, observation
        return ()


def _judge_program(
    program: ProgramBehaves,
    planned: Mapping[int, Mapping[str, Sequence[PlannedRun]]],
    judged: Callable[[ProgramCase, Sequence[PlannedRun]], CellVerdict],
) -> ConditionVerdict:
    cases: list[CaseVerdict] = []
    for index, case in enumerate(program.cases):
        cells = tuple(judged(case, runs) for runs in planned[index].values())
        value = all_of(cell.value for cell in cells)
        cases.append(CaseVerdict(index=index, name=case.name, value=value, cells=cells))
    value = all_of(case.value for case in cases)
    findings = [finding for case in cases for cell in case.cells for finding in cell.findings]
    return ConditionVerdict(
        condition_type=program.condition_type,
        fingerprint=program.fingerprint,
        value=value,
        rationale=_rationale(cases, value),
        findings=explaining(value, findings),
        cases=tuple(cases),
    )


def judge_cell(
    task: Task,
    case: ProgramCase,
    runs: Sequence[PlannedRun],
    attempts: Mapping[int, RunRecord],
    compiles: Mapping[str, CompileRecord],
) -> CellVerdict:
    """The verdict of one cell. `runs`: all its planned runs; `attempts`: the last attempt by plan index."""
    first = runs[0]
    blocked = judge_compile(compiles[first.profile]) if first.profile in compiles else None
    if blocked is not None:
        return fold_cell(first.case, first.profile, [_blocked_run(run, blocked) for run in runs])
    verdicts = [
        judge_run(
            attempts.get(run.index) or _never_run(run), case, task, run.invocation.limits, repetition=run.repetition
        )
        for run in runs
    ]
    return fold_cell(first.case, first.profile, verdicts, _unchecked_differences(case, runs, attempts))


def fold_cell(case: int, profile: str, runs: Sequence[RunVerdict], notes: tuple[str, ...] = ()) -> CellVerdict:
    """The cell's verdict: that of its runs if all are there, determined and equal; else undetermined, with why.

    The reasons stand in a fixed order: runs disagree, a run is undetermined, a run is missing. Runs that are false
    for different reasons agree; the counts per reason are kept.
    """
    present = [run for run in runs if not run.is_missing]
    determined = {run.value for run in present if run.value is not Tri.UNDETERMINED}
    settled = len(present) == len(runs) and len(determined) == 1 and all(r.value in determined for r in runs)
    value = determined.pop() if settled else Tri.UNDETERMINED
    if value is Tri.TRUE:
        return CellVerdict(
            profile=profile, value=value, rationale=f"case {case} is true in every run", runs=tuple(runs), notes=notes
        )
    findings: list[Finding] = []
    if len(determined) > 1:
        findings.append(_disagreement(runs))
    undetermined = [run for run in present if run.value is Tri.UNDETERMINED]
    missing = [run for run in runs if run.is_missing]
    false = [run for run in present if run.value is Tri.FALSE]
    findings.extend(merged(finding for run in (*undetermined, *missing, *false) for finding in run.findings))
    rationale = _cell_rationale(case, runs, value, findings)
    return CellVerdict(
        profile=profile, value=value, rationale=rationale, findings=tuple(findings), runs=tuple(runs), notes=notes
    )


def _cell_rationale(case: int, runs: Sequence[RunVerdict], value: Tri, findings: Sequence[Finding]) -> str:
    false = sum(run.value is Tri.FALSE for run in runs)
    if findings[0].code is ReasonCode.RUNS_DISAGREE:
        return f"case {case} gave different results across runs ({false} of {len(runs)} failed)"
    if value is Tri.FALSE:
        return f"case {case} is false in every run: {findings[0]}"
    missing = sum(run.is_missing for run in runs)
    undetermined = sum(run.value is Tri.UNDETERMINED and not run.is_missing for run in runs)
    parts = [
        f"{count} of {len(runs)} {'is' if count == 1 else 'are'} {word}"
        for count, word in ((undetermined, "undetermined"), (missing, "missing"))
        if count
    ]
    return f"case {case} is not settled: {', '.join(parts)}: {findings[0]}"


def _disagreement(runs: Sequence[RunVerdict]) -> Finding:
    counts = [f"{sum(run.value is value for run in runs)} {value}" for value in (Tri.TRUE, Tri.FALSE)]
    odd = next(run for run in runs if run.value is Tri.FALSE)
    why = f" (run {odd.repetition}: {odd.findings[0]})" if odd.findings else ""
    return Finding(code=ReasonCode.RUNS_DISAGREE, detail=", ".join(counts) + why)


def _rationale(cases: Sequence[CaseVerdict], value: Tri) -> str:
    if value is Tri.TRUE:
        return "the case is true in every run" if len(cases) == 1 else f"all {len(cases)} cases are true in every run"
    unsettled = [(case, cell) for case in cases for cell in case.cells if cell.value is not Tri.TRUE]
    # The cells that decide come first; every other unsettled cell is listed even so.
    unsettled.sort(key=lambda pair: pair[1].value is not value)
    several = len({cell.profile for case in cases for cell in case.cells}) > 1
    return "; ".join(f"{cell.rationale} [{cell.profile}]" if several else cell.rationale for _, cell in unsettled)


def _blocked_run(run: PlannedRun, blocked: Finding) -> RunVerdict:
    is_false = blocked.code.kind is ReasonKind.FALSE
    return RunVerdict(
        repetition=run.repetition,
        attempts=1,
        value=Tri.FALSE if is_false else Tri.UNDETERMINED,
        is_missing=not is_false,
        ending="compile_failed" if is_false else None,
        findings=(blocked,),
    )


def _never_run(run: PlannedRun) -> RunRecord:
    return RunRecord(index=run.index, missing=MissingRun(code=ReasonCode.INTERRUPTED, detail="it was never run"))


def _unchecked_differences(
    case: ProgramCase, runs: Sequence[PlannedRun], attempts: Mapping[int, RunRecord]
) -> tuple[str, ...]:
    """Streams that differed between repetitions though the case does not check them: worth a note, no more."""
    if len(runs) == 1:
        return ()
    records = (attempts.get(run.index) for run in runs)
    outcomes = [record.outcome for record in records if record is not None and record.outcome is not None]
    notes: list[str] = []
    for name, matcher, digests in (
        ("stdout", case.stdout, {outcome.stdout.captured.sha256 for outcome in outcomes}),
        ("stderr", case.stderr, {outcome.stderr.captured.sha256 for outcome in outcomes}),
    ):
        if matcher is None and len(digests) > 1:
            notes.append(f"{name} was not the same in every run, and the case does not check it")
    return tuple(notes)
