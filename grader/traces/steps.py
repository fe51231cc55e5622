"""From spans to the steps that a judge reads: every span is one, in the order of the tree.

A step whose parent is itself, is in a cycle or is not there is a root: no step may vanish.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from grader.core.tools.arguments import ContentRules
from grader.core.traces.content import TextRules, TraceContent, kept_content, storable, without_room
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.core.traces.execution_trace import MOST_STEPS, ExecutionStep, StepEvent, StepStatus, WhyRoot
from grader.traces.classify import classify
from grader.traces.span import Span
from grader.traces.step_content import StepContent, event_text, step_content

MOST_EVENTS = 20
MOST_KEPT_SPANS = 200_000
MOST_CONTENT_CHARACTERS = 64 << 20
_MOST_NAME = 1_000
_STATUS = {True: StepStatus.ERROR, False: StepStatus.OK, None: StepStatus.UNSET}


@dataclass(frozen=True, slots=True)
class _Kept:
    """A span as a step, before its place in the tree is known."""

    span_id: str
    parent_id: str | None
    start_ns: int | None
    end_ns: int | None
    status: StepStatus
    description: TraceContent | None
    events: tuple[StepEvent, ...]
    content: StepContent

    @property
    def order(self) -> tuple[bool, int, str]:
        """By start; without one, last."""
        return (self.start_ns is None, self.start_ns or 0, self.span_id)


@dataclass(slots=True)
class StepStore:
    """Takes spans one by one, from any number of traces; `steps` makes the steps of some of them."""

    rules: TextRules = field(default_factory=TextRules)
    by_trace: dict[str, dict[str, _Kept]] = field(default_factory=lambda: defaultdict[str, dict[str, _Kept]](dict))
    announced: list[tuple[str, _Kept]] = field(default_factory=list[tuple[str, _Kept]])
    left_out: int = 0
    _characters: int = 0
    _spans: int = 0

    def add(self, span: Span) -> None:
        """Keep a span. Of two records with one id the one that ended is kept, else the first."""
        if self._spans >= MOST_KEPT_SPANS:
            self.left_out += 1
            return
        self._spans += 1
        facts = classify(span, ContentRules(retain_content=False))
        kept = self._within_bounds(_keep(span, step_content(span, facts, self.rules), self.rules))
        if facts.is_pending:
            self.announced.append((span.trace_id, kept))
            return
        known = self.by_trace[span.trace_id].get(span.span_id)
        if known is None or (known.end_ns is None and kept.end_ns is not None):
            self.by_trace[span.trace_id][span.span_id] = kept

    def steps(self, trace_ids: Sequence[str] | None) -> tuple[tuple[ExecutionStep, ...], tuple[CoverageReason, ...]]:
        """The steps of the traces with these ids in this order (None: all, by start), and what is not among them."""
        self._add_announced()
        chosen = self._by_start() if trace_ids is None else [one for one in trace_ids if one in self.by_trace]
        steps: list[ExecutionStep] = []
        left_out = self.left_out
        for trace_id in dict.fromkeys(chosen):
            found = list(_in_order(trace_id, self.by_trace[trace_id], len(steps)))
            room = max(0, MOST_STEPS - len(steps))
            left_out += max(0, len(found) - room)
            steps.extend(found[:room])
        if left_out == 0:
            return tuple(steps), ()
        reason = CoverageReason(code=CoverageCode.CAPACITY, detail=f"{left_out} spans more than a judge is shown")
        return tuple(steps), (reason,)

    def _add_announced(self) -> None:
        """An announcement counts only when the span that it announces (its parent) never came: its end is unknown."""
        for trace_id, kept in self.announced:
            if kept.parent_id is not None and kept.parent_id not in self.by_trace[trace_id]:
                unfinished = replace(kept, span_id=kept.parent_id, parent_id=None, end_ns=None)
                self.by_trace[trace_id][kept.parent_id] = unfinished
        self.announced.clear()

    def _by_start(self) -> list[str]:
        first = {
            trace_id: min(kept.order for kept in found.values()) for trace_id, found in self.by_trace.items() if found
        }
        return sorted(first, key=lambda trace_id: (first[trace_id], trace_id))

    def _within_bounds(self, kept: _Kept) -> _Kept:
        """What is beyond the room for content keeps its length and digest."""
        content = kept.content
        texts = [kept.description, content.input, content.output, *(event.content for event in kept.events)]
        self._characters += sum(len(text.text or "") for text in texts if text is not None)
        if self._characters <= MOST_CONTENT_CHARACTERS:
            return kept
        return replace(
            kept,
            description=_emptied(kept.description),
            events=tuple(StepEvent(name=event.name, content=without_room(event.content)) for event in kept.events),
            content=replace(content, input=_emptied(content.input), output=_emptied(content.output)),
        )


def _emptied(content: TraceContent | None) -> TraceContent | None:
    return without_room(content) if content is not None else None


def _keep(span: Span, content: StepContent, rules: TextRules) -> _Kept:
    start, end = span.start_ns, span.end_ns
    if start is not None and end is not None and end < start:
        start, end = end, start
    message = span.status_message
    return _Kept(
        span_id=span.span_id,
        parent_id=span.parent_id,
        start_ns=start,
        end_ns=end,
        status=_STATUS[span.failed],
        description=kept_content(message, "status description", rules) if message else None,
        events=tuple(_events(span, rules)),
        content=replace(content, name=storable(content.name)[:_MOST_NAME]),
    )


def _events(span: Span, rules: TextRules) -> Iterable[StepEvent]:
    for event in span.events[:MOST_EVENTS]:
        text = event_text(event.attributes)
        yield StepEvent(name=storable(event.name)[:_MOST_NAME], content=kept_content(text, "event", rules))
    more = len(span.events) - MOST_EVENTS
    if more > 0:
        yield StepEvent(name="further events", content=kept_content(f"{more} are not kept", "event", TextRules()))


def _in_order(trace_id: str, spans: dict[str, _Kept], before: int) -> Iterable[ExecutionStep]:
    """Parents before their children, siblings by start; iterative, so that depth is no danger."""
    cyclic = _in_cycles(spans)
    why: dict[str, WhyRoot | None] = {}
    children: dict[str, list[_Kept]] = defaultdict(list)
    for kept in spans.values():
        parent = kept.parent_id
        if parent is None:
            why[kept.span_id] = None
        elif kept.span_id in cyclic:
            why[kept.span_id] = WhyRoot.PARENT_CYCLE
        elif parent not in spans:
            why[kept.span_id] = WhyRoot.PARENT_MISSING
        else:
            children[parent].append(kept)
    ids: dict[str, str] = {}
    stack = sorted((spans[root] for root in why), key=lambda kept: kept.order, reverse=True)
    while stack:
        kept = stack.pop()
        ids[kept.span_id] = f"T{before + len(ids) + 1}"
        is_root = kept.span_id in why
        parent = None if is_root else ids[kept.parent_id or ""]
        yield _step(trace_id, kept, ids[kept.span_id], parent, why.get(kept.span_id))
        stack.extend(sorted(children[kept.span_id], key=lambda child: child.order, reverse=True))


def _step(trace_id: str, kept: _Kept, name: str, parent: str | None, why: WhyRoot | None) -> ExecutionStep:
    return ExecutionStep(
        id=name,
        kind=kept.content.kind,
        name=kept.content.name,
        parent=parent,
        why_root=why,
        start_ns=kept.start_ns,
        end_ns=kept.end_ns,
        status=kept.status,
        status_description=kept.description,
        events=kept.events,
        input=kept.content.input,
        output=kept.content.output,
        trace_id=trace_id,
        span_id=kept.span_id,
        vocabulary=kept.content.vocabulary,
    )


def _in_cycles(spans: dict[str, _Kept]) -> frozenset[str]:
    done: set[str] = set()
    cyclic: set[str] = set()
    for first in spans:
        path: list[str] = []
        on_path: set[str] = set()
        current: str | None = first
        while current is not None and current in spans and current not in done and current not in on_path:
            path.append(current)
            on_path.add(current)
            current = spans[current].parent_id
        if current is not None and current in on_path:
            cyclic.update(path[path.index(current) :])
        done.update(path)
    return frozenset(cyclic)
