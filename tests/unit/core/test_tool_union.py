"""Calls of a trace and of its messages are matched in a time that grows with their number, however alike they are."""

from __future__ import annotations

from typing import Any

import pytest

from grader.core.tools import union as tool_union
from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments, recorded_arguments
from grader.core.tools.calls import ConversationLinks, EvidenceSource, ToolCall, ToolsPayload
from grader.core.tools.union import with_messages
from grader.core.traces.coverage import Coverage, CoverageCode

MANY = 2_000
SAME = recorded_arguments({"x": 0}, ContentRules())


def other(number: int) -> ToolArguments:
    return recorded_arguments({"x": number}, ContentRules())


def calls(source: EvidenceSource, arguments: list[ToolArguments], call_id: str | None) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(key=f"{source}/{number}", names=("a",), arguments=one, call_id=call_id, sources=(source,))
        for number, one in enumerate(arguments)
    )


@pytest.mark.parametrize("call_id", [None, "call_0"])
@pytest.mark.parametrize(
    ("traced", "told", "left"),
    [
        ([SAME] * MANY, [SAME] * MANY, 0),
        ([NOT_RECORDED] * MANY, [SAME] * MANY, 0),
        ([SAME] * MANY, [NOT_RECORDED] * MANY, 0),
        ([other(n) for n in range(MANY)], [other(n) for n in reversed(range(MANY))], 0),
        ([SAME] * MANY, [other(n) for n in range(1, MANY + 1)], MANY),
    ],
)
def test_calls_that_are_alike_are_compared_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
    call_id: str | None,
    traced: list[ToolArguments],
    told: list[ToolArguments],
    left: int,
) -> None:
    looks: list[int] = []
    real = tool_union.same_tool

    def counting(first: Any, second: Any) -> bool:
        looks.append(1)
        return real(first, second)

    monkeypatch.setattr(tool_union, "same_tool", counting)
    trace = ToolsPayload(calls=calls(EvidenceSource.TRACE, traced, call_id), coverage=Coverage(declared_by="x"))
    messages = ToolsPayload(
        calls=calls(EvidenceSource.MESSAGES, told, call_id), conversation=ConversationLinks(requests=1)
    )
    found = with_messages(trace, messages)
    # With one id the same call is told with other arguments; without ids it is another call.
    alone = left if call_id is None else 0
    assert len(found.calls) == MANY + alone
    assert found.coverage.has(CoverageCode.MESSAGES_CONFLICT) is (alone > 0)
    assert len(looks) < 10 * MANY
