"""`ToolsCalled` and `ToolsNotCalled`: every rule in every state of the evidence, with the words pinned."""

from __future__ import annotations

import itertools
import random

import pytest

from grader.core.captured import Captured
from grader.core.matching import Match, Matcher
from grader.core.observation import Acquisition, Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import EvidenceSource, ToolCall, ToolsPayload
from grader.core.tools.conditions import (
    ToolArgumentRequirement,
    ToolCallRequirement,
    ToolCondition,
    ToolsCalled,
    ToolsNotCalled,
)
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason
from grader.core.tri import Tri, all_of
from grader.core.verdict import ConditionVerdict
from grader.scorers.assignment import most_assigned
from grader.scorers.tool_scorers import OtelToolCallScorer, OtelToolsNotCalledScorer
from grader.scorers.tools import fits_glob
from tests.unit.scorers.tool_samples import (
    ABSENT,
    CUT,
    HIDDEN,
    NO_CONTENT,
    SELF_REPORTED,
    TRUNCATED,
    UNDECLARED,
    UNREADABLE,
    call,
    given,
    observed,
    payload,
    tool,
)

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
R = ReasonCode
SEND = ToolsCalled(tools=(tool("send"),))
SEND_TO_X = ToolsCalled(tools=(tool("send", to="x"),))
ONLY_SEND = ToolsCalled(tools=(tool("send"),), exhaustive=True)
NOTHING = ToolsCalled(exhaustive=True)
NOT_SEND = ToolsNotCalled(tools=("send", "delete_*"))
AT_MOST_ONE = ToolsCalled(tools=(tool("send", at_most=1),))
NEVER_TO_X = ToolsCalled(tools=(tool("send", 0, 0, to="x"),))
TO_X_AND_ANY = ToolsCalled(tools=(tool("send", to="x"), tool("send")))
INC, NOT_RECORDED = R.EVIDENCE_INCOMPLETE, R.ARGUMENTS_NOT_RECORDED
x, y = given(to="x"), given(to="y")


def judge(condition: ToolCondition, evidence: ToolsPayload | Observation) -> ConditionVerdict:
    observation = evidence if isinstance(evidence, Observation) else observed(evidence)
    scorer = OtelToolCallScorer() if isinstance(condition, ToolsCalled) else OtelToolsNotCalledScorer()
    verdict = scorer.score(condition, observation)
    # Every verdict that is not true carries a reason, of the kind that its value needs.
    assert (len(verdict.findings) == 0) is (verdict.value is T)
    if verdict.value is not T:
        assert verdict.findings[0].code.kind.value == ("F" if verdict.value is F else "U")
    assert verdict.rationale != ""
    return verdict


S, L = call("send"), call("look")
S_IN_MESSAGES = call("send", source=EvidenceSource.MESSAGES, key="m")

TABLE: list[tuple[str, ToolCondition, ToolsPayload | Observation, Tri, ReasonCode | None]] = [
    # presence
    ("seen, complete", SEND, payload(S), T, None),
    ("seen, undeclared", SEND, payload(S, coverage=UNDECLARED), T, None),
    ("seen, cut", SEND, payload(S, coverage=CUT), T, None),
    ("seen, self-reported", SEND, payload(S, coverage=SELF_REPORTED), T, None),
    ("seen, requests without a link", SEND, payload(S, unlinked=["request 2"]), T, None),
    ("seen, acquisition partial", SEND, observed(payload(S), Acquisition.PARTIAL, "half"), T, None),
    ("seen, acquisition error", SEND, observed(payload(S), Acquisition.ERROR, "broken"), U, R.EVIDENCE_NOT_COLLECTED),
    ("seen, unavailable", SEND, observed(payload(S), Acquisition.UNAVAILABLE, "no"), U, R.EVIDENCE_NOT_COLLECTED),
    ("a failed attempt is an execution", SEND, payload(call("send", failed=True)), T, None),
    ("seen in messages only", SEND, payload(S_IN_MESSAGES, only_in_messages=["m"]), T, None),
    ("one of several names", SEND, payload(call(["mcp__s__send", "send"])), T, None),
    ("another case of the name", SEND, payload(call("Send")), F, R.TOOL_MISSING),
    ("absent, complete", SEND, payload(L), F, R.TOOL_MISSING),
    ("absent, nothing at all", SEND, payload(), F, R.TOOL_MISSING),
    ("absent, undeclared", SEND, payload(L, coverage=UNDECLARED), U, INC),
    ("absent, cut", SEND, payload(L, coverage=CUT), U, INC),
    ("absent, self-reported", SEND, payload(L, coverage=SELF_REPORTED), U, R.EVIDENCE_SELF_REPORTED),
    ("absent, a request without a link", SEND, payload(L, unlinked=["request 2"]), U, INC),
    ("absent, acquisition partial", SEND, observed(payload(L), Acquisition.PARTIAL), U, INC),
    ("absent, a span without a name", SEND, payload(L, unnamed=1), U, INC),
    ("absent, a call had not ended", SEND, payload(call("look", span=(1, None))), U, INC),
    (
        "absent, messages show another call that the trace lacks",
        SEND,
        payload(call("look", key="m", source=EvidenceSource.MESSAGES), only_in_messages=["m"]),
        U,
        R.EVIDENCE_CONFLICT,
    ),
    # arguments
    ("match", SEND_TO_X, payload(call("send", x)), T, None),
    ("match, partial", SEND_TO_X, payload(call("send", x), coverage=CUT), T, None),
    ("match beside others", SEND_TO_X, payload(call("send", y), call("send", ABSENT), call("send", x)), T, None),
    ("miss, complete", SEND_TO_X, payload(call("send", y)), F, R.TOOL_ARGUMENTS),
    ("miss, undeclared", SEND_TO_X, payload(call("send", y), coverage=UNDECLARED), U, INC),
    ("absent argument is a miss", SEND_TO_X, payload(call("send", given(cc="x"))), F, R.TOOL_ARGUMENTS),
    ("recorded and empty is a miss", SEND_TO_X, payload(call("send", given())), F, R.TOOL_ARGUMENTS),
    ("null is a value", ToolsCalled(tools=(tool("send", to="null"),)), payload(call("send", given(to=None))), T, None),
    (
        "an absent argument is not null",
        ToolsCalled(tools=(tool("send", to="null"),)),
        payload(call("send", given())),
        F,
        R.TOOL_ARGUMENTS,
    ),
    ("3 and '3' have one text", ToolsCalled(tools=(tool("f", n="3"),)), payload(call("f", given(n=3))), T, None),
    ("'3' too", ToolsCalled(tools=(tool("f", n="3"),)), payload(call("f", given(n="3"))), T, None),
    (
        "an object as compact JSON with sorted keys",
        ToolsCalled(tools=(tool("f", n='{"a":[1,true],"b":"x"}'),)),
        payload(call("f", given(n={"b": "x", "a": [1, True]}))),
        T,
        None,
    ),
    ("not recorded", SEND_TO_X, payload(call("send", ABSENT)), U, NOT_RECORDED),
    ("redacted", SEND_TO_X, payload(call("send", HIDDEN)), U, NOT_RECORDED),
    ("truncated", SEND_TO_X, payload(call("send", TRUNCATED)), U, NOT_RECORDED),
    ("not retained", SEND_TO_X, payload(call("send", NO_CONTENT)), U, NOT_RECORDED),
    ("unparsable", SEND_TO_X, payload(call("send", UNREADABLE)), U, R.ARGUMENTS_UNPARSABLE),
    ("miss, and one not recorded", SEND_TO_X, payload(call("send", y), call("send", ABSENT)), U, NOT_RECORDED),
    ("absent tool, arguments not recorded elsewhere", SEND_TO_X, payload(call("look", ABSENT)), F, R.TOOL_MISSING),
    (
        "a kept argument misses though another was cut",
        ToolsCalled(tools=(tool("send", to="x", b="z"),)),
        payload(call("send", TRUNCATED)),
        F,
        R.TOOL_ARGUMENTS,
    ),
    (
        "one call must satisfy all arguments",
        ToolsCalled(tools=(tool("send", to="x", cc="y"),)),
        payload(call("send", given(to="x", cc="n")), call("send", given(to="n", cc="y"))),
        F,
        R.TOOL_ARGUMENTS,
    ),
    # counts
    ("two of two", ToolsCalled(tools=(tool("send", 2),)), payload(S, S), T, None),
    ("one of two", ToolsCalled(tools=(tool("send", 2),)), payload(S), F, R.TOOL_MISSING),
    ("one of two, cut", ToolsCalled(tools=(tool("send", 2),)), payload(S, coverage=CUT), U, INC),
    (
        "two records that may be one",
        ToolsCalled(tools=(tool("send", 2),)),
        payload(call("send", key="a"), call("send", key="b", same="a")),
        U,
        INC,
    ),
    ("presence does not mind that", SEND, payload(call("send", key="a"), call("send", key="b", same="a")), T, None),
    ("at most one, one", AT_MOST_ONE, payload(S), T, None),
    ("at most one, two", AT_MOST_ONE, payload(S, S), F, R.TOOL_COUNT),
    ("at most one, two, cut", AT_MOST_ONE, payload(S, S, coverage=CUT), F, R.TOOL_COUNT),
    ("at most one, one, cut", AT_MOST_ONE, payload(S, coverage=CUT), U, INC),
    (
        "at most one, two records that may be one",
        AT_MOST_ONE,
        payload(call("send", key="a"), call("send", key="b", same="a")),
        U,
        INC,
    ),
    (
        "at most one to x, another whose arguments are not recorded",
        ToolsCalled(tools=(tool("send", at_most=1, to="x"),)),
        payload(call("send", x), call("send", ABSENT)),
        U,
        NOT_RECORDED,
    ),
    (
        "at most counts calls that match, not those that do not",
        ToolsCalled(tools=(tool("send", at_most=1, to="x"),)),
        payload(call("send", x), call("send", y)),
        T,
        None,
    ),
    (
        "at most counts a call that another requirement uses",
        ToolsCalled(tools=(tool("send", to="x"), tool("send", 0, 1))),
        payload(call("send", x), call("send", y)),
        F,
        R.TOOL_COUNT,
    ),
    ("never to x", NEVER_TO_X, payload(call("send", y)), T, None),
    ("never to x, but it was", NEVER_TO_X, payload(call("send", x)), F, R.TOOL_COUNT),
    # requirements that share a name
    ("two requirements, one call", TO_X_AND_ANY, payload(call("send", x)), F, R.TOOL_MISSING),
    ("two requirements, two calls", TO_X_AND_ANY, payload(call("send", x), S), T, None),
    (
        "first fit would take the only call to x for the other",
        ToolsCalled(tools=(tool("send"), tool("send", to="x"))),
        payload(call("send", x), call("send", y)),
        T,
        None,
    ),
    (
        "enough calls, not for both",
        ToolsCalled(tools=(tool("send", 2, to="x"), tool("send"))),
        payload(call("send", x), call("send", y), call("send", y)),
        F,
        R.TOOL_ARGUMENTS,
    ),
    (
        "the call that may match decides both",
        ToolsCalled(tools=(tool("send", to="x"), tool("send", to="y"))),
        payload(call("send", x), call("send", ABSENT)),
        U,
        NOT_RECORDED,
    ),
    (
        "other names share no calls",
        ToolsCalled(tools=(tool("send"), tool("s__send"))), payload(call(["send", "s__send"])), T, None,
    ),
    # exhaustive
    ("only the named", ONLY_SEND, payload(S, S), T, None),
    ("another tool", ONLY_SEND, payload(S, L), F, R.TOOL_EXTRA),
    ("another tool, cut", ONLY_SEND, payload(S, L, coverage=CUT), F, R.TOOL_EXTRA),
    (
        "another tool, only in messages",
        ONLY_SEND, payload(S, call("look", key="m"), only_in_messages=["m"]), F, R.TOOL_EXTRA,
    ),
    ("only the named so far, undeclared", ONLY_SEND, payload(S, coverage=UNDECLARED), U, INC),
    ("only the named, a request without a link", ONLY_SEND, payload(S, unlinked=["request 2"]), U, INC),
    ("only the named, a span without a name", ONLY_SEND, payload(S, unnamed=1), U, INC),
    ("only the named, self-reported", ONLY_SEND, payload(S, coverage=SELF_REPORTED), U, R.EVIDENCE_SELF_REPORTED),
    ("another name of the named", ONLY_SEND, payload(call(["mcp__s__send", "send"])), T, None),
    (
        "a record that may be another of the named call",
        ONLY_SEND,
        payload(call("send", key="a"), call("s.send", key="b", same="a")),
        U,
        INC,
    ),
    ("allowed and not run", ToolsCalled(tools=(tool("send"), tool("look", 0)), exhaustive=True), payload(S), T, None),
    ("allowed and run", ToolsCalled(tools=(tool("send"), tool("look", 0)), exhaustive=True), payload(S, L), T, None),
    (
        "by name, not by arguments",
        ToolsCalled(tools=(tool("send", to="x"),), exhaustive=True), payload(call("send", x), call("send", y)), T, None,
    ),
    ("no tool ran", NOTHING, payload(), T, None),
    ("a tool ran", NOTHING, payload(L), F, R.TOOL_EXTRA),
    ("no tool so far", NOTHING, payload(coverage=CUT), U, INC),
    ("extra and missing", ONLY_SEND, payload(L), F, R.TOOL_MISSING),
    ("extra seen, missing not settled", ONLY_SEND, payload(L, coverage=CUT), F, R.TOOL_EXTRA),
    # forbidden
    ("forbidden seen", NOT_SEND, payload(S), F, R.TOOL_FORBIDDEN),
    ("forbidden seen, cut", NOT_SEND, payload(S, coverage=CUT), F, R.TOOL_FORBIDDEN),
    ("forbidden by a glob", NOT_SEND, payload(call("delete_all")), F, R.TOOL_FORBIDDEN),
    ("forbidden by one of several names", NOT_SEND, payload(call(["mcp__s__send", "send"])), F, R.TOOL_FORBIDDEN),
    ("forbidden in messages only", NOT_SEND, payload(S_IN_MESSAGES, only_in_messages=["m"]), F, R.TOOL_FORBIDDEN),
    ("not seen, complete", NOT_SEND, payload(L), T, None),
    ("not seen, undeclared", NOT_SEND, payload(L, coverage=UNDECLARED), U, INC),
    ("not seen, self-reported", NOT_SEND, payload(L, coverage=SELF_REPORTED), U, R.EVIDENCE_SELF_REPORTED),
    ("not seen, a request without a link", NOT_SEND, payload(L, unlinked=["request 2"]), U, INC),
    ("not seen, a span without a name", NOT_SEND, payload(L, unnamed=1), U, INC),
    ("not seen, acquisition partial", NOT_SEND, observed(payload(L), Acquisition.PARTIAL), U, INC),
    ("not seen, acquisition error", NOT_SEND, observed(payload(L), Acquisition.ERROR), U, R.EVIDENCE_NOT_COLLECTED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "evidence", "value", "code"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE]
)
def test_table(
    condition: ToolCondition, evidence: ToolsPayload | Observation, value: Tri, code: ReasonCode | None
) -> None:
    verdict = judge(condition, evidence)
    assert verdict.value is value, verdict.rationale
    assert next((finding.code for finding in verdict.findings), None) is code


DECLARED = "evidence complete, declared by the caller"
WORDS: list[tuple[ToolCondition, ToolsPayload | Observation, str]] = [
    (SEND, payload(S), "send was executed"),
    (SEND, payload(L), f"send was not executed ({DECLARED})"),
    (
        SEND,
        payload(L, coverage=UNDECLARED),
        "no execution of send was seen; evidence incomplete: nobody declared that the trace is complete",
    ),
    (
        SEND,
        payload(L, coverage=SELF_REPORTED, unlinked=["request 2"], unnamed=1),
        "no execution of send was seen; evidence incomplete: the spans are the program's own word; "
        "requests of the conversation without a trace link (request 2); 1 possible tool spans have no name",
    ),
    (SEND_TO_X, payload(call("send", x)), "send(to) was executed with the required arguments"),
    (
        SEND_TO_X,
        payload(call("send", y)),
        "send was executed, but no call matched the required arguments: send(to): "
        f'to: line 1: expected "x", got "y" ({DECLARED})',
    ),
    (
        SEND_TO_X,
        payload(call("send", given())),
        f"send was executed, but no call matched the required arguments: send(to): to is absent ({DECLARED})",
    ),
    (
        SEND_TO_X,
        payload(call("send", NO_CONTENT)),
        "send was executed, but its arguments were not recorded: this trace source keeps no arguments: send(to)",
    ),
    (
        SEND_TO_X,
        payload(call("send", HIDDEN)),
        "send was executed, but its arguments were not recorded: they were redacted: send(to)",
    ),
    (
        SEND_TO_X,
        payload(call("send", UNREADABLE)),
        'send was executed, but its recorded arguments cannot be read: "not JSON": send(to)',
    ),
    (ToolsCalled(tools=(tool("send", 2),)), payload(S), f"send was executed 1 of at least 2 times ({DECLARED})"),
    (ToolsCalled(tools=(tool("send", 2),)), payload(S, S), "send was executed at least 2 times"),
    (
        AT_MOST_ONE,
        payload(S),
        f"send was executed; send was executed at most once ({DECLARED})",
    ),
    (AT_MOST_ONE, payload(S, S), "send was executed 2 times, at most 1 allowed"),
    (ONLY_SEND, payload(S), f"send was executed; no other tool was executed ({DECLARED})"),
    (ONLY_SEND, payload(S, L), "look was executed, which is not among the named tools"),
    (
        TO_X_AND_ANY,
        payload(call("send", x)),
        f"send was executed once, but 2 different calls are required, and send has none left ({DECLARED})",
    ),
    (NOTHING, payload(), f"no tool was executed ({DECLARED})"),
    (NOT_SEND, payload(L), f"send or delete_* was not executed ({DECLARED})"),
    (NOT_SEND, payload(call("delete_all")), "delete_all was executed, which delete_* forbids"),
    (NOT_SEND, payload(S), "send was executed"),
    (
        SEND, observed(payload(S), Acquisition.ERROR, "the file is no trace"),
        "getting the evidence failed: the file is no trace",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "evidence", "words"), WORDS)
def test_rationale(condition: ToolCondition, evidence: ToolsPayload | Observation, words: str) -> None:
    assert judge(condition, evidence).rationale == words


def test_a_name_from_the_trace_is_quoted() -> None:
    assert judge(NOTHING, payload(call("\x1b[2Jx y"))).rationale.startswith('"␛[2Jx y" was executed')


def test_every_unmet_requirement_is_named() -> None:
    condition = ToolsCalled(tools=(tool("a"), tool("b"), tool("c")))
    verdict = judge(condition, payload(call("b")))
    assert [finding.code for finding in verdict.findings] == [R.TOOL_MISSING]
    assert verdict.findings[0].count == 2
    assert verdict.rationale == f"a was not executed ({DECLARED}); c was not executed ({DECLARED})"


class _Broken(Matcher):
    matcher_name = "broken_for_a_test"
    matcher_argument = "why"

    why: str

    def match(self, captured: Captured) -> Match:
        raise RecursionError(self.why)


def test_a_matcher_that_fails_is_undetermined() -> None:
    argument = ToolArgumentRequirement(name="to", matcher=_Broken(why="deep"))
    condition = ToolsCalled(tools=(ToolCallRequirement(name="send", arguments=(argument,)),))
    verdict = judge(condition, payload(call("send", x)))
    assert (verdict.value, verdict.findings[0].code) == (U, R.MATCHER_FAILED)
    assert (
        verdict.rationale == "send was executed, but its argument to: the matcher failed with RecursionError: send(to)"
    )


def test_a_huge_count_takes_no_time() -> None:
    condition = ToolsCalled(tools=(tool("send", 1_000_000_000), tool("send", 999_999_999, to="x")))
    assert judge(condition, payload(*[call("send", x)] * 50)).value is F


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("a", "a", True),
        ("a", "A", False),
        ("a", "ab", False),
        ("*", "", True),
        ("a*", "a", True),
        ("a*c", "abbc", True),
        ("a*c", "abcb", False),
        ("*b*", "abc", True),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("[ab]", "a", False),
        ("a*b*c", "aXbXbXc", True),
        ("*" * 50 + "x", "a" * 2_000, False),
    ],
)
def test_glob(pattern: str, name: str, fits: bool) -> None:
    assert fits_glob(pattern, name) is fits


def test_assignment_is_a_largest_one() -> None:
    rng = random.Random(1)
    for _ in range(600):
        items, lefts = rng.randint(0, 5), rng.randint(1, 4)
        wanted = [rng.randint(0, 3) for _ in range(lefts)]
        accepted = [sorted(rng.sample(range(items), rng.randint(0, items))) for _ in range(lefts)]
        best = max(
            sum(min(wanted[left], choice.count(left)) for left in range(lefts))
            for choice in itertools.product([-1, *range(lefts)], repeat=items)
            if all(left < 0 or item in accepted[left] for item, left in enumerate(choice))
        )
        got = most_assigned(wanted, accepted, items)
        assert sum(got) == best
        assert all(have <= want for have, want in zip(got, wanted, strict=True))


def world_value(condition: ToolsCalled, expected: list[str | None], calls: list[tuple[str, str]]) -> bool:
    """The definition, tried out: calls are (name, value of `to`), all known; `expected` the value that a tool wants."""

    def fits(index: int, one: tuple[str, str]) -> bool:
        return condition.tools[index].name == one[0] and expected[index] in (None, one[1])

    for index, requirement in enumerate(condition.tools):
        if requirement.at_most is not None and sum(fits(index, c) for c in calls) > requirement.at_most:
            return False
    if condition.exhaustive and any(name not in {t.name for t in condition.tools} for name, _ in calls):
        return False
    units = [index for index, requirement in enumerate(condition.tools) for _ in range(requirement.at_least)]

    def assign(unit: int, used: frozenset[int]) -> bool:
        return unit == len(units) or any(
            assign(unit + 1, used | {number})
            for number, one in enumerate(calls)
            if number not in used and fits(units[unit], one)
        )

    return assign(0, frozenset())


def random_condition(rng: random.Random) -> tuple[ToolsCalled, list[str | None]]:
    tools: dict[object, tuple[ToolCallRequirement, str | None]] = {}
    for _ in range(rng.randint(1, 3)):
        at_least = rng.choice([1, 1, 1, 2])
        at_most = rng.choice([None, None, at_least, at_least + 1])
        to = rng.choice([None, "x", "y"])
        one = tool(rng.choice("ab"), at_least, at_most, **({} if to is None else {"to": to}))
        tools[one.identity()] = one, to
    condition = ToolsCalled(tools=tuple(one for one, _ in tools.values()), exhaustive=rng.random() < 0.3)
    return condition, [to for _, to in tools.values()]


@pytest.mark.parametrize("rounds", [1_200, pytest.param(15_000, marks=pytest.mark.slow)])
def test_agrees_with_every_world(rounds: int) -> None:
    """A world fills in what is not recorded (x, y or else), and adds calls if the evidence is incomplete. A verdict
    that is true or false must be so in every world; where no two rules meet it must also be found."""
    rng = random.Random(2)
    seen = dict.fromkeys(Tri, 0)
    for _ in range(rounds):
        condition, wanted = random_condition(rng)
        calls: list[ToolCall] = []
        for _ in range(rng.randint(0, 4)):
            calls.append(call(rng.choice("aabc"), rng.choice([x, y, given(to="z"), ABSENT])))
        complete = rng.random() < 0.6
        verdict = judge(condition, payload(*calls, coverage=Coverage(declared_by="me") if complete else UNDECLARED))
        options = [
            ["x", "y", "z"] if not c.arguments.is_recorded else [str(c.arguments.argument("to").value)] for c in calls
        ]
        unseen: list[list[tuple[str, str]]] = [[]]
        if not complete:
            unseen += [[(name, to)] * n for name in "abc" for to in "xyz" for n in (1, 4)]
            unseen.append([(name, to) for name in "ab" for to in "xyxy"])
        values = {
            world_value(condition, wanted, [(c.names[0], to) for c, to in zip(calls, world, strict=True)] + more)
            for world in itertools.product(*options)
            for more in unseen
        }
        expected = U if len(values) == 2 else Tri.of(values.pop())
        if verdict.value is not expected:
            # Kleene logic may leave open what only the rules together settle; it must never say the opposite.
            assert verdict.value is U, (condition, calls, expected)
            assert (
                len(condition.tools) > 1 or condition.exhaustive or any(t.at_most is not None for t in condition.tools)
            )
        seen[verdict.value] += 1
    assert min(seen.values()) > rounds // 20, seen


def test_coverage_reasons_are_the_ones_of_the_evidence() -> None:
    coverage = Coverage(declared_by="me", reasons=(CoverageReason(code=CoverageCode.PARENT_MISSING, count=3),))
    words = judge(SEND, payload(coverage=coverage)).rationale
    assert words == "no execution of send was seen; evidence incomplete: a span's parent is not there, 3 times"


def test_the_parts_of_a_condition_are_joined_by_and() -> None:
    assert all_of([judge(SEND, payload(S)).value, judge(NOT_SEND, payload(S)).value]) is F
