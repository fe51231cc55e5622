"""Where a record cannot be written: clear words, the right exit code, and nothing that ended is lost."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.conftest import Grader
from tests.e2e.recorded import recorded_runs

pytestmark = pytest.mark.docker

OUTPUT_BYTES = 500_000
REPETITIONS = 12
TASK = f"""\
runtime_profiles: [bash]
conditions:
  - condition_type: program_behaves
    repetitions: {REPETITIONS}
    cases: [{{stdout: {{contains: "\\n"}}}}]
"""
PROGRAM = f"head -c {OUTPUT_BYTES} /dev/urandom; echo\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 3 MiB: room for some of the runs."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m,mode=777", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, timeout=30, check=False).returncode != 0:
        pytest.skip("no disk can be mounted here: that needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], timeout=30, check=True)


@pytest.fixture(autouse=True)
def task(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "main.sh").write_text(PROGRAM)


def test_a_disk_that_gets_full_loses_nothing_that_ended_and_the_rest_can_be_run_later(
    grader: Grader, tmp_path: Path, small_disk: Path
) -> None:
    record = small_disk / "record"
    ended = grader("run", "task.yaml", "main.sh", "--record", record)
    assert ended.code == 4, ended.err
    assert "the record can no longer be written: No space left on device" in ended.err
    assert "mend: make room, then resume" in ended.err
    assert "Traceback" not in ended.err
    runs = list(recorded_runs(record))
    assert 2 <= len(runs) < REPETITIONS
    assert all(run.ending == "exited(0)" and len(run.stdout) == OUTPUT_BYTES + 1 for run in runs)
    replayed = grader("replay", record)
    assert replayed.code == 3, replayed.err
    still_full = grader("run", "--resume", record)
    assert still_full.code == 4, still_full.err
    assert len(list(recorded_runs(record))) >= len(runs)
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], timeout=30, check=True)
    resumed = grader("run", "--resume", record)
    assert resumed.code == 0, resumed.err
    assert sorted(run.planned.index for run in recorded_runs(record)) == list(range(REPETITIONS))


def test_a_disk_that_is_full_from_the_start_runs_nothing(grader: Grader, small_disk: Path) -> None:
    with suppress(OSError), open(small_disk / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    ended = grader("run", "task.yaml", "main.sh", "--record", small_disk / "record")
    assert ended.code == 4, ended.err
    assert "record cannot be written" in ended.err or "record can no longer be written" in ended.err
    assert "mend: " in ended.err
    assert "Traceback" not in ended.err


def test_a_folder_that_is_read_only_runs_nothing(grader: Grader, small_disk: Path) -> None:
    (small_disk / "readable").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], timeout=30, check=True)
    for record in (small_disk / "record", small_disk / "readable"):
        ended = grader("run", "task.yaml", "main.sh", "--record", record)
        assert ended.code == 4, ended.err
        assert "the record cannot be written: Read-only file system" in ended.err
        assert "mend: choose another folder" in ended.err
        assert "Traceback" not in ended.err
        assert ended.out == ""


def test_a_report_that_cannot_be_written_does_not_take_the_verdict_along(grader: Grader, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], timeout=30, check=True)
    ended = grader("run", "task.yaml", "main.sh", "-o", small_disk / "report.json")
    assert ended.code in {2, 4}, ended.err
    assert "report.json" in ended.err
    assert "Traceback" not in ended.err
    assert grader("replay").code == 0
