"""The flat list of cells: of programs, tool conditions and judge conditions; and that every report counts the same."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest

from grader import Task
from grader.cli.items import as_item
from grader.reports.grading import Grading
from grader.reports.json import json_report, jsonl_report
from grader.reports.junit import junit_report
from grader.reports.markdown import markdown_report
from grader.reports.show import find_rows, show_report
from grader.reports.text import text_report
from tests.unit.reports.graded_sample import refusal
from tests.unit.runner.judging.test_runs import ASKS, ScriptedJudge, grade
from tests.unit.runner.test_agent_programs import PROFILE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "reports.md"

FIRST: dict[str, Any] = {
    "condition_type": "program_behaves",
    "repetitions": 2,
    "cases": [{"name": "one", "stdin": "book\n"}, {"name": "two", "stdin": "wait\n", "stdout": {"contains": "booked"}}],
}
OTHER: dict[str, Any] = {
    "condition_type": "program_behaves",
    "cases": [{"name": "three", "stdin": "3\n", "stdout": {"equals": ""}}],
}
TOOLS: dict[str, Any] = {"condition_type": "tools_called", "tools": [{"name": "book"}], "case": "one"}
NONE: dict[str, Any] = {"condition_type": "tools_not_called", "tools": ["cancel"]}
JUDGED: dict[str, Any] = {**ASKS, "case": "two"}


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Grading:
    """Two programs, of which one stands in two places; two tool conditions, one on one case; a judge condition."""
    folder = tmp_path_factory.mktemp("runtimes")
    (folder / "trusted.yaml").write_text(PROFILE + "traces: otlp\ntrusts_exporter: true\n")
    either = {"condition_type": "any_of", "conditions": [TOOLS, {"condition_type": "not", "condition": FIRST}]}
    conditions = [FIRST, either, JUDGED, OTHER, NONE]
    task = Task.model_validate(
        {"runtime_profiles": ["trusted"], "conditions": conditions, "judge": {"give_facts": False}}
    )
    found = as_item(grade(task, ScriptedJudge(lambda _: True), folder), "latest")
    assert isinstance(found, Grading)
    return found


def cells(graded: Grading) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", json.loads(json_report([graded]))["submissions"][0]["cells"])


def test_every_cell_is_listed_and_says_which_condition_it_is_of(graded: Grading) -> None:
    said = [
        (c["condition"], c["condition_type"], c["program"], c["case"], c["name"], c["verdict"], c["reasons"])
        for c in cells(graded)
    ]
    assert said == [
        (0, "program_behaves", 0, 0, "one", "true", []),
        (0, "program_behaves", 0, 1, "two", "true", []),
        (4, "program_behaves", 1, 0, "three", "false", ["stdout.differs"]),
        (1, "tools_called", 0, 0, "one", "undetermined", ["runs.disagree", "tool.missing"]),
        (3, "meets_dimensions", 0, 1, "two", "false", ["judge.violation"]),
        (5, "tools_not_called", 0, 0, "one", "true", []),
        (5, "tools_not_called", 0, 1, "two", "true", []),
        (5, "tools_not_called", 1, 0, "three", "true", []),
    ]
    leaves = [leaf.condition_type for leaf in graded.task.leaves()]
    assert [leaves[place] for place, *_ in said] == [condition_type for _, condition_type, *_ in said]
    assert [cell["runs"] for cell in cells(graded)][2:5] == [["false"], ["true", "false"], ["false", "false"]]
    # The time of a run stands once, with its program.
    assert [cell["wall_time_s"] is not None for cell in cells(graded)] == [True] * 3 + [False] * 5


def test_what_programs_read_before_is_there_as_it_was(graded: Grading) -> None:
    for cell in cells(graded):
        assert list(cell)[2:] == [
            "program", "case", "name", "profile", "verdict", "reasons", "rationale", "runs", "wall_time_s",
        ]  # fmt: skip


def test_the_reports_count_the_same(graded: Grading) -> None:
    listed = cells(graded)
    (suite,) = ET.fromstring(junit_report([graded]).encode()).findall("testsuite")
    values = Counter(cell["verdict"] for cell in listed)
    counted = {name: int(suite.get(name) or -1) for name in ("tests", "failures", "errors", "skipped")}
    expected = {"failures": values["false"], "errors": values["undetermined"], "skipped": 0}
    # The `any_of` is a test case of its own, which is not settled.
    expected["errors"] += 1
    assert counted == {"tests": len(listed) + 1, **expected}
    programs = [cell for cell in listed if cell["condition_type"] == "program_behaves"]
    runs = sum(len(cell["runs"]) for cell in programs)
    assert graded.runs is not None
    assert runs == len(graded.runs.runs) == 5
    text = text_report([graded])
    assert f"cases {len(programs)}: ✓ 2  ✗ 1    runs {runs}    about tools 2: ✓ 1  ? 1    for a judge 1: ✗ 1" in text
    assert "3 cases: 2 true, 1 false." in markdown_report([graded])


def test_a_not_that_is_false_is_told_in_every_report(tmp_path: Path) -> None:
    (tmp_path / "untraced.yaml").write_text(PROFILE)
    task = Task.model_validate(
        {"runtime_profiles": ["untraced"], "conditions": [{"condition_type": "not", "condition": FIRST}]}
    )
    found = as_item(grade(task, None, tmp_path), None)
    assert isinstance(found, Grading)
    said = "it must not be so: all 2 cases are true in every run"
    assert f"✗ not\n    stdout.differs  {said}\n  ✓ program_behaves\n" in text_report([found])
    (suite,) = ET.fromstring(junit_report([found]).encode()).findall("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    (failed,) = (case for case in suite.iter("testcase") if case.find("failure") is not None)
    assert failed.get("name") == "not (condition 0)"
    assert (failed[0].get("type"), failed[0].get("message")) == ("stdout.differs", said)
    assert "- ✗ `not` `stdout.differs` not: all 2 cases are true" in markdown_report([found]).replace("\\", "")
    assert json.loads(jsonl_report([found]))["reasons"] == ["stdout.differs"]


def test_a_condition_that_stands_twice_can_be_shown(graded: Grading) -> None:
    assert [row.label for row in find_rows(graded, "*")] == ["1/one", "1/two", "2/three"]
    assert "expected" in show_report(graded, find_rows(graded, "three"))


def documented(heading: str) -> list[str]:
    """The first column of the table below a heading of the page."""
    (section,) = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    found: list[str] = []
    for line in section.splitlines():
        if line.startswith("| `"):
            found.extend(re.findall(r"`([^`]+)`", line.split("|")[1]))
    return found


def test_the_page_lists_every_field_of_the_json_report(graded: Grading) -> None:
    report = json.loads(json_report([graded, refusal()], exit_code=1))
    entry, refused = report["submissions"]
    assert documented("JSON") == list(report)
    assert documented("A submission") == [*entry, "evidence", "warnings", "judge", "refused"]
    assert set(refused) <= set(documented("A submission"))
    assert documented("A cell") == list(entry["cells"][0])
    assert list(json.loads(jsonl_report([graded]))) == ["schema_version", *entry]
