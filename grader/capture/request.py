"""One request to an agent, and the trace that it leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import anyio

from grader.capture.trace_buffer import TraceState
from grader.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType

    from opentelemetry.sdk.trace import ReadableSpan

    from grader.capture.sdk_provider import BegunRequest, SdkSide, SdkTrace
    from grader.capture.trace_buffer import Snapshot
    from grader.traces.reader import TraceInput

_LONGEST_PAUSE_S = 0.02
DECLARED_BY = "LocalTraceCapture: every span that began in the request has ended"


class CapturedRequest:
    """One request and the trace that it leaves; made by `LocalTraceCapture.request`, used once."""

    def __init__(self, sdk: SdkSide, name: str) -> None:
        self.name = name
        self._sdk = sdk
        self._open: BegunRequest | None = None
        self._trace: SdkTrace | None = None
        self._rested_s = 0.0
        self._rested_at = -1
        self._has_rested = False

    @property
    def trace_id(self) -> str:
        """The trace's id, 32 hex digits. Raises UsageError before the request has begun."""
        return f"{self._begun().trace_id:032x}"

    @property
    def traceparent(self) -> str:
        """The W3C trace context of this request; a conversation's `traceparent`, too."""
        trace = self._begun()
        return f"00-{trace.trace_id:032x}-{trace.root:016x}-01"

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers that carry the trace context to an agent elsewhere.

        Its spans are not in this process: once these were asked for, this request is not declared complete here.
        """
        self._begun().is_declared = False
        return {"traceparent": self.traceparent}

    @property
    def is_complete(self) -> bool:
        """Whether the request and every span that began in it have ended, and nothing is known to be missing."""
        return self._declared_by(self._snapshot()) is not None

    def evidence(self) -> TraceInput:
        """What was captured until now, for `grader.score`; spans that come later do not change it."""
        snapshot = self._snapshot()
        return self._sdk.evidence(
            snapshot, self._begun(), f"captured request {self.name!r}", self._declared_by(snapshot)
        )

    def wait(self, timeout_s: float, settle_s: float = 0.0) -> bool:
        """Wait until every span has ended and then nothing began or ended for `settle_s`; whether it came to that.

        With `settle_s`, spans that began meanwhile are not late, and the evidence says that its completeness rests on
        this. In asynchronous programs: `wait_async`.
        """
        for pause_s in self._pauses(timeout_s, settle_s):
            time.sleep(pause_s)
        return self._has_rested

    async def wait_async(self, timeout_s: float, settle_s: float = 0.0) -> bool:
        """`wait` without blocking the event loop."""
        for pause_s in self._pauses(timeout_s, settle_s):
            await anyio.sleep(pause_s)
        return self._has_rested

    def __enter__(self) -> Self:
        if self._trace is not None:
            raise UsageError("this request has begun before", hint="capture.request() makes a new one")
        if self._sdk.buffer.is_closed:
            raise UsageError("this capture is closed", hint="make a new LocalTraceCapture")
        self._open = self._sdk.begin(self.name)
        self._trace = self._open.trace
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._open is not None
        self._open.end(error)
        self._open = None

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _begun(self) -> SdkTrace:
        if self._trace is None:
            raise UsageError("this request has not begun", hint="with capture.request() as request: ...")
        return self._trace

    def _snapshot(self) -> Snapshot[ReadableSpan]:
        return self._sdk.buffer.snapshot(self._begun(), self._rested_at)

    def _declared_by(self, snapshot: Snapshot[ReadableSpan]) -> str | None:
        if not snapshot.is_complete or not self._begun().is_declared:
            return None
        rest = f", and nothing more began for {self._rested_s:g} s" if self._rested_s > 0 else ""
        return f"{DECLARED_BY}{rest}"

    def _pauses(self, timeout_s: float, settle_s: float) -> Iterator[float]:
        """How long to sleep before each look, until there is rest or no time is left."""
        trace, began, pause_s = self._begun(), time.monotonic(), 0.001
        touched_at, quiet_since = -1, began
        self._has_rested = False
        while True:
            now = time.monotonic()
            if trace.touched_at != touched_at:
                touched_at, quiet_since = trace.touched_at, now
            left_s = timeout_s - (now - began)
            if _is_at_rest(trace) and now - quiet_since >= settle_s:
                self._has_rested = True
                if settle_s > 0:
                    self._rested_s, self._rested_at = settle_s, touched_at
                return
            if left_s <= 0:
                return
            yield min(pause_s, left_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _is_at_rest(trace: SdkTrace) -> bool:
    return trace.state is not TraceState.OPEN and not trace.open
