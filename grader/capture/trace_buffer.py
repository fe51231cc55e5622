"""The bounded memory of a capture: which traces it holds, when one is complete, and what goes when it is full.

Knows nothing of OpenTelemetry: spans are objects with an id. Every change is one step under one lock, so nobody can see
a trace as complete while the end of one of its spans is being taken in.

Time is counted in steps (starts and ends of spans), not read from a clock.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from grader.core.traces.coverage import CoverageCode

S = TypeVar("S")


class TraceState(Enum):
    """What became of a trace."""

    OPEN = "open"
    """Its root, or a span in it, has not ended."""
    COMPLETE = "complete"
    """All have ended, and nothing was found against it."""
    FAILED = "failed"
    """All have ended, and something is missing."""
    EVICTED = "evicted"
    """Its spans were forgotten to make room."""


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """How much is held: spans of all traces, traces, and bytes of what spans say (an estimate)."""

    max_spans: int = 100_000
    max_traces: int = 10_000
    max_content_bytes: int = 256 << 20
    max_strays: int = 1_000
    """Spans of no request that may belong to one."""


@dataclass(slots=True, eq=False)
class KeptTrace(Generic[S]):
    """What is held of one trace. Only the buffer changes it."""

    trace_id: int
    root: int
    begun_at: int
    state: TraceState = TraceState.OPEN
    ended: dict[int, S] = field(default_factory=dict[int, S])
    open: dict[int, S] = field(default_factory=dict[int, S])
    content_bytes: int = 0
    root_has_ended: bool = False
    settled_at: int | None = None
    """The step at which the last of its spans ended."""
    touched_at: int = 0
    """The step of the last change."""
    late_at: int = -1
    """The step at which a span began last when all had ended."""
    is_declared: bool = True
    """Whether the capture can say that it is complete: its spans are made here, without limits and sampling."""
    is_over: bool = False
    """It alone is larger than the buffer: further spans of it are not held."""
    reasons: dict[CoverageCode, tuple[int, str]] = field(default_factory=dict[CoverageCode, tuple[int, str]])
    """What is missing: how often, and the first detail."""

    @property
    def spans(self) -> int:
        """How many spans are held."""
        return len(self.ended) + len(self.open)

    def report(self, code: CoverageCode, detail: str) -> None:
        """Note that something is missing."""
        count, first = self.reasons.get(code, (0, detail))
        self.reasons[code] = (count + 1, first)


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[S]):
    """A trace at one moment."""

    state: TraceState
    ended: tuple[S, ...]
    open: tuple[S, ...]
    reasons: tuple[tuple[CoverageCode, int, str], ...]

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing, as far as a capture can tell."""
        return self.state in {TraceState.COMPLETE, TraceState.FAILED} and not self.open and not self.reasons


@dataclass(slots=True, eq=False)
class _Stray(Generic[S]):
    begun_at: int
    span: S | None
    ended_at: int | None = None
    detail: str = ""


class TraceBuffer(Generic[S]):
    """Holds the traces of requests; see the top of this file.

    `is_of_an_agent`: whether a span, open or ended, is one of an agent, a model or a tool; `describe` names a span.
    """

    def __init__(
        self, limits: BufferLimits, *, is_of_an_agent: Callable[[S], bool], describe: Callable[[S], str]
    ) -> None:
        self.limits = limits
        self._is_of_an_agent = is_of_an_agent
        self._describe = describe
        self._reset()

    def _reset(self) -> None:
        # Reentrant: a garbage collection inside one of our steps can end a span of a generator that was left.
        self._lock = threading.RLock()
        self._step = 0
        self._spans = 0
        self._content_bytes = 0
        self._traces: dict[int, KeptTrace[S]] = {}
        self._by_state: dict[TraceState, OrderedDict[int, KeptTrace[S]]] = {
            state: OrderedDict() for state in (TraceState.COMPLETE, TraceState.FAILED, TraceState.OPEN)
        }
        self._gone: OrderedDict[int, None] = OrderedDict()
        self._strays: OrderedDict[int, _Stray[S]] = OrderedDict()
        self._strays_lost_until = 0
        self.is_closed = False

    # --- what a capture tells

    def begin(self, trace_id: int, root: int, span: S) -> KeptTrace[S]:
        """A request begins with its root span. Never refused: an older trace makes room."""
        with self._lock:
            self._step += 1
            while len(self._traces) >= self.limits.max_traces:
                self._evict(self._oldest())
            trace = KeptTrace[S](trace_id, root, self._step, touched_at=self._step)
            if self.is_closed:
                trace.report(CoverageCode.CAPTURE_FAILED, "the capture was closed")
            self._traces[trace_id] = self._by_state[TraceState.OPEN][trace_id] = trace
            if self._hold(trace, 0):
                trace.open[root] = span
            return trace

    def start(self, trace_id: int, span_id: int, span: S) -> None:
        """A span begins."""
        with self._lock:
            self._step += 1
            trace = self._traces.get(trace_id)
            if trace is None:
                if trace_id not in self._gone:
                    self._add_stray(span_id, span)
                return
            if span_id in trace.open:
                return  # told twice, by two processors
            trace.touched_at = self._step
            if trace.state is not TraceState.OPEN:
                trace.late_at = self._step
                trace.report(CoverageCode.SPAN_LATE, f"span {self._describe(span)} began after the request had ended")
                self._move(trace, TraceState.FAILED)
            if self._hold(trace, 0):
                trace.open[span_id] = span

    def end(self, trace_id: int, span_id: int, span: S, content_bytes: int) -> None:
        """A span has ended, and this is its last form. The end and the keeping of it are one step."""
        with self._lock:
            self._step += 1
            trace = self._traces.get(trace_id)
            if trace is None:
                self._end_stray(span_id, span)
                return
            if span_id in trace.ended:
                return  # told twice
            trace.touched_at = self._step
            was_open = span_id in trace.open
            if not was_open and not trace.is_over:
                trace.report(CoverageCode.CAPTURE_FAILED, f"the begin of span {self._describe(span)} was not seen")
            is_held = self._hold(trace, content_bytes, spans=0 if was_open else 1)
            if trace.open.pop(span_id, None) is not None and not is_held:
                self._spans -= 1
            if is_held:
                trace.ended[span_id] = span
            trace.root_has_ended = trace.root_has_ended or span_id == trace.root
            self._settle(trace)

    def undeclare(self, trace_id: int) -> None:
        """Spans of this trace come from where limits and sampling are not known."""
        trace = self._traces.get(trace_id)
        if trace is not None:
            trace.is_declared = False

    def fail(self, trace_id: int, detail: str) -> None:
        """The capture failed on a span of this trace. Other traces are not touched."""
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is not None:
                self._fail(trace, detail)

    def goes_elsewhere(self, trace_id: int, detail: str) -> None:
        """Something that began in this trace is kept in another, or by another capture."""
        with self._lock:
            trace = self._traces.get(trace_id)
            if trace is not None:
                trace.report(CoverageCode.SPAN_UNLINKED, detail)
                if trace.state is TraceState.COMPLETE:
                    self._move(trace, TraceState.FAILED)

    def holds(self, trace_id: int) -> bool:
        """Whether spans of this trace are kept here."""
        return trace_id in self._traces

    def close(self) -> None:
        """Nothing more is captured: what is open now will never be complete."""
        with self._lock:
            self.is_closed = True
            self._fail_open("the capture was closed while the request was open")

    def forked(self) -> None:
        """This process was forked: what the child does is not seen here."""
        with self._lock:
            self._fail_open("the process was forked while the request was open: spans of the child are not here")

    def reset_in_child(self) -> None:
        """This process is the child of a fork: nothing that the parent captured goes on here, nor a lock it held."""
        inherited, gone, was_closed = list(self._traces.values()), self._gone, self.is_closed
        self._reset()
        self.is_closed = was_closed
        for trace in inherited:
            trace.report(
                CoverageCode.CAPTURE_FAILED, "the request was begun in another process, the parent of this one"
            )
            self._forget(trace)
        for trace_id in gone:
            self._remember_gone(trace_id)

    # --- what others ask

    def snapshot(self, trace: KeptTrace[S], rested_at: int = -1) -> Snapshot[S]:
        """The trace as it is now. Spans that began up to the step `rested_at` are not late: it was waited for them."""
        with self._lock:
            reasons = [
                (code, count, detail)
                for code, (count, detail) in trace.reasons.items()
                if code is not CoverageCode.SPAN_LATE or trace.late_at > rested_at
            ]
            unlinked, detail = self._strays_beside(trace)
            if unlinked:
                reasons.append((CoverageCode.SPAN_UNLINKED, unlinked, detail))
            return Snapshot(
                trace.state, tuple(trace.ended.values()), tuple(trace.open.values()), tuple(sorted(reasons))
            )

    @property
    def spans(self) -> int:
        """How many spans are held."""
        return self._spans

    @property
    def traces(self) -> int:
        """How many traces are held."""
        return len(self._traces)

    def kept(self) -> tuple[KeptTrace[S], ...]:
        """All traces that are held, in the order in which they began."""
        with self._lock:
            return tuple(self._traces.values())

    # --- states

    def _settle(self, trace: KeptTrace[S]) -> None:
        if trace.state is TraceState.EVICTED or not trace.root_has_ended or trace.open:
            return
        trace.settled_at = self._step
        self._move(trace, TraceState.FAILED if trace.reasons else TraceState.COMPLETE)

    def _fail(self, trace: KeptTrace[S], detail: str) -> None:
        trace.report(CoverageCode.CAPTURE_FAILED, detail)
        if trace.state is TraceState.COMPLETE:
            self._move(trace, TraceState.FAILED)

    def _fail_open(self, detail: str) -> None:
        for trace in self._by_state[TraceState.OPEN].values():
            trace.report(CoverageCode.CAPTURE_FAILED, detail)

    def _move(self, trace: KeptTrace[S], state: TraceState) -> None:
        if trace.state is state or trace.state is TraceState.EVICTED:
            return
        del self._by_state[trace.state][trace.trace_id]
        trace.state = state
        self._by_state[state][trace.trace_id] = trace

    # --- room

    def _hold(self, trace: KeptTrace[S], content_bytes: int, spans: int = 1) -> bool:
        """Make room for a span of a trace, or (`spans=0`) for what one says that is held; whether it may be held."""
        if trace.state is TraceState.EVICTED or (trace.is_over and spans > 0):
            return False
        limits = self.limits
        while self._spans + spans > limits.max_spans or self._content_bytes + content_bytes > limits.max_content_bytes:
            victim = self._oldest()
            if victim is trace and len(self._traces) == 1:
                trace.is_over = True
                trace.report(CoverageCode.CAPACITY, f"the request alone has more than {self._bounds()}")
                return False
            self._evict(victim)
            if victim is trace:
                return False
        self._spans += spans
        self._content_bytes += content_bytes
        trace.content_bytes += content_bytes
        return True

    def _oldest(self) -> KeptTrace[S]:
        """What goes first: the complete trace that was complete first, then a failed one, then the oldest open one."""
        for traces in self._by_state.values():
            if traces:
                return next(iter(traces.values()))
        raise AssertionError("nothing is held")

    def _evict(self, trace: KeptTrace[S]) -> None:
        trace.report(CoverageCode.CAPACITY, f"the capture holds no more than {self._bounds()}")
        self._spans -= trace.spans
        self._content_bytes -= trace.content_bytes
        del self._by_state[trace.state][trace.trace_id]
        del self._traces[trace.trace_id]
        self._forget(trace)

    def _forget(self, trace: KeptTrace[S]) -> None:
        trace.state = TraceState.EVICTED
        trace.ended.clear()
        trace.open.clear()
        self._remember_gone(trace.trace_id)

    def _remember_gone(self, trace_id: int) -> None:
        """Spans of a trace that went are no strays; how many such traces are remembered is bounded, too."""
        self._gone[trace_id] = None
        while len(self._gone) > self.limits.max_traces:
            self._gone.popitem(last=False)

    def _bounds(self) -> str:
        limits = self.limits
        return f"{limits.max_spans:,} spans, {limits.max_traces:,} requests and {limits.max_content_bytes >> 20:,} MiB"

    # --- spans of no request

    def _add_stray(self, span_id: int, span: S) -> None:
        self._strays[span_id] = _Stray(self._step, span)
        if len(self._strays) > self.limits.max_strays:
            self._strays.popitem(last=False)
            self._strays_lost_until = self._step

    def _end_stray(self, span_id: int, span: S) -> None:
        """Only spans of agents matter: others, such as those of a web server, are none of a request's business."""
        stray = self._strays.get(span_id)
        if stray is None:
            return
        if self._is_of_an_agent(span):
            stray.ended_at, stray.detail, stray.span = self._step, self._describe(span), None
        else:
            del self._strays[span_id]

    def _strays_beside(self, trace: KeptTrace[S]) -> tuple[int, str]:
        """How many spans of agents, while this request was open, belong to no request; and the first of them."""
        end = self._step if trace.settled_at is None else trace.settled_at
        found = [
            stray.detail if stray.span is None else self._describe(stray.span)
            for stray in self._strays.values()
            if stray.begun_at <= end
            and (stray.ended_at is None or stray.ended_at >= trace.begun_at)
            and (stray.span is None or self._is_of_an_agent(stray.span))
        ]
        if trace.begun_at < self._strays_lost_until:
            found.append("more spans of no request than are looked at")
        return len(found), found[0] if found else ""
