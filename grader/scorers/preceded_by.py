"""Judges `ToolPrecededBy`: every execution of a tool has its own earlier execution of another.

True only if the evidence is complete and a matching exists in which every pair is certainly in order; false only if it
is complete and no matching exists in which every pair can have been.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from grader.core.reasons import ReasonCode
from grader.core.tools.conditions import ToolPrecededBy
from grader.core.tri import Tri
from grader.scorers.assignment import most_assigned
from grader.scorers.causal_order import Precedence
from grader.scorers.interval_order import FAR, SEARCH_BUDGET
from grader.scorers.order import Timeline, call_span, duration, edges_of
from grader.scorers.tool_evidence import Part, ToolEvidence, shown


def judge_preceded_by(
    condition: ToolPrecededBy, evidence: ToolEvidence, tolerance: int, *, budget: int = SEARCH_BUDGET
) -> tuple[Part, ...]:
    """One part. `tolerance` in nanoseconds: how far clocks may disagree; `budget`: pairs looked at one by one."""
    return (_Gate(condition, evidence, tolerance, budget).judge(),)


class _Gate:
    def __init__(self, condition: ToolPrecededBy, evidence: ToolEvidence, tolerance: int, budget: int) -> None:
        self.evidence = evidence
        self.tolerance = tolerance
        self.budget = budget
        self.tool, self.by = shown(condition.tool), shown(condition.by)
        self.spans = [call_span(call) for call in evidence.calls]
        self.actions = evidence.named(condition.tool)
        self.gates = evidence.named(condition.by)
        self.both = set(self.actions) & set(self.gates)
        self.later = edges_of(evidence)

    def judge(self) -> Part:
        if len(self.actions) == 0:
            fact = f"{self.tool} was not executed"
            return self.evidence.absence(Tri.TRUE, ReasonCode.TOOL_ORDER, fact, f"no execution of {self.tool} was seen")
        certain, possible = self._is_certain(), self._is_possible()
        if certain and possible is False and self.evidence.is_complete:
            text = f"the conversation shows {self.by} before {self.tool}, and the recorded times rule it out"
            return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_CONFLICT)
        if certain:
            fact = f"every execution of {self.tool} has its own earlier execution of {self.by}"
            return self.evidence.absence(Tri.TRUE, ReasonCode.TOOL_ORDER, fact)
        if possible is False:
            return self.evidence.absence(Tri.FALSE, ReasonCode.TOOL_ORDER, self._too_few())
        if possible is None or certain is None:
            text = f"pairing {self.tool} with {self.by} was given up: more than {self.budget} pairs to look at"
            return Part(Tri.UNDETERMINED, text, ReasonCode.ORDER_BUDGET)
        skew = f" (clocks may disagree by {duration(self.tolerance)})" if self.tolerance > 0 else ""
        text = (
            f"every execution of {self.tool} may have its own earlier execution of {self.by}, "
            f"but the recorded times do not make it certain{skew}"
        )
        return Part(Tri.UNDETERMINED, text, ReasonCode.ORDER_OVERLAP)

    def _is_certain(self) -> bool | None:
        """A matching of pairs that are certainly in order; calls that may be one execution serve once."""
        ends: dict[int, int] = {}
        for gate in self.gates:
            group = self.evidence.group[gate]
            ends[group] = min(ends.get(group, FAR), self.spans[gate].end)
        starts = sorted(self.spans[action].start for action in self.actions)
        if _pairs_up(starts, [end + self.tolerance for end in sorted(ends.values())], strict=True):
            return True
        if len(self.later) == 0:
            return False
        # Edges are not nested as intervals are: look at the pairs themselves.
        if len(self.gates) * len(self.spans) > self.budget:
            return None
        precedence = Precedence(self.spans, self.tolerance, self.later)
        accepted: dict[int, list[int]] = {action: [] for action in self.actions}
        for gate in self.gates:
            for action in precedence.after([gate]):
                if action in accepted and action != gate:
                    accepted[action].append(self.evidence.group[gate])
        return self._all_assigned(list(accepted.values()))

    def _is_possible(self) -> bool | None:
        """A matching of pairs that can have been in order; records that may be of one execution need one gate."""
        latest: dict[int, list[tuple[int, int]]] = {}
        for action in self.actions:
            ends = latest.setdefault(self.evidence.group[action], [])
            # The two latest are enough: a record cannot be its own gate, so for each the last of the others counts.
            ends[:] = sorted((*ends, (self.spans[action].end, action)), reverse=True)[:2]
        if len(self.both) == 0:
            last_ends = sorted(ends[0][0] + self.tolerance for ends in latest.values())
            return _pairs_up(last_ends, sorted(self.spans[gate].start for gate in self.gates), strict=False)
        if len(latest) * len(self.gates) > self.budget:
            return None
        accepted = [[gate for gate in self.gates if self._may_precede(gate, ends)] for ends in latest.values()]
        return self._all_assigned(accepted)

    def _may_precede(self, gate: int, ends: Sequence[tuple[int, int]]) -> bool:
        """Whether a gate may come before one of these actions, (end, index) each, that is not the gate itself.

        Two records that may be of one execution may be two: a gate among the records of the action is one for it.
        """
        start = self.spans[gate].start - self.tolerance
        return any(start <= end and action != gate for end, action in ends)

    def _all_assigned(self, accepted: Sequence[Sequence[int]]) -> bool:
        return 0 not in most_assigned([1] * len(accepted), accepted, len(self.spans))

    def _too_few(self) -> str:
        if len(self.gates) == 0:
            return f"{self.tool} was executed, and {self.by} was not"
        time = Timeline(self.spans)
        starts = sorted(self.spans[gate].start for gate in self.gates)
        ends = sorted(self.spans[action].end for action in self.actions)
        for wanted, end in enumerate(ends, start=1):
            there = bisect_right(starts, end + self.tolerance)
            if there < wanted:
                return (
                    f"{wanted} of {self.tool} had ended by {time.at(end)}, "
                    f"and only {there} of {self.by} can have happened before"
                )
        return f"not every execution of {self.tool} can have its own earlier execution of {self.by}"


def _pairs_up(actions: Sequence[int], gates: Sequence[int], *, strict: bool) -> bool:
    """Whether each action gets its own gate that is before it; both sorted. The i-th action needs i gates before it."""
    if len(gates) < len(actions):
        return False
    pairs = zip(actions, gates, strict=False)
    return all(gate < action if strict else gate <= action for action, gate in pairs)
