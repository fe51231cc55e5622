"""Asks a judge about a conversation and its trace: one acquisition, all samples on it, everything recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from grader.core.agent_tasks import asks_a_judge
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition
from grader.core.judging.judgement import Fact, Failure, Judgement, JudgementPayload, JudgeReply
from grader.core.judging.prompt import answer_schema, build_messages
from grader.core.judging.rendering import Rendering, render
from grader.core.judging.reuse import why_reusable
from grader.core.observation import Acquisition, Observation, Payload
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ToolsPayload, observe_tools
from grader.core.traces.content import TextRules
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.core.traces.execution_trace import ExecutionTrace, observe_trace
from grader.errors import UsageError
from grader.judge.base import Judge
from grader.messages.conversation import Conversation
from grader.messages.turns import MOST_CHARACTERS, turns_of
from grader.runner.graded import Graded
from grader.runner.judging.evidence import Acquired
from grader.runner.judging.verdicts import judge_answers, with_questions
from grader.runner.score import Evidence, keep_evidence, read_evidence
from grader.scorers.facts import facts_of
from grader.scorers.judge_scorers import judge_scorers, unmet_requirement
from grader.store import RecordedEntry
from grader.traces.reader import TraceInput
from grader.traces.steps import StepStore

MOST_REQUEST_CHARACTERS = 1_000_000
"""Above that a request is not sent: no model reads it."""


@dataclass(frozen=True)
class JudgedEvidence:
    """What a judge is asked about: a conversation, and maybe sources of traces."""

    conversation: Conversation
    traces: Sequence[TraceInput] | None = None
    """None: there is no source of traces."""
    complete: bool = False
    """The caller declares that nothing is missing; what checks find against it still counts."""
    rules: ContentRules = field(default_factory=ContentRules)
    text_rules: TextRules = field(default_factory=TextRules)


def acquire(evidence: JudgedEvidence) -> Acquired:
    """Read the sources once. Raises TraceError and PrerequisiteError as reading does."""
    conversation, rules = evidence.conversation, evidence.text_rules
    turns = turns_of(conversation, replace(rules, max_characters=max(rules.max_characters, MOST_CHARACTERS)))
    steps = StepStore(rules)
    sources = evidence.traces if evidence.traces is not None else ()
    read = Evidence(traces=sources, conversation=conversation, complete=evidence.complete, rules=evidence.rules)
    tools = read_evidence(read, steps.add)
    trace: Observation | None = None
    if evidence.traces is not None:
        links = [request.link.trace_id for request in conversation.requests if request.link is not None]
        found, reasons = steps.steps(links or None)
        unlinked = tools.conversation.unlinked if tools.conversation is not None else ()
        if unlinked:
            detail = f"{unlinked[0]} has no trace link"
            absent = CoverageReason(code=CoverageCode.TRACE_ABSENT, count=len(unlinked), detail=detail)
            reasons = (*reasons, absent)
        payload = ExecutionTrace(
            steps=found,
            coverage=tools.coverage.with_reasons(*reasons),
            scope_ids=conversation.trace_ids,
            trace_ids=tools.trace_ids,
            sources=tools.sources,
            retain_content=rules.retain_content,
            notes=tools.notes,
        )
        trace = observe_trace(payload)
    return Acquired(conversation, turns, observe_tools(tools), trace)


async def judge_evidence(
    evidence: JudgedEvidence,
    task: Task,
    judge: Judge,
    *,
    record: Path | None = None,
    reuse: RecordedEntry | None = None,
) -> Graded:
    """Ask the judge, and judge what it answered; both are kept in a new record if a folder is given.

    `reuse`: a recorded entry whose judgement stands in where it rests on the same evidence, or on better.

    Raises TaskError for a task that cannot be judged from a conversation, UsageError if it requires a trace and there
    is no source of traces: both before anything is read or asked.
    """
    task = check_judgeable(task, has_trace_source=evidence.traces is not None)
    acquired = acquire(evidence)
    known, note = _reusable(reuse, task, acquired, judge)
    if known is not None:
        observations = known
    else:
        asked = await ask(task, acquired, judge)
        observations = tuple(o for o in (acquired.tools, acquired.trace, asked) if o is not None)
    verdict, warnings = judge_answers(task, observations)
    graded = Graded(
        submission_name=evidence.conversation.name,
        task=task,
        observation=next(o for o in observations if isinstance(o.payload, JudgementPayload)),
        observations=observations,
        verdict=verdict,
        warnings=(*warnings, *((note,) if note else ())),
    )
    return graded if record is None else keep_evidence(graded, record)


def check_judgeable(task: Task, *, has_trace_source: bool) -> Task:
    """The task with its questions filled in. Raises TaskError or UsageError if a judge cannot be asked that."""
    task = with_questions(task)
    if not asks_a_judge(task):
        raise UsageError("no condition is for a judge", hint="name a preset or an objective; or use `grader score`")
    judge_scorers(task.judge, has_trace_source=has_trace_source, has_facts=False)
    return task


async def ask(task: Task, acquired: Acquired, judge: Judge) -> Observation:
    """The judgement on every question of the task, each asked once however often it stands there."""
    settings, trace = task.judge, acquired.trace
    payload = trace.payload if trace is not None else None
    steps = payload if isinstance(payload, ExecutionTrace) else None
    judged = JudgementPayload(
        name=acquired.conversation.name,
        turns=acquired.turns,
        trace=trace.digest if trace is not None else None,
        acquisition=trace.acquisition if trace is not None else None,
        acquisition_reasons=trace.acquisition_reasons if trace is not None else (),
        spans=tuple(step.span for step in steps.steps) if steps is not None else (),
        trace_budget=settings.trace_budget,
        endpoint=judge.endpoint,
        model=judge.model,
    )
    facts = _facts(task, acquired.tools) if trace is not None else ()
    reading = render(acquired.turns, steps, judged.trace_coverage, settings.trace_budget)
    questions = {leaf.questions: None for leaf in task.leaves() if isinstance(leaf, JudgeCondition)}
    unmet = unmet_requirement(settings.require_trace, judged.acquisition, judged.acquisition_reasons)
    plans = [_question(Judgement(dimensions=asked, facts=facts), reading, unmet) for asked in questions]
    answered = await _answers(plans, settings.samples, judge)
    judged = judged.model_copy(update={"judgements": tuple(answered)})
    return _observed(judged)


def _question(judgement: Judgement, reading: Rendering, unmet: Failure | None) -> Judgement:
    """What is sent, or why nothing is."""
    if unmet is not None:
        return judgement.model_copy(update={"not_asked": unmet})
    messages = build_messages(reading, judgement.dimensions, judgement.facts)
    size = sum(len(message.content) for message in messages)
    asked = judgement.model_copy(update={"messages": messages, "steps": reading.steps})
    if size <= MOST_REQUEST_CHARACTERS:
        return asked
    detail = f"the request would have {size:,} characters, and {MOST_REQUEST_CHARACTERS:,} are the most that is sent"
    overflow = Failure(code=ReasonCode.JUDGE_OVERFLOW, detail=detail)
    return judgement.model_copy(update={"not_asked": overflow})


async def _answers(plans: Sequence[Judgement], samples: int, judge: Judge) -> list[Judgement]:
    """Every sample of every question, as many at once as the judge allows."""
    replies: dict[tuple[int, int], JudgeReply] = {}

    async def ask_once(place: tuple[int, int], plan: Judgement) -> None:
        replies[place] = await judge.ask(plan.messages, answer_schema(plan.dimensions, plan.facts))

    async with anyio.create_task_group() as group:
        for number, plan in enumerate(plans):
            if plan.not_asked is None:
                for sample in range(samples):
                    group.start_soon(ask_once, (number, sample), plan)
    return [
        plan.model_copy(update={"replies": tuple(replies[number, sample] for sample in range(samples))})
        if plan.not_asked is None
        else plan
        for number, plan in enumerate(plans)
    ]


def _observed(judged: JudgementPayload) -> Observation:
    """Complete if every sample has an answer, unavailable if none has."""
    reasons = [judgement.not_asked.detail for judgement in judged.judgements if judgement.not_asked is not None]
    reasons.extend(reply.failure.detail for reply in judged.replies if reply.failure is not None)
    answered = sum(reply.content is not None for reply in judged.replies)
    acquisition = Acquisition.PARTIAL if answered else Acquisition.UNAVAILABLE
    return Observation(
        acquisition=acquisition if reasons else Acquisition.COMPLETE,
        acquisition_reasons=tuple(dict.fromkeys(reasons)),
        payload=judged,
    )


def _reusable(
    entry: RecordedEntry | None, task: Task, acquired: Acquired, judge: Judge
) -> tuple[tuple[Observation, ...] | None, str]:
    """The recorded observations that stand in for asking again, and why; None if they do not."""
    if entry is None:
        return None, ""
    judgement = next((o.payload for o in entry.observations if isinstance(o.payload, JudgementPayload)), None)
    tools = _of_kind(entry.observations, ToolsPayload)
    facts = _facts(task, tools) if judgement is not None and judgement.acquisition is not None else ()
    if judgement is None or not _answers_the_same(judgement, task, acquired, judge, facts):
        return None, "the recorded judgement is not reused: it answers something else"
    stored = _of_kind(entry.observations, ExecutionTrace)
    why = why_reusable(stored, acquired.trace, acquired.scope_ids)
    if why is None:
        return None, "the recorded judgement is not reused: there is other evidence now"
    return entry.observations, f"the recorded judgement is reused: {why}"


def _answers_the_same(
    judgement: JudgementPayload, task: Task, acquired: Acquired, judge: Judge, facts: tuple[Fact, ...]
) -> bool:
    """Whether every question was asked of this model, about these turns, with these facts, and always answered."""
    settings = task.judge
    wanted = {leaf.questions for leaf in task.leaves() if isinstance(leaf, JudgeCondition)}
    answered = {
        one.dimensions
        for one in judgement.judgements
        if len(one.replies) >= settings.samples
        and all(reply.content is not None for reply in one.replies[: settings.samples])
        and one.facts == facts
    }
    same_shown = judgement.turns == acquired.turns and judgement.trace_budget == settings.trace_budget
    return same_shown and judgement.model == judge.model and wanted <= answered


def _facts(task: Task, tools: Observation | None) -> tuple[Fact, ...]:
    if not task.judge.give_facts:
        return ()
    return facts_of(task, tools, clock_skew_tolerance_ns=task.trace.clock_skew_tolerance_ns)


def _of_kind(observations: Sequence[Observation], kind: type[Payload]) -> Observation | None:
    return next((o for o in observations if isinstance(o.payload, kind)), None)
