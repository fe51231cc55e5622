"""From recorded answers of a judge to a verdict, without asking anybody; what `judge` and `replay` share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.core.conditions import Condition
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition, MatchesObjective, MeetsDimensions
from grader.core.judging.judgement import JudgementPayload
from grader.core.observation import Observation
from grader.core.tools.conditions import ToolCondition
from grader.core.verdict import Verdict
from grader.errors import Problem, TaskError
from grader.judge.presets import load_preset
from grader.scorers.composite import CompositeScorer
from grader.scorers.judge_scorers import judge_scorers
from grader.scorers.tool_scorers import tool_scorers


def with_questions(task: Task, *, of_runs: bool = False) -> Task:
    """The task with the dimensions of its presets and its objective filled in: what is judged, and recorded.

    `of_runs`: the judge is asked about the runs of the task's program conditions, else about a stored conversation.

    Raises TaskError, with all problems, for a condition that nobody here can judge, for a preset that there is none
    of, and for an objective that is missing.
    """
    problems: list[Problem] = []
    conditions = tuple(_filled(condition, task.objective, problems) for condition in task.conditions)
    if not of_runs:
        problems.extend(_without_runs(task))
    if problems:
        raise TaskError(problems)
    return task.model_copy(update={"conditions": conditions})


def judge_answers(task: Task, observations: Sequence[Observation]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict on a task (`with_questions`) from what a judge answered and what else was observed. Pure.

    Raises UsageError if the task requires a trace and there was no source of traces.
    """
    payload = next((o.payload for o in observations if isinstance(o.payload, JudgementPayload)), None)
    tolerance_ns = task.trace.clock_skew_tolerance_ns
    has_tool_conditions = any(isinstance(leaf, ToolCondition) for leaf in task.leaves())
    scorer = CompositeScorer(
        (
            *tool_scorers(clock_skew_tolerance_ns=tolerance_ns),
            *judge_scorers(
                task.judge,
                has_trace_source=payload is None or payload.acquisition is not None,
                has_facts=has_tool_conditions and payload is not None and payload.acquisition is not None,
                clock_skew_tolerance_ns=tolerance_ns,
            ),
        )
    )
    return scorer.score(task, observations), scorer.warnings(task, observations)


def _filled(condition: Condition, objective: str | None, problems: list[Problem]) -> Condition:
    if condition.composite:
        return condition.with_parts(tuple(_filled(part, objective, problems) for part in condition.parts()))
    try:
        if isinstance(condition, MatchesObjective):
            filled = condition.objective if condition.objective is not None else objective
            return condition.model_copy(update={"objective": filled}).asked()
        if isinstance(condition, MeetsDimensions) and len(condition.dimensions) == 0:
            assert condition.preset is not None
            return condition.model_copy(update={"dimensions": load_preset(condition.preset).dimensions})
    except TaskError as error:
        problems.extend(error.problems)
    except ValueError as error:
        problems.append(Problem(str(error), hint="give the task an `objective`"))
    return condition


def _without_runs(task: Task) -> Iterator[Problem]:
    """Conditions that only the runs of a program could answer."""
    for leaf in task.leaves():
        if not isinstance(leaf, JudgeCondition | ToolCondition):
            message = f"{leaf.condition_type} cannot be judged from a conversation"
            yield Problem(message, hint="give it a task of its own, for `grader run` with a submission")
        elif leaf.case is not None:
            yield Problem(f"a conversation belongs to no case ({leaf.case!r})", hint="leave `case` out")
