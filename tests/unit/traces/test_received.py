"""Notes of a receiver between the requests that it kept: they speak against completeness, and never for it."""

from __future__ import annotations

import json

import pytest

from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.traces.reader import TraceInput, read_traces
from grader.traces.received import note_line
from grader.traces.span import Span

SPAN = {
    "traceId": "0a" * 16,
    "spanId": "0b" * 8,
    "name": "execute_tool send",
    "startTimeUnixNano": "1",
    "endTimeUnixNano": "2",
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "send"}},
    ],
}
REQUEST = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]}).encode() + b"\n"
FAILED = CoverageReason(code=CoverageCode.CAPTURE_FAILED, count=2, detail="too large")


def reasons(*lines: bytes) -> dict[str, int]:
    payload = read_traces([TraceInput.of_bytes(b"".join(lines), "spans.jsonl")]).payload(declared_by="me")
    return {reason.code.value: reason.count for reason in payload.coverage.reasons}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ((REQUEST,), {}),
        ((REQUEST, note_line([FAILED])), {"capture.failed": 2}),
        ((note_line([FAILED]), REQUEST, note_line([FAILED])), {"capture.failed": 4}),
        ((note_line(send_again=["a", "b"]), REQUEST), {"capture.failed": 2}),
        ((note_line(send_again=["a", "b"]), REQUEST, note_line(came_again=["a"])), {"capture.failed": 1}),
        ((note_line(send_again=["a"]), REQUEST, note_line(came_again=["a", "c"])), {}),
        ((note_line(came_again=["a"]), note_line(send_again=["a"]), REQUEST), {"capture.failed": 1}),
        ((note_line(), REQUEST), {}),
        ((note_line([FAILED]),), {"capture.failed": 2, "trace.empty": 1}),
        ((REQUEST, b'{"graderReceived": 1}\n'), {"record.unreadable": 1}),
        ((REQUEST, b'{"graderReceived": {"reasons": [{"code": "made.up"}]}}\n'), {"record.unreadable": 1}),
        ((REQUEST, b'{"graderReceived": {"reasons": {}, "sendAgain": 3, "more": 1}}\n'), {}),
    ],
)
def test_notes_are_reasons_against_completeness(lines: tuple[bytes, ...], found: dict[str, int]) -> None:
    assert reasons(*lines) == found


def test_a_reason_says_where_it_was_told() -> None:
    payload = read_traces([TraceInput.of_bytes(REQUEST + note_line([FAILED]), "spans.jsonl")]).payload()
    (reason,) = payload.coverage.reasons
    assert reason.detail == "spans.jsonl: too large"


def test_spans_of_this_process_are_read_without_opening_anything() -> None:
    first = read_traces([TraceInput.of_bytes(REQUEST)]).payload()
    spans: list[Span] = []
    read_traces([TraceInput.of_bytes(REQUEST)], also=spans.append)
    second = read_traces([TraceInput("here", spans=lambda _: spans)]).payload()
    assert second.calls == first.calls
    assert second.sources[0].encoding == "captured"
