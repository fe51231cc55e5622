"""The part of a report that is about what a judge said: answers, how samples split, what they cite, what was seen."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.conditions import Condition
from grader.core.judging.conditions import MatchesObjective, MeetsDimensions
from grader.core.judging.judgement import JudgementPayload
from grader.core.judging.result import DimensionVerdict, JudgedVerdict
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict
from grader.reports.evidence import condition_label
from grader.reports.grading import Grading, reasons_of_not
from grader.reports.look import COLORS, MARKS, TextOptions, paint, reason
from grader.reports.sanitize import safe_line

_LONGEST_RATIONALE = 1000
_CODE_COLUMNS = 22


def judged_lines(item: Grading, look: TextOptions) -> list[str]:
    """Every condition with its dimensions, what the judge saw of the trace, and what asking took."""
    assert item.judged is not None
    lines: list[str] = []
    for condition, verdict in zip(item.task.conditions, item.verdict.conditions, strict=True):
        lines.extend(_condition(condition, verdict, look, ""))
    lines.append(f"trace: {safe_line(item.judged.trace_coverage, 400)}")
    lines.append(_asking(item.judged))
    return lines


def plain_judgement(payload: JudgementPayload) -> dict[str, object]:
    """What was asked and what it took, as plain data; the answers are in the conditions."""
    return {
        "conversation": payload.name,
        "endpoint": payload.endpoint,
        "model": payload.model,
        "models_reported": sorted({reply.model for reply in payload.replies if reply.model is not None}),
        "turns": len(payload.turns),
        "steps": len(payload.spans),
        "trace_coverage": payload.trace_coverage,
        "requests": _requests(payload),
        "samples": len(payload.replies),
        "prompt_tokens": sum(reply.tokens.prompt or 0 for reply in payload.replies),
        "completion_tokens": sum(reply.tokens.completion or 0 for reply in payload.replies),
        "facts": [fact.model_dump() for judgement in payload.judgements[:1] for fact in judgement.facts],
    }


def _condition(condition: Condition, verdict: ConditionVerdict, look: TextOptions, indent: str) -> Iterator[str]:
    mark = paint(MARKS[verdict.value], COLORS[verdict.value], look)
    label = safe_line(judged_label(condition), 200)
    yield f"{indent}{mark} {verdict.condition_type}  {label}".rstrip()
    if verdict.parts:
        yield from (f"{indent}    {reason(one, _LONGEST_RATIONALE, _CODE_COLUMNS)}" for one in reasons_of_not(verdict))
        for part, inner in zip(condition.parts(), verdict.parts, strict=True):
            yield from _condition(part, inner, look, indent + "  ")
    elif verdict.judged is not None and verdict.judged.dimensions:
        yield from _dimensions(verdict.judged, look, indent + "    ")
    elif verdict.findings:
        yield from (f"{indent}    {reason(one, _LONGEST_RATIONALE, _CODE_COLUMNS)}" for one in verdict.findings)
    elif verdict.rationale:
        yield f"{indent}    {safe_line(verdict.rationale, _LONGEST_RATIONALE)}"


def judged_label(condition: Condition) -> str:
    """What tells a condition from others of its type: the question for a judge, or the tools that it names."""
    if isinstance(condition, MatchesObjective):
        return condition.objective or ""
    if isinstance(condition, MeetsDimensions):
        return condition.preset or ", ".join(dimension.name for dimension in condition.dimensions)
    return condition_label(condition)


def _dimensions(judged: JudgedVerdict, look: TextOptions, indent: str) -> Iterator[str]:
    width = max(len(dimension.name) for dimension in judged.dimensions)
    for dimension in judged.dimensions:
        mark = paint(MARKS[dimension.value], COLORS[dimension.value], look)
        yield f"{indent}{mark} {dimension.name:<{width}}  {_answer(dimension)}".rstrip()
        if dimension.value is Tri.TRUE and not look.show_all:
            continue
        if dimension.value is not Tri.UNDETERMINED:
            yield f"{indent}    {safe_line(dimension.rationale, _LONGEST_RATIONALE)}"
        if look.show_all:
            yield from _samples(dimension, look, indent + "    ")
        yield from (f"{indent}    warning: {safe_line(text, 400)}" for text in dimension.warnings)


def _answer(dimension: DimensionVerdict) -> str:
    if dimension.value is Tri.UNDETERMINED:
        code = dimension.code.value if dimension.code is not None else ""
        return f"{code}  {safe_line(dimension.rationale, 400)}"
    category = f", {dimension.category}" if dimension.category is not None else ""
    cited = ", ".join((*dimension.cited_turns, *dimension.cited_steps))
    cites = f"  cites {safe_line(cited, 200)}" if cited else ""
    return f"{dimension.answer}{category}  ({dimension.split}){cites}"


def _samples(dimension: DimensionVerdict, look: TextOptions, indent: str) -> Iterator[str]:
    for number, sample in enumerate(dimension.samples, start=1):
        mark = paint(MARKS[sample.value], COLORS[sample.value], look)
        said = f"{sample.code.value}  {sample.detail}" if sample.code is not None else f"{sample.answer}"
        cited = f"  cites {', '.join(sample.cites)}" if sample.cites else ""
        words = f"{safe_line(said + cited, 400)}  {safe_line(sample.rationale, 400)}"
        yield f"{indent}sample {number} {mark} {words}".rstrip()


def _requests(payload: JudgementPayload) -> int:
    """HTTP requests as far as they are recorded, retries among them."""
    return sum(max(1, len(reply.attempts)) for reply in payload.replies)


def _asking(payload: JudgementPayload) -> str:
    replies = payload.replies
    if not replies:
        return "judge: not asked"
    prompt = sum(reply.tokens.prompt or 0 for reply in replies)
    completion = sum(reply.tokens.completion or 0 for reply in replies)
    model = payload.model or "unknown model"
    number = _requests(payload)
    requests = "1 request" if number == 1 else f"{number} requests"
    return f"judge: {safe_line(model, 100)}, {requests}, {prompt:,} + {completion:,} tokens"
