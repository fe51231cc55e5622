"""Asks a judge about the runs of an agent program: what each was given, what it printed, and what its trace shows.

Every run is a conversation of two turns: what the program was given, and its standard output. Its trace is what it sent
to its trace endpoint, its own word. Each run is asked about by itself, and its answers are votes on that run alone;
runs fold into cells as always. What was asked and answered is an observation of its own, which names its run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio

from grader.core.agent_tasks import asks_for_traces, conditions_of
from grader.core.captured import Captured
from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.execution_trace import ExecutionTrace, observe_trace
from grader.core.expectation import Task
from grader.core.judge_conditions import JudgeCondition
from grader.core.judgement import JudgementPayload
from grader.core.observation import Acquisition, Observation, ProgramRuns
from grader.core.outcomes import RunOutcome, TraceOutcome
from grader.core.plan import Plan, PlannedRun, ProfileInForce
from grader.core.tool_calls import ToolsPayload
from grader.core.trace_content import TextRules
from grader.judge.base import Judge
from grader.messages.conversation import Conversation, Request
from grader.messages.turns import MOST_CHARACTERS, turns_of
from grader.runner.exported import observe_exported, read_exported, trusted_by
from grader.runner.judging import Acquired, ask
from grader.scorers.base import Scorer
from grader.scorers.judge_scorers import judge_scorers
from grader.scorers.traced_runs import JudgedRunsScorer
from grader.traces.steps import StepStore


def check_questions(task: Task, profiles: Sequence[ProfileInForce]) -> None:
    """Raises UsageError if the task requires a trace, and no profile gives programs a trace endpoint."""
    _scorers(task, profiles)


async def ask_about_runs(
    task: Task,
    plan: Plan,
    runs: ProgramRuns,
    judge: Judge,
    keep: Callable[[Observation], None],
    known: Sequence[Observation] = (),
) -> tuple[Observation, ...]:
    """What the judge answers about every run that took place, and that a condition for a judge is about.

    `keep` is told of each as it comes. `known`: earlier answers; what they say of the same evidence is not asked again.
    """
    answered = _by_run(known)
    found: dict[int, Observation] = {}

    async def one(planned: PlannedRun, part: Task, acquired: Acquired) -> None:
        earlier = answered.get(planned.index)
        if earlier is not None and _is_about(earlier, acquired):
            found[planned.index] = earlier
            return
        asked = await ask(part, acquired, judge)
        payload = asked.payload
        assert isinstance(payload, JudgementPayload)
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
                group.start_soon(one, planned, part, acquire_run(task, plan, planned, record.outcome, ending))
    return tuple(found[index] for index in sorted(found))


def acquire_run(task: Task, plan: Plan, planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Acquired:
    """What a judge is shown of one run. Pure: the same run, the same turns and steps."""
    profile = next(profile for profile in plan.profiles if profile.name == planned.profile)
    case = task.programs()[planned.program].cases[planned.case]
    name = f"{case.name if case.name is not None else f'case {planned.case}'} [{profile.name}] run {planned.repetition}"
    given = [Captured.whole(argument) for argument in planned.invocation.arguments]
    said = "\n".join([*(f"argument: {_text(one)}" for one in given), _text(Captured.whole(planned.invocation.stdin))])
    messages = (
        {"role": "user", "content": said},
        {"role": "assistant", "content": _text(outcome.stdout.captured)},
    )
    conversation = Conversation(name, (Request("run", messages),))
    rules = TextRules()
    turns = turns_of(conversation, replace(rules, max_characters=max(rules.max_characters, MOST_CHARACTERS)))
    tools = observe_exported(outcome, ending, trusted_by(profile))
    trace = _trace(outcome.traces, tools, rules) if outcome.traces is not None else None
    return Acquired(conversation, turns, tools, trace)


def judged_runs_scorers(task: Task, plan: Plan, judgements: Sequence[Observation]) -> tuple[Scorer, ...]:
    """The scorers of the conditions for a judge, on what it answered about each run."""
    answered = _by_run(judgements)

    def evidence(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        found = answered.get(planned.index)
        acquired = acquire_run(task, plan, planned, outcome, ending)
        return found if found is not None and _is_about(found, acquired) else _not_asked(task, planned, acquired)

    return tuple(JudgedRunsScorer(scorer, task, plan, evidence) for scorer in _scorers(task, plan.profiles))


def _scorers(task: Task, profiles: Sequence[ProfileInForce]) -> tuple[Scorer, ...]:
    has_traces = any(profile.is_traced for profile in profiles)
    return judge_scorers(
        task.judge,
        has_trace_source=has_traces,
        has_facts=has_traces and asks_for_traces(task),
        clock_skew_tolerance_ns=task.trace.clock_skew_tolerance_ns,
    )


def _trace(traces: TraceOutcome, tools: Observation, rules: TextRules) -> Observation:
    steps, payload = StepStore(rules), tools.payload
    assert isinstance(payload, ToolsPayload)
    read_exported(traces, steps.add)
    found, reasons = steps.steps(None)
    return observe_trace(
        ExecutionTrace(
            steps=found,
            coverage=payload.coverage.with_reasons(*reasons),
            trace_ids=payload.trace_ids,
            sources=payload.sources,
            retain_content=rules.retain_content,
            notes=payload.notes,
        )
    )


def _part_about(task: Task, planned: PlannedRun) -> Task | None:
    """The conditions that are about the run's case, as a task of their own; None if none of them is for a judge."""
    conditions = conditions_of(task, task.programs()[planned.program].cases[planned.case].name)
    if not any(isinstance(condition, JudgeCondition) for condition in conditions):
        return None
    return task.model_copy(update={"conditions": conditions})


def _by_run(observations: Sequence[Observation]) -> dict[int, Observation]:
    """The last answer about each run."""
    found: dict[int, Observation] = {}
    for observation in observations:
        payload = observation.payload
        if isinstance(payload, JudgementPayload) and payload.run is not None:
            found[payload.run] = observation
    return found


def _is_about(observation: Observation, acquired: Acquired) -> bool:
    """Whether an answer is about what is known of the run: the same turns, the same trace."""
    payload = observation.payload
    trace = acquired.trace.digest if acquired.trace is not None else None
    return isinstance(payload, JudgementPayload) and payload.turns == acquired.turns and payload.trace == trace


def _not_asked(task: Task, planned: PlannedRun, acquired: Acquired) -> Observation:
    payload = JudgementPayload(
        name=acquired.conversation.name,
        run=planned.index,
        turns=acquired.turns,
        acquisition=acquired.trace.acquisition if acquired.trace is not None else None,
        trace_budget=task.judge.trace_budget,
    )
    return Observation(
        acquisition=Acquisition.UNAVAILABLE, acquisition_reasons=("the judge was not asked",), payload=payload
    )


def _text(captured: Captured) -> str:
    """What a program got or wrote, as text: bytes that are none as escapes, and a mark where something was cut."""
    text = captured.kept.decode("utf-8", "backslashreplace")
    if captured.is_complete:
        return text
    return f"{text}\n(cut: {len(captured.kept):,} of {captured.total_bytes:,} bytes were kept)"
