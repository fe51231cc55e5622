"""Judges `ToolsCalledInOrder`: each step had ended before the next began.

True if an order is certain, even in partial evidence; false if the evidence is complete and no choice of different
calls can have been in order; else undetermined (overlap, touching, equal instants, reversed within the tolerance,
unfinished). The searches are in `interval_order.py` and `causal_order.py`; here are the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolCall
from grader.core.tools.conditions import ToolsCalledInOrder
from grader.core.tri import Tri
from grader.scorers.causal_order import Precedence
from grader.scorers.interval_order import (
    FAR,
    SEARCH_BUDGET,
    Definite,
    Possibility,
    Possible,
    Span,
    find_definite,
    find_possible,
)
from grader.scorers.tool_evidence import Fit, Part, ToolEvidence, shown, shown_requirement

_UNITS = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))


def judge_order(
    condition: ToolsCalledInOrder, evidence: ToolEvidence, tolerance: int, *, budget: int = SEARCH_BUDGET
) -> tuple[Part, ...]:
    """One part: whether the steps were executed in order. `tolerance` in nanoseconds: how far clocks may disagree."""
    return (_Order(condition, evidence, tolerance).judge(budget),)


def call_span(call: ToolCall) -> Span:
    """The interval that holds every attempt of a call; unbounded where nothing is known."""
    if len(call.attempts) == 1:
        return Span.of(call.attempts[0].start_ns, call.attempts[0].end_ns)
    starts = [attempt.start_ns for attempt in call.attempts]
    ends = [attempt.end_ns for attempt in call.attempts]
    start = min((value for value in starts if value is not None), default=None) if None not in starts else None
    end = max((value for value in ends if value is not None), default=None) if None not in ends else None
    return Span.of(start, end)


def edges_of(evidence: ToolEvidence) -> dict[int, list[int]]:
    """For every call, the calls that were proposed after it had given its result."""
    if len(evidence.payload.order_edges) == 0:
        return {}
    index_of = {call.key: index for index, call in enumerate(evidence.calls)}
    later: dict[int, list[int]] = {}
    for edge in evidence.payload.order_edges:
        later.setdefault(index_of[edge.before], []).append(index_of[edge.after])
    return later


def duration(nanoseconds: int) -> str:
    """A time span in words, exact: `8 ns`, `1.5 ms`."""
    for unit, size in _UNITS:
        if abs(nanoseconds) >= size:
            return f"{Decimal(nanoseconds).scaleb(-len(str(size)) + 1).normalize():f} {unit}"
    return f"{nanoseconds} ns"


class Timeline:
    """Instants in words, counted from the first known instant of the evidence: `+8 ns`."""

    def __init__(self, spans: Sequence[Span]) -> None:
        known = [value for span in spans for value in (span.start, span.end) if abs(value) < FAR]
        self._zero = min(known, default=0)

    def at(self, instant: int) -> str:
        """The instant in words."""
        if abs(instant) >= FAR:
            return "an unknown time"
        return f"+{duration(instant - self._zero)}"


class _Order:
    def __init__(self, condition: ToolsCalledInOrder, evidence: ToolEvidence, tolerance: int) -> None:
        self.steps = condition.tools
        self.evidence = evidence
        self.tolerance = tolerance
        self.spans = [call_span(call) for call in evidence.calls]
        self.later = edges_of(evidence)
        # Equal steps share one list of candidates.
        known: dict[object, Fit] = {}
        self.fits = [
            known.setdefault(step.identity(), known.get(step.identity()) or evidence.fit(step)) for step in self.steps
        ]
        self.names = [shown_requirement(step) for step in self.steps]
        self.time = Timeline(self.spans)

    def judge(self, budget: int) -> Part:
        definite = self._definite([fit.definite for fit in self.fits])
        possible = [fit.possible for fit in self.fits]
        if definite.is_found:
            return self._is_certain(definite, possible, budget)
        found = find_possible(possible, self.spans, self.tolerance, budget=budget)
        if found.value is Possibility.IMPOSSIBLE:
            return self._cannot_be(found)
        if found.value is Possibility.BUDGET:
            text = f"the search for an order of {' > '.join(self.names)} was stopped after {budget} looks at attempts"
            return Part(Tri.UNDETERMINED, text, ReasonCode.ORDER_BUDGET)
        return self._may_be(definite)

    def _definite(self, candidates: Sequence[Sequence[int]]) -> Definite:
        found = self._search(candidates)
        if not found.is_found or self.evidence.executions(found.chosen) == len(found.chosen):
            return found
        # Two of the chosen records may be of one execution: only one of each such pair may serve.
        surely = [[index for index in indices if self._is_first(index)] for indices in candidates]
        found = self._search(surely)
        if found.is_found and self.evidence.executions(found.chosen) == len(found.chosen):
            return found
        return Definite(found.chosen, is_found=False)

    def _is_first(self, index: int) -> bool:
        return self.evidence.calls[index].maybe_same_as is None

    def _search(self, candidates: Sequence[Sequence[int]]) -> Definite:
        if len(self.later) == 0:
            return find_definite(candidates, self.spans, self.tolerance)
        return Precedence(self.spans, self.tolerance, self.later).find_definite(candidates)

    def _is_certain(self, definite: Definite, possible: Sequence[Sequence[int]], budget: int) -> Part:
        if len(self.later) > 0 and self.evidence.is_complete:
            found = find_possible(possible, self.spans, self.tolerance, budget=budget)
            if found.value is Possibility.IMPOSSIBLE:
                text = f"the conversation shows {' before '.join(self.names)}, and the recorded times rule it out"
                return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_CONFLICT)
        words: list[str] = []
        for step, (before, after) in enumerate(zip(definite.chosen, definite.chosen[1:], strict=False)):
            end, start = self.spans[before].end, self.spans[after].start
            if start > end + self.tolerance:
                how = f"had ended at {self.time.at(end)} and {self.names[step + 1]} began at {self.time.at(start)}"
            else:
                how = f"had given its result before {self.names[step + 1]} was asked for"
            words.append(f"{self.names[step]} {how}")
        return Part(Tri.TRUE, "; ".join(words))

    def _cannot_be(self, found: Possible) -> Part:
        code = ReasonCode.TOOL_ORDER
        seen: str | None = None
        if found.failed_step is None or found.too_few:
            needs = f"{' > '.join(self.names)} needs a different call for every step"
            text = f"{needs}, and {self._step(found.failed_step or 0)} has none left"
        elif found.bound is None or found.bound_step is None:
            fit, name = self.fits[found.failed_step], shown(self.steps[found.failed_step].name)
            if len(fit.named) == 0:
                code, text, seen = (
                    ReasonCode.TOOL_MISSING,
                    f"{name} was not executed",
                    f"no execution of {name} was seen",
                )
            else:
                code = ReasonCode.TOOL_ARGUMENTS
                full = self.names[found.failed_step]
                text = f"{name} was executed, but no call matched the required arguments: {full}: {fit.miss}"
        else:
            text = self._reversed(found.failed_step, found.bound_step, found.bound, others_used=found.others_used)
        return self.evidence.absence(Tri.FALSE, code, text, seen)

    def _reversed(self, failed_step: int, bound_step: int, bound: int, *, others_used: bool) -> str:
        last_end = max(self.spans[index].end for index in self.fits[failed_step].possible)
        failed, bounding = self._step(failed_step), self._step(bound_step)
        if others_used:
            after = f"no other call for {failed} can have come after"
            return f"{bounding} cannot have happened before {self.time.at(bound)}, and {after}"
        skew = f", and clocks may disagree by no more than {duration(self.tolerance)}" if self.tolerance > 0 else ""
        return (
            f"every {failed} had ended by {self.time.at(last_end)}; "
            f"{bounding} cannot have happened before {self.time.at(bound)}{skew}"
        )

    def _may_be(self, definite: Definite) -> Part:
        """Some choice can have been in order, and it is not certain: say what stands in the way."""
        step = len(definite.chosen)
        as_if_matching = self._definite([fit.possible for fit in self.fits])
        doubt = next((fit.doubt for fit in self.fits if fit.doubt is not None), None)
        if as_if_matching.is_found and doubt is not None:
            name = next(name for name, fit in zip(self.names, self.fits, strict=True) if fit.doubt is not None)
            return Part(Tri.UNDETERMINED, f"{name} was executed, but {doubt.text}", doubt.code)
        if step in {0, len(self.steps)} or len(self.fits[step].definite) == 0:
            text = f"the records do not show that different calls were executed in the order {' > '.join(self.names)}"
            return Part(Tri.UNDETERMINED, text + self._notes(), ReasonCode.ORDER_OVERLAP)
        before, after = self._step(step - 1), self._step(step)
        end = self.spans[definite.chosen[-1]].end
        start = max(self.spans[index].start for index in self.fits[step].definite)
        ended = f"{before} may have run until {self.time.at(end)}" if end < FAR else f"{before} had no recorded end"
        began = (
            f"{after} began at {self.time.at(start)} at the latest"
            if start > -FAR
            else f"{after} has no recorded start"
        )
        skew = f" (clocks may disagree by {duration(self.tolerance)})" if self.tolerance > 0 else ""
        text = f"the recorded times allow more than one order: {ended}, {began}{skew}"
        return Part(Tri.UNDETERMINED, text + self._notes(), ReasonCode.ORDER_OVERLAP)

    def _notes(self) -> str:
        """What the reader noticed about times, such as a span that ended before it started."""
        return "".join(f"; {note}" for note in self.evidence.payload.notes)

    def _step(self, step: int) -> str:
        """The name of a step; with its number if the name is not enough."""
        return self.names[step] if self.names.count(self.names[step]) == 1 else f"{self.names[step]} (step {step + 1})"
