"""Routing to leaf scorers, Kleene logic over what they say, and falling back."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from grader.core.conditions import AllOf, AnyOf, Condition, Not
from grader.core.expectation import Expectation
from grader.core.observation import Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import EvidenceSource
from grader.core.tools.conditions import ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from grader.core.tri import Tri, all_of, any_of
from grader.core.verdict import ConditionVerdict, Finding
from grader.errors import TaskError, UsageError
from grader.scorers.composite import CompositeScorer, FirstDetermined, judge_condition, judge_expectation
from grader.scorers.tool_scorers import (
    MessageToolCallScorer,
    OtelToolCallOrderScorer,
    OtelToolCallScorer,
    OtelToolsNotCalledScorer,
)
from tests.unit.scorers.tool_samples import CUT, NO_CONTENT, UNDECLARED, call, given, observed, payload, tool

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED


def leaf(name: str) -> Condition:
    return ToolsNotCalled(tools=(name,))


def leaf_judge(values: dict[str, Tri], asked: list[str]) -> Callable[[Condition], ConditionVerdict]:
    def judge(condition: Condition) -> ConditionVerdict:
        assert isinstance(condition, ToolsNotCalled)
        name = condition.tools[0]
        asked.append(name)
        value = values[name]
        code = {T: None, F: ReasonCode.TOOL_FORBIDDEN, U: ReasonCode.EVIDENCE_INCOMPLETE}[value]
        return ConditionVerdict(
            condition_type=condition.condition_type,
            fingerprint=condition.fingerprint,
            value=value,
            rationale=f"{name} is {value}",
            findings=() if code is None else (Finding(code=code, detail=name),),
        )

    return judge


@pytest.mark.parametrize(("a", "b", "c"), list(itertools.product(Tri, repeat=3)))
def test_kleene_over_every_shape_and_no_short_circuit(a: Tri, b: Tri, c: Tri) -> None:
    values = {"a": a, "b": b, "c": c}
    shapes: list[tuple[Condition, Tri]] = [
        (AllOf(conditions=(leaf("a"), leaf("b"), leaf("c"))), all_of([a, b, c])),
        (AnyOf(conditions=(leaf("a"), leaf("b"), leaf("c"))), any_of([a, b, c])),
        (AllOf(conditions=(Not(condition=leaf("a")), leaf("b"), leaf("c"))), all_of([a.negated(), b, c])),
        (Not(condition=AnyOf(conditions=(leaf("a"), AllOf(conditions=(leaf("b"), leaf("c")))))),
         any_of([a, all_of([b, c])]).negated()),
    ]  # fmt: skip
    for condition, expected in shapes:
        asked: list[str] = []
        verdict = judge_condition(condition, leaf_judge(values, asked))
        assert verdict.value is expected
        assert asked == ["a", "b", "c"]
        assert (len(verdict.findings) == 0) is (expected is T)
    asked = []
    expectation = Expectation(conditions=(leaf("a"), leaf("b"), leaf("c")))
    whole = judge_expectation(expectation, leaf_judge(values, asked), observations=["d"])
    assert whole.value is all_of([a, b, c])
    assert asked == ["a", "b", "c"]
    assert (whole.expectation, whole.observations) == (expectation.fingerprint, ("d",))


def test_words_name_what_decides_first_and_then_all_that_is_unsettled() -> None:
    expectation = Expectation(conditions=(leaf("a"), leaf("b"), leaf("c")))
    verdict = judge_expectation(expectation, leaf_judge({"a": U, "b": T, "c": F}, []))
    assert verdict.rationale == "c is false; a is undetermined"
    assert [finding.code.value for finding in verdict.findings] == ["tool.forbidden", "evidence.incomplete"]
    verdict = judge_expectation(expectation, leaf_judge({"a": T, "b": T, "c": T}, []))
    assert verdict.rationale == "a is true; b is true; c is true"


def test_a_negation_that_is_false_has_a_reason() -> None:
    verdict = judge_condition(Not(condition=leaf("a")), leaf_judge({"a": T}, []))
    assert (verdict.value, verdict.rationale) == (F, "not: a is true")
    assert [finding.code for finding in verdict.findings] == [ReasonCode.TOOL_MISSING]


def test_conditions_go_to_the_scorer_that_reads_them() -> None:
    scorer = CompositeScorer([OtelToolCallScorer(), OtelToolsNotCalledScorer(), OtelToolCallOrderScorer()])
    expectation = Expectation(
        conditions=(
            AnyOf(conditions=(ToolsCalled(tools=(tool("send"),)), ToolsNotCalled(tools=("look",)))),
            ToolsCalledInOrder(tools=(tool("look"), tool("send"))),
        )
    )
    observation = observed(payload(call("look", span=(0, 1)), call("send", span=(2, 3)), coverage=CUT))
    verdict = scorer.score(expectation, [observation])
    assert verdict.value is T
    assert [part.scorer for part in verdict.conditions[0].parts] == [
        "OtelToolCallScorer/1",
        "OtelToolsNotCalledScorer/1",
    ]
    assert [part.value for part in verdict.conditions[0].parts] == [T, F]
    assert verdict.conditions[1].scorer == "OtelToolCallOrderScorer/1"
    assert verdict.observations == (observation.digest,)


def test_a_condition_that_no_scorer_reads_is_an_error_before_anything_is_judged() -> None:
    scorer = CompositeScorer([OtelToolCallScorer()])
    expectation = Expectation(
        conditions=(
            Not(condition=ToolsNotCalled(tools=("a",))),
            AllOf(conditions=(ToolsCalledInOrder(tools=(tool("a"), tool("b"))), ToolsNotCalled(tools=("b",)))),
            ToolsCalled(tools=(tool("a"),)),
        )
    )
    with pytest.raises(TaskError) as raised:
        scorer.check(expectation)
    assert [problem.message for problem in raised.value.problems] == [
        "no scorer reads the condition tools_not_called",
        "no scorer reads the condition tools_called_in_order",
    ]
    assert raised.value.problems[0].hint == "conditions that can be read here: tools_called"
    with pytest.raises(TaskError):
        scorer.score(expectation, [])


def test_two_scorers_for_one_condition_are_refused() -> None:
    with pytest.raises(UsageError, match="OtelToolCallScorer/1 and MessageToolCallScorer/1 both read tools_called"):
        CompositeScorer([OtelToolCallScorer(), MessageToolCallScorer()])


def test_no_observation_of_the_kind_is_undetermined() -> None:
    verdict = CompositeScorer([OtelToolCallScorer()]).score(Expectation(conditions=(ToolsCalled(exhaustive=True),)), [])
    assert verdict.value is U
    assert verdict.findings[0].code is ReasonCode.EVIDENCE_NOT_COLLECTED
    assert verdict.rationale == "there is no observation of kind tools"


def test_two_observations_of_one_kind_are_refused() -> None:
    scorer = CompositeScorer([OtelToolCallScorer()])
    expectation = Expectation(conditions=(ToolsCalled(exhaustive=True),))
    with pytest.raises(UsageError, match="two observations of kind tools"):
        scorer.score(expectation, [observed(payload()), observed(payload(call("a")))])


def test_warnings_are_gathered() -> None:
    scorer = CompositeScorer([OtelToolCallScorer()])
    one, other = ToolsCalled(tools=(tool("a", to="x"),)), ToolsCalled(tools=(tool("a", to="y"),))
    expectation = Expectation(conditions=(one, Not(condition=other)))
    assert len(scorer.warnings(expectation, [observed(payload(call("a", NO_CONTENT)))])) == 1
    assert scorer.warnings(expectation, [observed(payload(call("a", given(to="x"))))]) == ()
    assert scorer.warnings(expectation, []) == ()


SEND = ToolsCalled(tools=(tool("send"),))
BOTH = FirstDetermined([OtelToolCallScorer(), MessageToolCallScorer()])


def messages(*names: str) -> Observation:
    calls = [call(name, key=name, source=EvidenceSource.MESSAGES) for name in names]
    return observed(payload(*calls, coverage=UNDECLARED).model_copy(update={"sources": ()}))


def test_first_determined_asks_no_further_once_it_is_settled() -> None:
    verdict = BOTH.score(SEND, observed(payload(call("look"))))
    assert verdict.value is F
    assert verdict.rationale == "send was not executed (evidence complete, declared by the caller)"
    assert verdict.scorer == "FirstDetermined(OtelToolCallScorer/1, MessageToolCallScorer/1)"


def test_first_determined_falls_back_and_says_what_was_lacking() -> None:
    verdict = BOTH.score(SEND, messages("send"))
    assert (verdict.value, verdict.findings) == (T, ())
    assert verdict.rationale == "send was executed; OtelToolCallScorer/1 could not settle it (no trace was read)"


def test_first_determined_with_nothing_settled_names_every_lack() -> None:
    verdict = BOTH.score(SEND, messages("look"))
    assert verdict.value is U
    codes = [finding.code for finding in verdict.findings]
    assert codes == [ReasonCode.EVIDENCE_NOT_COLLECTED, ReasonCode.EVIDENCE_INCOMPLETE]
    assert verdict.rationale == (
        "OtelToolCallScorer/1 could not settle it (no trace was read); MessageToolCallScorer/1: "
        "no execution of send was seen; evidence incomplete: nobody declared that the trace is complete; "
        "messages show what was answered, not everything that ran"
    )


def test_first_determined_routes_like_a_scorer() -> None:
    verdict = CompositeScorer([BOTH]).score(Expectation(conditions=(SEND,)), [messages("send")])
    assert verdict.value is T


def test_first_determined_needs_scorers_of_one_condition() -> None:
    with pytest.raises(UsageError, match="do not read the same condition"):
        FirstDetermined([OtelToolCallScorer(), OtelToolsNotCalledScorer()])
    with pytest.raises(UsageError, match="at least one"):
        FirstDetermined([])
