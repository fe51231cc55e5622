"""Spans of a producer, and what follows from them: verdicts through `grader.score`, on evidence declared complete."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from grader import score
from grader.core.expectation import Task
from grader.core.tools.calls import ToolsPayload
from grader.core.tools.conditions import ToolCondition, ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from tests.unit.scorers.tool_samples import tool as wanted
from tests.unit.traces.otlp_samples import S, read, request_json, root

OI = "openinference.span.kind"


def of(*spans: S, scope: str = "") -> list[S]:
    """A trace: its root, and these spans, in one scope unless they have their own."""
    given = [replace(span, scope=scope) if scope and span.scope == "test" else span for span in spans]
    return [root(), *given]


def judged(spans: Sequence[S], condition: ToolCondition) -> str:
    """`true`, `false` or `undetermined`, and after that the code of the first reason."""
    data = json.dumps(request_json(spans)).encode()
    verdict = score(data, Task(conditions=(condition,)), complete=True).verdict
    assert verdict is not None
    return " ".join([verdict.value.value, *(finding.code.value for finding in verdict.findings[:1])])


def called(spans: Sequence[S], name: str, **arguments: str) -> str:
    """Whether the tool was called with these arguments."""
    return judged(spans, ToolsCalled(tools=(wanted(name, 1, None, **arguments),)))


def once(spans: Sequence[S], name: str) -> str:
    """Whether the tool was called once and not more."""
    return judged(spans, ToolsCalled(tools=(wanted(name, at_most=1),)))


def nothing_but(spans: Sequence[S], *names: str) -> str:
    """Whether these tools were called and no other."""
    return judged(spans, ToolsCalled(tools=tuple(wanted(name) for name in names), exhaustive=True))


def not_called(spans: Sequence[S], *names: str) -> str:
    """Whether none of these was called."""
    return judged(spans, ToolsNotCalled(tools=names))


def in_order(spans: Sequence[S], *names: str) -> str:
    """Whether these were called one after the other."""
    return judged(spans, ToolsCalledInOrder(tools=tuple(wanted(name) for name in names)))


def excluded(spans: Sequence[S]) -> list[tuple[str, str]]:
    """What was told from an execution, and why."""
    return [("/".join(item.names), item.why.value) for item in evidence(spans).excluded]


def evidence(spans: Sequence[S]) -> ToolsPayload:
    """What is read of the spans."""
    return read(spans)


def oi(name: str | None, arguments: object = None, kind: str = "TOOL", **more: object) -> dict[str, object]:
    """Attributes of an OpenInference span; `__` in a keyword stands for a dot."""
    found: dict[str, object] = {OI: kind}
    if name is not None:
        found["tool.name"] = name
    if arguments is not None:
        found["input.value"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {**found, **{key.replace("__", "."): value for key, value in more.items()}}
