"""Every real dump against the executions that a careful reader finds in it (index.md beside the files).

Each file is either read to exactly these executions, as a trace or as a conversation, or refused with a reason; the
table says which. Times are those that the file has; what is read may be wider by the file's unit of time.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.errors import TraceError
from grader.messages.conversation import read_conversation
from grader.traces.reader import TraceInput, read_traces
from grader.traces.steps import StepStore
from tests.unit.traces.otlp_samples import SHARED, codes, content, read
from tests.unit.traces.shared_trace_table import NS, TABLE, Call, Messages, Trace

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared trace files are not at {SHARED}")

ROWS = [(name, number) for name, rows in TABLE.items() for number in range(len(rows))]


def test_every_file_is_in_the_table() -> None:
    files = {str(path.relative_to(SHARED)) for path in SHARED.rglob("*") if path.is_file()}
    assert files - {"index.md"} == set(TABLE)


@pytest.mark.parametrize(("name", "number"), ROWS, ids=str)
def test_file(name: str, number: int) -> None:
    row = TABLE[name][number]
    path = SHARED / name
    if isinstance(row, Trace):
        check_trace(path, row)
    elif isinstance(row, Messages):
        data = path.read_bytes()
        check_messages(data if row.part is None else json.dumps(json.loads(data)[row.part]).encode(), row)
    else:
        with pytest.raises(TraceError, match=row.says) as caught:
            read_conversation(path.read_bytes(), name)
        assert caught.value.hint
        with pytest.raises(TraceError) as caught:
            read_traces([TraceInput.of_path(path)])
        assert caught.value.hint


def check_trace(path: Path, row: Trace) -> None:
    store = StepStore()
    payload = read_traces([TraceInput.of_path(path)], None, store.add).payload(declared_by="the caller")
    assert payload.sources[0].encoding.replace(" lines", "") == row.encoding.replace(" lines", "")
    results = {f"{step.trace_id}/{step.span_id}": step.output for step in store.steps(None)[0]}
    found = [seen(call) for call in payload.calls]
    for call, expected in zip(payload.calls, row.calls, strict=True):
        output = results[call.spans[0]]
        assert (output.text or "").startswith(expected.result) if output is not None else expected.result == ""
    assert found == [widened(call, row.unit) for call in row.calls]
    assert tuple(codes(payload)) == row.reasons
    assert payload.at_least_once_each() == payload.calls
    check_rest(payload, row.excluded)
    assert tuple(item.why for item in payload.possible) == row.possible
    assert type(payload).model_validate_json(payload.model_dump_json()) == payload


def check_messages(data: bytes, row: Messages) -> None:
    payload = read_conversation(data).payload()
    assert payload.sources[0].encoding == row.encoding
    assert [seen(call) for call in payload.calls] == [widened(call, 0) for call in row.calls]
    assert codes(payload) == ["not_declared", "messages.only"]
    check_rest(payload, row.excluded)


def check_rest(payload: ToolsPayload, excluded: tuple[tuple[str, str], ...]) -> None:
    assert tuple(("/".join(item.names), item.why.value) for item in payload.excluded) == excluded


def seen(call: ToolCall) -> tuple[object, ...]:
    times = [(attempt.start_ns, attempt.end_ns) for attempt in call.attempts]
    return ("/".join(call.names), call.call_id, call.arguments.text, times)


def widened(call: Call, unit: int) -> tuple[object, ...]:
    """A call with its times as far apart as the unit of the file leaves open."""
    if call.times is None:
        return (call.name, call.call_id, call.arguments, [])
    start, end = call.times
    wider = 0 if unit == NS else unit
    return (call.name, call.call_id, call.arguments, [(start - wider, None if end is None else end + wider)])


def test_claude_agents_ran_in_parallel() -> None:
    payload = read_traces([TraceInput.of_path(SHARED / "strands-evals__claude_adot_spans.json")]).payload()
    first, second = (call.attempts[0] for call in payload.calls_of("Agent"))
    assert first.end_ns is not None
    assert second.start_ns is not None
    assert second.start_ns < first.end_ns


@pytest.mark.parametrize(
    "name", [name for name in TABLE if name.startswith("generated/") and "hostile" not in name and "snake" not in name]
)
def test_generated_variants_read_alike(name: str) -> None:
    expected = content(read((SHARED / "generated" / "otlp.json").read_bytes()))
    payload = read((SHARED / name).read_bytes())
    assert [call.failed for call in payload.calls] == [False, True]
    assert (payload.calls, payload.vocabularies) == (expected.calls, expected.vocabularies)
    assert bool(payload.sources[0].warnings) is ("nonstd" in name)


def test_the_hostile_file() -> None:
    payload = read((SHARED / "generated" / "hostile.json").read_bytes())
    assert [item.span.rsplit("/", 1)[1] for item in payload.possible] == ["84c4a7ddd656e99f"]
    assert payload.sources[0].unknown_fields == 2
    assert payload.trace_ids == ("cb0296e64fc6fc7a9ecc74b634211c62",)
