"""Many threads, many traces, little room: no trace is complete before its last span is in, and memory is bounded."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections import deque
from contextvars import copy_context

import pytest
from opentelemetry.trace import Span, use_span

from grader import CapturedRequest, LocalTraceCapture
from grader.capture.trace_buffer import TraceState

CAPACITY = 1_000


class Workload:
    """Threads that make requests whose spans end in other threads, and judges that look all the time."""

    def __init__(self, traces: int, threads: int) -> None:
        self.capture = LocalTraceCapture(max_spans=CAPACITY, max_traces=CAPACITY)
        self.left = traces
        self.threads = threads
        self.lock = threading.Lock()
        self.watched: deque[tuple[CapturedRequest, int]] = deque(maxlen=4 * threads)
        self.problems: list[str] = []
        self.most_spans = self.most_traces = self.completed = 0
        self.done = threading.Event()

    def run(self) -> None:
        judges = [threading.Thread(target=self._judge) for _ in range(2)]
        workers = [threading.Thread(target=self._work, args=(seed,)) for seed in range(self.threads)]
        for thread in (*judges, *workers):
            thread.start()
        for thread in workers:
            thread.join(600)
        self.done.set()
        for thread in judges:
            thread.join(60)
        self.capture.close()

    def _work(self, seed: int) -> None:
        chance = random.Random(seed)
        while True:
            with self.lock:
                if self.left == 0:
                    return
                self.left -= 1
            self._one(chance)

    def _one(self, chance: random.Random) -> None:
        """A request of 2 to 8 spans that all begin inside it; half of them end after it, in another thread."""
        tracer = self.capture.tracer_provider.get_tracer("stress")
        inner = chance.randint(1, 7)
        request = self.capture.request()
        with request:
            self.watched.append((request, inner + 1))
            spans = [tracer.start_span("inner", attributes={"number": number}) for number in range(inner)]
            with use_span(spans[0]):
                later = [span for span in spans if chance.random() < 0.5]
            for span in spans:
                if span not in later:
                    span.end()
        ender = threading.Thread(target=copy_context().run, args=(self._end, later))
        if later and request.is_complete:
            self.problems.append("complete with open spans")
        ender.start()
        ender.join(60)
        trace = request._trace  # pyright: ignore[reportPrivateUsage]
        assert trace is not None
        if trace.state is TraceState.OPEN:
            self.problems.append("not settled when everything had ended")
        self.completed += trace.state is TraceState.COMPLETE

    @staticmethod
    def _end(spans: list[Span]) -> None:
        for span in spans:
            span.end()

    def _judge(self) -> None:
        while not self.done.is_set():
            for request, spans in list(self.watched):
                trace = request._trace  # pyright: ignore[reportPrivateUsage]
                assert trace is not None
                snapshot = self.capture._sdk.buffer.snapshot(trace)  # pyright: ignore[reportPrivateUsage]
                if snapshot.is_complete and len(snapshot.ended) != spans:
                    self.problems.append(f"complete with {len(snapshot.ended)} of {spans} spans")
            self.most_spans = max(self.most_spans, self.capture.spans_held)
            self.most_traces = max(self.most_traces, self.capture.requests_held)


def stress(traces: int, threads: int) -> Workload:
    work = Workload(traces, threads)
    work.run()
    assert work.problems == []
    assert work.left == 0
    assert 0 < work.most_spans <= CAPACITY
    assert work.most_traces <= CAPACITY
    assert work.completed > traces // 2
    return work


def test_no_trace_is_complete_early_under_many_threads() -> None:
    stress(traces=600, threads=16)


@pytest.mark.slow
def test_ten_thousand_traces_of_64_threads_in_a_bounded_memory() -> None:
    stress(traces=500, threads=16)
    tracemalloc.start()
    try:
        stress(traces=10_000, threads=64)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    print(f"kept {kept >> 10} KiB, most {most >> 10} KiB")
    assert most < 64 << 20
