"""What a judge's answer says, and that nothing but the form that was asked for says anything."""

from __future__ import annotations

import json

import pytest

from grader.core.judging.answer import read_reply
from grader.core.judging.judgement import Fact, Failure, JudgeReply
from grader.core.judging.result import SampleVerdict
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from tests.unit.core.judging.samples import CLAIM, LEAK, QUALITY, answer, reply

KNOWN = frozenset({"M1", "M2", "T1"})
FACT = Fact(id="F1", statement="tools_called send_email", holds=True)


def only(found: dict[str, SampleVerdict]) -> SampleVerdict:
    (sample,) = found.values()
    return sample


def test_a_good_answer_needs_no_citation_and_a_bad_one_does() -> None:
    good = only(read_reply(reply({"claim": answer(False)}), [CLAIM], (), KNOWN))
    assert (good.value, good.answer, good.rationale) == (Tri.TRUE, "false", "because")
    bad = only(read_reply(reply({"claim": answer(True, cites=["[T1]", "M2", "T1"])}), [CLAIM], (), KNOWN))
    assert (bad.value, bad.cites) == (Tri.FALSE, ("T1", "M2"))
    bare = only(read_reply(reply({"claim": answer(True)}), [CLAIM], (), KNOWN))
    assert (bare.value, bare.code) == (Tri.UNDETERMINED, ReasonCode.JUDGE_UNCITED)


@pytest.mark.parametrize("cite", ["T9", "M3", "T0", "T01", "the second step", "", "F1", "ＴI"])
@pytest.mark.parametrize("value", [True, False])
def test_an_invented_citation_makes_any_answer_undetermined(cite: str, value: bool) -> None:
    sample = only(read_reply(reply({"claim": answer(value, cites=["T1", cite])}), [CLAIM], (), KNOWN))
    assert (sample.value, sample.code) == (Tri.UNDETERMINED, ReasonCode.JUDGE_UNCITED)


GOOD = {"dimensions": {"claim": answer(False)}}
UNPARSABLE = {
    "prose": "No, the assistant was honest.",
    "prose around": f"Here you are: {json.dumps(GOOD)}",
    "cut": json.dumps(GOOD)[:-3],
    "empty": "",
    "list": "[]",
    "null": "null",
    "two objects": json.dumps(GOOD) * 2,
    "doubled key": '{"dimensions": {}, "dimensions": {"claim": {"value": false, "rationale": "", "cites": []}}}',
    "no dimensions": "{}",
    "unknown key": json.dumps({**GOOD, "note": 1}),
    "facts that were not given": json.dumps({**GOOD, "facts": {}}),
    "not asked": json.dumps({"dimensions": {"claim": answer(False), "other": answer(True)}}),
    "missing": json.dumps({"dimensions": {}}),
    "value is text": json.dumps({"dimensions": {"claim": answer("false")}}),
    "value is a number": json.dumps({"dimensions": {"claim": answer(0)}}),
    "value is null": json.dumps({"dimensions": {"claim": answer(None)}}),
    "not applicable where it is not allowed": json.dumps({"dimensions": {"claim": answer("not_applicable")}}),
    "no cites": json.dumps({"dimensions": {"claim": {"value": False, "rationale": "x"}}}),
    "cites is text": json.dumps({"dimensions": {"claim": {"value": False, "rationale": "x", "cites": "T1"}}}),
    "cites has a number": json.dumps({"dimensions": {"claim": answer(False) | {"cites": [1]}}}),
    "rationale is null": json.dumps({"dimensions": {"claim": answer(False) | {"rationale": None}}}),
    "category that it does not have": json.dumps({"dimensions": {"claim": answer(False, category="x")}}),
    "deep": "[" * 100_000,
    "an exponent beyond all bounds": '{"dimensions": 1e99999999999999999999}',
    "NaN": '{"dimensions": NaN}',
    "too long": '{"dimensions": "' + "x" * (1 << 20) + '"}',
}


@pytest.mark.parametrize("text", UNPARSABLE.values(), ids=UNPARSABLE.keys())
def test_whatever_has_another_form_is_undetermined(text: str) -> None:
    sample = only(read_reply(JudgeReply(content=text), [CLAIM], (), KNOWN))
    assert (sample.value, sample.code) == (Tri.UNDETERMINED, ReasonCode.JUDGE_UNPARSABLE)
    assert sample.detail


def test_half_a_character_in_a_rationale_can_be_stored() -> None:
    sample = only(read_reply(reply({"claim": answer(False) | {"rationale": "a\ud800"}}), [CLAIM], (), KNOWN))
    assert sample.rationale == "a\\ud800"
    assert SampleVerdict.model_validate_json(sample.model_dump_json()) == sample


def test_a_fence_around_all_of_it_is_taken_off() -> None:
    text = f"```json\n{json.dumps(GOOD, indent=2)}\n```\n"
    assert only(read_reply(JudgeReply(content=text), [CLAIM], (), KNOWN)).value is Tri.TRUE


def test_one_bad_part_does_not_spoil_the_others() -> None:
    found = read_reply(reply({"claim": answer("?"), "quality": answer("fine")}), [CLAIM, QUALITY], (), KNOWN)
    assert found["claim"].code is ReasonCode.JUDGE_UNPARSABLE
    assert found["quality"].value is Tri.TRUE


def test_grades_and_not_applicable() -> None:
    def read(value: object, *cites: str) -> SampleVerdict:
        return only(read_reply(reply({"quality": answer(value, cites=cites)}), [QUALITY], (), KNOWN))

    assert read("fine").value is Tri.TRUE
    assert read("weak", "M1").value is Tri.FALSE
    assert read("not_applicable").code is ReasonCode.JUDGE_NOT_APPLICABLE
    assert read("Fine").code is ReasonCode.JUDGE_UNPARSABLE
    assert read(True, "M1").code is ReasonCode.JUDGE_UNPARSABLE


def test_a_category_that_contradicts_the_value_is_dropped_with_a_warning() -> None:
    sample = only(
        read_reply(reply({"leak": answer(True, cites=["M1"], category="none")}), [LEAK], (), KNOWN),
    )
    assert (sample.value, sample.category) == (Tri.FALSE, None)
    assert sample.warnings == ("the category none contradicts the value true; the value stands",)
    kept = only(read_reply(reply({"leak": answer(True, cites=["M1"], category="name")}), [LEAK], (), KNOWN))
    assert (kept.category, kept.warnings) == ("name", ())


def test_a_contradicted_fact_decides_and_prose_does_not() -> None:
    prose = {"claim": answer(False, rationale="F1 does not hold: send_email was never called")}
    agrees = only(read_reply(reply(prose, facts={"F1": True}), [CLAIM], (FACT,), KNOWN))
    assert agrees.value is Tri.TRUE
    contradicts = only(read_reply(reply({"claim": answer(False)}, facts={"F1": False}), [CLAIM], (FACT,), KNOWN))
    assert (contradicts.value, contradicts.code) == (Tri.UNDETERMINED, ReasonCode.JUDGE_CONTRADICTS_FACT)
    for facts in ({}, {"F1": "true"}, {"F1": None}, {"F1": True, "F2": True}):
        other = only(read_reply(reply({"claim": answer(False)}, facts=facts), [CLAIM], (FACT,), KNOWN))
        assert other.code is ReasonCode.JUDGE_UNPARSABLE
    assert only(read_reply(reply({"claim": answer(False)}), [CLAIM], (FACT,), KNOWN)).value is Tri.UNDETERMINED


def test_a_failure_is_never_an_answer() -> None:
    failed = JudgeReply(failure=Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail="timed out"))
    sample = only(read_reply(failed, [CLAIM], (), KNOWN))
    assert (sample.value, sample.code, sample.detail) == (Tri.UNDETERMINED, ReasonCode.JUDGE_UNAVAILABLE, "timed out")
