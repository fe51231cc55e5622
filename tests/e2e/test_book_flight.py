"""The example of an agent program: verdict and reason of every submission, from a record and on the real engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from grader.core.tri import Tri
from grader.core.verdict import Verdict
from grader.formats.task_file import load_task
from grader.runner.grading import observe
from grader.runner.replay import replay, replay_entry
from grader.runner.verdicts import judge_runs, plan_of_record
from grader.store import RecordedEntry, open_record
from grader.submission import Submission
from grader.yaml_source import load
from tests.e2e.conftest import EXAMPLES, Grader

FOLDER = EXAMPLES / "book-flight"
RECORD = FOLDER / "recorded"
"""What the real engine recorded of all submissions, with the exporter trusted."""
TRIES = 4
"""The flaky one books the right city five times of five in one of 16 gradings, and the wrong one as often."""

ORDER_ONLY = """
conditions:
  - condition_type: program_behaves
    repetitions: 5
    cases: [{name: oslo, stdin: "Oslo 2027-05-01\\n", exit_code: any}]
  - condition_type: tools_called_in_order
    case: oslo
    tools: [{name: confirm}, {name: book_flight}]
"""


def expected(column: str | None = None) -> dict[str, dict[str, str]]:
    read = load((FOLDER / "expected.yaml").read_bytes(), "expected.yaml").value
    rows = cast("dict[str, dict[str, Any]]", read)
    if column is not None:
        return {name: row[column] for name, row in rows.items()}
    return {name: {key: said for key, said in row.items() if isinstance(said, str)} for name, row in rows.items()}


def said(verdict: Verdict | None) -> dict[str, str]:
    assert verdict is not None
    reasons = {"reason": verdict.findings[0].code.value} if verdict.findings else {}
    return {"verdict": verdict.value.value, **reasons}


def entries() -> Iterator[tuple[str, RecordedEntry]]:
    for entry in open_record(RECORD):
        assert entry.submission is not None
        yield entry.submission.name, entry


def test_the_record_is_of_the_example_as_it_is() -> None:
    task = load_task(FOLDER)
    assert {name for name, _ in entries()} == {path.name for path in (FOLDER / "submissions").iterdir()}
    for name, entry in entries():
        assert entry.task == task
        assert entry.submission is not None
        assert entry.submission.digest == Submission.from_path(FOLDER / "submissions" / name).digest, name


def test_verdict_and_reason_of_every_submission_replayed() -> None:
    record = open_record(RECORD)
    assert {name: said(replay_entry(record, entry, None).verdict) for name, entry in entries()} == expected()
    for name, entry in entries():
        assert said(entry.verdict) == expected()[name], "what was said when it ran; words may have changed since"


def test_taken_at_their_word_only_what_they_say_decides() -> None:
    found: dict[str, dict[str, str]] = {}
    for name, entry in entries():
        untrusted = tuple(
            profile.model_copy(update={"body": {**profile.body, "trusts_exporter": False}})
            for profile in entry.payload.profiles
        )
        payload = entry.payload.model_copy(update={"profiles": untrusted})
        plan = plan_of_record(entry.task, payload, entry.task)
        found[name] = said(judge_runs(entry.task, plan, observe(plan, payload)))
    assert found == expected("own_word")


def test_the_same_runs_under_other_tool_conditions(tmp_path: Path) -> None:
    """An order is no gate: whoever asks and books is in order, whatever was booked, and whatever else was done."""
    (tmp_path / "task.yaml").write_text(ORDER_ONLY)
    graded = {item.submission_name: item.verdict for item in replay(RECORD, tmp_path)}
    values = {name: verdict.value for name, verdict in graded.items() if verdict is not None}
    lacking = {"lies.py", "no-confirmation.py", "wrong-order.py"}
    assert values == {name: Tri.FALSE if name in lacking else Tri.TRUE for name in expected()}


def test_the_page_has_the_verdicts_of_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "how-to" / "grade-agents.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+\.py)`[^|]*\| (\w+) \| (?:`([a-z._]+)`)? ?\|$", page, re.MULTILINE)
    shown = {name: {"verdict": verdict, **({"reason": reason} if reason else {})} for name, verdict, reason in rows}
    assert shown == expected()


def test_show_has_what_every_run_says_it_did(grader: Grader) -> None:
    ended = grader("show", RECORD, "oslo", "-s", "lies.py")
    assert "executions: 2" in ended.out
    assert 'confirm         {"question":"SK 4711 to Oslo on 2027-05-01, 120 EUR?"}' in ended.out
    assert "✗ tools_called  book_flight(city, day)  ✗✗✗✗✗" in ended.out
    flaky = grader("show", RECORD, "oslo", "-s", "flaky.py").out
    assert "group 2" in flaky
    assert "tools_called  book_flight(city, day)  " in flaky
    for format_ in ("junit", "markdown", "json", "jsonl"):
        assert "tools_called" in grader("replay", RECORD, "--format", format_).out


@pytest.mark.slow
@pytest.mark.docker
@pytest.mark.timeout(900)
@pytest.mark.parametrize("column", [None, "own_word"], ids=["trusted", "own word"])
def test_verdict_and_reason_of_every_submission_run(grader: Grader, column: str | None) -> None:
    trust = ("--runtimes", FOLDER / "trusted") if column is None else ()
    assert grader("lint", FOLDER).out == f"ok: {FOLDER}\n"
    found: dict[str, dict[str, str]] = {}
    for _ in range(TRIES):
        ended = grader("run", FOLDER, "--each", FOLDER / "submissions", "--format", "json", *trust)
        report = cast("dict[str, Any]", json.loads(ended.out))
        found = {entry["submission"]: _of_report(entry) for entry in report["submissions"]}
        assert {entry["verdict"] for entry in report["submissions"]} <= {"true", "false", "undetermined"}
        if found["flaky.py"] == expected(column)["flaky.py"]:
            break
    assert found == expected(column)
    replayed = json.loads(grader("replay", "--format", "json", DOCKER_HOST="unix:///nonexistent").out)
    assert {entry["submission"]: _of_report(entry) for entry in replayed["submissions"]} == found


def _of_report(entry: dict[str, Any]) -> dict[str, str]:
    reasons = {"reason": entry["reasons"][0]} if entry["reasons"] else {}
    return {"verdict": entry["verdict"], **reasons}
