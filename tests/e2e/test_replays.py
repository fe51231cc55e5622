"""Replay: the same verdict as the run, to the byte, without an engine; another expectation only over the same runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import EXAMPLES, Grader

pytestmark = pytest.mark.docker

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
KINDS = {
    "good": (EXAMPLES / "rot13", 0),
    "wrong": (EXAMPLES / "rot13", 1),
    "flaky": (EXAMPLES / "word-order", 3),
}


def judged(text: str) -> Any:
    """What a JSON report says of verdicts: all of it but times and where the record is."""
    report = json.loads(text)
    (submission,) = report["submissions"]
    for part in (submission, *submission["cells"]):
        part.pop("wall_time_s", None)
    return {"exit_code": report["exit_code"], **{k: v for k, v in submission.items() if k not in {"record", "replay"}}}


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_says_what_the_run_said_wherever_it_is_made(grader: Grader, tmp_path: Path, kind: str) -> None:
    task, code = KINDS[kind]
    ran = grader("run", task, task / "submissions" / f"{kind}.py", "--record", "record", "--format", "json")
    assert ran.code == code, ran.err
    kept = {path: path.read_bytes() for path in (tmp_path / "record").rglob("*") if path.is_file()}
    for word in ("json", "text"):
        here = grader("replay", "record", "--format", word)
        without_engine = grader("replay", "record", "--format", word, **NO_ENGINE)
        assert here.code == without_engine.code == code
        assert here.out == without_engine.out
        if word == "json":
            replayed = judged(here.out)
            assert {key: replayed[key] for key in ("exit_code", "verdict", "cells")} == {
                key: judged(ran.out)[key] for key in ("exit_code", "verdict", "cells")
            }
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    shutil.copytree(tmp_path / "record", elsewhere / "copy")
    moved = grader("replay", elsewhere / "copy", "--format", "json", **NO_ENGINE)
    assert judged(moved.out) == judged(grader("replay", "record", "--format", "json").out)
    assert {path: path.read_bytes() for path in (tmp_path / "record").rglob("*") if path.is_file()} == kept


CASE = """\
runtime_profiles: [bash]
limits: {{cpu_time_s: {cpu}}}
conditions:
  - condition_type: program_behaves
    repetitions: {repetitions}
    cases: [{{name: it, stdin: "{stdin}", stdout: {{equals: "{stdout}"}}}}]
"""
SAME: dict[str, Any] = {"cpu": 5, "repetitions": 2, "stdin": "a", "stdout": "a"}


def test_another_expectation_is_judged_over_the_same_runs_and_other_runs_are_refused(
    grader: Grader, tmp_path: Path
) -> None:
    (tmp_path / "task.yaml").write_text(CASE.format(**SAME))
    (tmp_path / "main.sh").write_text("cat\n")
    assert grader("run", "task.yaml", "main.sh").code == 0
    for change, code, said in (
        ({"stdout": "b"}, 1, 'expected "b'),
        ({"stdin": "b", "stdout": "b"}, 2, "stdin"),
        ({"repetitions": 3}, 2, "repetitions"),
        ({"repetitions": 1}, 2, "repetitions"),
        ({"cpu": 4}, 2, "cpu_time"),
    ):
        (tmp_path / "other.yaml").write_text(CASE.format(**{**SAME, **change}))
        ended = grader("replay", "--task", "other.yaml", **NO_ENGINE)
        assert ended.code == code, (change, ended.err, ended.out)
        assert said in ended.out + ended.err, (change, ended.err, ended.out)
        assert "Traceback" not in ended.err
    assert grader("replay", **NO_ENGINE).code == 0
