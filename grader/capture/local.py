"""`LocalTraceCapture`: the spans of agents in this process, kept per request as evidence.

Theory of operation. The capture has a tracer provider of its own, without limits and without sampling, whose spans come
to a processor that puts them into a `TraceBuffer`. `request()` begins a trace: its root span is the current span of the
context, so whatever an agent records below is in it, in tasks and in threads that got the context. Spans of other
traces are not kept; when they are of an agent and of no request, requests that were open beside them are not complete.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from grader.capture import instrumentors, sources
from grader.capture.request import DECLARED_BY, CapturedRequest
from grader.capture.trace_buffer import BufferLimits
from grader.errors import PrerequisiteError, UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

    from grader.capture.sdk_provider import SdkSide
    from grader.traces.reader import TraceInput


class LocalTraceCapture:
    """Captures the spans of agents in this process, for the requests that it begins itself.

        capture = grader.LocalTraceCapture()
        capture.instrument()
        with capture.request("book a flight") as request:
            agent.run("...")
        grader.score(request, task)

    It may be used by any number of threads and tasks at once. `max_spans`, `max_traces` and `max_content_bytes` bound
    what it holds: when it is full, the trace is forgotten that was complete first, then one that failed, then the
    oldest open one, and the evidence of its request says so (`capacity`). A request is never refused.

    Raises PrerequisiteError if opentelemetry-sdk is not installed or is switched off (OTEL_SDK_DISABLED), UsageError
    for a bound below 1.
    """

    def __init__(
        self, *, max_spans: int = 100_000, max_traces: int = 10_000, max_content_bytes: int = 256 << 20
    ) -> None:
        if min(max_spans, max_traces, max_content_bytes) < 1:
            raise UsageError("a capture that holds nothing captures nothing", hint="give bounds of at least 1")
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            raise PrerequisiteError(
                "OpenTelemetry is switched off here: OTEL_SDK_DISABLED=true", hint="unset OTEL_SDK_DISABLED"
            )
        self._sdk = _sdk_side(BufferLimits(max_spans, max_traces, max_content_bytes))
        self._names: list[str] = []
        self._instrumented: tuple[instrumentors.Instrumentor, ...] = ()

    @property
    def tracer_provider(self) -> TracerProvider:
        """The provider to make spans with: for instrumentors, and for `opentelemetry.trace.set_tracer_provider`."""
        return self._sdk.provider

    def span_processor(self) -> SpanProcessor:
        """A processor for a tracer provider of your own, whose spans then come here, too.

        What that provider cuts or does not sample is not seen: a request with spans of it is not declared complete.
        """
        return self._sdk.foreign_processor()

    def request(self, name: str = "request") -> CapturedRequest:
        """A request to an agent: `with` it (or `async with`), and call the agent inside. Each is used once."""
        return CapturedRequest(self._sdk, name)

    def instrument(self, *only: str) -> tuple[str, ...]:
        """Turn on the OpenInference instrumentors that are installed, or those named (`"langchain"`, ...); their names.

        One whose library is not installed is passed over unless it is named. Raises UsageError if there is none, if one
        that is named cannot be turned on, and if one was turned on before with another tracer provider.
        """
        turned_on = instrumentors.turn_on(self._sdk.provider, only, self._instrumented)
        self._instrumented += turned_on
        return tuple(one.name for one in turned_on)

    def register(self, name: str) -> None:
        """Make this capture known by a name, so that a task can say `trace: {trace_source: NAME}`.

        Raises UsageError for what cannot be a name, and for one that is given away.
        """
        sources.register(name, self)
        self._names.append(name)

    def evidence(self) -> tuple[TraceInput, ...]:
        """The evidence of all requests that are held now, in the order in which they began."""
        found: list[TraceInput] = []
        for trace in self._sdk.buffer.kept():
            snapshot = self._sdk.buffer.snapshot(trace)
            declared_by = DECLARED_BY if snapshot.is_complete and trace.is_declared else None
            found.append(self._sdk.evidence(snapshot, trace, f"captured trace {trace.trace_id:032x}", declared_by))
        return tuple(found)

    @property
    def spans_held(self) -> int:
        """How many spans are held now, of all requests."""
        return self._sdk.buffer.spans

    @property
    def requests_held(self) -> int:
        """How many requests are held now."""
        return self._sdk.buffer.traces

    def close(self) -> None:
        """Capture nothing more; instrumentors are turned off, the name is free. What is open will never be complete."""
        instrumentors.turn_off(self._instrumented)
        self._instrumented = ()
        for name in self._names:
            sources.forget(name)
        self._names.clear()
        self._sdk.provider.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _sdk_side(limits: BufferLimits) -> SdkSide:
    try:
        from grader.capture.sdk_provider import SdkSide
    except ImportError:
        raise PrerequisiteError(
            "spans cannot be captured: the package opentelemetry-sdk is not installed",
            hint="pip install 'grader[capture]'",
        ) from None
    return SdkSide(limits)
