"""The leaf scorers: identity, what they read, warnings, and the view of a conversation alone."""

from __future__ import annotations

import pytest

from grader.core.conditions import Condition
from grader.core.observation import Acquisition, Observation, Payload, register_payload
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import EvidenceSource, ToolsPayload
from grader.core.tools.conditions import ToolPrecededBy, ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from grader.core.traces.coverage import Coverage
from grader.core.tri import Tri
from grader.errors import UsageError
from grader.scorers.base import Scorer
from grader.scorers.tool_scorers import (
    MessageToolCallOrderScorer,
    MessageToolCallScorer,
    MessageToolPrecededByScorer,
    MessageToolsNotCalledScorer,
    OtelToolCallOrderScorer,
    OtelToolCallScorer,
    OtelToolPrecededByScorer,
    OtelToolsNotCalledScorer,
    seen_in_messages,
    tool_scorers,
)
from tests.unit.scorers.tool_samples import COMPLETE, NO_CONTENT, call, given, observed, payload, tool

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
M = EvidenceSource.MESSAGES
SEND = ToolsCalled(tools=(tool("send"),))
AB = ToolsCalledInOrder(tools=(tool("send"), tool("look")))
NOT_SEND = ToolsNotCalled(tools=("send",))
GATE = ToolPrecededBy(tool="send", by="look")


@pytest.mark.parametrize(
    ("scorer", "reads", "identity"),
    [
        (OtelToolCallScorer(), ToolsCalled, "OtelToolCallScorer/1"),
        (OtelToolsNotCalledScorer(), ToolsNotCalled, "OtelToolsNotCalledScorer/1"),
        (OtelToolCallOrderScorer(), ToolsCalledInOrder, "OtelToolCallOrderScorer/1"),
        (
            OtelToolCallOrderScorer(clock_skew_tolerance_ns=5_000_000),
            ToolsCalledInOrder,
            "OtelToolCallOrderScorer/1(clock_skew_tolerance_ns=5000000)",
        ),
        (OtelToolPrecededByScorer(), ToolPrecededBy, "OtelToolPrecededByScorer/1"),
        (
            OtelToolPrecededByScorer(clock_skew_tolerance_ns=1),
            ToolPrecededBy,
            "OtelToolPrecededByScorer/1(clock_skew_tolerance_ns=1)",
        ),
        (MessageToolCallScorer(), ToolsCalled, "MessageToolCallScorer/1"),
        (MessageToolsNotCalledScorer(), ToolsNotCalled, "MessageToolsNotCalledScorer/1"),
        (MessageToolCallOrderScorer(), ToolsCalledInOrder, "MessageToolCallOrderScorer/1"),
        (MessageToolPrecededByScorer(), ToolPrecededBy, "MessageToolPrecededByScorer/1"),
    ],
)
def test_identity(scorer: Scorer, reads: type[Condition], identity: str) -> None:
    assert isinstance(scorer, Scorer)
    assert (scorer.reads, scorer.identity, scorer.payload_kind) == (reads, identity, "tools")


@pytest.mark.parametrize("tolerance", [-1, True, 1.5, "5ms"])
def test_a_tolerance_is_a_whole_number_of_nanoseconds(tolerance: int) -> None:
    with pytest.raises(UsageError, match="whole number of nanoseconds"):
        OtelToolCallOrderScorer(clock_skew_tolerance_ns=tolerance)


def test_the_tolerance_is_in_the_verdict_and_not_in_the_fingerprint() -> None:
    observation = observed(payload(call("send", span=(0, 1)), call("look", span=(2, 3))))
    strict = OtelToolCallOrderScorer().score(AB, observation)
    lax = OtelToolCallOrderScorer(clock_skew_tolerance_ns=1).score(AB, observation)
    assert (strict.value, lax.value) == (T, U)
    assert strict.scorer == "OtelToolCallOrderScorer/1"
    assert lax.scorer == "OtelToolCallOrderScorer/1(clock_skew_tolerance_ns=1)"
    assert strict.fingerprint == lax.fingerprint == AB.fingerprint
    assert strict.observation == lax.observation == observation.digest


def test_a_condition_of_another_type_is_refused() -> None:
    with pytest.raises(UsageError, match="OtelToolCallScorer reads tools_called, not tools_not_called"):
        OtelToolCallScorer().score(NOT_SEND, observed(payload()))


@register_payload
class _Weather(Payload):
    payload_kind = "weather_for_a_test"


def test_an_observation_of_another_kind_holds_no_calls() -> None:
    verdict = OtelToolCallScorer().score(SEND, Observation(acquisition=Acquisition.COMPLETE, payload=_Weather()))
    assert verdict.value is U
    assert verdict.findings[0].code is ReasonCode.EVIDENCE_NOT_COLLECTED
    assert verdict.rationale == "the observation is of kind weather_for_a_test, and holds no tool calls"


def only_messages(*names: str, edges: list[tuple[str, str]] | None = None) -> ToolsPayload:
    calls = [call(name, given(to="x"), key=name, source=M) for name in names]
    return payload(*calls, edges=edges or []).model_copy(update={"sources": ()})


def test_a_trace_scorer_needs_a_trace_and_a_message_scorer_a_conversation() -> None:
    trace_only, messages_only = observed(payload(call("send"))), observed(only_messages("send"))
    assert OtelToolCallScorer().score(SEND, trace_only).value is T
    assert OtelToolCallScorer().score(SEND, messages_only).rationale == "no trace was read"
    assert MessageToolCallScorer().score(SEND, messages_only).value is T
    assert MessageToolCallScorer().score(SEND, trace_only).rationale == "no conversation was read"


MESSAGES: list[tuple[Scorer, Condition, ToolsPayload, Tri]] = [
    (MessageToolCallScorer(), SEND, only_messages("send"), T),
    (MessageToolCallScorer(), SEND, only_messages("look"), U),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send", to="x"),)), only_messages("send"), T),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send", to="y"),)), only_messages("send"), U),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send"),), exhaustive=True), only_messages("send"), U),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send"),), exhaustive=True), only_messages("send", "look"), F),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send", 0, 0),)), only_messages("send"), F),
    (MessageToolCallScorer(), ToolsCalled(tools=(tool("send", 0, 0),)), only_messages("look"), U),
    (MessageToolsNotCalledScorer(), NOT_SEND, only_messages("send"), F),
    (MessageToolsNotCalledScorer(), NOT_SEND, only_messages("look"), U),
    (MessageToolCallOrderScorer(), AB, only_messages("send", "look", edges=[("send", "look")]), T),
    (MessageToolCallOrderScorer(), AB, only_messages("send", "look", edges=[("look", "send")]), U),
    (MessageToolCallOrderScorer(), AB, only_messages("send"), U),
    (MessageToolPrecededByScorer(), GATE, only_messages("send", "look", edges=[("look", "send")]), U),
    (MessageToolPrecededByScorer(), GATE, only_messages("send"), U),
]


@pytest.mark.parametrize(("scorer", "condition", "evidence", "value"), MESSAGES)
def test_messages_alone_never_confirm_an_absence(
    scorer: Scorer, condition: Condition, evidence: ToolsPayload, value: Tri
) -> None:
    # Declared complete or not: a conversation shows what was answered, not everything that ran.
    for coverage in (COMPLETE, Coverage()):
        assert scorer.score(condition, observed(evidence.model_copy(update={"coverage": coverage}))).value is value


def test_the_view_of_messages_has_no_times_and_no_calls_of_the_trace() -> None:
    both = payload(
        call("send", key="a", span=(0, 1)),
        call("look", key="b", span=(2, 3), source=M),
        edges=[("a", "b")],
        unnamed=1,
    )
    view = seen_in_messages(both)
    assert [(c.key, c.attempts) for c in view.calls] == [("b", ())]
    assert (view.order_edges, view.possible, view.coverage.is_complete) == ((), (), False)


WARNING = ("tools_called constrains arguments, and this source keeps none: only the absence of the tool can settle it",)


def test_warns_of_arguments_that_the_source_does_not_keep() -> None:
    to_x = ToolsCalled(tools=(tool("send", to="x"),))
    kept, lost = payload(call("send", given(to="x"))), payload(call("send", NO_CONTENT))
    without_content = payload(call("look")).model_copy(update={"retain_content": False})
    scorer = OtelToolCallScorer()
    assert scorer.warnings(to_x, observed(lost)) == WARNING
    assert scorer.warnings(to_x, observed(without_content)) == WARNING
    assert scorer.warnings(to_x, observed(kept)) == ()
    assert scorer.warnings(to_x, observed(payload(call("send", NO_CONTENT), call("send", given(to="x"))))) == ()
    assert scorer.warnings(SEND, observed(lost)) == ()
    order = ToolsCalledInOrder(tools=(tool("send", to="x"), tool("look")))
    assert len(OtelToolCallOrderScorer().warnings(order, observed(lost))) == 1
    assert OtelToolsNotCalledScorer().warnings(NOT_SEND, observed(lost)) == ()


def test_without_content_names_and_times_are_judged_as_ever() -> None:
    evidence = payload(call("send", NO_CONTENT, span=(0, 1)), call("look", NO_CONTENT, span=(2, 3)))
    observation = observed(evidence.model_copy(update={"retain_content": False}))
    assert OtelToolCallScorer().score(SEND, observation).value is T
    assert OtelToolCallOrderScorer().score(AB, observation).value is T
    assert OtelToolsNotCalledScorer().score(NOT_SEND, observation).value is F
    assert OtelToolCallScorer().score(ToolsCalled(tools=(tool("send", to="x"),)), observation).value is U
    assert OtelToolCallScorer().score(ToolsCalled(tools=(tool("gone", to="x"),)), observation).value is F


def test_there_is_a_scorer_for_every_tool_condition() -> None:
    scorers = tool_scorers(clock_skew_tolerance_ns=7)
    assert [scorer.reads for scorer in scorers] == [ToolsCalled, ToolsCalledInOrder, ToolsNotCalled, ToolPrecededBy]
    assert [("=7" in scorer.identity) for scorer in scorers] == [False, True, False, True]
    by_type = {scorer.reads: scorer for scorer in scorers}
    assert by_type[ToolsNotCalled].score(NOT_SEND, observed(only_messages("send"))).value is F
    assert by_type[ToolsCalledInOrder].score(AB, observed(payload(call("send"), call("look")))).value is U
