"""What a program sends to its trace endpoint: what is kept, answered, counted, and where it ends."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.capture.exported_spans import ExportedSpans, SpanLimits
from grader.capture.http_body import HttpLimits
from grader.core.endings import Ending, EndingKind
from grader.core.outcomes import Measures, RunOutcome, StreamOutcome, TraceOutcome, parse_captured
from grader.core.tools.calls import ToolsPayload
from grader.core.traces.coverage import CoverageCode
from grader.runner.exported import observe_exported
from grader.sandbox.base import Port, PortSeen, Reply

PORT = Port(4318)
SMALL = SpanLimits(
    kept_bytes=5_000, requests=3, spans=9, refused=2, http=HttpLimits(body_bytes=2_000, decompressed_bytes=3_000)
)
EXITED = Ending(EndingKind.EXITED, 0)


def body(*tools: str, padding: int = 0) -> bytes:
    """A request with a root, and a span for each tool."""

    def span(number: int, name: str, **attributes: str) -> dict[str, object]:
        return {
            "traceId": "0af7651916cd43dd8448eb211c80319c",
            "spanId": f"{number:016x}",
            "parentSpanId": "" if number == 1 else f"{1:016x}",
            "name": name,
            "startTimeUnixNano": "1",
            "endTimeUnixNano": "2",
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        }

    agent = span(1, "agent", **{"gen_ai.operation.name": "invoke_agent", "padding": "x" * padding})
    spans = [
        span(number, tool, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool})
        for number, tool in enumerate(tools, start=2)
    ]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [agent, *spans]}]}]}).encode()


def request(content: bytes, *headers: str, path: str = "/v1/traces") -> bytes:
    head = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    return "\r\n".join([*head, *headers, "", ""]).encode() + content


def status(reply: Reply) -> int:
    return int(reply.data.split()[1]) if reply.data else 0


def tools_in(outcome: TraceOutcome, trusted_by: str | None = "the profile p") -> ToolsPayload:
    nothing = StreamOutcome(captured=parse_captured({"text": ""}))
    ran = RunOutcome(
        command=(b"x",),
        command_is_submission=False,
        measures=Measures(wall_time_ns=1, exit_code=0, survivors=0),
        stdout=nothing,
        stderr=nothing,
        traces=outcome,
    )
    payload = observe_exported(ran, EXITED, trusted_by).payload
    assert isinstance(payload, ToolsPayload)
    return payload


def names(payload: ToolsPayload) -> list[str]:
    return [name for call in payload.calls for name in call.names]


def test_a_batch_is_kept_before_it_is_acknowledged() -> None:
    ear = ExportedSpans(PORT)
    assert ear.hear(1, request(body("book"))[:-1]) == Reply()
    assert ear.outcome().batches == 0
    ear = ExportedSpans(PORT)
    reply = ear.hear(1, request(body("book")))
    assert (status(reply), reply.closes) == (200, False)
    ear.finish(PortSeen(1, 0, 500))
    outcome = ear.outcome()
    assert (outcome.batches, outcome.refused, outcome.cut, outcome.full) == (1, 0, 0, "")
    assert outcome.lines.kept == body("book") + b"\n"
    payload = tools_in(outcome)
    assert payload.coverage.is_complete
    assert names(payload) == ["book"]


def test_gzip_and_line_breaks_inside_json_are_kept_as_one_line() -> None:
    ear = ExportedSpans(PORT)
    pretty = json.dumps(json.loads(body("book")), indent=2).encode()
    assert status(ear.hear(1, request(gzip.compress(pretty), "Content-Encoding: gzip"))) == 200
    assert status(ear.hear(1, request(body("search")))) == 200
    lines = ear.outcome().lines.kept
    assert lines.count(b"\n") == 2
    assert names(tools_in(ear.outcome())) == ["book", "search"]


@pytest.mark.parametrize(
    ("sent", "answer", "reason"),
    [
        (request(b"no json"), 400, "no OTLP request in JSON"),
        (request(b"[]"), 400, "no object"),
        (request(b'{"x": 1}'), 400, "no key resourceSpans"),
        (request(body(padding=2_500)), 413, "larger than 2000 bytes"),
        (request(gzip.compress(bytes(100_000)), "Content-Encoding: gzip"), 413, "larger than 3000 bytes"),
        (request(b"\x1f\x8b" + bytes(20), "Content-Encoding: gzip"), 400, "damaged"),
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, "no HTTP request"),
        (request(body("book"), path="/"), 404, "nothing is at /: spans are posted to /v1/traces"),
        (request(body("book"), path="/mine/v1/traces"), 404, "no source has the name 'mine'"),
    ],
)
def test_what_is_refused_is_counted_with_its_reason(sent: bytes, answer: int, reason: str) -> None:
    ear = ExportedSpans(PORT, SMALL)
    assert status(ear.hear(1, sent)) == answer
    outcome = ear.outcome()
    assert (outcome.batches, outcome.refused) == (0, 1)
    assert reason in outcome.refused_detail
    assert tools_in(outcome).coverage.has(CoverageCode.RECORD_UNREADABLE)


def test_spans_of_a_browser_in_the_box_are_the_programs_own() -> None:
    ear = ExportedSpans(PORT)
    assert status(ear.hear(1, request(body("book"), "Origin: http://localhost:3000"))) == 200
    payload = tools_in(ear.outcome())
    assert (names(payload), payload.coverage.is_complete) == (["book"], True)


@pytest.mark.parametrize("empty", [b"{}", b'{"resourceSpans": []}', b""])
def test_a_request_without_spans_is_acknowledged_and_no_damage(empty: bytes) -> None:
    ear = ExportedSpans(PORT)
    kind = "application/json" if empty else "application/x-protobuf"
    sent = request(empty).replace(b"application/json", kind.encode())
    assert status(ear.hear(1, sent)) == 200
    assert status(ear.hear(1, request(body("book")))) == 200
    payload = tools_in(ear.outcome())
    assert (names(payload), payload.coverage.is_complete) == (["book"], True)


def test_other_signals_are_no_loss() -> None:
    ear = ExportedSpans(PORT)
    assert status(ear.hear(1, request(b"{}", path="/v1/metrics"))) == 404
    assert status(ear.hear(1, request(body("book")))) == 200
    assert tools_in(ear.outcome()).coverage.is_complete


@pytest.mark.parametrize("ends", ["at the end of the run", "by the program", "with the box"])
def test_half_a_request_is_a_loss_however_it_ends(ends: str) -> None:
    ear = ExportedSpans(PORT)
    ear.hear(1, request(body("book")))
    ear.hear(2, request(body("cancel"))[:-5])
    if ends == "by the program":
        assert ear.hear(2, b"").closes
    if ends != "with the box":
        ear.finish(PortSeen(2, 0, 900))
    outcome = ear.outcome()
    assert (outcome.cut, outcome.refused, outcome.connections) == (1, 0, 2)
    assert tools_in(outcome).coverage.has(CoverageCode.FILE_CUT)
    assert ear.outcome() == outcome


def test_an_idle_connection_is_none() -> None:
    ear = ExportedSpans(PORT)
    ear.hear(1, request(body("book")))
    ear.hear(2, b"")
    ear.finish(PortSeen(2, 0, 900))
    assert tools_in(ear.outcome()).coverage.is_complete


@pytest.mark.parametrize(
    ("requests", "bound"),
    [
        ([request(body("a", padding=900))] * 4, "more than 5,000 bytes of spans"),
        ([request(body("a"))] * 4, "in more than 3 requests"),
        ([request(body("a", "b", "c"))] * 3, "more than 9 spans"),
        ([request(b"x")] * 3, "more than 2 requests to the trace endpoint were refused"),
    ],
)
def test_beyond_a_bound_the_endpoint_ends(requests: Sequence[bytes], bound: str) -> None:
    ear = ExportedSpans(PORT, SMALL)
    replies = [ear.hear(number, sent) for number, sent in enumerate(requests, start=1)]
    assert [reply.ends_port for reply in replies] == [False] * (len(replies) - 1) + [True]
    before = ear.outcome()
    assert bound in before.full
    after = ear.hear(99, request(body("late")))
    assert (after.data, after.closes) == (b"", True)
    assert ear.outcome().batches == before.batches
    assert tools_in(before).coverage.has(CoverageCode.CAPACITY)
    assert len(before.lines.kept) <= SMALL.kept_bytes + before.batches


def test_what_crosses_the_closing_of_a_connection_is_no_new_one() -> None:
    ear = ExportedSpans(PORT)
    assert ear.hear(1, b"garbage\r\n\r\n").closes
    for _ in range(10):
        assert ear.hear(1, b"garbage\r\n\r\n") == Reply(closes=True)
    assert ear.hear(1, b"").closes
    assert ear.outcome().refused == 1


def test_more_bytes_than_the_port_takes_are_said() -> None:
    ear = ExportedSpans(Port(4318, most_bytes=1_000))
    ear.hear(1, request(body("book")))
    ear.finish(PortSeen(1, 0, 1_000, is_full=True))
    assert "more than 1,000 bytes to its trace endpoint" in ear.outcome().full


def test_nothing_at_all_is_evidence_of_nothing() -> None:
    ear = ExportedSpans(PORT)
    ear.finish(PortSeen(0))
    payload = tools_in(ear.outcome())
    assert payload.coverage.has(CoverageCode.NO_SPANS)
    assert [source.encoding for source in payload.sources] == ["nothing was sent"]
    assert tools_in(ear.outcome(), None).coverage.reason_code == "evidence.self_reported"


SENT = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([request(body("a")), request(body("a", "b"))[:-9], request(b"{}"), request(b"x"), b"", b"\r\n"]),
)


@settings(max_examples=200)
@given(st.lists(st.tuples(st.integers(1, 3), SENT), max_size=12))
def test_whatever_comes_is_bounded_and_what_was_lost_is_known(sent: list[tuple[int, bytes]]) -> None:
    """No exception, nothing beyond the bounds, and never a complete trace where a request was not answered with 200."""
    ear = ExportedSpans(PORT, SMALL)
    answers = b"".join(ear.hear(connection, data).data for connection, data in sent)
    ear.finish(PortSeen(3, 0, 0))
    outcome = ear.outcome()
    assert outcome.batches <= SMALL.requests
    assert outcome.refused <= SMALL.refused + 1
    assert answers.count(b"HTTP/1.1 200") <= outcome.batches
    payload = tools_in(outcome)
    if b"HTTP/1.1 400" in answers or outcome.cut:
        assert not payload.coverage.is_complete
    assert len(payload.calls) <= 2
