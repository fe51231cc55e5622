"""`ToolsCalledInOrder`: verdicts, reason codes and words in every state of the evidence."""

from __future__ import annotations

import random

import pytest

from grader.core.observation import Acquisition, Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import ToolArguments
from grader.core.tools.calls import EvidenceSource, ToolCall, ToolsPayload
from grader.core.tools.conditions import ToolsCalledInOrder
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict
from grader.scorers.causal_order import Precedence
from grader.scorers.interval_order import Span, find_definite
from grader.scorers.order import duration, judge_order
from grader.scorers.tool_evidence import ToolEvidence
from grader.scorers.tool_scorers import MessageToolCallOrderScorer, OtelToolCallOrderScorer
from tests.unit.scorers.tool_samples import ABSENT, CUT, NO_CONTENT, UNDECLARED, call, given, observed, payload, tool

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
R = ReasonCode
INC = R.EVIDENCE_INCOMPLETE
DECLARED = "evidence complete, declared by the caller"


def steps(*names: str) -> ToolsCalledInOrder:
    return ToolsCalledInOrder(tools=tuple(tool(name) for name in names))


def at(
    name: str, start: int | None, end: int | None, arguments: ToolArguments | None = None, *, key: str | None = None,
    same: str | None = None,
) -> ToolCall:  # fmt: skip
    return call(name, arguments, span=(start, end), key=key, same=same)


def judge(condition: ToolsCalledInOrder, evidence: ToolsPayload | Observation, tolerance: int = 0) -> ConditionVerdict:
    observation = evidence if isinstance(evidence, Observation) else observed(evidence)
    verdict = OtelToolCallOrderScorer(clock_skew_tolerance_ns=tolerance).score(condition, observation)
    assert (len(verdict.findings) == 0) is (verdict.value is T)
    return verdict


AB, ABC, AA = steps("A", "B"), steps("A", "B", "C"), steps("A", "A")
A_TO_X = ToolsCalledInOrder(tools=(tool("A", to="x"), tool("B")))
GATE = [at("send", 0, 1), at("confirm", 2, 3), at("send", 4, 5)]

TABLE: list[tuple[str, ToolsCalledInOrder, ToolsPayload | Observation, int, Tri, ReasonCode | None]] = [
    ("in order", AB, payload(at("A", 0, 1), at("B", 2, 3)), 0, T, None),
    ("in order, cut", AB, payload(at("A", 0, 1), at("B", 2, 3), coverage=CUT), 0, T, None),
    (
        "in order, a request without a link",
        AB, payload(at("A", 0, 1), at("B", 2, 3), unlinked=["request 1"]), 0, T, None,
    ),
    ("in order, last unfinished", AB, payload(at("A", 0, 1), at("B", 2, None)), 0, T, None),
    (
        "in order, error",
        AB, observed(payload(at("A", 0, 1), at("B", 2, 3)), Acquisition.ERROR), 0, U, R.EVIDENCE_NOT_COLLECTED,
    ),
    ("another send before confirm", steps("confirm", "send"), payload(*GATE), 0, T, None),
    ("touching", AB, payload(at("A", 0, 2), at("B", 2, 3)), 0, U, R.ORDER_OVERLAP),
    ("gap of the tolerance", AB, payload(at("A", 0, 2), at("B", 5, 6)), 3, U, R.ORDER_OVERLAP),
    ("gap over the tolerance", AB, payload(at("A", 0, 2), at("B", 6, 7)), 3, T, None),
    ("overlap", AB, payload(at("A", 0, 5), at("B", 3, 8)), 0, U, R.ORDER_OVERLAP),
    ("no times", AB, payload(call("A"), call("B")), 0, U, R.ORDER_OVERLAP),
    ("first unfinished", AB, payload(at("A", 0, None), at("B", 5, 6)), 0, U, R.ORDER_OVERLAP),
    ("unfinished is not complete", AB, payload(at("A", 10, None), at("B", 5, 6)), 0, U, INC),
    ("reversed", AB, payload(at("A", 5, 6), at("B", 0, 1)), 0, F, R.TOOL_ORDER),
    ("reversed, cut", AB, payload(at("A", 5, 6), at("B", 0, 1), coverage=CUT), 0, U, INC),
    ("reversed, partial", AB, observed(payload(at("A", 5, 6), at("B", 0, 1)), Acquisition.PARTIAL), 0, U, INC),
    ("reversed, a request without a link", AB, payload(at("A", 5, 6), at("B", 0, 1), unlinked=["1"]), 0, U, INC),
    ("reversed by the tolerance", AB, payload(at("A", 5, 6), at("B", 0, 3)), 2, U, R.ORDER_OVERLAP),
    (
        "the constraint of an earlier step",
        ABC, payload(at("A", 10, 20), at("B", 0, 30), at("C", 5, 8)), 0, F, R.TOOL_ORDER,
    ),
    ("missing", AB, payload(at("A", 0, 1)), 0, F, R.TOOL_MISSING),
    ("missing, undeclared", AB, payload(at("A", 0, 1), coverage=UNDECLARED), 0, U, INC),
    ("needs two, has one", AA, payload(at("A", 0, 10)), 0, F, R.TOOL_ORDER),
    ("needs two, has one, undeclared", AA, payload(at("A", 0, 10), coverage=UNDECLARED), 0, U, INC),
    (
        "two records of perhaps one call",
        AA, payload(at("A", 0, 1, key="a"), at("A", 2, 3, key="b", same="a")), 0, U, R.ORDER_OVERLAP,
    ),
    (
        "beside two records of perhaps one call, one more",
        AA,
        payload(at("A", 0, 1, key="a"), at("A", 2, 3, key="b", same="a"), at("A", 4, 5)),
        0, T, None,
    ),
    ("arguments match", A_TO_X, payload(at("A", 0, 1, given(to="x")), at("B", 2, 3)), 0, T, None),
    ("arguments miss", A_TO_X, payload(at("A", 0, 1, given(to="y")), at("B", 2, 3)), 0, F, R.TOOL_ARGUMENTS),
    ("arguments not recorded", A_TO_X, payload(at("A", 0, 1, ABSENT), at("B", 2, 3)), 0, U, R.ARGUMENTS_NOT_RECORDED),
    ("arguments not recorded, reversed", A_TO_X, payload(at("A", 5, 6, ABSENT), at("B", 2, 3)), 0, F, R.TOOL_ORDER),
    (
        "arguments not recorded, overlap",
        A_TO_X,
        payload(at("A", 0, 2, ABSENT), at("B", 2, 3)),
        0, U, R.ORDER_OVERLAP,
    ),
    (
        "only the call that does not match is in time",
        A_TO_X,
        payload(at("A", 0, 1, given(to="y")), at("A", 5, 6, given(to="x")), at("B", 2, 3)),
        0, F, R.TOOL_ORDER,
    ),
    (
        "an edge of the conversation",
        AB, payload(call("A", key="a"), call("B", key="b"), edges=[("a", "b")], coverage=CUT), 0, T, None,
    ),
    (
        "edge and time together",
        ABC,
        payload(call("A", key="a"), at("x", 0, 1, key="x"), at("B", 2, 3), at("C", 4, 5), edges=[("a", "x")]),
        0, T, None,
    ),
    (
        "an edge the other way proves nothing false",
        AB,
        payload(call("A", key="a"), call("B", key="b"), edges=[("b", "a")]),
        0, U, R.ORDER_OVERLAP,
    ),
    (
        "an edge against the clock",
        AB,
        payload(at("A", 8, 9, key="a"), at("B", 0, 1, key="b"), edges=[("a", "b")]),
        0, U, R.EVIDENCE_CONFLICT,
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "evidence", "tolerance", "value", "code"), [r[1:] for r in TABLE], ids=[r[0] for r in TABLE]
)
def test_table(
    condition: ToolsCalledInOrder,
    evidence: ToolsPayload | Observation,
    tolerance: int,
    value: Tri,
    code: ReasonCode | None,
) -> None:
    verdict = judge(condition, evidence, tolerance)
    assert verdict.value is value, verdict.rationale
    assert next((finding.code for finding in verdict.findings), None) is code


WORDS: list[tuple[ToolsCalledInOrder, ToolsPayload, int, str]] = [
    (AB, payload(at("A", 0, 1), at("B", 2, 3)), 0, "A had ended at +1 ns and B began at +2 ns"),
    (
        ABC,
        payload(at("A", 10, 20), at("B", 0, 30), at("C", 5, 8)),
        0,
        f"every C had ended by +8 ns; A cannot have happened before +10 ns ({DECLARED})",
    ),
    (
        AB,
        payload(at("A", 5_000_000, 6_000_000), at("B", 0, 1_500_000)),
        1_000,
        "every B had ended by +1.5 ms; A cannot have happened before +5 ms, "
        f"and clocks may disagree by no more than 1 µs ({DECLARED})",
    ),
    (
        steps("A", "B", "A"),
        payload(at("A", 0, 1), at("A", 2, 3), at("B", 9, 9)),
        0,
        f"every A (step 3) had ended by +3 ns; B cannot have happened before +9 ns ({DECLARED})",
    ),
    (
        AB,
        payload(at("A", 5, 6), at("B", 0, 1), coverage=UNDECLARED),
        0,
        "every B had ended by +1 ns; A cannot have happened before +5 ns; "
        "evidence incomplete: nobody declared that the trace is complete",
    ),
    (
        AB,
        payload(at("A", 0, 5), at("B", 3, 8)),
        0,
        "the recorded times allow more than one order: A may have run until +5 ns, B began at +3 ns at the latest",
    ),
    (
        AB,
        payload(at("A", 2, 4), at("B", 3, 5), notes=["1 spans end before they start"]),
        0,
        "the recorded times allow more than one order: A may have run until +2 ns, B began at +1 ns at the latest; "
        "1 spans end before they start",
    ),
    (
        AB,
        payload(at("A", 0, None), at("B", 3, 8)),
        2,
        "the recorded times allow more than one order: A had no recorded end, B began at +3 ns at the latest "
        "(clocks may disagree by 2 ns)",
    ),
    (AB, payload(at("A", 0, 1)), 0, f"B was not executed ({DECLARED})"),
    (
        AB, payload(at("A", 0, 1), coverage=CUT), 0,
        "no execution of B was seen; evidence incomplete: the input ends in the middle of a record",
    ),
    (
        AA, payload(at("A", 0, 1)), 0,
        f"A > A needs a different call for every step, and A (step 2) has none left ({DECLARED})",
    ),
    (
        steps("A", "A", "B", "B"),
        payload(at("A", 0, 1), at("A", 8, 9), at("B", 2, 9), at("B", 3, 4)),
        0,
        "A (step 2) cannot have happened before +8 ns, and no other call for B (step 4) can have come after "
        f"({DECLARED})",
    ),
    (
        A_TO_X,
        payload(at("A", 0, 1, NO_CONTENT), at("B", 2, 3)),
        0,
        "A(to) was executed, but its arguments were not recorded: this trace source keeps no arguments",
    ),
    (
        A_TO_X,
        payload(at("A", 0, 1, given(to="y")), at("B", 2, 3)),
        0,
        'A was executed, but no call matched the required arguments: A(to): to: line 1: expected "x", got "y" '
        f"({DECLARED})",
    ),
    (
        AB,
        payload(call("A", key="a"), call("B", key="b"), edges=[("a", "b")]),
        0,
        "A had given its result before B was asked for",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "evidence", "tolerance", "words"), WORDS)
def test_rationale(condition: ToolsCalledInOrder, evidence: ToolsPayload, tolerance: int, words: str) -> None:
    assert judge(condition, evidence, tolerance).rationale == words


def test_budget() -> None:
    evidence = payload(at("A", 0, 100), at("A", 5, 6), at("Z", 50, 60))
    condition = steps("A", "Z", "A")
    assert judge_order(condition, ToolEvidence(evidence), 0)[0].code is R.ORDER_OVERLAP
    part = judge_order(condition, ToolEvidence(evidence), 0, budget=2)[0]
    assert (part.value, part.code) == (U, R.ORDER_BUDGET)
    assert part.text == "the search for an order of A > Z > A was stopped after 2 looks at attempts"


def test_messages_alone_know_order_only_by_edges() -> None:
    a = call("A", key="a", span=(0, 1), source=EvidenceSource.MESSAGES)
    b = call("B", key="b", span=(2, 3), source=EvidenceSource.MESSAGES)
    scorer = MessageToolCallOrderScorer()
    assert scorer.score(AB, observed(payload(a, b))).findings[0].code is R.ORDER_OVERLAP
    assert scorer.score(AB, observed(payload(a, b, edges=[("a", "b")]))).value is T
    assert scorer.score(AB, observed(payload(a))).findings[0].code is INC


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1 µs"),
        (1_500_000, "1.5 ms"),
        (20_000_000_000, "20 s"),
        (1_000_000_001, "1.000000001 s"),
        (-2_000, "-2 µs"),
    ],
)
def test_duration_is_exact(nanoseconds: int, words: str) -> None:
    assert duration(nanoseconds) == words


def test_search_with_edges_agrees_with_the_closure() -> None:
    """Against the transitive closure written out; without edges, against the greedy search too."""
    rng = random.Random(3)
    found = 0
    for _ in range(2_000):
        count = rng.randint(2, 6)
        spans: list[Span] = []
        for _ in range(count):
            start = rng.choice([None, *range(8)])
            spans.append(Span.of(start, rng.choice([None, (start or 0) + rng.randint(0, 2)])))
        tolerance = rng.choice([0, 1])
        tools = [rng.choice("ABC") for _ in range(count)]
        # Edges that no clock contradicts: from a smaller index to a larger one, starts sorted.
        spans.sort(key=lambda span: span.start)
        edges = [(a, b) for a in range(count) for b in range(a + 1, count) if rng.random() < 0.15]
        later: dict[int, list[int]] = {}
        for a, b in edges:
            later.setdefault(a, []).append(b)
        before = [
            [spans[b].start > spans[a].end + tolerance or (a, b) in edges for b in range(count)] for a in range(count)
        ]
        for k in range(count):
            for a in range(count):
                for b in range(count):
                    before[a][b] = before[a][b] or (before[a][k] and before[k][b])
        wanted = [[i for i in range(count) if tools[i] == step] for step in rng.choices("ABC", k=rng.randint(2, 3))]
        chains = [[index] for index in wanted[0]]
        for candidates in wanted[1:]:
            chains = [[*chain, i] for chain in chains for i in candidates if before[chain[-1]][i]]
        result = Precedence(spans, tolerance, later).find_definite(wanted)
        assert result.is_found is (len(chains) > 0)
        if result.is_found:
            assert list(result.chosen) in chains
        if not edges:
            assert find_definite(wanted, spans, tolerance).is_found is result.is_found
        found += result.is_found
    assert 200 < found < 1_800
