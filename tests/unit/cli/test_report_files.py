"""`-o`: a report never takes the place of what is read, and is never written into a record."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import RunIt

TOOL_TASK = "conditions: [{condition_type: tools_not_called, tools: [send]}]\n"
TRACE = (
    '{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0af7651916cd43dd8448eb211c80319c", '
    '"spanId": "00000000000000aa"}]}]}]}'
)


@pytest.mark.parametrize("name", ["record.json", "verdict.json", "new.json", "blobs/new.json"])
def test_a_record_is_not_written_into(grader: RunIt, workplace: Path, name: str) -> None:
    assert grader("run", ".", "all/good.py").code == 0
    record = next(path for path in (workplace / ".grader" / "records").iterdir() if path.is_dir())
    (record / "blobs").mkdir(exist_ok=True)
    before = {file: file.read_bytes() for file in record.rglob("*") if file.is_file()}
    ended = grader("replay", "-o", record / name)
    assert ended.code == 2
    assert "into a record, which is never changed" in ended.err
    assert {file: file.read_bytes() for file in record.rglob("*") if file.is_file()} == before
    assert grader("replay", "-o", "report.json").code == 0


def test_a_task_or_a_submission_is_not_replaced(grader: RunIt, workplace: Path) -> None:
    (workplace / "task.json").write_text((workplace / "task.yaml").read_text())
    (workplace / "good.txt").write_text("good")
    (workplace / "link.json").symlink_to("task.json")
    for task, submission, report in (
        ("task.json", "all/good.py", "task.json"),
        ("link.json", "all/good.py", "link.json"),
        ("link.json", "all/good.py", "all/../task.json"),
        ("task.yaml", "good.txt", "good.txt"),
    ):
        ended = grader("run", task, submission, "-p", "python", "-o", "report.xml", "-o", report)
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {report}: the report would replace what is read" in ended.err
    assert (workplace / "good.txt").read_text() == "good"
    assert grader("run", "task.json", "all/good.py", "-o", "again.json").code == 0
    assert grader("run", "task.json", "all/good.py", "-o", "again.json").code == 0


def test_evidence_is_not_replaced_and_nothing_is_put_among_it(grader: RunIt, workplace: Path) -> None:
    (workplace / "tools.yaml").write_text(TOOL_TASK)
    traces = workplace / "traces"
    traces.mkdir()
    (traces / "a.json").write_text(TRACE)
    for evidence, report, words in (
        ("traces/a.json", "traces/a.json", "would replace what is read"),
        ("traces", "traces/a.json", "among the evidence"),
        ("traces", "traces/report.json", "among the evidence"),
    ):
        ended = grader("score", evidence, "--task", "tools.yaml", "-o", report)
        assert ended.code == 2
        assert words in ended.err
    assert (traces / "a.json").read_text() == TRACE
    assert [file.name for file in traces.iterdir()] == ["a.json"]
    assert grader("score", "traces", "--task", "tools.yaml", "-o", "report.json").code == 3
