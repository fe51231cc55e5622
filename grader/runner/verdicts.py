"""From recorded evidence to a verdict: what `run`, `score` and `replay` share, so that all say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from grader.core.agent_tasks import asks_a_judge, asks_for_traces, case_problems
from grader.core.cases import ProgramBehaves
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition
from grader.core.observation import Observation, ProgramRuns
from grader.core.plan import Plan, first_difference, make_plan
from grader.core.reasons import ReasonCode
from grader.core.selection import Selection
from grader.core.tools.conditions import ToolCondition
from grader.core.tri import Tri
from grader.core.verdict import CellVerdict, Finding, Verdict
from grader.errors import Place, Problem, RecordError, TaskError
from grader.scorers.base import Scorer
from grader.scorers.composite import CompositeScorer
from grader.scorers.program import ProgramExecutionScorer
from grader.scorers.tool_scorers import tool_scorers, trace_scorers
from grader.scorers.traced_runs import TracedRunsScorer


def judge_runs(
    task: Task,
    plan: Plan,
    observation: Observation,
    cells: Mapping[tuple[int, int, str], CellVerdict] | None = None,
    *,
    judgements: Sequence[Observation] = (),
) -> Verdict:
    """The verdict on a task from the runs of its plan, and from what a judge answered about them. Pure.

    `cells`: those that are judged already.
    """
    payload = observation.payload
    submission = payload.submission_digest if isinstance(payload, ProgramRuns) else None
    scorers: list[Scorer] = [ProgramExecutionScorer(task, plan, cells)]
    if asks_for_traces(task):
        scorers.extend(_trace_scorers(task, plan))
    if asks_a_judge(task):
        from grader.runner.judging.run_scorers import judged_runs_scorers  # few tasks have a judge

        scorers.extend(judged_runs_scorers(task, plan, judgements))
    verdict = CompositeScorer(scorers).score(task, (observation,))
    return verdict.model_copy(update={"submission": submission})


def _trace_scorers(task: Task, plan: Plan) -> Iterator[Scorer]:
    from grader.runner.exported import exported_evidence  # most tasks ask for no traces: their readers are not loaded

    evidence = exported_evidence(plan.profiles)
    for scorer in trace_scorers(clock_skew_tolerance_ns=task.trace.clock_skew_tolerance_ns):
        yield TracedRunsScorer(scorer, task, plan, evidence)


def check_readable(task: Task) -> None:
    """Raises TaskError, naming every condition of the task that cannot be judged from runs. Call it before any run."""
    read = ProgramBehaves | ToolCondition | JudgeCondition
    unread = dict.fromkeys(leaf.condition_type for leaf in task.leaves() if not isinstance(leaf, read))
    problems = [Problem(f"{name} cannot be judged from the runs of a program") for name in unread]
    problems.extend(Problem(found.message, hint=found.hint) for found in case_problems(task))
    if problems:
        raise TaskError(problems)


def check_traced(task: Task, untraced: Sequence[str]) -> None:
    """Raises TaskError if the task has conditions about traces, and these profiles give programs no trace endpoint."""
    if asks_for_traces(task) and len(untraced) > 0:
        raise TaskError(
            Problem(
                f"the profile {name} gives programs no trace endpoint, and the task has conditions about tools",
                hint="name a profile with `traces: otlp`, such as python-agent",
            )
            for name in untraced
        )


def judge_tools(task: Task, observation: Observation | None) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on a task from what an agent did, and what the scorers warn of. Pure.

    None for an observation that was never recorded: then nothing is settled.
    """
    scorer = CompositeScorer(tool_scorers(clock_skew_tolerance_ns=task.trace.clock_skew_tolerance_ns))
    observations = () if observation is None else (observation,)
    return scorer.score(task, observations), scorer.warnings(task, observations)


def check_scorable(task: Task, places: Sequence[Place] = ()) -> None:
    """Raises TaskError, naming every condition that cannot be judged from traces and messages. Call it first.

    `places`: of the leaves in the task file, from left to right, where they are known.
    """
    problems: list[Problem] = []
    for leaf, where in zip_longest(task.leaves(), places):
        if leaf is not None and not isinstance(leaf, ToolCondition):
            message = f"{leaf.condition_type} cannot be judged from traces or messages"
            hint = "give it a task of its own, for `grader run` with a submission"
            if isinstance(leaf, JudgeCondition):
                hint = "use `grader judge` with a conversation, which judges tool conditions too"
            problems.append(Problem(message, where, hint))
        elif leaf is not None and leaf.case is not None:
            message = f"the condition is about the case {leaf.case!r}, and evidence that is scored belongs to no case"
            problems.append(Problem(message, where, "leave `case` out"))
    if problems:
        raise TaskError(problems)


def plan_of_record(task: Task, payload: ProgramRuns, recorded: Task) -> Plan:
    """The plan of `task` under the recorded profiles.

    Raises RecordError (`record.mismatch`) unless it asks for exactly the recorded runs, naming the first difference.
    """
    names = [profile.name for profile in payload.profiles]
    if task.runtime_profiles is not None and set(task.runtime_profiles) != set(names):
        raise RecordError(
            f"the task names the profiles {', '.join(task.runtime_profiles)}; the record has {', '.join(names)}",
            code=ReasonCode.RECORD_MISMATCH,
            hint="run the submission again under this task (grader run)",
        )
    try:
        plan = make_plan(task, payload.profiles)
    except ValueError as error:
        raise RecordError(str(error), code=ReasonCode.RECORD_MISMATCH) from error
    if plan.fingerprint != payload.plan_fingerprint:
        difference = first_difference(plan, make_plan(recorded, payload.profiles))
        raise RecordError(
            f"this record answers another plan: {difference or 'its plan fingerprint is not that of its own task'}",
            code=ReasonCode.RECORD_MISMATCH,
            hint="run the submission again under this task (grader run)",
        )
    return plan


def for_the_whole(verdict: Verdict, selection: Selection | None) -> Verdict:
    """The verdict for the whole task when only part of it was selected: undetermined, whatever the part says."""
    if selection is None or selection.is_whole:
        return verdict
    finding = Finding(code=ReasonCode.NOT_SELECTED, detail=str(selection))
    return verdict.model_copy(
        update={"value": Tri.UNDETERMINED, "findings": (finding,), "rationale": f"not settled: {selection}"}
    )
