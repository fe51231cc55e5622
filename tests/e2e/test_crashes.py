"""kill -9 at any moment: what ended is readable, resuming completes it, and the next start removes what was left."""

from __future__ import annotations

import json
import random
import re
import signal
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import Grader
from tests.e2e.crashes import Process, becomes, containers_of, left_in_runtime_folder, no_process_stays, write_task
from tests.e2e.recorded import endings, recorded_runs

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures(no_process_stays.__name__)]

NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}
CASES = 4
REPETITIONS = 4
RUNS = CASES * REPETITIONS
PLAN = "repetitions × 1 profile"
LONGEST_S = 15  # of waiting for a moment, however slow the machine is


def grade(folder: Path) -> Process:
    return Process(folder, "run", "task.yaml", "main.sh", "--record", "record", TMPDIR=str(folder / "tmp"))


def usual_times_s(folder: Path) -> tuple[float, float]:
    """How long it takes here and now: until the first run is about to begin, and from then to the end."""
    start = time.monotonic()
    process = grade(folder)
    process.wait_for(PLAN)
    planned = time.monotonic()
    assert process.end() == 0, process.err
    (folder / "record").rename(folder / "first-record")
    return min(planned - start, LONGEST_S), min(time.monotonic() - planned, LONGEST_S)


def check_after_kill(folder: Path, killed: Process, grader: Grader) -> str:
    """What must hold after a kill; a word on how far it had come."""
    runtime = {"GRADER_RUNTIME_DIR": str(folder / "runtime")}
    told = re.findall(r"^✓ (\w+)", killed.err, re.MULTILINE)
    has_begun = (folder / "record" / "record.json").exists()
    if has_begun:
        seen = endings(folder / "record")
        assert all(seen[name] == {"exited(0)": REPETITIONS} for name in told), (told, seen)
        replayed = grader("replay", "record", **NO_ENGINE)
        assert replayed.code in {0, 2, 3}, replayed.err  # 2: it was killed before the submission was written down
        resumed = grader("run", "--resume", "record", **runtime)
        if resumed.code == 2:
            assert not seen
            assert "grader run TASK SUBMISSION" in resumed.err
            resumed = grader("run", "task.yaml", "main.sh", "--resume", "record", **runtime)
        before = sum(sum(counts.values()) for counts in seen.values())
    else:
        assert not told
        resumed = grader("run", "task.yaml", "main.sh", "--record", "record", **runtime)
        before = 0
    assert resumed.code == 0, resumed.err
    runs = list(recorded_runs(folder / "record"))
    assert sorted(run.planned.index for run in runs) == list(range(RUNS))  # each once: none lost, none run again
    assert {run.ending for run in runs} == {"exited(0)"}
    assert becomes(lambda: not containers_of(killed.pid)), "a container stayed"
    assert left_in_runtime_folder(folder) == []
    assert list((folder / "record" / "blobs").glob(".writing-*")) == []
    return f"{before} of {RUNS} runs ended" if has_begun else "before the record began"


@pytest.mark.parametrize("moments", [3, pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
def test_kill_9_at_random_moments(grader: Grader, tmp_path: Path, moments: int) -> None:
    write_task(tmp_path, REPETITIONS)
    (tmp_path / "tmp").mkdir()
    before_s, after_s = usual_times_s(tmp_path)
    chosen = random.Random(moments)
    for moment in range(moments):
        process = grade(tmp_path)
        # Every fourth before the first run; spread over the time there is, so that a few moments meet all of it too.
        is_early = moment % 4 == 0
        if not is_early:
            process.wait_for(PLAN)
        delay_s = (before_s if is_early else after_s) * (moment + chosen.random()) / moments
        time.sleep(delay_s)
        process.signal(signal.SIGKILL)
        assert process.end() in {-signal.SIGKILL, 0}
        when = "start" if is_early else "plan"
        print(f"{delay_s:6.3f} s after the {when}: {check_after_kill(tmp_path, process, grader)}")
        (tmp_path / "record").rename(tmp_path / f"record-{moment}")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_kill_9_while_a_run_is_on_removes_its_box_at_once(grader: Grader, tmp_path: Path) -> None:
    write_task(tmp_path, REPETITIONS)
    process = grade(tmp_path)
    process.wait_for("quick")
    assert containers_of(process.pid)
    process.signal(signal.SIGKILL)
    process.end()
    assert becomes(lambda: not containers_of(process.pid))  # before any other grader has started
    check_after_kill(tmp_path, process, grader)


def test_a_record_that_is_being_written_is_refused_and_one_whose_writer_is_dead_is_not(
    grader: Grader, tmp_path: Path
) -> None:
    write_task(tmp_path, 100)  # long enough that the second grader comes while the first still writes
    process = grade(tmp_path)
    process.wait_for("quick")
    refused = grader("run", "--resume", "record", GRADER_RUNTIME_DIR=str(tmp_path / "runtime"))
    assert refused.code == 2
    assert "another grader is writing this record" in refused.err
    process.signal(signal.SIGKILL)
    process.end()
    ended = grader("run", "--resume", "record", "--format", "json", GRADER_RUNTIME_DIR=str(tmp_path / "runtime"))
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["submissions"][0]["verdict"] == "true"
