"""From spans to steps: every span is one, in the order of the tree, with what went in and came out."""

from __future__ import annotations

import json

import pytest

from grader.core.traces.content import TextRules, WhyNotKept
from grader.core.traces.execution_trace import ExecutionStep, ExecutionTrace, StepKind, StepStatus, WhyRoot
from grader.traces import steps as steps_module
from grader.traces.files import trace_inputs
from grader.traces.reader import TraceInput, read_traces
from grader.traces.steps import StepStore
from tests.unit.traces.otlp_samples import OTHER_TRACE, SHARED, TRACE, S, request_json, root, tool


def read(*spans: S, rules: TextRules | None = None, trace_ids: list[str] | None = None) -> tuple[ExecutionStep, ...]:
    store = StepStore(rules if rules is not None else TextRules())
    read_traces([TraceInput.of_bytes(json.dumps(request_json(spans)).encode())], also=store.add)
    found, _ = store.steps(trace_ids)
    ExecutionTrace(steps=found)  # ids count up, parents stand above
    return found


def test_order_of_the_tree() -> None:
    found = read(tool(5, "late", parent=3, start=8), tool(4, parent=1, start=5), tool(3, parent=1, start=2), root())
    assert [(step.id, step.name, step.parent) for step in found] == [
        ("T1", "invoke_agent a", None),
        ("T2", "send", "T1"),
        ("T3", "late", "T2"),
        ("T4", "send", "T1"),
    ]
    assert [step.kind for step in found] == [StepKind.AGENT, StepKind.TOOL, StepKind.TOOL, StepKind.TOOL]


def test_cycles_selves_and_orphans_are_roots() -> None:
    found = read(tool(2, parent=3), tool(3, parent=2), tool(4, parent=4), tool(5, parent=99), tool(6, parent=2))
    by_span = {step.span_id[-1]: step for step in found}
    assert len(found) == 5
    assert {at: by_span[at].why_root for at in "2345"} == {
        "2": WhyRoot.PARENT_CYCLE,
        "3": WhyRoot.PARENT_CYCLE,
        "4": WhyRoot.PARENT_CYCLE,
        "5": WhyRoot.PARENT_MISSING,
    }
    assert by_span["6"].parent == by_span["2"].id


def test_a_very_deep_trace() -> None:
    found = read(*(tool(n, parent=n - 1 if n > 1 else None) for n in range(1, 3_000)))
    assert found[-1].parent == "T2998"


@pytest.mark.parametrize(
    ("attributes", "kind", "given", "got"),
    [
        (
            {"openinference.span.kind": "TOOL", "tool.name": "t", "input.value": "in", "output.value": "out",
             "gen_ai.tool.call.arguments": "not this"}, StepKind.TOOL, "in", "out",
        ),
        (
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t",
             "gen_ai.tool.call.arguments": '{"a": 1}', "gen_ai.tool.call.result": "done"},
            StepKind.TOOL, '{"a": 1}', "done",
        ),
        (
            {"openinference.span.kind": "LLM", "llm.input_messages.10.message.content": "last",
             "llm.input_messages.2.message.content": "first"},
            StepKind.MODEL, "2.message.content: first\n10.message.content: last", None,
        ),
        (
            {"openinference.span.kind": "RETRIEVER", "input.value": "q",
             "retrieval.documents.0.document.content": "Rome"},
            StepKind.RETRIEVER, "q", "0.document.content: Rome",
        ),
        ({"gen_ai.operation.name": "retrieval"}, StepKind.RETRIEVER, None, None),
        ({"gen_ai.operation.name": "chat", "gen_ai.input.messages": "[]"}, StepKind.MODEL, "[]", None),
        ({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t",
          "gen_ai.tool.call.arguments": {"b": [1, True]}}, StepKind.TOOL, '{"b":[1,true]}', None),
        ({"http.method": "GET"}, StepKind.OTHER, None, None),
    ],
)  # fmt: skip
def test_kinds_and_contents(attributes: dict[str, object], kind: StepKind, given: str | None, got: str | None) -> None:
    (step,) = read(S(1, parent=None, attributes=attributes))
    assert step.kind is kind
    assert (step.input.text if step.input else None, step.output.text if step.output else None) == (given, got)


def test_status_and_events() -> None:
    details: dict[str, object] = {"exception.message": "card declined", "n": 3}
    event = ("exception", details)
    many = tuple((f"e{n}", dict[str, object]()) for n in range(25))
    failed, noisy = read(
        S(1, parent=None, start=1, status=2, message="boom", events=(event,)),
        S(2, parent=None, start=2, events=many),
    )
    assert failed.status is StepStatus.ERROR
    assert failed.status_description is not None
    assert failed.status_description.text == "boom"
    assert failed.events[0].content.text == "exception.message: card declined\nn: 3"
    assert [item.name for item in noisy.events][-1] == "further events"
    assert noisy.events[-1].content.text == "5 are not kept"


def test_content_rules() -> None:
    span = tool(1, parent=None, arguments={"to": "a@example.org"})
    (bare,) = read(span, rules=TextRules(retain_content=False))
    assert bare.input is not None
    assert (bare.input.text, bare.input.why, bare.input.sha256) == (None, WhyNotKept.NOT_RETAINED, None)
    (redacted,) = read(span, rules=TextRules(redactor=lambda what, text: text.replace("a@example.org", what)))
    assert redacted.input is not None
    assert redacted.input.text == '{"to": "input"}'
    (hidden,) = read(S(1, parent=None, attributes={"input.value": "__REDACTED__", "tool.name": "t"}))
    assert hidden.input is not None
    assert hidden.input.why is WhyNotKept.REDACTED
    (cut,) = read(tool(1, parent=None, arguments={"x": "y" * 9_000}))
    assert cut.input is not None
    assert cut.input.is_cut
    assert len(cut.input.text or "") == 4_000


def test_traces_are_chosen_in_the_order_asked_for() -> None:
    spans = (tool(1, "one", parent=None, start=1), S(2, "two", parent=None, start=0, trace=OTHER_TRACE))
    assert [step.name for step in read(*spans)] == ["two", "one"]
    assert [step.name for step in read(*spans, trace_ids=[TRACE, OTHER_TRACE])] == ["one", "two"]
    assert [step.name for step in read(*spans, trace_ids=[TRACE])] == ["one"]


def test_an_announced_span_that_never_came_is_unfinished() -> None:
    pending = S(9, "send", parent=2, attributes={"logfire.span_type": "pending_span", "tool.name": "send"})
    (alone,) = read(pending)
    assert (alone.span_id[-1], alone.end_ns) == ("2", None)
    assert len(read(pending, tool(2, parent=None))) == 1


def test_what_does_not_fit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps_module, "MOST_STEPS", 3)
    store = StepStore()
    spans = [tool(n, parent=None) for n in range(1, 6)]
    read_traces([TraceInput.of_bytes(json.dumps(request_json(spans)).encode())], also=store.add)
    found, reasons = store.steps(None)
    assert len(found) == 3
    assert "2 spans more" in reasons[0].detail
    monkeypatch.setattr(steps_module, "MOST_CONTENT_CHARACTERS", 10)
    (full,) = read(tool(1, parent=None, arguments={"long": "x" * 50}))
    assert full.input is not None
    assert full.input.why is WhyNotKept.NO_ROOM
    assert full.input.sha256 is not None


def test_real_dumps_lose_no_span() -> None:
    if not SHARED.is_dir():
        pytest.skip("the shared traces are not here")
    file = SHARED / "otlp__trace.json"
    store = StepStore()
    evidence = read_traces(trace_inputs([file]), also=store.add)
    found, _ = store.steps(None)
    assert {step.span for step in found} == {
        f"{trace_id}/{span_id}" for trace_id in evidence.trace_ids for span_id in store.by_trace[trace_id]
    }
    assert len(found) > 0
