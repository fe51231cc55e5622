"""The runs of an agent program before a judge: what it is shown of each, and the scorers of what it answered. Pure.

Every run is a conversation of two turns: what the program was given, and its standard output. Its trace is what it sent
to its trace endpoint, its own word. Each run is asked about by itself, and its answers are votes on that run alone;
runs fold into cells as always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader.core.agent_tasks import asks_for_traces
from grader.core.captured import Captured
from grader.core.endings import Ending
from grader.core.expectation import Task
from grader.core.judging.judgement import JudgementPayload
from grader.core.observation import Acquisition, Observation
from grader.core.outcomes import RunOutcome, TraceOutcome
from grader.core.plan import Plan, PlannedRun, ProfileInForce
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.content import TextRules
from grader.core.traces.execution_trace import ExecutionTrace, observe_trace
from grader.messages.conversation import Conversation, Request
from grader.messages.turns import MOST_CHARACTERS, turns_of
from grader.runner.exported import observe_exported, read_exported, trusted_by
from grader.runner.judging.evidence import Acquired
from grader.scorers.base import Scorer
from grader.scorers.judge_scorers import judge_scorers
from grader.scorers.traced_runs import JudgedRunsScorer
from grader.traces.steps import StepStore


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
    answered = answers_by_run(judgements)
    checked: dict[int, tuple[RunOutcome, Observation]] = {}

    def evidence(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        known = checked.get(planned.index)
        if known is None or known[0] is not outcome:
            found = answered.get(planned.index)
            acquired = acquire_run(task, plan, planned, outcome, ending)
            if found is None or not is_about(found, acquired):
                found = _not_asked(task, planned, acquired)
            known = checked[planned.index] = (outcome, found)
        return known[1]

    return tuple(JudgedRunsScorer(scorer, task, plan, evidence) for scorer in run_scorers(task, plan.profiles))


def run_scorers(task: Task, profiles: Sequence[ProfileInForce]) -> tuple[Scorer, ...]:
    """The scorers of the conditions for a judge. Raises UsageError if one requires a trace that no profile gives."""
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


def answers_by_run(observations: Sequence[Observation]) -> dict[int, Observation]:
    """The last answer about each run."""
    found: dict[int, Observation] = {}
    for observation in observations:
        payload = observation.payload
        if isinstance(payload, JudgementPayload) and payload.run is not None:
            found[payload.run] = observation
    return found


def is_about(observation: Observation, acquired: Acquired) -> bool:
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
