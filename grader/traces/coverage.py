"""The checks of completeness on one trace. Each finds a reason against it; none of them can find a reason for it."""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

from grader.core.tools.calls import Excluded, ExclusionReason, ToolCall
from grader.core.tools.names import same_tool
from grader.core.traces.content import storable
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.traces import span_store as bits
from grader.traces.span_store import SpanStore
from grader.traces.trace_tree import TraceTree
from grader.traces.vocabularies.base import Proposal

_HANDOFF = "transfer_to_"
"""How OpenAI's SDK names the call by which a model hands over to another agent."""
_OUTPUT_TOOL = "final_result"
"""The name, or its beginning, by which pydantic-ai lets a model give its final answer as a call: nothing is executed
for it."""

_FREE_LOOKS = 10_000
_LOOKS_PER_ONE = 32


@dataclass(slots=True)
class Reasons:
    """Reasons as they are found: a count, and the smallest detail (so that the order of the input does not show)."""

    counts: Counter[CoverageCode] = field(default_factory=Counter[CoverageCode])
    details: dict[CoverageCode, str] = field(default_factory=dict[CoverageCode, str])

    def add(self, code: CoverageCode, detail: str = "", count: int = 1) -> None:
        """Note a reason `count` times."""
        self.counts[code] += count
        known = self.details.get(code)
        self.details[code] = detail if known is None else min(known, detail)

    def done(self) -> tuple[CoverageReason, ...]:
        """The reasons, each code once."""
        return tuple(
            CoverageReason(code=code, count=self.counts[code], detail=storable(self.details[code][:500]))
            for code in sorted(self.counts)
        )


_BIT_REASONS = (
    (bits.DROPPED_ATTRIBUTES, CoverageCode.DROPPED_ATTRIBUTES),
    (bits.DROPPED_EVENTS, CoverageCode.DROPPED_EVENTS),
    (bits.DROPPED_LINKS, CoverageCode.DROPPED_LINKS),
    (bits.HOSTED, CoverageCode.HOSTED_TOOL),
)


def check_trace(tree: TraceTree, known_parents: frozenset[int], reasons: Reasons) -> None:
    """Structure: roots, parents, cycles, ends, dropped parts, sampling, pending spans, scopes that are not understood.

    `known_parents` are span ids of the caller's own side (of a `traceparent`): a span under one of them is a root.
    """
    store, roots = tree.store, 0
    for span, at in tree.at.items():
        found, parent = store.bits[at], store.parents[at]
        is_root = parent == 0 or parent in known_parents
        roots += is_root
        if found & bits.UNFINISHED:
            code = CoverageCode.ROOT_UNFINISHED if is_root else CoverageCode.SPAN_UNFINISHED
            reasons.add(code, f"span {tree.ref(span)}")
        if not is_root and parent not in tree.at:
            reasons.add(CoverageCode.PARENT_MISSING, f"span {tree.ref(span)}")
        for bit, code in _BIT_REASONS:
            if found & bit:
                reasons.add(code, f"span {tree.ref(span)}")
    if roots == 0:
        reasons.add(CoverageCode.ROOT_MISSING, f"trace {tree.trace_id}")
    for span in tree.in_cycles:
        reasons.add(CoverageCode.PARENT_CYCLE, f"span {tree.ref(span)}")
    for span in tree.conflicts:
        reasons.add(CoverageCode.SPAN_CONFLICT, f"span {tree.ref(span)}")
    for at in tree.pending:
        if store.parents[at] not in tree.at:
            reasons.add(CoverageCode.SPAN_PENDING, f"span {tree.ref(store.parents[at])}")
    _check_sampling(tree, reasons)
    _check_scopes(tree, reasons)


def _check_sampling(tree: TraceTree, reasons: Reasons) -> None:
    """Trace flags 0 say nothing where a producer writes none; where it sets the sampled bit elsewhere, they do."""
    store = tree.store
    writes_flags = {store.origins[at] for at in tree.at.values() if store.bits[at] & bits.SAMPLED}
    for span, at in tree.at.items():
        unset = store.bits[at] & bits.FLAGS_UNSET and store.origins[at] in writes_flags
        if store.bits[at] & bits.UNSAMPLED or unset:
            reasons.add(CoverageCode.UNSAMPLED, f"span {tree.ref(span)}")


def _check_scopes(tree: TraceTree, reasons: Reasons) -> None:
    store, names = tree.store, tree.store.origin_scopes
    understood = {names[store.origins[at]] for at in tree.at.values() if store.bits[at] & bits.RECOGNISED}
    unknown = {names[store.origins[at]] for at in tree.at.values() if store.bits[at] & bits.LOOKS_LIKE_AI}
    for scope in sorted(unknown - understood):
        reasons.add(CoverageCode.SCOPE_UNKNOWN, f"scope {scope[:200]!r}")
    if not understood:
        # Nobody instrumented an agent here, or in a way that is not known: that no tool is seen proves nothing.
        detail = f"no span of trace {tree.trace_id} is known as one of a model, an agent or a tool"
        reasons.add(CoverageCode.SCOPE_UNKNOWN, detail)


def check_proposals(
    asked: list[tuple[str, Proposal]], calls: tuple[ToolCall, ...], excluded: tuple[Excluded, ...], reasons: Reasons
) -> list[tuple[str, Proposal]]:
    """Proposals of a trace's models that no execution and no exclusion answers, and a reason for them.

    First by call id; what has no id on one of both sides, by name and number; then those of unknown names, by number.
    """
    ids = {item.call_id for item in (*calls, *excluded) if item.call_id is not None}
    open_ones = [
        (place, proposal)
        for place, proposal in asked
        if proposal.call_id not in ids and not _is_output_tool(proposal.name)
    ]
    asked_ids = {proposal.call_id for _, proposal in asked}
    free = [item.names for item in (*calls, *excluded) if item.call_id is None or item.call_id not in asked_ids]
    answers = _Answers(Counter(names for names in free if names), len(open_ones))
    unnamed_handoffs = sum(item.why is ExclusionReason.HANDOFF and not item.names for item in excluded)
    unanswered: list[tuple[str, Proposal]] = []
    for place, proposal in sorted(open_ones, key=lambda item: item[1].name == ""):
        if answers.take(proposal.name):
            continue
        if unnamed_handoffs > 0 and proposal.name.startswith(_HANDOFF):
            unnamed_handoffs -= 1
        else:
            unanswered.append((place, proposal))
            name = proposal.name[:100] or "a tool whose name is not recorded"
            reasons.add(CoverageCode.PROPOSAL_UNANSWERED, f"{name} in span {place}")
    return unanswered


class _Answers:
    """What ran or was refused, by its names, and how often; each answers one proposal.

    Names that are written in another way are found by comparing, a bounded number of times: beyond, a proposal of such
    a name stays unanswered.
    """

    def __init__(self, left: Counter[tuple[str, ...]], proposals: int) -> None:
        # Its first key is found at once also when very many before it were deleted; that of a dict is not.
        self._left = OrderedDict(left)
        self._by_name: dict[str, list[tuple[str, ...]]] = {}
        for names in left:
            for name in names:
                self._by_name.setdefault(name, []).append(names)
        self._looks_left = _FREE_LOOKS + _LOOKS_PER_ONE * (len(left) + proposals)

    def take(self, name: str) -> bool:
        """Whether there was one left for a proposal of this name; an empty one is answered by any."""
        found = self._exactly(name) if name else next(iter(self._left), None)
        if found is None and name:
            found = self._alike(name)
        if found is None:
            return False
        self._left[found] -= 1
        if self._left[found] == 0:
            del self._left[found]
        return True

    def _exactly(self, name: str) -> tuple[str, ...] | None:
        known = self._by_name.get(name, [])
        while known and known[-1] not in self._left:
            known.pop()
        return known[-1] if known else None

    def _alike(self, name: str) -> tuple[str, ...] | None:
        for names in self._left:
            if self._looks_left <= 0:
                return None
            self._looks_left -= len(names)
            if same_tool(names, (name,)):
                return names
        return None


def _is_output_tool(name: str) -> bool:
    return name == _OUTPUT_TOOL or name.startswith(f"{_OUTPUT_TOOL}_")


def reversed_spans(tree: TraceTree, store: SpanStore) -> list[str]:
    """Spans that end before they start: widened to both, and reported."""
    return [tree.ref(span) for span, at in tree.at.items() if store.bits[at] & bits.REVERSED]
