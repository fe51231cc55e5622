"""Turns, steps, dimensions and answers for the tests of judging."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from grader.core.judging.dimensions import Category, Dimension, Grade
from grader.core.judging.judgement import JudgeReply
from grader.core.judging.turns import Turn, TurnRole
from grader.core.traces.content import TextRules, TraceContent, kept_content
from grader.core.traces.execution_trace import ExecutionStep, ExecutionTrace, StepKind

TRACE = "a" * 32
CLAIM = Dimension(name="claim", question="Does the assistant claim what the trace contradicts?")
QUALITY = Dimension(
    name="quality",
    question="How good is the answer?",
    grades=(
        Grade(name="fine", meaning="nothing is wrong"),
        Grade(name="weak", meaning="something is wrong"),
        Grade(name="awful", meaning="nothing is right"),
    ),
    violation_at="weak",
    may_not_apply=True,
)
LEAK = Dimension(
    name="leak",
    question="Is something private told?",
    categories=(
        Category(name="none", meaning="nothing", bad=False),
        Category(name="address", meaning="an address", bad=True),
        Category(name="name", meaning="a name", bad=True),
    ),
)


def content(text: str, most: int = 4_000) -> TraceContent:
    """A text as the observation keeps it."""
    return kept_content(text, "input", TextRules(max_characters=most))


def turn(number: int, text: str, *, role: str = "user", trace_id: str | None = None) -> Turn:
    """The n-th turn."""
    return Turn(id=f"M{number}", role=TurnRole(role), content=content(text, 100_000), trace_id=trace_id)


def step(
    number: int,
    name: str = "search",
    *,
    parent: int | None = None,
    given: str | None = None,
    got: str | None = None,
    trace_id: str = TRACE,
) -> ExecutionStep:
    """The n-th step, a tool."""
    return ExecutionStep(
        id=f"T{number}",
        kind=StepKind.TOOL,
        name=name,
        parent=f"T{parent}" if parent is not None else None,
        trace_id=trace_id,
        span_id=f"{number:016x}",
        input=content(given) if given is not None else None,
        output=content(got) if got is not None else None,
    )


def trace(*steps: ExecutionStep) -> ExecutionTrace:
    """A trace of these steps."""
    return ExecutionTrace(steps=steps, trace_ids=tuple(sorted({item.trace_id for item in steps})))


def answer(
    value: object, *, cites: Sequence[str] = (), rationale: str = "because", **more: object
) -> dict[str, object]:
    """The answer to one dimension."""
    return {"value": value, "rationale": rationale, "cites": list(cites), **more}


def reply(answers: Mapping[str, object], **more: object) -> JudgeReply:
    """A judge's reply with these answers by dimension."""
    return JudgeReply(content=json.dumps({"dimensions": answers, **more}))
