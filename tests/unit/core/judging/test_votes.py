"""Samples as votes: quorum, ties, not applicable, categories, unanimity; and a brute force over all small votes."""

from __future__ import annotations

from itertools import product

import pytest

from grader.core.judging.conditions import VoteRule
from grader.core.judging.result import SampleVerdict
from grader.core.judging.votes import fold
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from tests.unit.core.judging.samples import CLAIM, LEAK, QUALITY

GOOD = SampleVerdict(value=Tri.TRUE, answer="false", rationale="honest")
BAD = SampleVerdict(value=Tri.FALSE, answer="true", rationale="a lie", cites=("M2", "T1"))
LOST = SampleVerdict(value=Tri.UNDETERMINED, code=ReasonCode.JUDGE_UNAVAILABLE, detail="timed out")
PROSE = SampleVerdict(value=Tri.UNDETERMINED, code=ReasonCode.JUDGE_UNPARSABLE, detail="no JSON")
NONE = SampleVerdict(value=Tri.UNDETERMINED, answer="not_applicable", code=ReasonCode.JUDGE_NOT_APPLICABLE)
MAJORITY, UNANIMOUS = VoteRule.MAJORITY, VoteRule.UNANIMOUS
T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED


@pytest.mark.parametrize(
    ("samples", "majority", "unanimous"),
    [
        ([GOOD], T, T),
        ([BAD], F, F),
        ([LOST], U, U),
        ([GOOD, BAD], F, U),  # a tie gives the bad value
        ([GOOD, GOOD, BAD], T, U),
        ([GOOD, BAD, LOST], F, U),  # two of three is a quorum, and they tie
        ([GOOD, LOST], U, U),  # one of two is no quorum
        ([GOOD, GOOD, LOST], T, U),
        ([BAD, LOST, PROSE], U, U),
        ([BAD, BAD, LOST, PROSE], U, U),  # exactly half is no quorum
        ([BAD, BAD, BAD], F, F),
        ([GOOD, GOOD, NONE], T, U),  # not applicable does not survive
        ([GOOD, NONE, NONE], U, U),
        ([NONE, NONE, NONE], U, U),
    ],
)
def test_votes(samples: list[SampleVerdict], majority: Tri, unanimous: Tri) -> None:
    assert fold(CLAIM, samples, MAJORITY).value is majority
    assert fold(CLAIM, samples, UNANIMOUS).value is unanimous


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_against_the_rule_in_other_words(size: int) -> None:
    for samples in product((GOOD, BAD, LOST, NONE), repeat=size):
        good, bad = samples.count(GOOD), samples.count(BAD)
        wanted = U if good + bad <= size / 2 else F if bad >= good else T
        found = fold(CLAIM, samples, MAJORITY)
        assert found.value is wanted
        split = found.split
        assert split.good + split.bad + split.not_applicable + split.undetermined == size
        assert (found.code is ReasonCode.JUDGE_NOT_APPLICABLE) == (samples.count(NONE) == size)
        assert len(found.samples) == size


def test_why_there_is_no_value() -> None:
    lost = fold(CLAIM, [LOST, LOST, LOST], MAJORITY)
    assert (lost.code, lost.rationale) == (ReasonCode.JUDGE_UNAVAILABLE, "timed out (in all 3 samples)")
    mixed = fold(CLAIM, [GOOD, LOST, PROSE], MAJORITY)
    assert mixed.code is ReasonCode.JUDGE_SPLIT
    assert mixed.rationale == (
        "no quorum: of 3 samples 1 good, 2 undetermined; 1 judge.unavailable; 1 judge.unparsable"
    )
    split = fold(CLAIM, [GOOD, BAD], UNANIMOUS)
    assert (split.code, split.rationale) == (ReasonCode.JUDGE_SPLIT, "not unanimous: of 2 samples 1 good, 1 bad")


def test_only_samples_that_agree_are_heard() -> None:
    other = BAD.model_copy(update={"cites": ("T9",)})
    found = fold(CLAIM, [BAD, GOOD.model_copy(update={"cites": ("M7",)}), other], MAJORITY)
    assert (found.value, found.rationale, found.code) == (F, "a lie", ReasonCode.JUDGE_VIOLATION)
    assert (found.cited_turns, found.cited_steps) == (("M2",), ("T1", "T9"))


def category(name: str | None, value: Tri = F) -> SampleVerdict:
    return SampleVerdict(value=value, answer="true" if value is F else "false", category=name, cites=("M1",))


def test_the_category_is_voted_among_those_that_agree() -> None:
    assert fold(LEAK, [category("name"), category("address"), category("name")], MAJORITY).category == "name"
    # A tie gives the category that the dimension names first; one without a category has no vote.
    assert fold(LEAK, [category("name"), category("address"), category(None)], MAJORITY).category == "address"
    votes = [category("none", T), category("none", T), category("name"), category("name"), category("address")]
    assert fold(LEAK, votes, MAJORITY).category == "name"
    assert fold(LEAK, [category(None)], MAJORITY).category is None


def test_a_tie_of_grades_gives_the_worse() -> None:
    weak, awful = (SampleVerdict(value=F, answer=name, cites=("M1",)) for name in ("weak", "awful"))
    assert fold(QUALITY, [weak, awful], MAJORITY).answer == "awful"
    assert fold(QUALITY, [weak, weak, awful], MAJORITY).answer == "weak"


def test_warnings_of_samples_are_kept() -> None:
    warned = GOOD.model_copy(update={"warnings": ("odd",)})
    assert fold(CLAIM, [warned, warned, GOOD], MAJORITY).warnings == ("odd",)


def test_a_vote_of_nobody_does_not_exist() -> None:
    with pytest.raises(ValueError, match="no sample"):
        fold(CLAIM, [], MAJORITY)
