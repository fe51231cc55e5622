"""Order of things that are known only as intervals: can they have happened in this order, and must they have?

Every attempt took effect at one unknown instant of [start, end]; two clocks may disagree by up to a tolerance t. With
one attempt a step, the steps *must* have been in order if start(next) - end(previous) > t at every step. They *can*
have been in order if start(i) - end(j) <= t for all i < j, not only for neighbours (then instants in order exist; this
is Helly's theorem in one dimension).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from grader.scorers.assignment import most_assigned

FAR = 1 << 256
"""Beyond every time in nanoseconds: stands for an end that is not known (and negated for a start)."""

SEARCH_BUDGET = 1_000_000
"""How many attempts the search for repeated tools may look at; a second or so."""


@dataclass(frozen=True, slots=True)
class Span:
    """An interval in integer nanoseconds, both ends included; -FAR or FAR where an end is not known."""

    start: int
    end: int

    @classmethod
    def of(cls, start: int | None, end: int | None) -> Span:
        """From ends that may be unknown (None); ends in reverse are widened to the interval that has both."""
        if start is not None and end is not None and end < start:
            start, end = end, start
        return cls(-FAR if start is None else start, FAR if end is None else end)


@dataclass(frozen=True, slots=True)
class Definite:
    """What the definite search found.

    `chosen` has an attempt a step as far as it got; all steps: the order is certain. Otherwise step `len(chosen)`
    failed, and no choice for the steps before it can have ended earlier than the last of `chosen`.
    """

    chosen: tuple[int, ...]
    is_found: bool


class Possibility(Enum):
    """Whether some choice of different attempts can have been in order."""

    POSSIBLE = "possible"
    IMPOSSIBLE = "impossible"
    BUDGET = "budget"


@dataclass(frozen=True, slots=True)
class Possible:
    """What the possible search found; if impossible, why.

    `failed_step` had no attempt that can have come after step `bound_step` (None: it has no attempt at all, or
    `too_few`: the steps need more different attempts than there are). `bound` is the instant before which the steps
    up to `bound_step` cannot have been done. `others_used`: attempts that came after were needed by earlier steps.
    """

    value: Possibility
    failed_step: int | None = None
    bound_step: int | None = None
    bound: int | None = None
    too_few: bool = False
    others_used: bool = False


def find_definite(steps: Sequence[Sequence[int]], spans: Sequence[Span], tolerance: int) -> Definite:
    """Search for an attempt a step that are certain to be in order. `steps[i]` lists indices into `spans`.

    Greedy: of the attempts that start more than the tolerance after the last end, the one with the smallest end; a
    smaller end only leaves more for later steps. Takes time in the sum of the lengths of `steps`.
    """
    chosen: list[int] = []
    for candidates in steps:
        best = None
        if len(chosen) == 0:
            best = min(candidates, key=lambda index: spans[index].end, default=None)
        else:
            limit = spans[chosen[-1]].end + tolerance
            for index in candidates:
                span = spans[index]
                if span.start > limit and (best is None or span.end < spans[best].end):
                    best = index
        if best is None:
            return Definite(tuple(chosen), is_found=False)
        chosen.append(best)
    return Definite(tuple(chosen), is_found=True)


def find_possible(
    steps: Sequence[Sequence[int]], spans: Sequence[Span], tolerance: int, *, budget: int = SEARCH_BUDGET
) -> Possible:
    """Whether some choice of different attempts, one a step, can have been in order.

    Linear while no attempt fits two steps; else a search that looks at no more than `budget` attempts.
    """
    relaxed = _possible_with_reuse(steps, spans, tolerance)
    if relaxed.value is Possibility.IMPOSSIBLE or not _share(steps):
        return relaxed
    assigned = most_assigned([1] * len(steps), steps, len(spans))
    if 0 in assigned:
        return Possible(Possibility.IMPOSSIBLE, failed_step=assigned.index(0), too_few=True)
    return _Search(steps, spans, tolerance, budget).run()


def _possible_with_reuse(steps: Sequence[Sequence[int]], spans: Sequence[Span], tolerance: int) -> Possible:
    """The test that lets an attempt serve several steps: exact when none fits two.

    Greedy: of the attempts that can have ended at or after L, the one with the smallest start; then L is the *largest*
    start so far. With only the last start, the constraint of an earlier step would be lost behind a long attempt.
    """
    latest: int | None = None
    latest_step: int | None = None
    for step, candidates in enumerate(steps):
        best: int | None = None
        for index in candidates:
            span = spans[index]
            if (latest is None or span.end + tolerance >= latest) and (best is None or span.start < spans[best].start):
                best = index
        if best is None:
            bound = (latest_step, latest) if len(candidates) > 0 else (None, None)
            return Possible(Possibility.IMPOSSIBLE, failed_step=step, bound_step=bound[0], bound=bound[1])
        if latest is None or spans[best].start > latest:
            latest, latest_step = spans[best].start, step
    return Possible(Possibility.POSSIBLE)


def _share(steps: Sequence[Sequence[int]]) -> bool:
    seen: set[int] = set()
    for candidates in steps:
        if not seen.isdisjoint(candidates):
            return True
        seen.update(candidates)
    return False


_State: TypeAlias = "tuple[int, int, tuple[tuple[int, int], ...]]"
"""The next step, L, and how many of each shared kind of attempt are used."""


class _Search:
    """Depth first over (step, L, shared attempts used), each state once, twins merged.

    Of the attempts that fit one step only, the one with the smallest start is at least as good as any other; of those
    that several steps can use, all are tried, the ones that leave L smallest first.
    """

    def __init__(self, steps: Sequence[Sequence[int]], spans: Sequence[Span], tolerance: int, budget: int) -> None:
        self.spans = spans
        self.tolerance = tolerance
        self.budget = budget
        self.dead_end = (0, 0)
        users: dict[int, list[int]] = {}
        for step, candidates in enumerate(steps):
            for index in candidates:
                users.setdefault(index, []).append(step)
        # Attempts with equal ends that the same steps can use are twins: which of them is used makes no difference.
        kinds: dict[tuple[int, int, tuple[int, ...]], int] = {}
        self.count: list[int] = []
        self.kind_span: list[Span] = []
        self.last_user: list[int] = []
        self.kinds_of: list[list[int]] = [[] for _ in steps]
        for index, used_by in users.items():
            key = (spans[index].start, spans[index].end, tuple(used_by))
            kind = kinds.setdefault(key, len(kinds))
            if kind == len(self.count):
                self.count.append(0)
                self.kind_span.append(spans[index])
                self.last_user.append(used_by[-1])
                for step in used_by:
                    self.kinds_of[step].append(kind)
            self.count[kind] += 1
        self.is_shared = [len(key[2]) > 1 for key in kinds]
        for step_kinds in self.kinds_of:
            # Small starts first; among those, the attempts that are over soonest and so are worth least to later steps.
            step_kinds.sort(key=lambda kind: (self.kind_span[kind].start, self.kind_span[kind].end))

    def run(self) -> Possible:
        """Possible, impossible with the furthest step that could not be reached, or stopped at the budget."""
        seen: set[_State] = set()
        path = [self._next_states((0, -2 * FAR, ()))]
        while path:
            state = next(path[-1], None)
            if self.budget < 0:
                return Possible(Possibility.BUDGET)
            if state is None:
                path.pop()
            elif state[0] == len(self.kinds_of):
                return Possible(Possibility.POSSIBLE)
            elif state not in seen:
                seen.add(state)
                path.append(self._next_states(state))
        step, bound = self.dead_end
        setter = max(i for i in range(step) if any(self.kind_span[kind].start == bound for kind in self.kinds_of[i]))
        return Possible(Possibility.IMPOSSIBLE, failed_step=step, bound_step=setter, bound=bound, others_used=True)

    def _next_states(self, state: _State) -> Iterator[_State]:
        step, latest, used = state
        taken = dict(used)
        own_is_taken, is_dead_end = False, True
        for kind in self.kinds_of[step]:
            self.budget -= 1
            if self.budget < 0:
                return
            span = self.kind_span[kind]
            if span.end + self.tolerance < latest or taken.get(kind, 0) >= self.count[kind]:
                continue
            if not self.is_shared[kind]:
                if own_is_taken:
                    continue
                own_is_taken = True
            after = {**taken, kind: taken.get(kind, 0) + 1} if self.is_shared[kind] else taken
            # Attempts that no later step can use need not be told apart any more.
            kept = tuple(sorted(item for item in after.items() if self.last_user[item[0]] > step))
            is_dead_end = False
            yield step + 1, max(latest, span.start), kept
        if is_dead_end and step > self.dead_end[0]:
            self.dead_end = (step, latest)
