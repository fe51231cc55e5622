"""The benchmarks run: one command, a table with bars, JSON. How fast it is, is told by no test."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("part", ["single_run", "client_cost", "replay_cost", "sizes", "traced_run", "capture_cost"])
def test_a_benchmark_runs_and_says_how_it_stands(part: str, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--only", part, "--json", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=800)
    assert done.returncode in {0, 1}, done.stderr  # 1: a bar was missed, which a busy machine may well do
    found = json.loads(file.read_text())
    assert found["facts"]["quick"] is True
    assert [measure["name"] for measure in found["measures"][part]]
    for measure in found["measures"][part]:
        assert measure["name"] in done.stdout
        assert measure["value"] > 0
