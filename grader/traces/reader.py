"""Traces from files or bytes to evidence: read everything, group by trace id, unify, check, and say what was found."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import (
    Attempt,
    EvidenceSource,
    Excluded,
    ExclusionReason,
    NotExecuted,
    NotExecutedKind,
    PossibleToolSpan,
    SourceRead,
    ToolCall,
    ToolsPayload,
    VocabularyCount,
)
from grader.core.traces.content import storable
from grader.core.traces.coverage import Coverage, CoverageCode
from grader.errors import Place, TraceError
from grader.traces import received
from grader.traces.across_traces import marked_across
from grader.traces.arguments import with_proposal
from grader.traces.coverage import Reasons, check_proposals, check_trace, reversed_spans
from grader.traces.otlp import ReadLimits, read_spans
from grader.traces.span import ReadNotes, Span
from grader.traces.span_store import SpanStore, StoreLimits, ToolSpan, vocabulary_names
from grader.traces.trace_tree import TraceTree
from grader.traces.unify import by_time, unify
from grader.traces.vocabularies.base import Proposal, Role

_LISTED = 20
CAPTURED = "captured"
"""What stands for the encoding of spans that are in this process already."""


@dataclass(frozen=True, slots=True)
class TraceInput:
    """One source of spans: a name for reports, and how to open it (read in binary, closed after reading).

    A source whose spans are in this process already gives them with `spans`, and is never opened.
    """

    name: str
    open: Callable[[], BinaryIO] = BytesIO
    spans: Callable[[ReadNotes], Iterable[Span]] | None = None
    trace_ids: tuple[str, ...] = ()
    """The traces that the source is about (lower-case hex); none: all that it holds."""
    declared_by: str | None = None
    """Who declares that the source is complete; None: nobody."""

    @classmethod
    def of_path(cls, path: Path) -> TraceInput:
        """A file."""
        return cls(str(path), lambda: path.open("rb"))

    @classmethod
    def of_bytes(cls, data: bytes, name: str = "<bytes>") -> TraceInput:
        """Bytes in memory."""
        return cls(name, lambda: BytesIO(data))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is kept, and the bounds of the reader."""

    content: ContentRules = field(default_factory=ContentRules)
    read_limits: ReadLimits = field(default_factory=ReadLimits)
    store_limits: StoreLimits = field(default_factory=StoreLimits)


def read_traces(
    sources: Iterable[TraceInput], options: ReadOptions | None = None, also: Callable[[Span], None] | None = None
) -> TraceEvidence:
    """Read all spans of all sources. `also` gets every span too, as it is read.

    Damage inside a source becomes a coverage reason. Raises TraceError when a source cannot be opened or is no trace
    at all, PrerequisiteError when a package for its compression is missing.
    """
    options = options if options is not None else ReadOptions()
    evidence = TraceEvidence(SpanStore(options.content, options.store_limits))
    for source in sources:
        notes = ReadNotes()
        try:
            with _opened(source, notes, options.read_limits) as (spans, encoding):
                for span in spans:
                    evidence.store.add(span, notes)
                    if also is not None:
                        also(span)
        except OSError as error:
            raise TraceError(
                f"cannot be read: {error.strerror or error}", where=Place(source.name), hint="check the path"
            ) from error
        if notes.spans > 0 and notes.spans == notes.unreadable_spans:
            raise TraceError(
                f"none of its {notes.spans} spans can be used: {notes.unreadable_detail}",
                where=Place(source.name),
                hint="a trace id is 32 hex digits and a span id 16, not all zero",
            )
        received.check_awaited(notes)
        if notes.exports:
            encoding = encoding.replace("otlp-json", ", ".join(sorted(notes.exports)), 1)
        evidence.sources.append((source.name, encoding, notes))
    return evidence


@contextmanager
def _opened(source: TraceInput, notes: ReadNotes, limits: ReadLimits) -> Generator[tuple[Iterable[Span], str]]:
    """The spans of a source, and the name of its encoding."""
    if source.spans is not None:
        yield source.spans(notes), CAPTURED
        return
    with source.open() as stream:
        yield read_spans(stream, source.name, notes, limits)


@dataclass(slots=True)
class TraceEvidence:
    """Everything that was read; `payload` makes the evidence of all traces or of some of them."""

    store: SpanStore
    sources: list[tuple[str, str, ReadNotes]] = field(default_factory=list[tuple[str, str, ReadNotes]])

    @property
    def trace_ids(self) -> tuple[str, ...]:
        """The ids of all traces that were read, sorted."""
        return tuple(sorted(f"{number:032x}" for number in self.store.numbers))

    def payload(
        self, trace_ids: Iterable[str] | None = None, known_parents: Iterable[str] = (), declared_by: str | None = None
    ) -> ToolsPayload:
        """The evidence of the traces with these ids (lower-case hex), or of all.

        `known_parents` are span ids (16 hex digits) of the caller's side; `declared_by` declares completeness, which
        the reasons found here still override.
        """
        parts = _Parts()
        chosen = None if trace_ids is None else self._chosen(trace_ids, parts.reasons)
        parents = frozenset(int(parent, 16) for parent in known_parents)
        names = {number: f"{trace_id:032x}" for trace_id, number in self.store.numbers.items()}
        tools: dict[int, list[ToolSpan]] = defaultdict(list)
        for tool in self.store.tools:
            tools[tool.trace].append(tool)
        asked: dict[int, dict[tuple[int, Proposal], None]] = defaultdict(dict)
        for trace, span, proposal in self.store.proposals:
            asked[trace][(span, proposal)] = None
        for trace, positions in self.store.by_trace(chosen):
            tree = TraceTree.build(self.store, trace, names[trace], positions)
            _read_trace(tree, tools[trace], list(asked[trace]), parts)
            check_trace(tree, parents, parts.reasons)
        self._check_sources(parts.reasons)
        if len(parts.trace_ids) == 0:
            parts.reasons.add(CoverageCode.NO_SPANS)
        return parts.payload(
            Coverage(declared_by=declared_by, reasons=parts.reasons.done()), self.reports(), self.store.rules
        )

    def _chosen(self, trace_ids: Iterable[str], reasons: Reasons) -> frozenset[int]:
        chosen: set[int] = set()
        for trace_id in sorted(set(trace_ids)):
            number = self.store.numbers.get(int(trace_id, 16))
            if number is None:
                reasons.add(CoverageCode.TRACE_ABSENT, f"trace {trace_id}")
            else:
                chosen.add(number)
        return frozenset(chosen)

    def _check_sources(self, reasons: Reasons) -> None:
        for name, _, notes in self.sources:
            if notes.is_cut:
                reasons.add(CoverageCode.FILE_CUT, name)
            if notes.is_lossy:
                written = f" ({', '.join(sorted(notes.exports))})" if notes.exports else ""
                reasons.add(CoverageCode.FORMAT_LOSSY, f"{name}{written}")
            if notes.capacity:
                reasons.add(CoverageCode.CAPACITY, f"{name}: {notes.capacity}")
            if notes.unreadable_records:
                reasons.add(CoverageCode.RECORD_UNREADABLE, f"{name}: {notes.record_detail}", notes.unreadable_records)
            for (code, detail), count in sorted(notes.reported.items()):
                reasons.add(code, f"{name}: {detail}" if detail else name, count)
            if notes.unreadable_spans:
                reasons.add(CoverageCode.SPAN_UNREADABLE, notes.unreadable_detail, notes.unreadable_spans)

    def reports(self) -> tuple[SourceRead, ...]:
        """What was read from each source."""
        return tuple(
            SourceRead(
                name=storable(name),
                kind=EvidenceSource.TRACE,
                encoding=encoding,
                spans=notes.spans,
                unknown_fields=notes.unknown_fields,
                warnings=tuple(sorted(storable(warning) for warning in notes.warnings)),
            )
            for name, encoding, notes in self.sources
        )


@dataclass(slots=True)
class _Parts:
    """The parts of a payload while traces are read into it."""

    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    scopes: dict[str, str] = field(default_factory=dict[str, str])
    """The instrumentation scope of each span that describes a call."""
    excluded: list[Excluded] = field(default_factory=list[Excluded])
    possible: list[PossibleToolSpan] = field(default_factory=list[PossibleToolSpan])
    not_executed: list[NotExecuted] = field(default_factory=list[NotExecuted])
    reasons: Reasons = field(default_factory=Reasons)
    vocabularies: Counter[str] = field(default_factory=Counter[str])
    trace_ids: list[str] = field(default_factory=list[str])
    widened: list[str] = field(default_factory=list[str])

    def payload(self, coverage: Coverage, sources: tuple[SourceRead, ...], rules: ContentRules) -> ToolsPayload:
        notes: tuple[str, ...] = ()
        if self.widened:
            listed = ", ".join(sorted(self.widened)[:_LISTED])
            notes = (f"{len(self.widened)} spans end before they start; the interval was widened to both: {listed}",)
        return ToolsPayload(
            calls=marked_across(sorted(self.calls, key=by_time), self.scopes),
            excluded=tuple(sorted(self.excluded, key=lambda item: (item.spans, item.why))),
            possible=tuple(sorted(self.possible, key=lambda item: item.span)),
            not_executed=tuple(sorted(self.not_executed, key=lambda item: (item.where, item.name, item.call_id or ""))),
            coverage=coverage,
            sources=sources,
            vocabularies=tuple(
                VocabularyCount(vocabulary=name, spans=count) for name, count in sorted(self.vocabularies.items())
            ),
            trace_ids=tuple(sorted(self.trace_ids)),
            retain_content=rules.retain_content,
            notes=notes,
        )


def _read_trace(tree: TraceTree, tools: list[ToolSpan], asked: list[tuple[int, Proposal]], parts: _Parts) -> None:
    parts.trace_ids.append(tree.trace_id)
    executed: list[ToolSpan] = []
    excluded: dict[str, Excluded] = {}
    possible: dict[str, PossibleToolSpan] = {}
    for tool in sorted(tools, key=lambda tool: (tool.span, tool.start_ns or 0, tool.facts.detail)):
        if tool.facts.is_pending:
            _read_pending(tool, tree, executed, excluded)
        elif tool.facts.role is Role.TOOL:
            executed.append(tool)
        elif tool.facts.role is Role.EXCLUDED:
            excluded[tree.ref(tool.span)] = _excluded(tool, tree, tool.facts.why_excluded)
        else:
            possible[tree.ref(tool.span)] = _possible(tool, tree)
    for span in possible:
        parts.reasons.add(CoverageCode.TOOL_UNNAMED, f"span {span}")
    parts.scopes.update((tree.ref(tool.span), tool.scope) for tool in executed)
    calls = unify(_with_proposals(executed, asked, tree.store.rules), tree)
    left_out = tuple(excluded.values())
    places = sorted(((tree.ref(span), proposal) for span, proposal in asked), key=lambda item: (item[0], str(item[1])))
    for place, proposal in check_proposals(places, calls, left_out, parts.reasons):
        call_id = storable(proposal.call_id) if proposal.call_id is not None else None
        name = storable(proposal.name) or "(not recorded)"
        parts.not_executed.append(
            NotExecuted(kind=NotExecutedKind.PROPOSED, name=name, call_id=call_id, where=f"span {place}")
        )
    parts.calls.extend(calls)
    parts.excluded.extend(left_out)
    parts.possible.extend(possible.values())
    parts.widened.extend(reversed_spans(tree, tree.store))
    for at in tree.at.values():
        parts.vocabularies.update(vocabulary_names(tree.store.bits[at]))


def _with_proposals(executed: list[ToolSpan], asked: list[tuple[int, Proposal]], rules: ContentRules) -> list[ToolSpan]:
    """The executions, with what only the model's answer says of their arguments."""
    given = {proposal.call_id: proposal.arguments for _, proposal in asked if proposal.arguments is not None}
    if not given:
        return executed
    return [
        replace(tool, facts=replace(tool.facts, arguments=with_proposal(tool.facts.arguments, text, rules)))
        if "langchain" in tool.facts.vocabularies and (text := given.get(tool.facts.call_id)) is not None
        else tool
        for tool in executed
    ]


def _read_pending(tool: ToolSpan, tree: TraceTree, executed: list[ToolSpan], excluded: dict[str, Excluded]) -> None:
    """An announcement counts only when the span it announces (its parent) never came: started, end unknown."""
    if tool.parent in tree.at or tool.facts.role is not Role.TOOL:
        excluded[tree.ref(tool.span)] = _excluded(tool, tree, ExclusionReason.PENDING_SPAN)
    else:
        executed.append(ToolSpan(tool.trace, tool.parent, 0, tool.start_ns, None, None, tool.scope, tool.facts))


def _excluded(tool: ToolSpan, tree: TraceTree, why: ExclusionReason | None) -> Excluded:
    return Excluded(
        why=why if why is not None else ExclusionReason.DENIED,
        names=tool.facts.names,
        call_id=tool.facts.call_id,
        spans=(tree.ref(tool.span),),
        detail=tool.facts.detail,
    )


def _possible(tool: ToolSpan, tree: TraceTree) -> PossibleToolSpan:
    attempts = (Attempt(start_ns=tool.start_ns, end_ns=tool.end_ns),) if tool.start_ns is not None else ()
    return PossibleToolSpan(span=tree.ref(tool.span), why=tool.facts.detail, attempts=attempts)
