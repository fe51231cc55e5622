"""Several spans that describe one call become one call, before anything is counted.

The rules, each of them careful: unsure means that both are kept and the pair is marked (`maybe_same_as`).
1. Records of the same trace and span id are one span.
2. The same call id, same tool, not different arguments: one call when one span is inside the other, or when spans of
   different scopes overlap in time. Overlapping spans of one scope that are not nested may be two (ids such as `call_0`
   are used again): marked.
3. A tool span right inside another of the same tool (no agent or model between), with the same arguments, or of another
   scope or transport layer: one call, if it is the only one inside. Otherwise the outer one is marked.
4. Spans of different scopes side by side, same tool, overlapping, not different arguments, without two different call
   ids: marked, unless one of them is one call already with a span of the other's scope.
Names are the same tool when they are equal or one is the other with a server before it (`mcp__server__tool`,
`server/tool`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.core.tools.arguments import combined, differ
from grader.core.tools.calls import Attempt, EvidenceSource, ToolCall
from grader.core.tools.names import same_tool
from grader.traces.span_store import ToolSpan
from grader.traces.trace_tree import TraceTree

_FREE_LOOKS = 20_000
_LOOKS_PER_SPAN = 32


@dataclass(slots=True)
class _Groups:
    """Which spans are one call (a union-find over span ids), and which groups may be the same."""

    leader: dict[int, int] = field(default_factory=dict[int, int])
    unsure: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    looks_left: int = _FREE_LOOKS
    """How many pairs may still be compared: what is sent can be made so that every span looks like every other."""

    def find(self, span: int) -> int:
        root = span
        while self.leader.setdefault(root, root) != root:
            root = self.leader[root]
        while self.leader[span] != root:
            self.leader[span], span = root, self.leader[span]
        return root

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.find(one), self.find(other)))
        self.leader[second] = first

    def doubt(self, one: int, other: int) -> None:
        self.unsure.add((one, other))


def unify(records: Iterable[ToolSpan], tree: TraceTree) -> tuple[ToolCall, ...]:
    """The calls that the tool spans of one trace describe, in order of start and key."""
    spans = _same_span(records)
    groups = _Groups(looks_left=_FREE_LOOKS + _LOOKS_PER_SPAN * len(spans))
    for span in spans:
        groups.find(span)
    _nested(spans, tree, groups)
    _same_call_id(spans, groups)
    _side_by_side(spans, groups)
    members: dict[int, list[list[ToolSpan]]] = defaultdict(list)
    for span, copies in spans.items():
        members[groups.find(span)].append(copies)
    calls = {
        leader: _call([record for copies in parts for record in copies], tree) for leader, parts in members.items()
    }
    return _marked(calls, groups)


def _same_span(records: Iterable[ToolSpan]) -> dict[int, list[ToolSpan]]:
    spans: dict[int, list[ToolSpan]] = defaultdict(list)
    for record in dict.fromkeys(records):
        spans[record.span].append(record)
    return dict(sorted(spans.items()))


def _nested(spans: dict[int, list[ToolSpan]], tree: TraceTree, groups: _Groups) -> None:
    tools = frozenset(spans)
    inner_of: dict[int, list[int]] = defaultdict(list)
    for span, records in spans.items():
        above = tree.nearest_tool_above(tree.parent(span), tools)
        if above != 0 and same_tool(records[0].facts.names, spans[above][0].facts.names):
            inner_of[above].append(span)
    for outer, inner in inner_of.items():
        candidates = [span for span in inner if not _surely_different(spans[outer][0], spans[span][0])]
        for span in candidates:
            if len(inner) == 1 and _is_one_call(spans[outer][0], spans[span][0]):
                groups.join(outer, span)
            else:
                groups.doubt(outer, span)


def _surely_different(one: ToolSpan, other: ToolSpan) -> bool:
    ids = {one.facts.call_id, other.facts.call_id} - {None}
    return len(ids) == 2 or differ(one.facts.arguments, other.facts.arguments)


def _is_one_call(outer: ToolSpan, inner: ToolSpan) -> bool:
    if outer.facts.call_id is not None and outer.facts.call_id == inner.facts.call_id:
        return True
    if outer.scope != inner.scope or outer.facts.is_transport or inner.facts.is_transport:
        return True
    first, second = outer.facts.arguments, inner.facts.arguments
    return first.is_recorded and second.is_recorded and first.sha256 == second.sha256


def _same_call_id(spans: dict[int, list[ToolSpan]], groups: _Groups) -> None:
    by_id: dict[str, list[ToolSpan]] = defaultdict(list)
    for records in spans.values():
        if records[0].facts.call_id is not None:
            by_id[records[0].facts.call_id].append(records[0])
    for same in by_id.values():
        _sweep(same, groups)


def _side_by_side(spans: dict[int, list[ToolSpan]], groups: _Groups) -> None:
    by_name: dict[str, list[ToolSpan]] = defaultdict(list)
    for records in spans.values():
        for name in records[0].facts.names:
            by_name[name.rsplit("__", 1)[-1].rsplit("/", 1)[-1]].append(records[0])
    scopes: dict[int, set[str]] = defaultdict(set)
    for span, records in spans.items():
        scopes[groups.find(span)].add(records[0].scope)
    for same in by_name.values():
        if len({record.scope for record in same}) > 1:
            _sweep_scopes(same, groups, scopes)


def _sweep(same: list[ToolSpan], groups: _Groups) -> None:
    """Neighbours in time with one call id that overlap: joined, or marked when the scope is the same."""
    reach: ToolSpan | None = None
    for record in sorted((one for one in same if one.start_ns is not None), key=_by_start):
        if reach is not None and _overlap(reach, record) and _may_be_one(reach, record, groups):
            if reach.scope != record.scope:
                groups.join(reach.span, record.span)
            else:
                groups.doubt(reach.span, record.span)
        if reach is None or _end(record) >= _end(reach):
            reach = record


def _sweep_scopes(same: list[ToolSpan], groups: _Groups, scopes: dict[int, set[str]]) -> None:
    """Pairs of different scopes, one to one in order of time, that overlap: marked.

    Not a span that is one call already with another span of the other's scope: it has found its counterpart.
    Once too many were compared, neighbours are marked without a look.
    """
    waiting: dict[str, deque[ToolSpan]] = defaultdict(deque[ToolSpan])
    before: ToolSpan | None = None
    for record in sorted((one for one in same if one.start_ns is not None), key=_by_start):
        if groups.looks_left <= 0 and before is not None:
            groups.doubt(before.span, record.span)
            continue
        before = record
        groups.looks_left -= len(waiting)
        for scope, queue in waiting.items():
            while queue and not _overlap(queue[0], record):
                queue.popleft()
            if scope in scopes[groups.find(record.span)] or not queue:
                continue
            if record.scope not in scopes[groups.find(queue[0].span)] and _may_be_one(queue[0], record, groups):
                groups.doubt(queue.popleft().span, record.span)
                break
        else:
            waiting[record.scope].append(record)


def _may_be_one(one: ToolSpan, other: ToolSpan, groups: _Groups) -> bool:
    if groups.find(one.span) == groups.find(other.span) or _surely_different(one, other):
        return False
    return same_tool(one.facts.names, other.facts.names)


def _by_start(record: ToolSpan) -> tuple[int, int]:
    return (record.start_ns if record.start_ns is not None else 0, record.span)


def _end(record: ToolSpan) -> float:
    return record.end_ns if record.end_ns is not None else float("inf")


def _overlap(earlier: ToolSpan, later: ToolSpan) -> bool:
    return later.start_ns is not None and _end(earlier) >= later.start_ns


def _call(records: list[ToolSpan], tree: TraceTree) -> ToolCall:
    first, *others = sorted(records, key=_by_start)
    arguments = first.facts.arguments
    for record in others:
        arguments = combined(arguments, record.facts.arguments)
    ids = sorted({record.facts.call_id for record in records if record.facts.call_id is not None})
    starts = [record.start_ns for record in records if record.start_ns is not None]
    ends = [record.end_ns for record in records if record.end_ns is not None]
    has_times = not any(record.facts.is_hosted for record in records) and (starts or ends)
    end = max(ends) if len(ends) == len(records) else None
    attempts = (Attempt(start_ns=min(starts, default=None), end_ns=end),) if has_times else ()
    states = {record.failed for record in records}
    refs = sorted({tree.ref(record.span) for record in records})
    return ToolCall(
        key=tree.ref(first.span),
        names=tuple(sorted({name for record in records for name in record.facts.names})),
        arguments=arguments,
        attempts=attempts,
        call_id=ids[0] if ids else None,
        spans=tuple(refs),
        sources=(EvidenceSource.TRACE,),
        vocabularies=tuple(sorted({name for record in records for name in record.facts.vocabularies})),
        failed=True if True in states else (False if False in states else None),
    )


def _marked(calls: dict[int, ToolCall], groups: _Groups) -> tuple[ToolCall, ...]:
    ordered = sorted(calls.values(), key=by_time)
    place = {call.key: number for number, call in enumerate(ordered)}
    maybe: dict[str, str] = {}
    for one, other in sorted(groups.unsure):
        first, second = calls[groups.find(one)].key, calls[groups.find(other)].key
        if first == second:
            continue
        earlier, later = sorted((first, second), key=place.__getitem__)
        maybe[later] = min(maybe.get(later, earlier), earlier, key=place.__getitem__)
    return tuple(
        call.model_copy(update={"maybe_same_as": maybe[call.key]}) if call.key in maybe else call for call in ordered
    )


def by_time(call: ToolCall) -> tuple[float, str]:
    """Sort key: start (unknown last), then key."""
    starts = [attempt.start_ns for attempt in call.attempts if attempt.start_ns is not None]
    return (min(starts, default=float("inf")), call.key)
