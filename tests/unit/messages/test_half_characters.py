"""JSON may hold half a character (a lone surrogate), and a file's name need not be UTF-8: both can be stored."""

from __future__ import annotations

import json

import pytest

from grader.core.observation import Observation
from grader.core.tools.calls import ToolsPayload, observe_tools
from grader.messages.conversation import read_conversation
from grader.traces.reader import TraceInput, read_traces

HALF = "a\ud800"
ODD_FILE = "trace-\udcff.json"


def asked(name: str, call_id: str) -> dict[str, object]:
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": '{"\\ud800": "\\ud800"}'}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def stored(payload: ToolsPayload) -> ToolsPayload:
    observation = observe_tools(payload)
    again = Observation.model_validate_json(observation.model_dump_json())
    assert again.digest == observation.digest
    assert isinstance(again.payload, ToolsPayload)
    return again.payload


@pytest.mark.parametrize("answer", ["ok", f"Error: unknown tool {HALF}", None])
def test_calls_with_half_characters_are_stored_and_paired(answer: str | None) -> None:
    messages: list[object] = [{"role": "user", "content": HALF}, asked(HALF, HALF)]
    if answer is not None:
        messages.append({"role": "tool", "tool_call_id": HALF, "content": answer})
    payload = stored(read_conversation(json.dumps(messages).encode(), ODD_FILE).payload())
    found = (*payload.calls, *payload.excluded)
    assert [item.names for item in found] == ([] if answer is None else [("a\\ud800",)])
    assert next(item.call_id for item in (*found, *payload.not_executed)) == "a\\ud800"


def test_what_is_told_of_a_file_with_such_a_name_is_stored() -> None:
    request = b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "%032x", "spanId": "%016x"}]}]}]}' % (1, 1)
    data = request + b"\nnot json\n" + request + b'\n{"resourceSpans": ['
    payload = stored(read_traces([TraceInput.of_bytes(data, ODD_FILE)]).payload())
    assert any(ODD_FILE.replace("\udcff", "\\udcff") in reason.detail for reason in payload.coverage.reasons)
