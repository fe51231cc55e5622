"""A judge asked about the runs of a program, with the command line, the real engine and a scripted judge over HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Grader
from tests.scripted_judge import Say, ScriptedJudge
from tests.unit.core.judging.samples import answer

pytestmark = pytest.mark.docker
TASK = """
runtime_profiles: [python]
conditions:
  - condition_type: program_behaves
    repetitions: 2
    cases:
      - {name: rude, stdin: "hello\\n"}
      - {name: kind, stdin: "please\\n"}
  - condition_type: meets_dimensions
    case: rude
    dimensions:
      - {name: rude, question: "Is the answer rude?"}
judge: {samples: 2}
"""
PROGRAM = "word = input()\nprint('Get lost.' if word == 'hello' else 'With pleasure.')\n"


def says(request: dict[str, Any]) -> Say:
    shown = str(request["messages"][1]["content"])
    is_rude = "Get lost." in shown
    return Say(json.dumps({"dimensions": {"rude": answer(is_rude, cites=["M2"] if is_rude else [])}}))


def test_runs_are_judged_and_replayed_without_the_judge(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "main.py").write_text(PROGRAM)
    assert grader("lint", "task.yaml").code == 0
    with ScriptedJudge(says) as server:
        named = {"GRADER_JUDGE_URL": server.url, "GRADER_JUDGE_MODEL": "scripted", "NO_PROXY": "127.0.0.1"}
        ended = grader("run", "task.yaml", "main.py", **named)
    assert ended.code == 1, ended.err
    assert len(server.requests) == 4, "two samples of each repetition of the one case"
    assert "✗ meets_dimensions  rude" in ended.out
    assert "rude  ✗✗  judge.violation" in ended.out
    replayed = grader("replay", "latest", DOCKER_HOST="unix:///nonexistent")
    assert replayed.code == 1
    assert "rude  ✗✗  judge.violation" in replayed.out
    shown = grader("show", "latest", "rude")
    assert "✗ meets_dimensions  rude  ✗✗" in shown.out


def test_without_a_judge_nothing_is_run(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "main.py").write_text(PROGRAM)
    ended = grader("run", "task.yaml", "main.py", GRADER_JUDGE_URL="", GRADER_JUDGE_MODEL="")
    assert ended.code in {2, 4}
    assert "GRADER_JUDGE_URL" in ended.err
    assert "runs" not in ended.out
