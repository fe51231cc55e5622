"""The OpenTelemetry SDK's side of a capture: a tracer provider without limits, and a processor that hears of spans."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from contextvars import ContextVar, Token
from dataclasses import dataclass

from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import Status, StatusCode, get_current_span, set_span_in_context

from grader.capture.sdk_spans import content_bytes, describe, is_of_an_agent, read_span
from grader.capture.trace_buffer import BufferLimits, KeptTrace, Snapshot, TraceBuffer
from grader.core.traces.coverage import CoverageCode
from grader.traces import span as traces
from grader.traces.reader import TraceInput

SdkBuffer = TraceBuffer[ReadableSpan]
SdkTrace = KeptTrace[ReadableSpan]

_followed: weakref.WeakSet[SdkBuffer] = weakref.WeakSet()
_begins_request: ContextVar[bool] = ContextVar("grader_begins_request", default=False)


class BufferingProcessor(SpanProcessor):
    """Puts spans into a buffer. `is_own`: they are of the capture's own provider. Never raises into the agent."""

    def __init__(self, buffer: SdkBuffer, *, is_own: bool) -> None:
        self._buffer = buffer
        self._is_own = is_own

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A span begins."""
        context = span.get_span_context()
        if _begins_request.get():
            return  # the buffer is told by who begins it
        try:
            self._buffer.start(context.trace_id, context.span_id, span)
            if not self._is_own:
                self._buffer.undeclare(context.trace_id)
            elif len(_followed) > 1 and not self._buffer.holds(context.trace_id):
                _tell_others(self._buffer, context.trace_id, f"span {describe(span)} is kept by another capture")
        except Exception as error:  # noqa: BLE001 - becomes a reason why the evidence is not complete
            self._buffer.fail(context.trace_id, f"{type(error).__name__}: {str(error)[:200]}")

    def on_end(self, span: ReadableSpan) -> None:
        """A span has ended: its end and its content are taken in together."""
        context = span.get_span_context()
        if context is None:
            return
        size = 0
        try:
            size = content_bytes(span)
        except Exception as error:  # noqa: BLE001 - becomes a reason why the evidence is not complete
            self._buffer.fail(context.trace_id, f"{type(error).__name__}: {str(error)[:200]}")
        self._buffer.end(context.trace_id, context.span_id, span, size)

    def shutdown(self) -> None:
        """The provider ends. Of a provider that is not ours this ends nothing."""
        if self._is_own:
            self._buffer.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back."""
        return True


class SystemIds(RandomIdGenerator):
    """Ids from the system. The SDK's own come from `random`, which programs seed: then requests get equal ids."""

    def generate_span_id(self) -> int:
        """64 random bits, not all 0."""
        return int.from_bytes(os.urandom(8), "big") or 1

    def generate_trace_id(self) -> int:
        """128 random bits, not all 0."""
        return int.from_bytes(os.urandom(16), "big") or 1


def unlimited_provider(buffer: SdkBuffer) -> TracerProvider:
    """A provider that samples everything and cuts nothing, whatever the environment says; its spans go to `buffer`."""
    none = SpanLimits.UNSET
    limits = SpanLimits(
        max_attributes=none,
        max_events=none,
        max_links=none,
        max_span_attributes=none,
        max_event_attributes=none,
        max_link_attributes=none,
        max_attribute_length=none,
        max_span_attribute_length=none,
    )
    provider = TracerProvider(sampler=ALWAYS_ON, id_generator=SystemIds(), span_limits=limits, shutdown_on_exit=False)
    provider.add_span_processor(BufferingProcessor(buffer, is_own=True))
    return provider


class SdkSide:
    """All that a capture does with the OpenTelemetry SDK."""

    def __init__(self, limits: BufferLimits) -> None:
        self.buffer: SdkBuffer = TraceBuffer(limits, is_of_an_agent=is_of_an_agent, describe=describe)
        self.provider = unlimited_provider(self.buffer)
        _followed.add(self.buffer)  # from now on it is told of forks, in the parent and in the child

    def foreign_processor(self) -> BufferingProcessor:
        """A processor for a provider that is not ours."""
        return BufferingProcessor(self.buffer, is_own=False)

    def begin(self, name: str) -> BegunRequest:
        """The root span of a new trace: known to the buffer before anybody else can know it, then the current span."""
        outer = get_current_span().get_span_context().trace_id
        _tell_others(
            None, outer, f"the request {name[:100]!r} was begun inside, and its spans are in a trace of its own"
        )
        token = _begins_request.set(True)
        try:
            span = self.provider.get_tracer("grader").start_span(name, context=Context())
        finally:
            _begins_request.reset(token)
        assert isinstance(span, Span)
        context = span.get_span_context()
        trace = self.buffer.begin(context.trace_id, context.span_id, span)
        return BegunRequest(trace, span, otel_context.attach(set_span_in_context(span)))

    @staticmethod
    def evidence(snapshot: Snapshot[ReadableSpan], trace: SdkTrace, name: str, declared_by: str | None) -> TraceInput:
        """A snapshot of a trace as a source of evidence. What is open is read now: it goes on changing."""
        is_open = [read_span(span) for span in snapshot.open]

        def spans(notes: traces.ReadNotes) -> Iterator[traces.Span]:
            for code, count, detail in snapshot.reasons:
                notes.report(code, detail, count)
            notes.spans += len(snapshot.ended) + len(is_open)
            for span in snapshot.ended:
                try:
                    yield read_span(span)
                except (ValueError, TypeError, AttributeError) as error:
                    notes.report(CoverageCode.CAPTURE_FAILED, f"a span cannot be read: {str(error)[:200]}")
            yield from is_open

        return TraceInput(name, spans=spans, trace_ids=(f"{trace.trace_id:032x}",), declared_by=declared_by)


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request that is open: its trace, its root span, and what makes another span the current one again."""

    trace: SdkTrace
    span: Span
    token: Token[Context]

    def end(self, error: BaseException | None) -> None:
        """End the root span, with the error that ended the request."""
        otel_context.detach(self.token)
        if error is not None:
            self.span.record_exception(error)
            self.span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        self.span.end()


def _tell_others(buffer: SdkBuffer | None, trace_id: int, detail: str) -> None:
    """Whoever else holds this trace does not get all that belongs to it."""
    for other in tuple(_followed):
        if other is not buffer:
            other.goes_elsewhere(trace_id, detail)


def _in_parent() -> None:
    for buffer in tuple(_followed):
        buffer.forked()


def _in_child() -> None:
    for buffer in tuple(_followed):
        buffer.reset_in_child()


os.register_at_fork(after_in_parent=_in_parent, after_in_child=_in_child)
