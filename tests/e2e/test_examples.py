"""Every submission of every example gets the verdict and the reason that its expected.yaml says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from grader.yaml_source import load
from tests.e2e.conftest import EXAMPLES, Grader

AGENTS = {EXAMPLES / "book-flight"}
"""Examples of agent programs, whose image is larger than others: see test_book_flight.py."""
FOLDERS = sorted(
    file.parent
    for file in EXAMPLES.glob("*/expected.yaml")
    if not (file.parent / "traces").exists() and file.parent not in AGENTS
)
SCORED = {file.parent for file in EXAMPLES.glob("*/traces")}
"""Examples of agents, whose traces are scored: see test_score.py."""


def expected(folder: Path) -> dict[str, dict[str, str]]:
    return cast("dict[str, dict[str, str]]", load((folder / "expected.yaml").read_bytes(), "expected.yaml").value)


def test_there_are_four_at_least_and_none_is_forgotten() -> None:
    assert len(FOLDERS) >= 4
    assert {file.parent for file in EXAMPLES.glob("*/task.yaml")} == {*FOLDERS, *SCORED, *AGENTS}
    assert {EXAMPLES / "send-after-confirm"} == SCORED
    for folder in FOLDERS:
        assert {path.name for path in (folder / "submissions").iterdir()} == set(expected(folder))


@pytest.mark.docker
@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_verdict_and_reason_of_every_submission(grader: Grader, folder: Path) -> None:
    assert grader("lint", folder).out == f"ok: {folder}\n"
    ended = grader("run", folder, "--each", folder / "submissions", "--format", "json", "-o", "report.xml")
    report = cast("dict[str, Any]", json.loads(ended.out))
    found = {entry["submission"]: _verdict_and_reason(entry) for entry in report["submissions"]}
    assert found == expected(folder), ended.err
    assert ended.code == report["exit_code"] == 1
    replayed = grader("replay", "--format", "json", DOCKER_HOST="unix:///nonexistent")
    assert [entry["verdict"] for entry in json.loads(replayed.out)["submissions"]] == [
        entry["verdict"] for entry in sorted(report["submissions"], key=lambda entry: _place(replayed.out, entry))
    ]


def _verdict_and_reason(entry: dict[str, Any]) -> dict[str, str]:
    reasons = {"reason": entry["reasons"][0]} if entry["reasons"] else {}
    return {"verdict": entry["verdict"], **reasons}


def _place(replayed: str, entry: dict[str, Any]) -> int:
    """Submissions stand in a record in the order in which they were begun."""
    names = [other["submission"] for other in json.loads(replayed)["submissions"]]
    return names.index(entry["submission"])
