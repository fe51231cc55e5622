"""`LocalTraceCapture`: requests, contexts in tasks and threads, what speaks against completeness, sources by name."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import SpanLimits, TracerProvider

import grader
from grader import (
    CapturedRequest,
    LocalTraceCapture,
    PrerequisiteError,
    Task,
    ToolsCalled,
    ToolsNotCalled,
    Tri,
    UsageError,
)
from grader.capture import instrumentors, sdk_provider, sdk_spans
from grader.capture.sources import EvidenceLike
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.coverage import CoverageCode
from grader.core.traces.execution_trace import ExecutionTrace
from grader.messages.conversation import read_conversation
from grader.traces.span import ReadNotes
from tests.scripted_judge import ScriptedJudge
from tests.unit.runner.judging.samples import CLAIM, QUICK, client, says
from tests.unit.traces.otlp_samples import TRACE, lines, root, tool

NOT_DELETED = Task(conditions=(ToolsNotCalled(tools=("delete",)),))
SENT = Task.model_validate(
    {
        "conditions": [
            {
                "condition_type": "tools_called",
                "tools": [{"name": "send", "arguments": [{"name": "to", "matcher": {"equals": "bob"}}]}],
            }
        ]
    }
)


@pytest.fixture
def capture() -> Iterator[LocalTraceCapture]:
    with LocalTraceCapture() as one:
        yield one


def call(capture: LocalTraceCapture, name: str, arguments: str = "{}") -> None:
    """What an instrumented agent does for one call of a tool."""
    with begin(capture, name, arguments):
        pass


def begin(capture: LocalTraceCapture, name: str, arguments: str = "{}") -> AbstractContextManager[otel.Span]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": arguments,
    }
    tracer = capture.tracer_provider.get_tracer("test.agent")
    return tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes)


def judged(evidence: EvidenceLike | Sequence[EvidenceLike], task: Task = NOT_DELETED) -> tuple[Tri, set[CoverageCode]]:
    graded = grader.score(evidence, task)
    assert graded.verdict is not None
    return graded.verdict.value, {reason.code for reason in payload(graded).coverage.reasons}


def payload(graded: grader.Graded) -> ToolsPayload:
    assert graded.observation is not None
    assert isinstance(graded.observation.payload, ToolsPayload)
    return graded.observation.payload


def test_a_request_is_evidence_and_complete_once_it_has_ended(capture: LocalTraceCapture) -> None:
    with capture.request("send a mail") as request:
        call(capture, "send", '{"to": "bob"}')
        assert not request.is_complete
        assert judged(request)[0] is Tri.UNDETERMINED
    assert request.is_complete
    assert judged(request) == (Tri.TRUE, set())
    assert judged(request, SENT) == (Tri.TRUE, set())
    graded = grader.score(request, NOT_DELETED)
    assert graded.submission_name == "captured request 'send a mail'"
    assert payload(graded).coverage.declared_by == "LocalTraceCapture: every span that began in the request has ended"
    assert payload(graded).trace_ids == (request.trace_id,)
    assert (payload(graded).sources[0].spans, graded.warnings) == (2, ())


def test_positives_stand_while_the_request_is_open(capture: LocalTraceCapture) -> None:
    with capture.request() as request:
        with begin(capture, "delete"):
            assert judged(request)[0] is Tri.FALSE
        call(capture, "send", '{"to": "bob"}')
        assert judged(request, SENT)[0] is Tri.TRUE


def test_a_request_that_begins_inside_another_takes_its_spans_with_it(capture: LocalTraceCapture) -> None:
    with capture.request("outer") as outer:
        call(capture, "send")
        with capture.request("inner") as inner:
            call(capture, "delete")
    assert judged(inner) == (Tri.FALSE, set())
    assert judged(outer) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})
    assert "'inner' was begun inside" in str(payload(grader.score(outer, NOT_DELETED)).coverage.reasons[0])
    # Side by side they are two, and what began after the end of a request in its context may be of it, too.
    with capture.request() as first:
        call(capture, "send")
        left_behind = copy_context()
    with capture.request() as second:
        call(capture, "send")
    assert [judged(one)[0] for one in (first, second)] == [Tri.TRUE, Tri.TRUE]

    def later() -> None:
        with capture.request("later"):
            call(capture, "delete")

    left_behind.run(later)
    assert judged(first) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})


def test_spans_of_a_request_that_another_capture_keeps_are_missed(capture: LocalTraceCapture) -> None:
    with LocalTraceCapture() as other, capture.request() as request:
        call(capture, "send")
        call(other, "delete")
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})
    with LocalTraceCapture() as other, capture.request() as request:
        call(capture, "send")
        with other.request():
            call(other, "delete")
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})


def test_evidence_is_of_the_moment_when_it_was_asked_for(capture: LocalTraceCapture) -> None:
    with capture.request() as request, begin(capture, "send"):
        early = request.evidence()
    assert CoverageCode.SPAN_UNFINISHED in judged(early)[1]
    assert judged(request) == (Tri.TRUE, set())


def test_spans_say_all_that_otlp_says_of_them(capture: LocalTraceCapture) -> None:
    with capture.request() as request, begin(capture, "send") as span:
        span.set_attribute("list", ["a", "b"])
        span.set_attribute("nan", float("nan"))
        span.set_attribute("bytes", b"\x00\x01")
        span.add_event("happened", {"key": "value"})
        span.set_status(otel.Status(otel.StatusCode.ERROR, "refused"))
    source = request.evidence()
    assert source.spans is not None
    inner, outer = source.spans(ReadNotes())
    assert (outer.parent_id, inner.parent_id) == (None, outer.span_id)
    assert (inner.trace_id, inner.failed, inner.status_message) == (request.trace_id, True, "refused")
    assert (inner.attributes.get("list"), inner.attributes.get("nan")) == (["a", "b"], "NaN")
    assert inner.attributes.get("bytes") == "AAE="
    assert (inner.events[0].name, inner.events[0].attributes.get("key")) == ("happened", "value")
    assert inner.scope == "test.agent"
    assert inner.start_ns is not None
    assert inner.end_ns is not None
    assert inner.start_ns <= inner.end_ns


def test_nothing_is_cut_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "10")
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "2")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    with LocalTraceCapture() as capture:
        long = '{"to": "bob", "body": "' + "x" * 10_000 + '"}'
        with capture.request() as request, begin(capture, "send", long) as span:
            span.set_attributes({f"more.{number}": number for number in range(300)})
        assert judged(request, SENT) == (Tri.TRUE, set())


def test_requests_are_told_apart_whatever_is_current_around_them(capture: LocalTraceCapture) -> None:
    with capture.request() as outer:
        call(capture, "send")
        with capture.request() as inner:
            call(capture, "delete")
    executed = [
        [name for found in payload(grader.score(one, SENT)).calls for name in found.names] for one in (outer, inner)
    ]
    assert executed == [["send"], ["delete"]]


def test_ids_do_not_come_from_a_generator_that_programs_seed(capture: LocalTraceCapture) -> None:
    ids = set[str]()
    for _ in range(3):
        random.seed(1)
        with capture.request() as request:
            call(capture, "send")
        ids.add(request.trace_id)
        assert request.is_complete
    assert len(ids) == 3


def divide(number: int, by: int) -> float:
    return number / by


def call_and_give(capture: LocalTraceCapture, number: int) -> int:
    call(capture, "send")
    return number


def test_an_error_in_a_request_is_no_failure_of_the_capture(capture: LocalTraceCapture) -> None:
    request = capture.request()
    with pytest.raises(ZeroDivisionError), request:
        divide(1, call_and_give(capture, 0))
    assert judged(request) == (Tri.TRUE, set())


def test_tasks_are_in_the_request_that_began_them(capture: LocalTraceCapture) -> None:
    async def agent(number: int) -> CapturedRequest:
        async with capture.request(f"number {number}") as request:
            await asyncio.gather(*(tool_call(number) for _ in range(3)))
            await asyncio.to_thread(call, capture, f"thread_{number}")
        return request

    async def tool_call(number: int) -> None:
        with begin(capture, f"task_{number}"):
            await asyncio.sleep(0)

    async def main() -> list[CapturedRequest]:
        return await asyncio.gather(*(agent(number) for number in range(10)))

    for number, request in enumerate(asyncio.run(main())):
        assert request.is_complete
        graded = grader.score(request, NOT_DELETED)
        assert sorted(name for found in payload(graded).calls for name in found.names) == [
            *[f"task_{number}"] * 3,
            f"thread_{number}",
        ]


def in_thread(target: Callable[..., object], *arguments: object) -> None:
    thread = threading.Thread(target=target, args=arguments)
    thread.start()
    thread.join(10)


def test_a_call_in_a_thread_without_the_context_speaks_against_completeness(capture: LocalTraceCapture) -> None:
    with capture.request() as request:
        call(capture, "send")
        in_thread(call, capture, "delete")
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})
    with capture.request() as later:
        call(capture, "send")
        in_thread(copy_context().run, call, capture, "delete")
    assert judged(later)[0] is Tri.FALSE


def test_spans_that_are_no_agents_do_not_matter(capture: LocalTraceCapture) -> None:
    tracer = capture.tracer_provider.get_tracer("web")
    with capture.request() as request:
        call(capture, "send")
        in_thread(lambda: tracer.start_span("GET /").end())
    assert request.is_complete
    assert capture.spans_held == 2


def test_a_span_after_the_end_is_late(capture: LocalTraceCapture) -> None:
    with capture.request() as request:
        call(capture, "send")
        context = copy_context()
    assert request.is_complete
    early = request.evidence()
    context.run(call, capture, "delete")
    assert judged(request) == (Tri.FALSE, {CoverageCode.SPAN_LATE})
    assert judged(request, SENT) == (Tri.UNDETERMINED, {CoverageCode.SPAN_LATE})
    assert judged(early)[0] is Tri.TRUE


def test_waiting_is_for_spans_that_outlive_the_request(capture: LocalTraceCapture) -> None:
    release = threading.Event()

    def outlive() -> None:
        with begin(capture, "delete"):
            started.set()
            release.wait(10)

    started = threading.Event()
    with capture.request() as request:
        thread = threading.Thread(target=copy_context().run, args=(outlive,))
        thread.start()
        assert started.wait(10)
    assert not request.wait(timeout_s=0.01)
    assert CoverageCode.SPAN_UNFINISHED in judged(request)[1]
    release.set()
    assert request.wait(timeout_s=10)
    thread.join(10)
    assert judged(request)[0] is Tri.FALSE


def test_what_rests_on_a_silence_says_so(capture: LocalTraceCapture) -> None:
    with capture.request() as request:
        call(capture, "send")
    assert request.wait(timeout_s=5, settle_s=0.01)
    declared_by = payload(grader.score(request, NOT_DELETED)).coverage.declared_by
    assert declared_by is not None
    assert declared_by.endswith("has ended, and nothing more began for 0.01 s")
    assert asyncio.run(request.wait_async(timeout_s=5))
    assert not request.wait(timeout_s=0.02, settle_s=60)


def test_what_came_before_a_rest_that_was_waited_for_is_not_late(capture: LocalTraceCapture) -> None:
    with capture.request() as request:
        call(capture, "send")
        context = copy_context()
    context.run(call, capture, "send")
    assert not request.is_complete
    assert request.wait(timeout_s=5)
    assert not request.is_complete
    assert request.wait(timeout_s=5, settle_s=0.01)
    assert judged(request) == (Tri.TRUE, set())
    context.run(call, capture, "delete")
    assert judged(request) == (Tri.FALSE, {CoverageCode.SPAN_LATE})


def test_headers_carry_the_trace_and_completeness_is_then_not_ours_to_declare(
    capture: LocalTraceCapture, tmp_path: Path
) -> None:
    with capture.request() as request:
        assert request.headers == {"traceparent": request.traceparent}
        version, trace_id, span_id, flags = request.traceparent.split("-")
    assert (version, trace_id, flags) == ("00", request.trace_id, "01")
    remote = replace(tool(2, "send", arguments={"to": "bob"}), trace=trace_id, parent=int(span_id, 16))
    received = tmp_path / "spans.jsonl"
    received.write_bytes(lines([[remote], [tool(3, "delete")]]))
    together = [request, received]
    assert judged(together, SENT)[0] is Tri.TRUE
    assert judged(together)[0] is Tri.UNDETERMINED
    graded = grader.score(together, NOT_DELETED, complete=True)
    assert graded.verdict is not None
    assert graded.verdict.value is Tri.TRUE
    assert payload(graded).trace_ids == (trace_id,)
    assert judged(capture, SENT)[0] is not Tri.FALSE


def test_a_request_is_what_a_conversation_links_to(capture: LocalTraceCapture) -> None:
    requests: list[CapturedRequest] = []
    for name in ("send", "delete"):
        with capture.request() as request:
            call(capture, name)
        requests.append(request)
    messages = '{"requests": [{"traceparent": "%s", "messages": [{"role": "user", "content": "hi"}]}]}'
    conversation = read_conversation((messages % requests[0].traceparent).encode())
    graded = grader.score(requests, NOT_DELETED, conversation=conversation)
    assert payload(graded).trace_ids == (requests[0].trace_id,)
    assert judged(requests)[0] is Tri.FALSE


def test_a_request_without_spans_of_an_agent_is_warned_of(capture: LocalTraceCapture) -> None:
    with capture.request("quiet") as request:
        pass
    graded = grader.score(request, NOT_DELETED)
    assert graded.warnings == (
        "captured request 'quiet' has no span of an agent: is it instrumented, with the capture's tracer provider?",
    )
    assert graded.verdict is not None
    assert graded.verdict.value is Tri.UNDETERMINED


def test_when_full_the_oldest_complete_request_is_forgotten_and_says_so() -> None:
    with LocalTraceCapture(max_spans=6) as capture:
        requests = [capture.request(str(number)) for number in range(4)]
        for request in requests:
            with request:
                call(capture, "send", '{"to": "bob"}')
        assert [request.is_complete for request in requests] == [False, True, True, True]
        assert judged(requests[0], SENT) == (
            Tri.UNDETERMINED,
            {CoverageCode.CAPACITY, CoverageCode.NO_SPANS, CoverageCode.TRACE_ABSENT},
        )
        assert capture.spans_held == 6


def test_spans_of_a_provider_of_ones_own_come_in_and_are_not_declared_complete(capture: LocalTraceCapture) -> None:
    own = TracerProvider(span_limits=SpanLimits(max_span_attribute_length=5), shutdown_on_exit=False)
    own.add_span_processor(capture.span_processor())
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "send"}
    with capture.request() as request:
        call(capture, "send")
        own.get_tracer("own").start_span("x", attributes=attributes).end()
    own.shutdown()
    assert not request.is_complete
    assert capture.spans_held == 3
    with capture.request() as later:
        call(capture, "send")
    assert later.is_complete


def test_a_failure_of_the_capture_is_told_on_its_request_and_reaches_no_agent(
    capture: LocalTraceCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(span: object) -> int:
        raise ValueError("unexpected")

    with capture.request() as request:
        monkeypatch.setattr(sdk_provider, "content_bytes", fails)
        call(capture, "delete")
        monkeypatch.undo()
    with capture.request() as later:
        call(capture, "send")
    assert judged(request) == (Tri.FALSE, {CoverageCode.CAPTURE_FAILED})
    assert later.is_complete


def test_a_span_of_no_request_that_cannot_be_read_may_be_an_agents(
    capture: LocalTraceCapture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> object:
        raise ValueError("unexpected")

    with capture.request() as request:
        call(capture, "send")
        monkeypatch.setattr(sdk_spans, "classify", fails)
        in_thread(lambda: capture.tracer_provider.get_tracer("web").start_span("GET /").end())
        monkeypatch.undo()
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.SPAN_UNLINKED})


def test_a_closed_capture_takes_no_requests_and_what_was_open_is_not_complete() -> None:
    capture = LocalTraceCapture()
    with capture.request() as request:
        call(capture, "send")
        capture.close()
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.CAPTURE_FAILED})
    with pytest.raises(UsageError, match="closed"), capture.request():
        pass


def test_misuse_is_told() -> None:
    with LocalTraceCapture() as capture:
        request = capture.request()
        with pytest.raises(UsageError, match="has not begun"):
            _ = request.trace_id
        with request:
            pass
        with pytest.raises(UsageError, match="begun before"), request:
            pass
    for bound in ("max_spans", "max_traces", "max_content_bytes"):
        with pytest.raises(UsageError, match="holds nothing"):
            LocalTraceCapture(**{bound: 0})


def test_a_switched_off_sdk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(PrerequisiteError, match="OTEL_SDK_DISABLED"):
        LocalTraceCapture()


def test_sources_have_names_of_their_own() -> None:
    task = Task.model_validate(NOT_DELETED.model_dump() | {"trace": {"trace_source": "my_agent"}})
    with LocalTraceCapture() as capture, LocalTraceCapture() as other:
        with pytest.raises(UsageError, match="no source of traces is registered as 'my_agent'"):
            grader.score([], task)
        capture.register("my_agent")
        with pytest.raises(UsageError, match="registered already"):
            other.register("my_agent")
        with pytest.raises(UsageError, match="cannot be the name"):
            other.register("../up")
        with capture.request() as request:
            call(capture, "delete")
        assert judged([], task)[0] is Tri.FALSE
        with pytest.raises(UsageError, match="given twice"):
            grader.score(request, task)
    with pytest.raises(UsageError, match="no source"):
        grader.score([], task)


def test_of_received_folders_the_named_source_counts(tmp_path: Path) -> None:
    task = Task.model_validate(NOT_DELETED.model_dump() | {"trace": {"trace_source": "mine"}})
    for name, called in (("mine", "send"), ("yours", "delete")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spans.jsonl").write_bytes(lines([[root()], [tool(2, called, start=1, end=2)]]))
    graded = grader.score(tmp_path, task, complete=True)
    assert graded.verdict is not None
    assert graded.verdict.value is Tri.TRUE
    assert payload(graded).trace_ids == (TRACE,)
    with pytest.raises(UsageError, match="no folder of that name"):
        grader.score(tmp_path / "mine", task)


def test_a_fork_in_an_open_request_speaks_against_it(capture: LocalTraceCapture) -> None:
    with capture.request() as done:
        call(capture, "send")
    with capture.request() as request:
        call(capture, "send")
        # The child tries what deadlocks when a lock of the parent is inherited, and its own request.
        child = os.fork()
        if child == 0:
            code = 1
            try:
                call(capture, "delete")
                with capture.request() as own:
                    call(capture, "delete")
                code = 0 if judged(own)[0] is Tri.FALSE and judged(done)[0] is not Tri.TRUE else 2
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert judged(request) == (Tri.UNDETERMINED, {CoverageCode.CAPTURE_FAILED})
    assert done.is_complete


class _Point:
    """An entry point of an instrumentor that was made for this test."""

    def __init__(self, name: str, *, has_library: bool = True, is_on: bool = False, can_be_loaded: bool = True) -> None:
        self.name = name
        self.is_instrumented_by_opentelemetry = is_on
        self.provider: object = None
        self._has_library = has_library
        self._can_be_loaded = can_be_loaded

    def load(self) -> object:
        if not self._can_be_loaded:
            raise ImportError("no module named that")
        return lambda: self

    def instrument(self, *, tracer_provider: object) -> None:
        self.provider = tracer_provider
        self.is_instrumented_by_opentelemetry = self._has_library

    def uninstrument(self) -> None:
        self.is_instrumented_by_opentelemetry = False


def install(monkeypatch: pytest.MonkeyPatch, *points: _Point) -> None:
    def entry_points(group: str) -> tuple[_Point, ...]:
        return points if group == "openinference_instrumentor" else ()

    monkeypatch.setattr(instrumentors, "entry_points", entry_points)


def test_instrumentors_that_are_installed_are_turned_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = _Point("one"), _Point("two")
    install(monkeypatch, two, one, _Point("bare", has_library=False), _Point("broken", can_be_loaded=False))
    with LocalTraceCapture() as capture:
        assert capture.instrument() == ("one", "two")
        assert one.provider is capture.tracer_provider
        assert capture.instrument() == ()
    assert not one.is_instrumented_by_opentelemetry
    assert not two.is_instrumented_by_opentelemetry


@pytest.mark.parametrize(
    ("points", "only", "word"),
    [
        ((), (), "nothing would record"),
        ((_Point("one"),), ("two",), "installed are: one"),
        ((_Point("one"), _Point("other", is_on=True)), (), "another tracer provider"),
        ((_Point("one"), _Point("bare", has_library=False)), ("one", "bare"), "bare cannot be turned on"),
        ((_Point("one"), _Point("broken", can_be_loaded=False)), ("one", "broken"), "no module named that"),
    ],
)
def test_what_cannot_be_turned_on_is_told_and_nothing_stays_on(
    monkeypatch: pytest.MonkeyPatch, points: tuple[_Point, ...], only: tuple[str, ...], word: str
) -> None:
    install(monkeypatch, *points)
    with LocalTraceCapture() as capture, pytest.raises(UsageError, match=word):
        capture.instrument(*only)
    assert not any(point.is_instrumented_by_opentelemetry for point in points if point.name == "one")


def test_a_condition_on_all_calls_needs_every_call(capture: LocalTraceCapture) -> None:
    only_send = Task(conditions=(ToolsCalled(tools=(grader.ToolCallRequirement(name="send"),), exhaustive=True),))
    with capture.request() as request:
        call(capture, "send")
    assert judged(request, only_send)[0] is Tri.TRUE


def test_a_judge_is_shown_what_was_captured(capture: LocalTraceCapture) -> None:
    requests = [capture.request(), capture.request()]
    for request in requests:
        with request:
            call(capture, "send", '{"to": "bob"}')
    messages = '{"requests": [{"traceparent": "%s", "messages": [{"role": "user", "content": "hi"}]}]}'
    talk = read_conversation((messages % requests[0].traceparent).encode())

    async def main() -> grader.Graded:
        with ScriptedJudge([says(False)]) as server:
            async with client(server, QUICK) as by:
                return await grader.judge_conversation(talk, trace=requests, dimensions=(CLAIM,), by=by)

    graded = asyncio.run(main())
    tools, trace = (observation.payload for observation in graded.observations[:2])
    assert isinstance(tools, ToolsPayload)
    assert (len(tools.calls), tools.trace_ids) == (1, (requests[0].trace_id,))
    assert isinstance(trace, ExecutionTrace)
    assert [step.name for step in trace.steps] == ["request", "send"]
    assert tools.coverage.is_complete
