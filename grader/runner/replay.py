"""Judges a record again, offline: no Docker, no profiles, no execution, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from grader.core.agent_tasks import asks_a_judge
from grader.core.expectation import Task
from grader.core.judging.judgement import JudgementPayload
from grader.core.reasons import ReasonCode
from grader.core.selection import Selection, select
from grader.core.tools.calls import ToolsPayload
from grader.errors import Place, RecordError
from grader.formats.task_file import load_task
from grader.runner.graded import Graded
from grader.runner.grading import observe
from grader.runner.judging.verdicts import judge_answers, with_questions
from grader.runner.score import evidence_name
from grader.runner.verdicts import check_readable, check_scorable, judge_runs, judge_tools, plan_of_record
from grader.store import Record, RecordedEntry, open_record
from grader.store.folder import corrupt
from grader.store.sharing import without_garbage_collection


def replay(record: Record | Path | str, task: Task | Path | str | None = None) -> Iterator[Graded]:
    """Judge every entry of a record again, one after the other; `task`: under another expectation.

    The other task must ask for exactly the recorded runs; what was selected of the recorded task is selected of it too.
    Evidence of what an agent did answers any task of tool conditions.

    Raises RecordError for a record that is damaged or too new, or (`record.mismatch`) if it answers another plan, with
    the first difference named; TaskError for a task that cannot be judged from runs.
    """
    opened = record if isinstance(record, Record) else open_record(record)
    wanted = task if task is None or isinstance(task, Task) else load_task(task)
    for entry in opened:
        yield replay_entry(opened, entry, wanted)


def replay_entry(record: Record, entry: RecordedEntry, task: Task | None) -> Graded:
    """Judge one entry again. See `replay`."""
    if entry.header.plan_fingerprint is None:
        return _replay_evidence(record, entry, task)
    selection = recorded_selection(record, entry)
    effective = entry.task if task is None else _selected(task, selection)
    check_readable(effective)
    if asks_a_judge(effective):
        effective = with_questions(effective, of_runs=True)
    with without_garbage_collection():
        plan = plan_of_record(effective, entry.payload, entry.task)
        observation = observe(plan, entry.payload)
        verdict = judge_runs(effective, plan, observation, judgements=entry.observations)
    return Graded(
        submission_name=entry.submission.name if entry.submission is not None else "",
        task=effective,
        selection=selection,
        plan=plan,
        observation=observation,
        observations=entry.observations,
        verdict=verdict,
        record=record.folder,
        entry=entry.number,
    )


def recorded_selection(record: Record, entry: RecordedEntry) -> Selection | None:
    """What of its task an entry answers; None: all of it. Raises RecordError for what is no selection."""
    if entry.header.selection is None:
        return None
    try:
        return Selection.model_validate(dict(entry.header.selection))
    except ValidationError as error:
        raise corrupt(record.folder, f"entry {entry.number} has a selection that is none") from error


def _replay_evidence(record: Record, entry: RecordedEntry, task: Task | None) -> Graded:
    """Judge an entry without a plan: evidence that was scored, and of which nothing was run."""
    effective = entry.task if task is None else task
    if asks_a_judge(effective):
        return _replay_judgement(record, entry, effective)
    check_scorable(effective)
    tools = [found for found in entry.observations if isinstance(found.payload, ToolsPayload)]
    if len(tools) > 1 or (len(tools) == 0 and entry.observations):
        raise RecordError(
            f"entry {entry.number} has {len(tools)} observations of tools, where one is expected",
            where=Place(str(record.folder)),
        )
    observation = tools[0] if tools else None
    verdict, warnings = judge_tools(effective, observation)
    return Graded(
        submission_name=evidence_name(observation),
        task=effective,
        observation=observation,
        verdict=verdict,
        record=record.folder,
        entry=entry.number,
        warnings=warnings,
    )


def _replay_judgement(record: Record, entry: RecordedEntry, task: Task) -> Graded:
    """Judge what a judge answered again: re-parse, re-check citations, re-vote. Nobody is asked."""
    effective = with_questions(task)
    verdict, warnings = judge_answers(effective, entry.observations)
    judgement = next((found for found in entry.observations if isinstance(found.payload, JudgementPayload)), None)
    payload = judgement.payload if judgement is not None else None
    return Graded(
        submission_name=payload.name if isinstance(payload, JudgementPayload) else "evidence",
        task=effective,
        observation=judgement,
        observations=entry.observations,
        verdict=verdict,
        record=record.folder,
        entry=entry.number,
        warnings=warnings,
    )


def _selected(task: Task, selection: Selection | None) -> Task:
    if selection is None:
        return task
    try:
        chosen, _ = select(
            task,
            cases=selection.cases,
            repetitions=selection.repetitions,
            profiles=selection.runtime_profiles,
        )
    except ValueError as error:
        raise RecordError(
            f"the record holds part of a task ({selection}), which cannot be taken from this one: {error}",
            code=ReasonCode.RECORD_MISMATCH,
        ) from error
    return chosen
