"""The spans of one trace as a tree: parents, cycles, roots, duplicates; built after everything was read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.traces.span_store import BARRIER, PENDING, SpanStore


@dataclass(slots=True)
class TraceTree:
    """One trace. `at` has the position in the store of each span id (records of one id are one span)."""

    store: SpanStore
    trace: int
    trace_id: str
    at: dict[int, int]
    pending: list[int]
    conflicts: list[int]
    """Span ids that came twice with different content."""
    in_cycles: frozenset[int] = frozenset()
    _nearest: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    def build(cls, store: SpanStore, trace: int, trace_id: str, positions: Iterable[int]) -> TraceTree:
        """The tree of the spans at `positions`."""
        at: dict[int, int] = {}
        pending: list[int] = []
        conflicts: set[int] = set()
        for position in positions:
            if store.bits[position] & PENDING:
                pending.append(position)
                continue
            span = store.spans[position]
            known = at.setdefault(span, position)
            if known != position and store.checks[known] != store.checks[position]:
                conflicts.add(span)
                if store.checks[position] < store.checks[known]:
                    at[span] = position
        tree = cls(store, trace, trace_id, at, pending, sorted(conflicts))
        tree.in_cycles = tree._find_cycles()
        return tree

    def ref(self, span: int) -> str:
        """`TRACE_ID/SPAN_ID`."""
        return f"{self.trace_id}/{span:016x}"

    def parent(self, span: int) -> int:
        """The parent's id, 0 for roots, for spans in a cycle, and for spans that are not there."""
        position = self.at.get(span)
        return 0 if position is None or span in self.in_cycles else self.store.parents[position]

    def nearest_tool_above(self, parent: int, tools: frozenset[int]) -> int:
        """The first tool span from `parent` upwards with no agent or model span before it, else 0.

        Linear over all calls: what was walked once is remembered.
        """
        walked: list[int] = []
        current, found = parent, 0
        while current != 0:
            if current in self._nearest:
                found = self._nearest[current]
                break
            if current in tools:
                found = current
                break
            position = self.at.get(current)
            if position is None or self.store.bits[position] & BARRIER:
                break
            walked.append(current)
            current = self.parent(current)
        for span in walked:
            self._nearest[span] = found
        return found

    def _find_cycles(self) -> frozenset[int]:
        done: set[int] = set()
        cyclic: set[int] = set()
        parents, at = self.store.parents, self.at
        for first in at:
            if first in done:
                continue
            path: list[int] = []
            on_path: set[int] = set()
            current = first
            while current in at and current not in done and current not in on_path:
                path.append(current)
                on_path.add(current)
                current = parents[at[current]]
            if current in on_path:
                cyclic.update(path[path.index(current) :])
            done.update(path)
        return frozenset(cyclic)
