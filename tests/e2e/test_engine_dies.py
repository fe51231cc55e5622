"""An engine that dies or is restarted in the middle of runs: they are missing, never false; resuming completes them."""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.e2e.conftest import Grader
from tests.e2e.crashes import Process, no_process_stays
from tests.e2e.recorded import endings, recorded_runs
from tests.e2e.second_engine import SecondEngine, second_engine

pytestmark = [
    pytest.mark.docker,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.usefixtures(no_process_stays.__name__),
]
REPETITIONS = 12
TASK = f"""\
runtime_profiles: [bash]
limits: {{wall_time_s: 60}}
conditions:
  - condition_type: program_behaves
    repetitions: {REPETITIONS}
    cases:
      - {{name: first, stdout: {{equals: "right\\n"}}}}
      - {{name: second, stdout: {{equals: "right\\n"}}}}
"""
OURS = {"engine.unreachable", "box.lost", "supervisor.lost"}


@pytest.fixture(scope="module")
def engine() -> Generator[SecondEngine]:
    # Not pytest's own folder: a socket's path must be short.
    with tempfile.TemporaryDirectory(prefix="engine-") as folder, second_engine(Path(folder) / "e") as engine:
        engine.load_images_of("bash")
        yield engine


@pytest.mark.parametrize("way", ["kill", "stop", "restart"])
def test_an_engine_that_goes_away_says_nothing_of_the_program(
    grader: Grader, tmp_path: Path, engine: SecondEngine, way: str
) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "main.sh").write_text("sleep 0.3; echo right\n")
    there = {"DOCKER_HOST": engine.address, "GRADER_RUNTIME_DIR": str(tmp_path / "runtime")}
    process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record", "-v", **there)
    process.wait_for("first")  # its last run has ended, and one of the second case is about to be on
    if way == "kill":
        engine.kill()
    else:
        engine.stop()
    if way == "restart":
        engine.start()
    code = process.end()
    seen = endings(tmp_path / "record")
    print(way, seen, process.err[-600:])
    assert code in {0, 3}, process.err
    assert seen["first"]["exited(0)"] == REPETITIONS
    assert set(seen["second"]) <= {"exited(0)", *OURS}
    if way != "restart":
        assert code == 3
        assert set(seen["second"]) & OURS
        assert grader("replay", "record", DOCKER_HOST="unix:///nonexistent/docker.sock").code == 3
        again = grader("run", "--resume", "record", **there)
        assert again.code == 4, again.err
        assert "no Docker engine answers" in again.err
        engine.start()
    resumed = grader("run", "--resume", "record", **there)
    assert resumed.code == 0, resumed.err
    right = [run.planned.index for run in recorded_runs(tmp_path / "record") if run.ending == "exited(0)"]
    assert sorted(right) == list(range(2 * REPETITIONS))
    assert engine.docker("ps", "-aq").stdout == ""
