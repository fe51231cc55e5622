"""Reports on a grading with one of everything, held against files under tests/golden.

To write those files anew: GRADER_WRITE_GOLDEN=1 pytest tests/unit/reports, then look at the difference.
"""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from grader.core.selection import Selection
from grader.core.tri import Tri
from grader.reports.grading import Grading
from grader.reports.json import json_report, jsonl_report
from grader.reports.junit import junit_report
from grader.reports.markdown import markdown_report
from grader.reports.show import find_rows, show_report
from grader.reports.text import TextOptions, text_report
from tests.unit.reports.graded_sample import refusal, sample

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(scope="module")
def grading() -> Grading:
    return sample()


def check(name: str, report: str) -> None:
    file = GOLDEN / name
    if os.environ.get("GRADER_WRITE_GOLDEN") == "1":
        file.write_text(report, encoding="utf-8")
    assert report == file.read_text(encoding="utf-8")


def test_text(grading: Grading) -> None:
    check("report.txt", text_report([grading], exit_code=1))


def test_text_of_several_with_everything_listed(grading: Grading) -> None:
    options = TextOptions(show_all=True)
    check("report-several.txt", text_report([grading, refusal()], exit_code=2, options=options))


def test_text_in_color_is_the_same_text(grading: Grading) -> None:
    colored = text_report([grading], exit_code=1, options=TextOptions(color=True))
    assert "\x1b[31m✗\x1b[0m" in colored
    for code in ("31", "32", "33", "1;31", "0"):
        colored = colored.replace(f"\x1b[{code}m", "")
    assert colored == text_report([grading], exit_code=1)


def test_quiet_text_is_the_summary_alone(grading: Grading) -> None:
    assert text_report([grading], exit_code=1, options=TextOptions(quiet=True)).startswith(
        "FALSE    cases 5: ✓ 1  ✗ 2  ? 2"
    )


def test_a_selection_is_said(grading: Grading) -> None:
    chosen = replace(grading, selection=Selection(cases_selected=3, cases_total=30))
    assert "3 of 30 cases selected" in text_report([chosen])
    whole = replace(grading, selection=Selection(cases_selected=30, cases_total=30))
    assert "selected" not in text_report([whole])


def test_many_repetitions_are_counted(grading: Grading) -> None:
    (condition,) = grading.verdict.conditions
    cell = condition.cases[3].cells[1]
    case = condition.cases[3].model_copy(update={"cells": (cell.model_copy(update={"runs": cell.runs * 4}),)})
    verdict = grading.verdict.model_copy(update={"conditions": (condition.model_copy(update={"cases": (case,)}),)})
    assert "✓8 ✗4" in text_report([replace(grading, verdict=verdict)])


def test_json(grading: Grading) -> None:
    report = json_report([grading, refusal()], exit_code=2)
    check("report.json", report)
    assert report.isascii()
    assert all(char.isprintable() or char == "\n" for char in report)
    parsed = json.loads(report)
    assert parsed["verdict"] == "false"
    assert [cell["verdict"] for cell in parsed["submissions"][0]["cells"]].count("undetermined") == 3
    assert parsed["submissions"][1]["refused"]["code"] == "submission.refused"


def test_jsonl_is_a_line_a_submission(grading: Grading) -> None:
    lines = jsonl_report([grading, refusal()]).splitlines()
    assert [json.loads(line)["submission"] for line in lines] == ["main.py", "bomb.zip"]


def test_junit(grading: Grading) -> None:
    report = junit_report([grading, refusal()])
    check("report.xml", report)
    suite, refused = ET.fromstring(report.encode()).findall("testsuite")
    counted = {kind: len(suite.findall(f"testcase/{kind}")) for kind in ("failure", "error", "skipped")}
    assert counted == {"failure": 4, "error": 2, "skipped": 1}
    assert {kind: int(suite.get(name) or -1) for kind, name in
            (("failure", "failures"), ("error", "errors"), ("skipped", "skipped"))} == counted  # fmt: skip
    assert suite.get("tests") == "10" == str(len(suite.findall("testcase")))
    assert refused.find("testcase/error") is not None


def test_markdown(grading: Grading) -> None:
    check("report.md", markdown_report([grading, refusal()], exit_code=2))


def test_show(grading: Grading) -> None:
    chosen = [*find_rows(grading, "hostile"), *find_rows(grading, "conc/*"), *find_rows(grading, "4")]
    check("show.txt", show_report(grading, chosen))


def test_cases_are_found_by_name_number_pattern_and_part(grading: Grading) -> None:
    def labels(wanted: str) -> list[str]:
        return [row.label for row in find_rows(grading, wanted)]

    assert labels("good") == ["good"]
    assert labels("case 4") == ["case 4"] == labels("4")
    assert labels("*/*") == ["io/crlf", "conc/two-writers"]
    assert labels("GOO") == ["good"]
    assert labels("nothing") == []


def test_hostile_output_never_reaches_a_report_raw(grading: Grading) -> None:
    everything = find_rows(grading, "*")
    for report in (
        text_report([grading]),
        show_report(grading, everything),
        junit_report([grading]),
        markdown_report([grading]),
        json_report([grading]),
    ):
        assert not {"\x1b", "\x07", "\x00", "\r", "\u202e"} & set(report)


def test_a_verdict_that_is_true_needs_no_case_lines(grading: Grading) -> None:
    (condition,) = grading.verdict.conditions
    good = condition.model_copy(update={"cases": condition.cases[:1], "value": Tri.TRUE})
    verdict = grading.verdict.model_copy(update={"conditions": (good,), "value": Tri.TRUE})
    report = text_report([replace(grading, verdict=verdict, record=None)], exit_code=0)
    first, last = report.splitlines()
    assert first == "1 case is true in every run (--all lists them)"
    assert last.startswith("TRUE    cases 1: ✓ 1")
