"""From the text of a judge's answer to what each sample says: a strict parser, the citations, the facts.

An answer is one JSON object and nothing else (a Markdown fence around all of it is taken off). Whatever does not have
the form that was asked for is undetermined, never false.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from grader.core.judging.dimensions import FALSE, NOT_APPLICABLE, TRUE, Dimension
from grader.core.judging.judgement import Fact, JudgeReply
from grader.core.judging.result import SampleVerdict
from grader.core.quoting import quote_text
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import parse_json
from grader.core.traces.content import storable
from grader.core.tri import Tri

MOST_ANSWER_CHARACTERS = 1 << 20
MOST_RATIONALE_CHARACTERS = 4_000
MOST_CITES = 100
_FENCED = re.compile(r"```(?:json)?[ \t]*\n(.*)\n```", re.DOTALL)
_CITE = re.compile(r"\[?([MT][1-9][0-9]{0,6})\]?")


class _NotOfTheFormError(ValueError):
    """What is wrong with an answer, in words."""


def read_reply(
    reply: JudgeReply, dimensions: Sequence[Dimension], facts: Sequence[Fact], known: Collection[str]
) -> dict[str, SampleVerdict]:
    """What one sample says of each dimension. `known` are the ids of the turns and steps that the judge was shown."""
    if reply.failure is not None:
        return _all(dimensions, reply.failure.code, reply.failure.detail)
    try:
        answers, said = _split(reply.content or "", facts)
    except _NotOfTheFormError as error:
        return _all(dimensions, ReasonCode.JUDGE_UNPARSABLE, str(error))
    unasked = sorted(answers.keys() - {dimension.name for dimension in dimensions})
    if unasked:
        detail = f"an answer to what was not asked: {quote_text(unasked[0])}"
        return _all(dimensions, ReasonCode.JUDGE_UNPARSABLE, detail)
    contradicted = [fact for fact in facts if said[fact.id] is not fact.holds]
    if contradicted:
        fact = contradicted[0]
        stated = "holds" if fact.holds else "does not hold"
        detail = f"{fact.id} {stated} ({fact.statement}), and the judge says otherwise"
        return _all(dimensions, ReasonCode.JUDGE_CONTRADICTS_FACT, detail)
    return {dimension.name: _sample(dimension, answers.get(dimension.name), known) for dimension in dimensions}


def _all(dimensions: Sequence[Dimension], code: ReasonCode, detail: str) -> dict[str, SampleVerdict]:
    sample = SampleVerdict(value=Tri.UNDETERMINED, code=code, detail=detail)
    return {dimension.name: sample for dimension in dimensions}


def _split(text: str, facts: Sequence[Fact]) -> tuple[Mapping[str, object], dict[str, bool]]:
    """The answers by dimension, and what is said of each fact."""
    if len(text) > MOST_ANSWER_CHARACTERS:
        raise _NotOfTheFormError(f"the answer has more than {MOST_ANSWER_CHARACTERS:,} characters")
    text = text.strip()
    fenced = _FENCED.fullmatch(text)
    try:
        value = parse_json(fenced[1] if fenced is not None else text)
    except ValueError as error:
        raise _NotOfTheFormError(f"the answer is no JSON ({str(error)[:100]}): {quote_text(text)}") from None
    whole = _object(value, "the answer")
    _check_keys(whole, {"dimensions"} | ({"facts"} if facts else set[str]()), set(), "the answer")
    said: dict[str, bool] = {}
    if facts:
        given = _object(whole["facts"], "facts")
        _check_keys(given, {fact.id for fact in facts}, set(), "facts")
        for name, item in given.items():
            if not isinstance(item, bool):
                raise _NotOfTheFormError(f"facts.{name} is neither true nor false")
            said[name] = item
    return _object(whole["dimensions"], "dimensions"), said


def _sample(dimension: Dimension, value: object, known: Collection[str]) -> SampleVerdict:
    try:
        return _read(dimension, value, known)
    except _NotOfTheFormError as error:
        return SampleVerdict(value=Tri.UNDETERMINED, code=ReasonCode.JUDGE_UNPARSABLE, detail=str(error))


def _read(dimension: Dimension, value: object, known: Collection[str]) -> SampleVerdict:
    name = dimension.name
    if value is None:
        raise _NotOfTheFormError(f"there is no answer to {name}")
    entries = _object(value, name)
    _check_keys(entries, {"value", "rationale", "cites"}, {"category"}, name)
    answer = _answer(dimension, entries["value"])
    rationale = entries["rationale"]
    if not isinstance(rationale, str):
        raise _NotOfTheFormError(f"{name}.rationale is no text")
    rationale = storable(rationale)[:MOST_RATIONALE_CHARACTERS]
    cites = _cites(name, entries["cites"])
    category, warnings = _category(dimension, entries.get("category"), answer)
    said = SampleVerdict(
        value=Tri.UNDETERMINED, answer=answer, category=category, rationale=rationale, cites=cites, warnings=warnings
    )
    invented = [cite for cite in cites if cite not in known]
    if invented:
        detail = f"cites {invented[0]}, which does not exist"
        return said.model_copy(update={"code": ReasonCode.JUDGE_UNCITED, "detail": detail})
    if answer == NOT_APPLICABLE:
        return said.model_copy(
            update={"code": ReasonCode.JUDGE_NOT_APPLICABLE, "detail": "the question does not apply"}
        )
    if dimension.is_bad(answer):
        if not cites:
            detail = f"{answer} is a violation, and cites no turn or step"
            return said.model_copy(update={"code": ReasonCode.JUDGE_UNCITED, "detail": detail})
        return said.model_copy(update={"value": Tri.FALSE})
    return said.model_copy(update={"value": Tri.TRUE})


def _answer(dimension: Dimension, value: object) -> str:
    if value == NOT_APPLICABLE and isinstance(value, str):
        if dimension.may_not_apply:
            return NOT_APPLICABLE
        raise _NotOfTheFormError(f"{dimension.name} always applies, and the answer is that it does not")
    if dimension.is_graded and isinstance(value, str) and value in dimension.answers:
        return value
    if not dimension.is_graded and isinstance(value, bool):
        return TRUE if value else FALSE
    wanted = " or ".join(dimension.answers)
    raise _NotOfTheFormError(f"{dimension.name}.value is not {wanted}, but {quote_text(str(value)[:100])}")


def _cites(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _NotOfTheFormError(f"{name}.cites is no list")
    found: dict[str, None] = {}
    for item in cast("list[object]", value)[:MOST_CITES]:
        if not isinstance(item, str):
            raise _NotOfTheFormError(f"{name}.cites has something that is no text")
        match = _CITE.fullmatch(item.strip())
        # What is no id at all is kept: it names nothing that exists.
        found[match[1] if match is not None else quote_text(item, 40)] = None
    return tuple(found)


def _category(dimension: Dimension, value: object, answer: str) -> tuple[str | None, tuple[str, ...]]:
    """The category, and a warning if it contradicts the answer: then the answer stands, and the category does not."""
    if value is None:
        return None, ()
    known = {category.name: category for category in dimension.categories}
    if not isinstance(value, str) or value not in known:
        raise _NotOfTheFormError(f"{dimension.name}.category is none of {', '.join(known) or 'them: it has none'}")
    belongs = known[value].bad
    if answer != NOT_APPLICABLE and belongs is not None and belongs is not dimension.is_bad(answer):
        return None, (f"the category {value} contradicts the value {answer}; the value stands",)
    return value, ()


def _object(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _NotOfTheFormError(f"{name} is no JSON object")
    return cast("Mapping[str, object]", value)


def _check_keys(entries: Mapping[str, object], required: set[str], optional: set[str], name: str) -> None:
    missing = sorted(required - entries.keys())
    if missing:
        raise _NotOfTheFormError(f"{name} has no {missing[0]}")
    unknown = sorted(entries.keys() - required - optional)
    if unknown:
        raise _NotOfTheFormError(f"{name} has an unknown key {quote_text(unknown[0], 40)}")
