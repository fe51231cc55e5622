"""Judge scorers: identities, polarity, and evidence that does not answer what is asked."""

from __future__ import annotations

import pytest

from grader.core.conditions import AnyOf, Not
from grader.core.expectation import Expectation
from grader.core.judging.conditions import (
    JudgeSettings,
    MatchesObjective,
    MeetsDimensions,
    TraceEvidenceRequirement,
    VoteRule,
)
from grader.core.judging.dimensions import Dimension
from grader.core.judging.judgement import Judgement, JudgementPayload, JudgeReply
from grader.core.observation import Acquisition, Observation
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from grader.core.verdict import Verdict
from grader.errors import UsageError
from grader.scorers.composite import CompositeScorer
from grader.scorers.judge_scorers import judge_scorers
from tests.unit.core.judging.samples import CLAIM, QUALITY, answer, reply, turn
from tests.unit.scorers.tool_samples import observed, payload

BAD = {"claim": answer(True, cites=["T1", "M1"], rationale="a lie")}
GOOD = {"claim": answer(False)}
ASKED = MeetsDimensions(dimensions=(CLAIM,))


def judged(*replies: JudgeReply, dimensions: tuple[Dimension, ...] = (CLAIM,)) -> Observation:
    answered = JudgementPayload(
        name="c",
        turns=(turn(1, "hello"),),
        acquisition=Acquisition.COMPLETE,
        spans=("a/1",),
        trace_budget=60_000,
        judgements=(Judgement(dimensions=dimensions, steps=("T1",), replies=replies),),
    )
    return Observation(acquisition=Acquisition.COMPLETE, payload=answered)


def score(
    condition: MeetsDimensions | MatchesObjective | Not | AnyOf,
    observation: Observation,
    settings: JudgeSettings | None = None,
) -> Verdict:
    settings = settings if settings is not None else JudgeSettings()
    scorers = judge_scorers(settings, has_trace_source=True, has_facts=True, clock_skew_tolerance_ns=5)
    return CompositeScorer(scorers).score(Expectation(conditions=(condition,)), (observation,))


def test_polarity_is_the_callers() -> None:
    assert score(ASKED, judged(reply(GOOD))).value is Tri.TRUE
    bad = score(ASKED, judged(reply(BAD)))
    assert (bad.value, bad.rationale) == (Tri.FALSE, 'claim is true (1 bad): "a lie", citing M1, T1')
    turned = score(Not(condition=ASKED), judged(reply(GOOD)))
    assert (turned.value, [finding.code for finding in turned.findings]) == (Tri.FALSE, [ReasonCode.JUDGE_VIOLATION])
    assert score(Not(condition=ASKED), judged(reply(BAD))).value is Tri.TRUE
    assert score(Not(condition=ASKED), judged(JudgeReply(content="?"))).value is Tri.UNDETERMINED


def test_a_false_dimension_decides_over_an_undetermined_one() -> None:
    both = MeetsDimensions(dimensions=(CLAIM, QUALITY))
    observation = judged(reply({**BAD, "quality": answer("?")}), dimensions=both.dimensions)
    verdict = score(both, observation)
    assert verdict.value is Tri.FALSE
    assert [finding.code for finding in verdict.findings] == [
        ReasonCode.JUDGE_VIOLATION,
        ReasonCode.JUDGE_UNPARSABLE,
    ]


def test_the_rationale_is_quoted_because_it_is_a_models() -> None:
    hostile = {"claim": answer(True, cites=["T1"], rationale='\x1b[2J"\n\u202e')}
    assert '"\\u' not in score(ASKED, judged(reply(hostile))).rationale.split(":")[0]
    assert not {"\x1b", "\n", "\u202e"} & set(score(ASKED, judged(reply(hostile))).rationale)


@pytest.mark.parametrize(
    ("settings", "identity"),
    [
        (JudgeSettings(), "JudgeDimensionScorer/1(dimensions=DIGEST, clock_skew_tolerance=5ns)"),
        (
            JudgeSettings(samples=3, rule=VoteRule.UNANIMOUS, require_trace=TraceEvidenceRequirement.AVAILABLE),
            "JudgeDimensionScorer/1(dimensions=DIGEST, samples=3, rule=unanimous, require_trace=available, "
            "clock_skew_tolerance=5ns)",
        ),
        # What has no effect is left out: the rule of one vote, the tolerance of facts that are not given.
        (
            JudgeSettings(rule=VoteRule.UNANIMOUS, give_facts=False),
            "JudgeDimensionScorer/1(dimensions=DIGEST, give_facts=false)",
        ),
    ],
)
def test_identities(settings: JudgeSettings, identity: str) -> None:
    found = score(ASKED, judged(reply(GOOD)), settings).conditions[0].scorer
    assert found == identity.replace("DIGEST", "755685133fdf")


def test_the_default_identity_is_bare() -> None:
    (objective, _) = judge_scorers(JudgeSettings(), has_trace_source=False, has_facts=False)
    assert objective.identity == "JudgeObjectiveScorer/1"


def test_a_requirement_without_a_source_cannot_be_built() -> None:
    for requirement in (TraceEvidenceRequirement.AVAILABLE, TraceEvidenceRequirement.COMPLETE):
        with pytest.raises(UsageError, match="no source of traces"):
            judge_scorers(JudgeSettings(require_trace=requirement), has_trace_source=False, has_facts=False)


def test_evidence_that_does_not_answer() -> None:
    other = MeetsDimensions(dimensions=(QUALITY,))
    observation = judged(reply(GOOD))
    for condition, settings in (
        (other, JudgeSettings()),
        (MatchesObjective(objective="x"), JudgeSettings()),
        (ASKED, JudgeSettings(samples=2)),
        (ASKED, JudgeSettings(trace_budget=9_000)),
    ):
        verdict = score(condition, observation, settings)
        assert [finding.code for finding in verdict.findings] == [ReasonCode.NEEDS_EXECUTION]
    nothing = score(ASKED, observed(payload()))
    assert [finding.code for finding in nothing.findings] == [ReasonCode.EVIDENCE_NOT_COLLECTED]


def test_a_record_cannot_claim_steps_that_the_trace_lacks() -> None:
    plain = judged(reply(GOOD)).model_dump(mode="json")
    plain["payload"]["judgements"][0]["steps"] = ["T1", "T2"]
    with pytest.raises(ValueError, match="which the trace does not have"):
        Observation.model_validate(plain)
