"""`ToolPrecededBy`: every execution of a tool has its own earlier execution of another."""

from __future__ import annotations

import itertools
import random

import pytest

from grader.core.observation import Acquisition, Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.core.tools.conditions import ToolPrecededBy
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict
from grader.scorers.preceded_by import judge_preceded_by
from grader.scorers.tool_evidence import ToolEvidence
from grader.scorers.tool_scorers import OtelToolPrecededByScorer
from tests.unit.scorers.tool_samples import CUT, SELF_REPORTED, UNDECLARED, call, observed, payload

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
R = ReasonCode
INC = R.EVIDENCE_INCOMPLETE
GATE = ToolPrecededBy(tool="send", by="confirm")
DECLARED = "evidence complete, declared by the caller"


def send(start: int | None, end: int | None, key: str | None = None, same: str | None = None) -> ToolCall:
    return call("send", span=(start, end), key=key, same=same)


def confirm(start: int | None, end: int | None, key: str | None = None, same: str | None = None) -> ToolCall:
    return call("confirm", span=(start, end), key=key, same=same)


def judge(evidence: ToolsPayload | Observation, tolerance: int = 0) -> ConditionVerdict:
    observation = evidence if isinstance(evidence, Observation) else observed(evidence)
    verdict = OtelToolPrecededByScorer(clock_skew_tolerance_ns=tolerance).score(GATE, observation)
    assert (len(verdict.findings) == 0) is (verdict.value is T)
    return verdict


OK = (confirm(0, 1), send(2, 3))
REVERSED = (send(0, 1), confirm(2, 3))

TABLE: list[tuple[str, ToolsPayload | Observation, int, Tri, ReasonCode | None]] = [
    ("its own", payload(*OK), 0, T, None),
    ("its own, cut: another send may be unseen", payload(*OK, coverage=CUT), 0, U, INC),
    ("its own, undeclared", payload(*OK, coverage=UNDECLARED), 0, U, INC),
    ("its own, self-reported", payload(*OK, coverage=SELF_REPORTED), 0, U, R.EVIDENCE_SELF_REPORTED),
    ("its own, a request without a link", payload(*OK, unlinked=["1"]), 0, U, INC),
    ("its own, partial", observed(payload(*OK), Acquisition.PARTIAL), 0, U, INC),
    ("its own, error", observed(payload(*OK), Acquisition.ERROR), 0, U, R.EVIDENCE_NOT_COLLECTED),
    ("send never ran", payload(confirm(0, 1)), 0, T, None),
    ("send not seen, cut", payload(confirm(0, 1), coverage=CUT), 0, U, INC),
    ("no confirm", payload(send(0, 1)), 0, F, R.TOOL_ORDER),
    ("no confirm, cut", payload(send(0, 1), coverage=CUT), 0, U, INC),
    ("no confirm, a request without a link", payload(send(0, 1), unlinked=["1"]), 0, U, INC),
    ("confirm after", payload(*REVERSED), 0, F, R.TOOL_ORDER),
    ("confirm after, undeclared", payload(*REVERSED, coverage=UNDECLARED), 0, U, INC),
    ("send, confirm, send: in order, but no gate", payload(send(0, 1), confirm(2, 3), send(4, 5)), 0, F, R.TOOL_ORDER),
    ("one confirm for two sends", payload(confirm(0, 1), send(2, 3), send(4, 5)), 0, F, R.TOOL_ORDER),
    ("two confirms for two sends", payload(confirm(0, 1), confirm(1, 2), send(3, 4), send(3, 4)), 0, T, None),
    ("confirms that overlap a send", payload(confirm(0, 5), send(3, 8)), 0, U, R.ORDER_OVERLAP),
    ("touching", payload(confirm(0, 2), send(2, 3)), 0, U, R.ORDER_OVERLAP),
    ("gap of the tolerance", payload(confirm(0, 1), send(3, 4)), 2, U, R.ORDER_OVERLAP),
    ("gap over the tolerance", payload(confirm(0, 1), send(4, 5)), 2, T, None),
    ("reversed by the tolerance", payload(send(0, 1), confirm(3, 4)), 2, U, R.ORDER_OVERLAP),
    ("reversed beyond the tolerance", payload(send(0, 1), confirm(4, 5)), 2, F, R.TOOL_ORDER),
    ("no times", payload(call("confirm"), call("send")), 0, U, R.ORDER_OVERLAP),
    (
        "two records of perhaps one confirm",
        payload(confirm(0, 1, "a"), confirm(0, 1, "b", same="a"), send(2, 3), send(2, 3)),
        0,
        U,
        R.ORDER_OVERLAP,
    ),
    (
        "two records of perhaps one send",
        payload(confirm(0, 1), send(2, 3, "a"), send(2, 3, "b", same="a")),
        0,
        U,
        R.ORDER_OVERLAP,
    ),
    ("a call of both names is not its own gate", payload(call(["send", "confirm"], span=(0, 1))), 0, F, R.TOOL_ORDER),
    (
        "a call of both names, and a record that may be of it or of its gate",
        payload(confirm(0, 1, "a"), call(["send", "confirm"], span=(1, 2), key="b", same="a")),
        0,
        U,
        R.ORDER_OVERLAP,
    ),
    (
        "the same, and the gate would have come too late",
        payload(call(["send", "confirm"], span=(0, 1), key="a"), confirm(2, 3, "b", same="a")),
        0,
        F,
        R.TOOL_ORDER,
    ),
    (
        "an edge of the conversation",
        payload(call("confirm", key="a"), call("send", key="b"), edges=[("a", "b")]),
        0,
        T,
        None,
    ),
    (
        "an edge for one of two sends",
        payload(call("confirm", key="a"), call("send", key="b"), call("send", key="c"), edges=[("a", "b")]),
        0,
        F,
        R.TOOL_ORDER,
    ),
    (
        "edges chain",
        payload(call("confirm", key="a"), call("x", key="x"), call("send", key="b"), edges=[("a", "x"), ("x", "b")]),
        0,
        T,
        None,
    ),
    (
        "an edge against the clock",
        payload(confirm(8, 9, "a"), send(0, 1, "b"), edges=[("a", "b")]),
        0,
        U,
        R.EVIDENCE_CONFLICT,
    ),
]


@pytest.mark.parametrize(("evidence", "tolerance", "value", "code"), [r[1:] for r in TABLE], ids=[r[0] for r in TABLE])
def test_table(evidence: ToolsPayload | Observation, tolerance: int, value: Tri, code: ReasonCode | None) -> None:
    verdict = judge(evidence, tolerance)
    assert verdict.value is value, verdict.rationale
    assert next((finding.code for finding in verdict.findings), None) is code


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (payload(*OK), f"every execution of send has its own earlier execution of confirm ({DECLARED})"),
        (payload(), f"send was not executed ({DECLARED})"),
        (payload(send(0, 1)), f"send was executed, and confirm was not ({DECLARED})"),
        (
            payload(send(0, 1), confirm(2, 3), send(4, 5)),
            f"1 of send had ended by +1 ns, and only 0 of confirm can have happened before ({DECLARED})",
        ),
        (
            payload(confirm(0, 5), send(3, 8)),
            "every execution of send may have its own earlier execution of confirm, but the recorded times do not "
            "make it certain",
        ),
        (
            payload(*OK, coverage=CUT),
            "every execution of send has its own earlier execution of confirm; "
            "evidence incomplete: the input ends in the middle of a record",
        ),
    ],
)
def test_rationale(evidence: ToolsPayload, words: str) -> None:
    assert judge(evidence).rationale == words


def test_budget_for_pairs() -> None:
    evidence = ToolEvidence(payload(confirm(0, 5, "a"), send(3, 8, "b"), call("x", key="c"), edges=[("a", "c")]))
    assert judge_preceded_by(GATE, evidence, 0)[0].code is R.ORDER_OVERLAP
    assert judge_preceded_by(GATE, evidence, 0, budget=2)[0].code is R.ORDER_BUDGET


def all_matched(actions: list[int], gates: list[int], is_before: list[list[bool]]) -> bool:
    return any(
        all(is_before[gate][action] for gate, action in zip(choice, actions, strict=True))
        for choice in itertools.permutations(gates, len(actions))
    )


@pytest.mark.parametrize("rounds", [1_000, pytest.param(30_000, marks=pytest.mark.slow)])
def test_agrees_with_trying_every_pairing(rounds: int) -> None:
    """Calls may have either name or both; edges agree with the clocks."""
    rng = random.Random(7)
    seen = dict.fromkeys(Tri, 0)
    for _ in range(rounds):
        spans = [(s, s + rng.choice([0, 1, 3])) for s in sorted(rng.randint(0, 8) for _ in range(rng.randint(1, 6)))]
        names = [rng.choice([["send"], ["confirm"], ["confirm"], ["confirm", "send"]]) for _ in spans]
        tolerance = rng.choice([0, 0, 1])
        count = len(spans)
        edges = [(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.1]
        certain = [
            [spans[b][0] - spans[a][1] > tolerance or (a, b) in edges for b in range(count)] for a in range(count)
        ]
        for k, a, b in itertools.product(range(count), repeat=3):
            certain[a][b] = certain[a][b] or (certain[a][k] and certain[k][b])
        can_be = [[a != b and spans[a][0] - spans[b][1] <= tolerance for b in range(count)] for a in range(count)]
        actions = [i for i in range(count) if "send" in names[i]]
        gates = [i for i in range(count) if "confirm" in names[i]]
        possible = U if all_matched(actions, gates, can_be) else F
        expected = T if all_matched(actions, gates, certain) else possible
        calls = [call(names[i], span=spans[i], key=str(i)) for i in range(count)]
        verdict = judge(payload(*calls, edges=[(str(a), str(b)) for a, b in edges]), tolerance)
        assert verdict.value is expected, (spans, names, edges, tolerance)
        seen[expected] += 1
    assert min(seen.values()) > rounds // 10, seen
