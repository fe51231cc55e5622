"""`grader.score`: the library's door to tool conditions over traces and conversations."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import grader
from grader import Task, TaskError, ToolPrecededBy, ToolsCalled, ToolsNotCalled, TraceError, Tri, UsageError
from grader.core.observation import Acquisition
from grader.core.tools.arguments import REMOVED
from grader.core.tools.calls import ToolsPayload
from grader.messages.conversation import read_conversation
from grader.runner.score import NoEvidenceError
from grader.traces.reader import TraceInput
from tests.unit.traces.otlp_samples import TRACE, lines, root, tool

GATE = Task(conditions=(ToolPrecededBy(tool="send", by="confirm"),))
TO_BOB = Task.model_validate(
    {
        "conditions": [
            {
                "condition_type": "tools_called",
                "tools": [{"name": "send", "arguments": [{"name": "to", "matcher": {"equals": "bob"}}]}],
            }
        ]
    }
)
GOOD = lines([[root()], [tool(2, "confirm", start=1, end=2), tool(3, "send", start=3, end=4, arguments={"to": "bob"})]])


def value(graded: grader.Graded) -> Tri:
    assert graded.verdict is not None
    return graded.verdict.value


def payload(graded: grader.Graded) -> ToolsPayload:
    assert graded.observation is not None
    assert isinstance(graded.observation.payload, ToolsPayload)
    return graded.observation.payload


def test_bytes_paths_and_sources_are_the_same_evidence(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(GOOD)
    forms = [GOOD, file, str(file), TraceInput.of_path(file), [file], [str(tmp_path)]]
    found = [grader.score(form, GATE, complete=True) for form in forms]
    assert {value(graded) for graded in found} == {Tri.TRUE}
    assert len({payload(graded).calls for graded in found}) == 1
    assert found[0].submission_name == "<bytes>"
    assert found[1].submission_name == str(file)


def test_completeness_is_declared_or_not() -> None:
    complete, partial = (grader.score(GOOD, GATE, complete=flag) for flag in (True, False))
    assert (value(complete), value(partial)) == (Tri.TRUE, Tri.UNDETERMINED)
    assert complete.observation is not None
    assert complete.observation.acquisition is Acquisition.COMPLETE
    assert partial.observation is not None
    assert partial.observation.acquisition is Acquisition.PARTIAL
    assert partial.observation.acquisition_reasons == ("nobody declared that the trace is complete",)
    assert partial.verdict is not None
    assert partial.verdict.rationale.count("nobody declared that the trace is complete") == 1


@pytest.mark.parametrize("tolerance", ["1s", 1_000_000_000])
def test_tolerance_as_text_and_in_nanoseconds(tolerance: str | int) -> None:
    assert value(grader.score(GOOD, GATE, complete=True, clock_skew_tolerance="999ms")) is Tri.TRUE
    judged = grader.score(GOOD, GATE, complete=True, clock_skew_tolerance=tolerance)
    assert value(judged) is Tri.UNDETERMINED
    assert judged.task is not None
    assert judged.task.trace.clock_skew_tolerance_ns == 1_000_000_000


@pytest.mark.parametrize("tolerance", ["1", "x", -1])
def test_a_wrong_tolerance(tolerance: str | int) -> None:
    with pytest.raises(UsageError, match="clock_skew_tolerance"):
        grader.score(GOOD, GATE, clock_skew_tolerance=tolerance)


def test_nothing_of_the_content_is_kept_without_retain_content() -> None:
    judged = grader.score(GOOD, TO_BOB, complete=True, retain_content=False)
    assert value(judged) is Tri.UNDETERMINED
    assert "bob" not in payload(judged).model_dump_json()
    assert [warning.split(",")[0] for warning in judged.warnings] == ["tools_called constrains arguments"]
    assert grader.score(GOOD, TO_BOB, complete=True).warnings == ()


def test_a_redactor_decides_what_is_kept(tmp_path: Path) -> None:
    asked: list[tuple[str, object]] = []

    def redactor(name: str, found: object) -> object:
        asked.append((name, found))
        return REMOVED

    judged = grader.score(GOOD, TO_BOB, complete=True, redactor=redactor, record=tmp_path / "r")
    assert asked == [("to", "bob")]
    assert value(judged) is Tri.UNDETERMINED
    assert all(b"bob" not in file.read_bytes() for file in (tmp_path / "r" / "blobs").iterdir())
    journal = (tmp_path / "r" / "runs.jsonl").read_text()
    assert '"why":"redacted"' in journal
    assert journal.count("bob") == 1  # in the task, which asks for it


def test_a_record_is_replayed_offline_with_an_equal_verdict(tmp_path: Path) -> None:
    judged = grader.score(GOOD, GATE, complete=True, record=tmp_path / "r")
    assert (judged.record, judged.entry) == (tmp_path / "r", 0)
    (again,) = grader.replay(tmp_path / "r")
    assert again.observation == judged.observation
    assert again.verdict is not None
    assert judged.verdict is not None
    assert again.verdict.model_dump_json() == judged.verdict.model_dump_json()
    assert again.submission_name == judged.submission_name
    (other,) = grader.replay(tmp_path / "r", Task(conditions=(ToolsNotCalled(tools=("s*",)),)))
    assert value(other) is Tri.FALSE
    with pytest.raises(TaskError, match="program_behaves cannot be judged"):
        list(grader.replay(tmp_path / "r", Task(conditions=(grader.ProgramBehaves.model_validate({"cases": [{}]}),))))


def test_a_conversation_in_every_form(tmp_path: Path) -> None:
    call = {"id": "c", "function": {"name": "pay", "arguments": "{}"}}
    messages = [{"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "ok"}]
    data = json.dumps({"requests": [{"trace_id": TRACE, "messages": messages}]}).encode()
    file = tmp_path / "talk.json"
    file.write_bytes(data)
    task = Task(conditions=(ToolsCalled.model_validate({"tools": [{"name": "pay"}]}),))
    for form in (data, file, str(file), read_conversation(data)):
        assert value(grader.score([], task, conversation=form)) is Tri.TRUE
        judged = grader.score(GOOD, task, conversation=form, complete=True)
        assert value(judged) is Tri.TRUE
        assert payload(judged).only_in_messages != ()


def test_nothing_at_all_is_no_evidence() -> None:
    with pytest.raises(NoEvidenceError, match="there is no evidence"):
        grader.score([], GATE)


def test_the_task_is_looked_at_before_the_evidence() -> None:
    program = grader.ProgramBehaves.model_validate({"cases": [{}]})
    mixed = Task(conditions=(*GATE.conditions, grader.AnyOf(conditions=(*GATE.conditions, program))))
    with pytest.raises(TaskError, match="program_behaves cannot be judged from traces or messages"):
        grader.score("nowhere", mixed, conversation="nowhere")
    with pytest.raises(TraceError, match="nowhere: cannot be read"):
        grader.score("nowhere", GATE)


def test_it_is_usable_inside_a_running_event_loop() -> None:
    async def main() -> Tri:
        return value(grader.score(GOOD, GATE, complete=True))

    assert asyncio.run(main()) is Tri.TRUE


def test_traces_of_no_request_do_not_count() -> None:
    link = json.dumps({"requests": [{"trace_id": "ab" * 16, "messages": [{"role": "user", "content": "x"}]}]}).encode()
    judged = grader.score(GOOD, GATE, conversation=link, complete=True)
    assert value(judged) is Tri.UNDETERMINED
    assert payload(judged).calls == ()
    assert any(TRACE in note for note in payload(judged).notes)
    assert "trace.absent" in [reason.code.value for reason in payload(judged).coverage.reasons]
