"""Asks a judge about the runs of an agent program. What it answers about a run is an observation that names its run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio

from grader.core.agent_tasks import conditions_of
from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition
from grader.core.judging.judgement import JudgementPayload
from grader.core.observation import Observation, ProgramRuns
from grader.core.outcomes import RunOutcome
from grader.core.plan import Plan, PlannedRun, ProfileInForce
from grader.judge.base import Judge
from grader.runner.judging.conversation import ask
from grader.runner.judging.evidence import Acquired
from grader.runner.judging.run_scorers import acquire_run, answers_by_run, is_about, run_scorers

_RUNS_AT_ONCE = 16
"""What a judge is shown of a run takes memory, and is made only when its turn has come."""


def check_questions(task: Task, profiles: Sequence[ProfileInForce]) -> None:
    """Raises UsageError if the task requires a trace, and no profile gives programs a trace endpoint."""
    run_scorers(task, profiles)


async def ask_about_runs(
    task: Task,
    plan: Plan,
    runs: ProgramRuns,
    judge: Judge,
    keep: Callable[[Observation], None],
    known: Sequence[Observation] = (),
) -> tuple[Observation, ...]:
    """What the judge answers about every run that took place, and that a condition for a judge is about.

    `keep` is told of each as it comes. `known`: earlier answers; where the same model answered everything about the
    same evidence, it is not asked again, and answers are not replaced by fewer ones.
    """
    answered = answers_by_run(known)
    found: dict[int, Observation] = {}

    begun = anyio.Semaphore(_RUNS_AT_ONCE)

    async def one(planned: PlannedRun, part: Task, outcome: RunOutcome, ending: Ending) -> None:
        async with begun:
            await about(planned, part, acquire_run(task, plan, planned, outcome, ending))

    async def about(planned: PlannedRun, part: Task, acquired: Acquired) -> None:
        earlier = answered.get(planned.index)
        known_answers = _answers(earlier, acquired)
        if earlier is not None and _has_answered_all(earlier, judge) and known_answers is not None:
            found[planned.index] = earlier
            return
        asked = await ask(part, acquired, judge)
        payload = asked.payload
        assert isinstance(payload, JudgementPayload)
        if earlier is not None and known_answers is not None and known_answers > _answered(payload):
            found[planned.index] = earlier
            return
        named = payload.model_copy(update={"run": planned.index})
        found[planned.index] = Observation(
            acquisition=asked.acquisition, acquisition_reasons=asked.acquisition_reasons, payload=named
        )
        keep(found[planned.index])

    last = runs.last_attempts()
    async with anyio.create_task_group() as group:
        for planned in plan.runs:
            record, part = last.get(planned.index), _part_about(task, planned)
            if record is None or record.outcome is None or part is None:
                continue
            ending = decide_ending(record.outcome, planned.invocation.limits)
            if isinstance(ending, Ending) and ending.kind is not EndingKind.CANNOT_START:
                group.start_soon(one, planned, part, record.outcome, ending)
    return tuple(found[index] for index in sorted(found))


def _answers(earlier: Observation | None, acquired: Acquired) -> int | None:
    """How many samples of an earlier answer there are; None unless it is about what is known of the run."""
    if earlier is None or not is_about(earlier, acquired):
        return None
    assert isinstance(earlier.payload, JudgementPayload)
    return _answered(earlier.payload)


def _answered(payload: JudgementPayload) -> int:
    return sum(reply.content is not None for reply in payload.replies)


def _has_answered_all(earlier: Observation, judge: Judge) -> bool:
    payload = earlier.payload
    assert isinstance(payload, JudgementPayload)
    return payload.model == judge.model and _answered(payload) == len(payload.replies)


def _part_about(task: Task, planned: PlannedRun) -> Task | None:
    """The conditions that are about the run's case, as a task of their own; None if none of them is for a judge."""
    conditions = conditions_of(task, task.programs()[planned.program].cases[planned.case].name)
    if not any(isinstance(condition, JudgeCondition) for condition in conditions):
        return None
    return task.model_copy(update={"conditions": conditions})
