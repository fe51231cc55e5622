"""The order search: 40 worked examples, and a brute force over all worlds."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.tri import Tri
from grader.scorers.interval_order import Possibility, Span, find_definite, find_possible

EXAMPLES = Path(__file__).parents[4] / "shared" / "data" / "order" / "examples.json"


@dataclass(frozen=True)
class Case:
    """Steps by tool; attempts as (tool, start, end); tools whose attempts only possibly fit; tolerance; complete."""

    steps: tuple[str, ...]
    attempts: tuple[tuple[str, int | None, int | None], ...]
    tolerance: int = 0
    complete: bool = True
    only_possible: frozenset[int] = frozenset()


def fast(case: Case) -> Tri:
    spans = [Span.of(start, end) for _, start, end in case.attempts]
    possible = [[i for i, a in enumerate(case.attempts) if a[0] == step] for step in case.steps]
    definite = [[i for i in candidates if i not in case.only_possible] for candidates in possible]
    if find_definite(definite, spans, case.tolerance).is_found:
        return Tri.TRUE
    found = find_possible(possible, spans, case.tolerance)
    assert found.value is not Possibility.BUDGET
    return Tri.FALSE if case.complete and found.value is Possibility.IMPOSSIBLE else Tri.UNDETERMINED


def brute(case: Case) -> Tri:
    """Every world: an instant for every attempt inside its interval widened by half the tolerance on both sides, and
    for attempts that only possibly fit, whether they do. True if in all worlds some choice is strictly increasing;
    false if in none a choice of different attempts is even non-decreasing (equal instants may be either order), and
    nothing is unseen. All times are quadrupled so that half a tolerance and a point between two ends are integers."""
    spans = [(s, e) if s is None or e is None or s <= e else (e, s) for _, s, e in case.attempts]
    known = [value for span in spans for value in span if value is not None] or [0]
    low, high = min(known) - 5, max(known) + 5
    widened = [
        (4 * (low if s is None else s) - 2 * case.tolerance, 4 * (high if e is None else e) + 2 * case.tolerance)
        for s, e in spans
    ]
    ends = sorted({value for span in widened for value in span})
    points = sorted({*ends, *((a + b) // 2 for a, b in itertools.pairwise(ends))})
    grids = [[p for p in points if s <= p <= e] for s, e in widened]
    always, ever = True, False
    loose = sorted(case.only_possible)
    for fits in itertools.product([False, True], repeat=len(loose)):
        out = {index for index, fit in zip(loose, fits, strict=True) if not fit}
        indices = [[i for i, a in enumerate(case.attempts) if a[0] == step and i not in out] for step in case.steps]
        choices = [c for c in itertools.product(*indices) if len(set(c)) == len(c)]
        for world in itertools.product(*grids):
            strict = any(all(world[a] < world[b] for a, b in itertools.pairwise(c)) for c in choices)
            always = always and strict
            ever = ever or strict or any(all(world[a] <= world[b] for a, b in itertools.pairwise(c)) for c in choices)
            if ever and not always:
                return Tri.UNDETERMINED
    if always:
        return Tri.TRUE
    return Tri.FALSE if case.complete and not ever else Tri.UNDETERMINED


def examples() -> list[dict[str, object]]:
    if not EXAMPLES.exists():
        pytest.skip(f"the worked examples are not there: {EXAMPLES.name}")
    return cast("list[dict[str, object]]", json.loads(EXAMPLES.read_text(encoding="utf-8"))["rows"])


def example_case(row: dict[str, object]) -> Case:
    attempts = cast("dict[str, list[list[int | None]]]", row["attempts"])
    flat = tuple((tool, span[0], span[1]) for tool, spans in attempts.items() for span in spans)
    loose = cast("list[str]", row.get("possible_only", []))
    return Case(
        steps=tuple(cast("list[str]", row["steps"])),
        attempts=flat,
        tolerance=cast("int", row["tolerance"]),
        complete=cast("bool", row["complete"]),
        only_possible=frozenset(i for i, attempt in enumerate(flat) if attempt[0] in loose),
    )


def test_the_worked_examples() -> None:
    rows = examples()
    assert len(rows) == 40
    wrong = [row["name"] for row in rows if fast(example_case(row)) is not Tri(row["verdict"])]
    assert wrong == []


def test_the_brute_force_agrees_with_the_worked_examples() -> None:
    # Rows with more than six attempts have too many worlds.
    rows = [row for row in examples() if len(example_case(row).attempts) <= 5]
    assert len(rows) >= 38
    wrong = [row["name"] for row in rows if brute(example_case(row)) is not Tri(row["verdict"])]
    assert wrong == []


def instants(none_one_in: int) -> st.SearchStrategy[int | None]:
    return st.one_of(*[st.integers(0, 6)] * (none_one_in - 1), st.none())


@st.composite
def cases(draw: st.DrawFn) -> Case:
    steps = tuple(draw(st.lists(st.sampled_from("ABC"), min_size=2, max_size=4)))
    attempts = tuple(
        draw(
            st.lists(st.tuples(st.sampled_from(sorted(set(steps))), instants(12), instants(12)), min_size=1, max_size=5)
        )
    )
    loose = draw(st.sets(st.integers(0, len(attempts) - 1), max_size=1))
    # Complete evidence has no unfinished attempt.
    complete = draw(st.booleans()) and all(end is not None for _, _, end in attempts)
    return Case(steps, attempts, draw(st.integers(0, 2)), complete, frozenset(loose))


@settings(max_examples=400, deadline=None)
@given(cases())
def test_agrees_with_a_brute_force_over_all_worlds(case: Case) -> None:
    assert fast(case) is brute(case)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
@given(cases())
def test_agrees_with_a_brute_force_over_many_worlds(case: Case) -> None:
    assert fast(case) is brute(case)


def random_case(rng: random.Random) -> Case:
    steps = tuple(rng.choice("ABC") for _ in range(rng.randint(2, 4)))
    attempts = tuple(
        (rng.choice(steps), rng.choice([None, *[rng.randint(0, 8)] * 14]), rng.randint(0, 8))
        for _ in range(rng.randint(2, 4))
    )
    return Case(steps, attempts, rng.choice([0, 0, 1, 2]), rng.random() < 0.8)


def test_agrees_with_a_brute_force_on_cases_with_all_three_verdicts() -> None:
    seen = dict.fromkeys(Tri, 0)
    rng = random.Random(4)
    for _ in range(1_500):
        case = random_case(rng)
        expected = brute(case)
        assert fast(case) is expected, case
        seen[expected] += 1
    assert min(seen.values()) > 40, seen


@pytest.mark.slow
def test_agrees_with_a_brute_force_on_30_000_cases() -> None:
    rng = random.Random(5)
    for _ in range(30_000):
        case = random_case(rng)
        assert fast(case) is brute(case), case


def test_search_for_repeated_tools_agrees_with_trying_every_choice() -> None:
    """More attempts than the worlds allow: choices are tried one by one, with the rule for all pairs."""
    rng = random.Random(6)
    seen = dict.fromkeys(Possibility, 0)
    for _ in range(3_000):
        steps = [rng.choice("AAB") for _ in range(rng.randint(3, 6))]
        count = rng.randint(len(steps), len(steps) + 2)
        tools = [rng.choice("AAB") for _ in range(count)]
        spans: list[Span] = []
        for _ in range(count):
            start = rng.randint(0, 12)
            spans.append(Span(start, start + rng.choice([0, 1, 2, 3, 12])))
        lists = [[i for i in range(count) if tools[i] == step] for step in steps]
        tolerance = rng.choice([0, 1])
        expected = any(
            all(spans[a].start - spans[b].end <= tolerance for a, b in itertools.combinations(choice, 2))
            for choice in itertools.product(*lists)
            if len(set(choice)) == len(choice)
        )
        found = find_possible(lists, spans, tolerance)
        assert (found.value is Possibility.POSSIBLE) is expected
        seen[found.value] += 1
    assert seen[Possibility.POSSIBLE] > 100
    assert seen[Possibility.IMPOSSIBLE] > 100


def test_budget_ends_the_search_for_repeated_tools() -> None:
    steps = [[0, 1, 2, 3], [4], [0, 1, 2, 3]]
    spans = [Span(0, 100), Span(5, 6), Span(5, 7), Span(5, 8), Span(50, 60)]
    assert find_possible(steps, spans, 0).value is Possibility.POSSIBLE
    assert find_possible(steps, spans, 0, budget=2).value is Possibility.BUDGET


def test_the_search_does_not_give_up_on_many_equal_attempts() -> None:
    attempts = list(range(2_000))
    spans = [Span(0, 10)] * 2_000
    assert find_possible([attempts] * 30, spans, 0, budget=2_000).value is Possibility.POSSIBLE


def test_distinct_tools_never_meet_the_budget() -> None:
    steps = [list(range(start, 3_000, 3)) for start in range(3)]
    spans = [Span(0, 10)] * 3_000
    assert find_possible(steps, spans, 0, budget=0).value is Possibility.POSSIBLE


def test_the_bound_is_the_largest_start_of_all_earlier_steps() -> None:
    found = find_possible([[0], [1], [2]], [Span(10, 20), Span(0, 30), Span(5, 8)], 0)
    assert (found.failed_step, found.bound_step, found.bound) == (2, 0, 10)


def test_ends_in_reverse_are_widened_to_both() -> None:
    assert Span.of(4, 2) == Span(2, 4)
