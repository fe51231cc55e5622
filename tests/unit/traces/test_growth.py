"""Evidence that is twice as much takes about twice the work, whatever it is made of: it may come from anybody."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from grader.core.tools.calls import ToolsPayload
from grader.core.tools.union import with_messages
from grader.messages.conversation import read_conversation
from grader.traces.arguments import fit
from grader.traces.reader import TraceEvidence, TraceInput, read_traces
from tests.unit.counted_lines import lines_run


def spans_of_own_traces(traces: int) -> TraceEvidence:
    """A trace a span, and each of a scope of its own."""
    scopes = [
        {
            "scope": {"name": f"scope {number}"},
            "spans": [{"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "work"}],
        }
        for number in range(1, traces + 1)
    ]
    return read_traces([TraceInput.of_bytes(json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}).encode())])


def requests_without_links(requests: int) -> ToolsPayload:
    asks = [{"name": "send", "args": {"to": number}} for number in range(requests)]
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "send", "response": {"sent": True}}}]}
    document = [{"contents": [{"role": "model", "parts": [{"functionCall": ask}]}, answer]} for ask in asks]
    return read_conversation(json.dumps({"requests": document}).encode()).payload()


def work_of_traces(count: int) -> Callable[[], object]:
    return spans_of_own_traces(count).payload


def work_of_messages(count: int) -> Callable[[], object]:
    trace, messages = spans_of_own_traces(1).payload(), requests_without_links(count)
    assert len(messages.calls) == count
    return lambda: with_messages(trace, messages)


@pytest.mark.parametrize("work_of", [work_of_traces, work_of_messages])
def test_twice_as_much_takes_about_twice_the_steps(work_of: Callable[[int], Callable[[], object]]) -> None:
    assert lines_run(work_of(200)) < 2.5 * lines_run(work_of(100))


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_each_parameter_is_not_looked_for_among_all_that_are_needed() -> None:
    names = [f"p{number}" for number in range(300)]
    schema = {"properties": {name: {"type": "string"} for name in names}, "required": [Counted(name) for name in names]}
    Counted.compared = 0
    assert fit(dict.fromkeys(names, "x"), schema) is True
    assert Counted.compared <= 2 * len(names)
