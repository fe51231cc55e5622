"""What the reports of a command are made from: each submission as it was graded, or why it was refused."""

from __future__ import annotations

from grader.core.judging.judgement import JudgementPayload
from grader.core.observation import Payload, ProgramRuns
from grader.core.tools.calls import ToolsPayload
from grader.errors import Problem, TaskError
from grader.reports.grading import Grading, Refusal
from grader.runner.graded import Graded

Item = Grading | Refusal


def as_item(graded: Graded, record_name: str | None, *, is_replay: bool = False) -> Item:
    """What reports need of a graded submission."""
    if graded.error is not None:
        error = graded.error
        problem = error.problems[0] if isinstance(error, TaskError) else Problem(error.message, error.where, error.hint)
        return Refusal(graded.submission_name, problem, error.code)
    assert graded.task is not None
    assert graded.verdict is not None
    payload = graded.observation.payload if graded.observation is not None else None
    return Grading(
        submission=graded.submission_name,
        task=graded.task,
        verdict=graded.verdict,
        plan=graded.plan,
        runs=payload if isinstance(payload, ProgramRuns) else None,
        selection=graded.selection,
        folder=str(graded.record) if graded.record is not None else None,
        record=record_name,
        is_replay=is_replay,
        tools=_tools(graded, payload),
        judged=payload if isinstance(payload, JudgementPayload) else None,
        warnings=graded.warnings,
    )


def _tools(graded: Graded, payload: Payload | None) -> ToolsPayload | None:
    """What an agent did, if that was scored; of a record that broke off before it was kept, nothing."""
    if graded.plan is not None or isinstance(payload, JudgementPayload):
        return None
    return payload if isinstance(payload, ToolsPayload) else ToolsPayload()
