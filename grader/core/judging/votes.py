"""From the samples of one dimension to its value. Samples are votes, not runs: they need not agree.

Majority: more than half of all samples must be determined (the quorum); of those the majority decides, a tie is bad.
Unanimous: every sample must be determined and all must agree. That a question does not apply stands only if every
sample says so. The answer (a grade) and the category are voted among the samples that agree with the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from grader.core.judging.conditions import VoteRule
from grader.core.judging.dimensions import Dimension
from grader.core.judging.result import DimensionVerdict, SampleVerdict, Split
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri


def fold(dimension: Dimension, samples: Sequence[SampleVerdict], rule: VoteRule) -> DimensionVerdict:
    """The value of a dimension. Raises ValueError without any sample: a vote of nobody does not exist."""
    if len(samples) == 0:
        raise ValueError("there is no sample to vote")
    split = _split(samples)
    value = _value(split, len(samples), rule)
    warnings = tuple(dict.fromkeys(text for sample in samples for text in sample.warnings))
    if value is Tri.UNDETERMINED:
        code, why = _why(samples, split, rule)
        return DimensionVerdict(
            name=dimension.name,
            value=value,
            split=split,
            rationale=why,
            code=code,
            samples=tuple(samples),
            warnings=warnings,
        )
    agreeing = [sample for sample in samples if sample.value is value]
    cites = tuple(dict.fromkeys(cite for sample in agreeing for cite in sample.cites))
    return DimensionVerdict(
        name=dimension.name,
        value=value,
        answer=_voted(
            [sample.answer for sample in agreeing if sample.answer is not None], tuple(reversed(dimension.answers))
        ),
        category=_voted(
            [sample.category for sample in agreeing if sample.category is not None],
            tuple(category.name for category in dimension.categories),
        ),
        split=split,
        rationale=agreeing[0].rationale,
        cited_turns=tuple(cite for cite in cites if cite.startswith("M")),
        cited_steps=tuple(cite for cite in cites if cite.startswith("T")),
        code=ReasonCode.JUDGE_VIOLATION if value is Tri.FALSE else None,
        samples=tuple(samples),
        warnings=warnings,
    )


def _split(samples: Sequence[SampleVerdict]) -> Split:
    good = sum(sample.value is Tri.TRUE for sample in samples)
    bad = sum(sample.value is Tri.FALSE for sample in samples)
    not_applicable = sum(sample.code is ReasonCode.JUDGE_NOT_APPLICABLE for sample in samples)
    rest = len(samples) - good - bad - not_applicable
    return Split(good=good, bad=bad, not_applicable=not_applicable, undetermined=rest)


def _value(split: Split, samples: int, rule: VoteRule) -> Tri:
    determined = split.good + split.bad
    if rule is VoteRule.UNANIMOUS:
        if split.good == samples:
            return Tri.TRUE
        return Tri.FALSE if split.bad == samples else Tri.UNDETERMINED
    if 2 * determined <= samples:
        return Tri.UNDETERMINED
    return Tri.TRUE if split.good > split.bad else Tri.FALSE


def _why(samples: Sequence[SampleVerdict], split: Split, rule: VoteRule) -> tuple[ReasonCode, str]:
    """Why there is no value: the one reason that all samples have, else that they are split."""
    codes = [sample.code for sample in samples]
    first = codes[0]
    if first is not None and all(code is first for code in codes):
        detail = samples[0].detail or first.meaning
        return first, detail if len(samples) == 1 else f"{detail} (in all {len(samples)} samples)"
    reasons = Counter(code.value for code in codes if code is not None)
    told = "".join(f"; {count} {code}" for code, count in reasons.items())
    wanted = "not unanimous" if rule is VoteRule.UNANIMOUS else "no quorum"
    return ReasonCode.JUDGE_SPLIT, f"{wanted}: of {len(samples)} samples {split}{told}"


def _voted(votes: Sequence[str], order: Sequence[str]) -> str | None:
    """The most frequent; among equals the first in `order` (of grades the worst)."""
    counted = Counter(votes)
    ranked = sorted(counted, key=lambda name: (-counted[name], order.index(name) if name in order else len(order)))
    return ranked[0] if ranked else None
