"""All spans that were read, in little memory: 36 bytes a span, and the facts of those that matter to tools.

What a trace is made of is known only when everything was read: a trace may be spread over lines, files and services.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256

from grader.core.tools.arguments import ContentRules, without_text
from grader.core.traces.content import storable
from grader.traces.classify import SpanFacts, classify
from grader.traces.span import ReadNotes, Span
from grader.traces.vocabularies import VOCABULARIES
from grader.traces.vocabularies.base import Proposal, Role

UNFINISHED, DROPPED_ATTRIBUTES, DROPPED_EVENTS, DROPPED_LINKS = 1, 2, 4, 8
SAMPLED, UNSAMPLED, FLAGS_UNSET = 16, 32, 64
REVERSED, PENDING, HOSTED, LOOKS_LIKE_AI, RECOGNISED = 128, 256, 512, 1024, 2048
BARRIER = 4096
"""An agent or model span: a tool span above it is not the same call as one below it."""
_VOCABULARY_SHIFT = 16
_VOCABULARY_BITS = {vocabulary.name: 1 << (_VOCABULARY_SHIFT + at) for at, vocabulary in enumerate(VOCABULARIES)}
_ROLES_OF_TOOLS = frozenset({Role.TOOL, Role.EXCLUDED, Role.POSSIBLE_TOOL})
_MAX_NAME = 4096
_MAX_CALL_ID = 512


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How much is kept: spans in all, tool spans among them, bytes of their arguments, proposals of models.

    Tool spans beyond `max_argument_bytes` are kept without their arguments (truncated, with length and digest).
    """

    max_spans: int = 5_000_000
    max_tool_spans: int = 200_000
    max_argument_bytes: int = 64 << 20
    max_proposals: int = 500_000


@dataclass(frozen=True, slots=True)
class ToolSpan:
    """A span that is, is not, or may be an execution of a tool. Ids are integers; `parent` 0 is none."""

    trace: int
    span: int
    parent: int
    start_ns: int | None
    end_ns: int | None
    failed: bool | None
    scope: str
    facts: SpanFacts


@dataclass(slots=True)
class SpanStore:
    """Takes spans one by one; `trace` numbers count the traces in the order in which they came."""

    rules: ContentRules
    limits: StoreLimits = field(default_factory=StoreLimits)
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    """Trace id as an integer -> trace number."""
    traces: array[int] = field(default_factory=lambda: array("I"))
    spans: array[int] = field(default_factory=lambda: array("Q"))
    parents: array[int] = field(default_factory=lambda: array("Q"))
    checks: array[int] = field(default_factory=lambda: array("Q"))
    bits: array[int] = field(default_factory=lambda: array("I"))
    origins: array[int] = field(default_factory=lambda: array("I"))
    origin_numbers: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    origin_scopes: list[str] = field(default_factory=list[str])
    """The scope of each origin, by its number."""
    tools: list[ToolSpan] = field(default_factory=list[ToolSpan])
    proposals: list[tuple[int, int, Proposal]] = field(default_factory=list[tuple[int, int, Proposal]])
    """(trace number, span id, what a model asked for)."""
    _argument_bytes: int = 0
    _shared: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict[tuple[str, ...], tuple[str, ...]])

    def add(self, span: Span, notes: ReadNotes) -> None:
        """Keep what matters of a span. What does not fit is noted (`capacity`), never dropped silently."""
        if len(self.spans) >= self.limits.max_spans:
            notes.capacity = f"more than {self.limits.max_spans} spans"
            return
        facts = _tidy(classify(span, self.rules))
        trace = self.numbers.setdefault(int(span.trace_id, 16), len(self.numbers))
        self.traces.append(trace)
        self.spans.append(int(span.span_id, 16))
        self.parents.append(int(span.parent_id, 16) if span.parent_id is not None else 0)
        self.checks.append(_check(span, facts))
        self.bits.append(_bits(span, facts))
        origin = (span.scope, span.producer)
        number = self.origin_numbers.setdefault(origin, len(self.origin_numbers))
        if number == len(self.origin_scopes):
            self.origin_scopes.append(span.scope)
        self.origins.append(number)
        if facts.role in _ROLES_OF_TOOLS:
            self._add_tool(span, trace, facts, notes)
        for proposal in facts.proposals:
            if len(self.proposals) >= self.limits.max_proposals:
                notes.capacity = f"more than {self.limits.max_proposals} calls that models asked for"
                break
            self._argument_bytes += len(proposal.arguments or "")
            if self._argument_bytes > self.limits.max_argument_bytes and proposal.arguments is not None:
                proposal = replace(proposal, arguments=None)  # noqa: PLW2901 - there is no room for it
            self.proposals.append((trace, self.spans[-1], proposal))

    def _add_tool(self, span: Span, trace: int, facts: SpanFacts, notes: ReadNotes) -> None:
        if len(self.tools) >= self.limits.max_tool_spans:
            notes.capacity = f"more than {self.limits.max_tool_spans} tool spans"
            return
        self._argument_bytes += len(facts.arguments.text or "")
        is_full = self._argument_bytes > self.limits.max_argument_bytes
        facts = replace(
            facts,
            names=self._shared.setdefault(facts.names, facts.names),
            vocabularies=self._shared.setdefault(facts.vocabularies, facts.vocabularies),
            arguments=without_text(facts.arguments) if is_full else facts.arguments,
            proposals=(),
        )
        start, end = span.start_ns, None if facts.end_is_false else span.end_ns
        if start is not None and end is not None and end < start:
            start, end = end, start
        unit = max(span.time_unit_ns, facts.time_unit_ns)
        if unit > 1:
            # The recorded instants are known to within a unit: the call ran somewhere between these.
            start = max(0, start - unit) if start is not None else None
            end = end + unit if end is not None else None
        if facts.is_hosted:
            start = end = None
        failed = False if span.failed is None and facts.has_returned else span.failed
        self.tools.append(ToolSpan(trace, self.spans[-1], self.parents[-1], start, end, failed, span.scope, facts))

    def by_trace(self, chosen: frozenset[int] | None = None) -> Iterator[tuple[int, list[int]]]:
        """(trace number, positions of its spans), for the chosen traces or all."""
        order = [at for at in range(len(self.traces)) if chosen is None or self.traces[at] in chosen]
        order.sort(key=self.traces.__getitem__)
        begin = 0
        while begin < len(order):
            trace, end = self.traces[order[begin]], begin
            while end < len(order) and self.traces[order[end]] == trace:
                end += 1
            yield trace, order[begin:end]
            begin = end


def vocabulary_names(bits: int) -> Iterator[str]:
    """The vocabularies that recognised a span, from its bits."""
    for name, bit in _VOCABULARY_BITS.items():
        if bits & bit:
            yield name


def _bits(span: Span, facts: SpanFacts) -> int:
    flags = span.flags & 0xFF
    reversed_ = span.start_ns is not None and span.end_ns is not None and span.end_ns < span.start_ns
    bits = (
        UNFINISHED * (span.end_ns is None or facts.end_is_false)
        | DROPPED_ATTRIBUTES * (span.dropped_attributes > 0)
        | DROPPED_EVENTS * (span.dropped_events > 0)
        | DROPPED_LINKS * (span.dropped_links > 0)
        | SAMPLED * (flags & 1)
        | UNSAMPLED * (flags & 1 == 0 and flags != 0)
        | FLAGS_UNSET * (flags == 0 and span.flags != 0)
        | REVERSED * reversed_
        | PENDING * facts.is_pending
        | HOSTED * facts.is_hosted
        | LOOKS_LIKE_AI * facts.looks_like_ai
        | RECOGNISED * (len(facts.vocabularies) > 0)
        | BARRIER * (facts.role is Role.AGENT or facts.role is Role.MODEL)
    )
    for name in facts.vocabularies:
        bits |= _VOCABULARY_BITS[name]
    return bits


def _check(span: Span, facts: SpanFacts) -> int:
    """Tells two different records of one span id apart, in whatever encoding they came.

    Of values, those that a verdict may rest on: what ran, and with what.
    """
    keys = ",".join(sorted(span.attributes))
    text = f"{span.parent_id}|{span.start_ns}|{span.end_ns}|{span.failed}|{span.name}|{keys}"
    if facts.role in _ROLES_OF_TOOLS:
        arguments = facts.arguments
        text += f"|{facts.role}|{facts.names}|{facts.call_id}|{arguments.state}|{arguments.why}|{arguments.sha256}"
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def _tidy(facts: SpanFacts) -> SpanFacts:
    """Names that are valid Unicode, call ids of bounded length; a name beyond all reason may be any tool."""
    names = tuple(sorted({storable(name) for name in facts.names}))
    call_id = facts.call_id
    if call_id is not None and len(call_id) > _MAX_CALL_ID:
        call_id = f"sha256:{sha256(call_id.encode('utf-8', 'replace')).hexdigest()}"
    call_id = storable(call_id) if call_id is not None else None
    detail, role = storable(facts.detail)[:500], facts.role
    if any(len(name) > _MAX_NAME for name in names):
        role = Role.POSSIBLE_TOOL if role is Role.TOOL else role
        detail, names = f"the name of its tool is longer than {_MAX_NAME} characters", ()
    if (names, call_id, detail, role) == (facts.names, facts.call_id, facts.detail, facts.role):
        return facts
    return replace(facts, role=role, names=names, call_id=call_id, detail=detail)
