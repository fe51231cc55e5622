"""Judges a condition about what an agent did on its runs: every run by itself, then its cell, then all cells.

A cell is folded as those of `ProgramBehaves` are: settled only if all repetitions are there, determined and equal.
What the trace of one run says, or a judge of one run, is left to the scorer of the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grader.core.agent_tasks import CaseOfTask, cases_of
from grader.core.conditions import Condition
from grader.core.endings import Ending, EndingKind, NoEnding, decide_ending
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition
from grader.core.observation import CompileRecord, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import Plan, PlannedRun
from grader.core.reasons import ReasonCode, ReasonKind
from grader.core.tools.conditions import ToolCondition
from grader.core.tri import Tri, all_of
from grader.core.verdict import CellVerdict, ConditionCell, ConditionVerdict, Finding, RunVerdict, explaining
from grader.scorers.base import Scorer
from grader.scorers.program import fold_cell
from grader.scorers.runs import judge_compile, missing_run

SCORER_VERSION = 1

Evidence = Callable[[PlannedRun, RunOutcome, Ending], Observation]
"""What the trace of a run shows. Pure: the same run, the same observation."""


class TracedRunsScorer:
    """Judges the condition that `scorer` reads on every run of a plan, by `evidence`, and folds the runs.

    `plan` must be that of the task under the profiles of the observation that is scored: the caller checks it.
    """

    payload_kind = ProgramRuns.payload_kind

    def __init__(self, scorer: Scorer, task: Task, plan: Plan, evidence: Evidence) -> None:
        self._scorer = scorer
        self._task = task
        self._evidence = evidence
        self._planned: dict[tuple[int, int], dict[str, list[PlannedRun]]] = {}
        for run in plan.runs:
            self._planned.setdefault((run.program, run.case), {}).setdefault(run.profile, []).append(run)

    @property
    def reads(self) -> type[Condition]:
        """The condition type that the scorer of a single trace reads."""
        return self._scorer.reads

    @property
    def identity(self) -> str:
        """Name and version, with those of the scorer of a single trace."""
        return f"{type(self).__name__}/{SCORER_VERSION}({self._scorer.identity})"

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The verdict over all cells of the cases that the condition is about.

        Raises ValueError for another kind of condition or payload, or one that is about no case.
        """
        payload = observation.payload
        if not isinstance(condition, ToolCondition | JudgeCondition) or not isinstance(payload, ProgramRuns):
            raise ValueError("this scorer judges what an agent did on program runs")
        chosen = cases_of(self._task, condition.case)
        if len(chosen) == 0:
            raise ValueError(f"no case is named {condition.case!r}")
        attempts, compiles = payload.last_attempts(), payload.last_compiles()
        cells = tuple(
            ConditionCell(
                program=case.program,
                case=case.case,
                name=case.name,
                cell=self._cell(condition, runs, attempts, compiles.get(profile)),
            )
            for case in chosen
            for profile, runs in self._runs_of(case).items()
        )
        value = all_of(found.cell.value for found in cells)
        return ConditionVerdict(
            condition_type=condition.condition_type,
            fingerprint=condition.fingerprint,
            value=value,
            rationale=_rationale(cells, value),
            findings=explaining(value, [finding for found in cells for finding in found.cell.findings]),
            scorer=self.identity,
            observation=observation.digest,
            cells=cells,
        )

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """Nothing to warn of: what was not collected says so in the verdict."""
        del condition, observation
        return ()

    def _runs_of(self, case: CaseOfTask) -> Mapping[str, Sequence[PlannedRun]]:
        return self._planned[(case.program, case.case)]

    def _cell(
        self,
        condition: Condition,
        runs: Sequence[PlannedRun],
        attempts: Mapping[int, RunRecord],
        compiled: CompileRecord | None,
    ) -> CellVerdict:
        blocked = judge_compile(compiled) if compiled is not None else None
        if blocked is not None:
            verdicts = [_not_compiled(run, blocked) for run in runs]
        else:
            verdicts = [self._run(condition, run, attempts.get(run.index)) for run in runs]
        cell = fold_cell(runs[0].case, runs[0].profile, verdicts)
        if cell.value is not Tri.TRUE:
            return cell
        return cell.model_copy(update={"rationale": f"{cell.rationale}: {verdicts[0].notes[0]}"})

    def _run(self, condition: Condition, planned: PlannedRun, record: RunRecord | None) -> RunVerdict:
        """One run's verdict; a run that is missing says nothing of its trace either."""
        if record is None:
            finding = Finding(code=ReasonCode.INTERRUPTED, detail="it was never run")
            return missing_run(planned.repetition, 1, finding)
        if record.outcome is None:
            assert record.missing is not None
            finding = Finding(code=record.missing.code, detail=record.missing.detail)
            return missing_run(planned.repetition, record.attempt, finding)
        ending = decide_ending(record.outcome, planned.invocation.limits)
        if isinstance(ending, NoEnding):
            return missing_run(planned.repetition, record.attempt, Finding(code=ending.code, detail=ending.detail))
        if ending.kind is EndingKind.CANNOT_START:
            return _untraced(planned, record.attempt, ending, "the program could not be started, so nothing was traced")
        judged = self._scorer.score(condition, self._evidence(planned, record.outcome, ending))
        return RunVerdict(
            repetition=planned.repetition,
            attempts=record.attempt,
            value=judged.value,
            ending=str(ending),
            findings=judged.findings,
            notes=(judged.rationale,),
        )


class JudgedRunsScorer(TracedRunsScorer):
    """The same for a condition that a judge decides: `evidence` is what it answered about the run."""


def _not_compiled(run: PlannedRun, blocked: Finding) -> RunVerdict:
    if blocked.code.kind is not ReasonKind.FALSE:
        return missing_run(run.repetition, 1, blocked)
    return _untraced(run, 1, Ending(EndingKind.COMPILE_FAILED), "the program did not compile, so nothing was traced")


def _untraced(run: PlannedRun, attempts: int, ending: Ending, why: str) -> RunVerdict:
    """A run in which nothing took place: no fact about what the program would do."""
    return RunVerdict(
        repetition=run.repetition,
        attempts=attempts,
        value=Tri.UNDETERMINED,
        ending=str(ending),
        findings=(Finding(code=ReasonCode.EVIDENCE_NOT_COLLECTED, detail=why),),
    )


def _rationale(cells: Sequence[ConditionCell], value: Tri) -> str:
    """The cells that decide first, then every other one that is not settled."""
    several = len({found.cell.profile for found in cells}) > 1
    if value is Tri.TRUE:
        shown = cells[:1]
        more = f", and so in {len(cells) - 1} more cells" if len(cells) > 1 else ""
        return "; ".join(found.cell.rationale for found in shown) + more
    unsettled = [found.cell for found in cells if found.cell.value is not Tri.TRUE]
    unsettled.sort(key=lambda cell: cell.value is not value)
    return "; ".join(f"{cell.rationale} [{cell.profile}]" if several else cell.rationale for cell in unsettled)
