"""Grades one submission: plan, execute, record, judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from grader.core.endings import NoEnding, decide_ending
from grader.core.expectation import Task
from grader.core.observation import Acquisition, CompileRecord, Observation, ProgramRuns, RunRecord
from grader.core.plan import Plan, PlannedRun
from grader.core.selection import Selection
from grader.core.tri import Tri
from grader.core.verdict import CellVerdict, Verdict
from grader.judge.base import Judge
from grader.runner.run import Listener, Rules, execute
from grader.runner.verdicts import judge_runs
from grader.sandbox.base import Program, Sandbox
from grader.scorers.program import judge_cell
from grader.store import RecordedEntry, RecordFacts
from grader.submission import Submission


class Watcher:
    """Is told what goes on while grading; does nothing unless a method is overridden. Must not block or raise."""

    def image_step(self, line: str) -> None:
        """A step of building an image."""

    def resumed(self, submissions: int, runs: int, ended: int) -> None:
        """A record is gone on with: its submissions, their runs, and how many of these are not run again."""

    def planned(self, submission: str, plan: Plan) -> None:
        """A submission's runs are about to begin."""

    def run_ended(self, submission: str, planned: PlannedRun, record: RunRecord) -> None:
        """An attempt at a run has ended."""

    def cell_ended(self, submission: str, planned: PlannedRun, cell: CellVerdict) -> None:
        """The last run of a cell is settled; `planned` is one of its runs."""


class Recorder:
    """Keeps what ends, as it ends; this one keeps nothing. A store's writer is the other kind."""

    def append_compile(self, record: CompileRecord) -> None:
        """A compile run has ended."""

    def append_run(self, record: RunRecord) -> None:
        """An attempt at a run has ended."""

    def append_observation(self, observation: Observation) -> None:
        """A judge has answered about a run."""


@dataclass(frozen=True)
class Assignment:
    """One submission to be graded: everything that is known before the first run."""

    task: Task
    """The effective task."""
    plan: Plan
    programs: dict[str, Program]
    """By profile name."""
    submission: Submission
    selection: Selection | None = None
    done: ProgramRuns | None = None
    """Runs of an earlier, interrupted grading of the same plan; they are not run again."""
    answered: tuple[Observation, ...] = ()
    """What a judge has answered about them."""


@dataclass(frozen=True)
class Execution:
    """How an assignment is executed."""

    sandbox: Sandbox
    limiter: anyio.Semaphore
    rules: Rules = field(default_factory=Rules)
    stop_at_first_false: bool = False
    recorder: Recorder = field(default_factory=Recorder)
    watcher: Watcher = field(default_factory=Watcher)
    judge: Judge | None = None
    """Who is asked what no matcher can decide; None where the task asks nobody."""


class _Progress:
    """What has ended so far, and which cells are complete."""

    def __init__(self, assignment: Assignment, execution: Execution, to_do: Sequence[PlannedRun]) -> None:
        self.assignment = assignment
        self.execution = execution
        done = assignment.done
        self.compiles = list(done.compiles) if done is not None else []
        self.runs = list(done.runs) if done is not None else []
        self.cells: dict[tuple[int, int, str], CellVerdict] = {}
        self.stopped = False
        self._attempts = done.last_attempts() if done is not None else {}
        self._open_runs = Counter(run.cell for run in to_do)
        self._runs_of: dict[tuple[int, int, str], list[PlannedRun]] = {}
        for run in assignment.plan.runs:
            self._runs_of.setdefault(run.cell, []).append(run)

    def run_ended(self, planned: PlannedRun, record: RunRecord) -> None:
        self.runs.append(record)
        self._attempts[record.index] = record
        self.execution.recorder.append_run(record)
        self.execution.watcher.run_ended(self.assignment.submission.name, planned, record)

    def compile_ended(self, record: CompileRecord) -> None:
        self.compiles.append(record)
        self.cells.clear()  # cells that were settled before rest on another compile run
        self.execution.recorder.append_compile(record)

    def run_settled(self, planned: PlannedRun) -> None:
        self._open_runs[planned.cell] -= 1
        if self._open_runs[planned.cell] > 0:
            return
        task = self.assignment.task
        case = task.programs()[planned.program].cases[planned.case]
        compiles = {record.profile: record for record in self.compiles}
        cell = judge_cell(task, case, self._runs_of[planned.cell], self._attempts, compiles)
        self.cells[planned.cell] = cell
        self.execution.watcher.cell_ended(self.assignment.submission.name, planned, cell)
        if self.execution.stop_at_first_false and cell.value is Tri.FALSE:
            self.stopped = True

    def payload(self) -> ProgramRuns:
        return ProgramRuns(
            submission_digest=self.assignment.submission.digest,
            submission_name=self.assignment.submission.name,
            plan_fingerprint=self.assignment.plan.fingerprint,
            profiles=self.assignment.plan.profiles,
            compiles=tuple(self.compiles),
            runs=tuple(self.runs),
        )


@dataclass(frozen=True)
class Outcome:
    """What came of an assignment: the runs, what a judge answered about them, and the verdict."""

    observation: Observation
    judgements: tuple[Observation, ...]
    verdict: Verdict


async def grade_assignment(assignment: Assignment, execution: Execution) -> Outcome:
    """Execute what is left of the plan and judge all of it. Every attempt goes to the recorder when it ends."""
    to_do = runs_to_do(assignment.plan, assignment.done)
    progress = _Progress(assignment, execution, to_do)
    execution.watcher.planned(assignment.submission.name, assignment.plan)
    await execute(
        to_do,
        assignment.programs,
        execution.sandbox,
        execution.limiter,
        Listener(
            run_ended=progress.run_ended,
            compile_ended=progress.compile_ended,
            run_settled=progress.run_settled,
            should_stop=lambda: progress.stopped,
        ),
        execution.rules,
    )
    payload = progress.payload()
    observation = observe(assignment.plan, payload)
    judgements = await _ask(assignment, execution, payload)
    verdict = judge_runs(assignment.task, assignment.plan, observation, progress.cells, judgements=judgements)
    return Outcome(observation, judgements, verdict)


async def _ask(assignment: Assignment, execution: Execution, runs: ProgramRuns) -> tuple[Observation, ...]:
    if execution.judge is None:
        return ()
    from grader.runner.judging.runs import ask_about_runs  # few tasks have a judge

    task, plan, keep = assignment.task, assignment.plan, execution.recorder.append_observation
    return await ask_about_runs(task, plan, runs, execution.judge, keep, assignment.answered)


def runs_to_do(plan: Plan, done: ProgramRuns | None) -> tuple[PlannedRun, ...]:
    """The runs that have no outcome yet; a missing run is tried again, one that says something is not."""
    if done is None:
        return plan.runs
    last = done.last_attempts()
    return tuple(run for run in plan.runs if run.index not in last or is_missing(last[run.index], run))


def runs_done(plan: Plan, done: ProgramRuns) -> tuple[PlannedRun, ...]:
    """The runs whose outcome counts: all but those that are to be done."""
    to_do = frozenset(run.index for run in runs_to_do(plan, done))
    return tuple(run for run in plan.runs if run.index not in to_do)


def runs_of_other_hosts(
    entry: RecordedEntry, sessions: Sequence[RecordFacts], host_id: str | None, plan: Plan
) -> frozenset[int]:
    """The recorded runs that must be set aside: those of every unfinished cell that another host began."""
    open_cells = {run.cell for run in runs_to_do(plan, entry.payload)}
    foreign = {
        plan.runs[run.index].cell
        for run, session in zip(entry.runs, entry.run_sessions, strict=True)
        if run.index < len(plan.runs) and sessions[session].host_id != host_id
    }
    again = open_cells & foreign
    return frozenset(run.index for run in plan.runs if run.cell in again)


def is_missing(record: RunRecord, planned: PlannedRun) -> bool:
    """Whether a record says nothing of the program, for a cause of ours."""
    return record.outcome is None or isinstance(decide_ending(record.outcome, planned.invocation.limits), NoEnding)


def observe(plan: Plan, payload: ProgramRuns) -> Observation:
    """The observation of a payload: complete if every run of the plan has an outcome that counts."""
    last = payload.last_attempts()
    missing = sum(run.index not in last or is_missing(last[run.index], run) for run in plan.runs)
    if missing == 0:
        return Observation(acquisition=Acquisition.COMPLETE, payload=payload)
    acquisition = Acquisition.PARTIAL if missing < len(plan.runs) else Acquisition.UNAVAILABLE
    reasons = (f"{missing} of {len(plan.runs)} runs are missing",)
    return Observation(acquisition=acquisition, acquisition_reasons=reasons, payload=payload)


def seats_for(plan: Plan, slots: int) -> int:
    """How many seats a profile gets when a single submission is graded: all slots, shared by the profiles."""
    return max(1, slots // max(1, len(plan.profiles)))
