"""Dimensions, presets, conditions and traces refuse what cannot be meant, and keep their fingerprints."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from grader.core.conditions import parse_condition
from grader.core.judging.conditions import JudgeSettings, MatchesObjective, MeetsDimensions, VoteRule
from grader.core.judging.dimensions import Dimension, Preset
from grader.core.observation import Acquisition, Observation
from grader.core.traces.content import TextRules, kept_content
from grader.core.traces.coverage import Coverage
from grader.core.traces.execution_trace import ExecutionTrace, observe_trace
from tests.unit.core.judging.samples import CLAIM, LEAK, QUALITY, step, trace


@pytest.mark.parametrize(
    ("plain", "wrong"),
    [
        ({"name": "a", "question": " "}, "must not be empty"),
        ({"name": "A b", "question": "x"}, "pattern"),
        ({"name": "a", "question": "x", "bad": "yes"}, "true or false"),
        ({"name": "a", "question": "x", "violation_at": "b"}, "needs grades"),
        (
            {"name": "a", "question": "x", "grades": [{"name": "b", "meaning": "c"}], "violation_at": "b"},
            "at least two",
        ),
        ({"name": "a", "question": "x", "colour": 1}, "Extra inputs"),
        ({"name": "a", "question": "x", "categories": [{"name": "b", "meaning": "c"}] * 2}, "named twice"),
        ({"name": "a", "question": "x", "categories": [{"name": "true", "meaning": "c"}]}, "meaning of its own"),
    ],
)
def test_a_dimension_that_cannot_be_meant(plain: dict[str, object], wrong: str) -> None:
    with pytest.raises(ValidationError, match=wrong):
        Dimension.model_validate(plain)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"violation_at": "fine"}, "nothing is good"),
        ({"violation_at": "bad"}, "names one of its grades"),
        ({}, "names one of its grades"),
        ({"violation_at": "poor", "bad": True}, "instead of bad"),
    ],
)
def test_a_graded_dimension_that_cannot_be_meant(more: dict[str, object], wrong: str) -> None:
    grades = [{"name": "fine", "meaning": "x"}, {"name": "poor", "meaning": "y"}]
    with pytest.raises(ValidationError, match=wrong):
        Dimension.model_validate({"name": "a", "question": "x", "grades": grades, **more})


def test_which_answers_are_bad() -> None:
    assert [CLAIM.is_bad(answer) for answer in CLAIM.answers] == [True, False]
    assert [QUALITY.is_bad(answer) for answer in QUALITY.answers] == [False, True, True]
    assert not Dimension(name="a", question="x", bad=False).is_bad("true")


def test_plain_forms_come_back_and_leave_defaults_out() -> None:
    for dimension in (CLAIM, QUALITY, LEAK):
        assert Dimension.model_validate(dimension.to_plain()) == dimension
    assert CLAIM.to_plain() == {"name": "claim", "question": CLAIM.question}
    condition = MeetsDimensions(dimensions=(CLAIM, QUALITY))
    assert parse_condition(condition.to_plain()) == condition
    assert MatchesObjective(objective="x").fingerprint == (
        "9b0252f9b7dbe350fa5fe8754124a2ad312c63df8d452e224f590fed961b99a8"
    )


def test_a_condition_asks_for_something() -> None:
    with pytest.raises(ValidationError, match="no dimensions"):
        MeetsDimensions()
    with pytest.raises(ValidationError, match="two dimensions are named"):
        MeetsDimensions(dimensions=(CLAIM, CLAIM))
    with pytest.raises(ValidationError, match="two dimensions are named"):
        Preset(name="p", about="x", dimensions=(CLAIM, CLAIM))
    with pytest.raises(ValueError, match="no objective"):
        _ = MatchesObjective().questions
    with pytest.raises(ValueError, match="not filled in"):
        _ = MeetsDimensions(preset="grounding").questions


def test_identity_names_only_what_takes_effect() -> None:
    assert JudgeSettings().identity(has_facts=True) == ()
    assert JudgeSettings(rule=VoteRule.UNANIMOUS).identity(has_facts=True) == ()
    assert JudgeSettings(give_facts=False).identity(has_facts=False) == ()
    asked = JudgeSettings(samples=3, rule=VoteRule.UNANIMOUS, give_facts=False, trace_budget=9_000)
    assert asked.identity(has_facts=True) == ("samples=3", "rule=unanimous", "give_facts=false", "trace_budget=9000")
    for samples in (0, 100, True, "3"):
        with pytest.raises(ValidationError):
            JudgeSettings.model_validate({"samples": samples})


def test_a_redactor_runs_before_hashing_and_cutting() -> None:
    rules = TextRules(max_characters=10, redactor=lambda what, text: text.replace("secret", f"<{what}>"))
    kept = kept_content("my secret is long", "input", rules)
    assert kept.text == "my <input>"
    assert kept.total_characters == len("my <input> is long")
    assert kept.sha256 == kept_content("my <input> is long", "input", TextRules()).sha256
    assert kept.is_cut
    nothing = kept_content("my secret", "input", TextRules(retain_content=False))
    assert (nothing.text, nothing.total_characters, nothing.sha256) == (None, None, None)


def test_steps_count_up_and_parents_stand_above() -> None:
    with pytest.raises(ValidationError, match="has the id"):
        trace(step(2))
    for parent in (1, 2):
        with pytest.raises(ValidationError, match="does not stand above"):
            trace(step(1, parent=parent), step(2))


def test_acquisition_follows_the_coverage() -> None:
    declared = Coverage(declared_by="the caller")
    assert observe_trace(trace(step(1))).acquisition is Acquisition.PARTIAL
    assert observe_trace(trace(step(1)).model_copy(update={"coverage": declared})).acquisition is Acquisition.COMPLETE
    assert observe_trace(ExecutionTrace(coverage=declared)).acquisition is Acquisition.UNAVAILABLE


def test_an_observation_comes_back_with_its_digest() -> None:
    observation = observe_trace(trace(step(1, given="in", got="out"), step(2, parent=1)))
    again = Observation.model_validate(observation.model_dump(mode="json"))
    assert again == observation
    assert again.digest == observation.digest
