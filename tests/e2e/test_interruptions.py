"""SIGINT and SIGTERM at any moment, impatience, and two graders side by side."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from grader.store import open_record
from tests.e2e.conftest import Grader
from tests.e2e.crashes import Process, becomes, containers_of, left_in_runtime_folder, no_process_stays, write_task
from tests.e2e.recorded import recorded_runs

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures(no_process_stays.__name__)]

SLOW_TO_COMPILE = "#define A(x) x x x x x x x x x x\nint f(int n) { A(A(A(A(A(n = n * 7 + (n >> 3);))))) return n; }\n"
SLEEPS = "echo begun; sleep $1; echo right\n"


def one_case(profile: str, case: str, repetitions: int = 1) -> str:
    head = f"runtime_profiles: [{profile}]\nconditions:\n  - condition_type: program_behaves\n"
    return f"{head}    repetitions: {repetitions}\n    cases:\n      - {{{case}}}\n"


def check_interrupted(folder: Path, process: Process, number: signal.Signals) -> None:
    """Ended by the signal's own code, with nothing left behind, and what it says about going on is true."""
    assert process.end() == 128 + number, process.err
    assert "Traceback" not in process.err
    assert process.err.count("stopping:") == 1
    assert containers_of(process.pid) == []
    assert left_in_runtime_folder(folder) == []
    if "interrupted before the first run" in process.err:
        assert not (folder / "record" / "record.json").exists()
    else:
        assert "To go on: grader run task.yaml" in process.err
        open_record(folder / "record")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_while_it_compiles(grader: Grader, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "task.yaml").write_text(one_case("c", "exit_code: any"))
    (tmp_path / "main.c").write_text(SLOW_TO_COMPILE + "int main(void) { return f(3); }\n")
    process = Process(tmp_path, "run", "task.yaml", "main.c", "--record", "record")
    process.wait_for("1 case")
    assert becomes(lambda: any(is_running(box, "cc1") for box in containers_of(process.pid)))
    process.signal(number)
    check_interrupted(tmp_path, process, number)
    (entry,) = open_record(tmp_path / "record")
    assert (list(entry.payload.compiles), list(entry.runs)) == ([], [])


def is_running(container: str, name: str) -> bool:
    """Whether a process of this name runs in a container."""
    done = subprocess.run(
        ["docker", "top", container, "-eo", "pid,comm"], capture_output=True, text=True, timeout=60, check=False
    )
    return name in done.stdout.split()


def test_while_an_image_is_built(tmp_path: Path) -> None:
    profile = "language: bash\nsuffixes: [.sh]\nimage: {dockerfile: sleeps}\nrun: [bash, '{entry}']\n"
    folder = tmp_path / "runtimes"
    images = tmp_path / "Dockerfiles" / "sleeps"
    images.mkdir(parents=True)
    folder.mkdir()
    (folder / "sleeps.yaml").write_text(profile)
    unique = f"{os.getpid()}.{time.monotonic_ns() % 10**9}"  # no image has this step yet
    (images / "Dockerfile").write_text(
        f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {unique}\nRUN sleep 300.{unique}\n"
    )
    (tmp_path / "task.yaml").write_text(one_case("sleeps", 'arguments: ["0"]'))
    (tmp_path / "main.sh").write_text(SLEEPS)
    process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record", "--runtimes", "runtimes")
    process.wait_for("sleep 300")
    assert becomes(lambda: bool(build_steps(unique)))
    process.signal(signal.SIGTERM)
    check_interrupted(tmp_path, process, signal.SIGTERM)
    assert becomes(lambda: not build_steps(unique)), "the build goes on, or its container stayed"
    assert becomes(lambda: not images_with(unique)), "steps of the build stayed"


def build_steps(unique: str) -> list[str]:
    """Containers of build steps whose command has this text."""
    command = ["docker", "ps", "-a", "--no-trunc", "--format", "{{.ID}} {{.Command}}"]
    lines = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    return [line for line in lines if unique in line]


def images_with(unique: str) -> list[str]:
    """Images that a step with this text made."""
    ids = subprocess.run(["docker", "images", "-aq"], capture_output=True, text=True, timeout=60, check=True).stdout
    found: list[str] = []
    for image in set(ids.split()):
        command = ["docker", "history", "--no-trunc", "--format", "{{.CreatedBy}}", image]
        history = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
        found += [image] if unique in history else []
    return found


@pytest.mark.parametrize("delay_s", [0.0, 0.1, 0.3])
def test_while_the_first_box_opens(tmp_path: Path, delay_s: float) -> None:
    write_task(tmp_path)
    process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record")
    process.wait_for("repetitions")
    time.sleep(delay_s)
    process.signal(signal.SIGINT)
    check_interrupted(tmp_path, process, signal.SIGINT)


@pytest.mark.parametrize("delay_s", [0.0, 0.3, 0.8, 1.6])
def test_while_it_starts(tmp_path: Path, delay_s: float) -> None:
    """Before it listens to signals too: then it ends as any program does, and there is nothing to keep."""
    write_task(tmp_path)
    process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record")
    time.sleep(delay_s)
    process.signal(signal.SIGTERM)
    assert process.end() in {143, -signal.SIGTERM}, process.err
    assert "Traceback" not in process.err
    assert containers_of(process.pid) == []
    assert left_in_runtime_folder(tmp_path) == []


def test_while_large_outputs_are_written_nothing_that_ended_is_lost(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(one_case("bash", 'stdout: {contains: "\\n"}', repetitions=200))
    (tmp_path / "main.sh").write_text(
        "head -c 3000000 /dev/urandom; echo\n"
    )  # never twice the same: each a blob of its own
    process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record")
    process.wait_for("repetitions")
    assert becomes(lambda: len(list((tmp_path / "record" / "blobs").glob("[0-9a-f]*"))) > 3, within_s=60)
    process.signal(signal.SIGINT)
    check_interrupted(tmp_path, process, signal.SIGINT)
    runs = list(recorded_runs(tmp_path / "record"))
    assert 3 <= len(runs) < 200
    assert all(len(run.stdout) == 3_000_001 for run in runs)
    assert grader("replay", "record").code == 3


def test_impatience_leaves_at_once_and_the_next_start_cleans_up(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(one_case("bash", 'arguments: ["60"]'))
    (tmp_path / "main.sh").write_text(SLEEPS)
    for presses in (2, 3):
        process = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", f"record-{presses}")
        process.wait_for("1 case")
        assert becomes(lambda pid=process.pid: bool(containers_of(pid)))
        start = time.monotonic()
        for _ in range(presses):
            process.signal(signal.SIGINT)
            time.sleep(0.02)  # two that come at the same moment are one
        assert process.end() == 130, process.err
        assert time.monotonic() - start < 45  # and not the program's 60 s
        assert "Traceback" not in process.err
        assert grader("clean", GRADER_RUNTIME_DIR=str(tmp_path / "runtime")).code == 0
        assert becomes(lambda pid=process.pid: not containers_of(pid))
        open_record(tmp_path / f"record-{presses}")


def test_two_graders_leave_each_others_boxes_alone(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(one_case("bash", 'arguments: ["6"], stdout: {contains: "right"}'))
    (tmp_path / "main.sh").write_text(SLEEPS)
    write_task(tmp_path / "other" if (tmp_path / "other").mkdir() is None else tmp_path, 1)
    runtime = str(tmp_path / "runtime")
    first = Process(tmp_path, "run", "task.yaml", "main.sh", "--record", "record", GRADER_RUNTIME_DIR=runtime)
    first.wait_for("1 case")
    assert becomes(lambda: bool(containers_of(first.pid)))
    box = containers_of(first.pid)
    swept = grader("clean", GRADER_RUNTIME_DIR=runtime)
    assert "removed 0 boxes of dead graders" in swept.err or box == containers_of(first.pid)
    second = Process(tmp_path / "other", "run", "task.yaml", "main.sh", GRADER_RUNTIME_DIR=runtime)
    assert second.end() == 0, second.err  # it has opened, swept, run and closed while the first went on
    assert first.end() == 0, first.err
    (run,) = recorded_runs(tmp_path / "record")
    assert (run.ending, run.record.attempt) == ("exited(0)", 1)


def test_two_graders_share_the_slots(tmp_path: Path) -> None:
    """On one CPU, two graders' runs take turns: no two are on at the same time."""
    program = "import time\nbegin = time.monotonic_ns()\ntime.sleep(0.05)\nprint(begin, time.monotonic_ns())\n"
    processes: list[Process] = []
    cpus = os.sched_getaffinity(0)
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "task.yaml").write_text(one_case("python", 'stdout: {contains: " "}', repetitions=15))
        (folder / "main.py").write_text(program)
        os.sched_setaffinity(0, {min(cpus)})
        try:
            processes.append(
                Process(
                    folder, "run", "task.yaml", "main.py", "--record", "record", "--format", "json",
                    GRADER_RUNTIME_DIR=str(tmp_path / "runtime"),
                )
            )  # fmt: skip
        finally:
            os.sched_setaffinity(0, cpus)
    for process in processes:
        assert process.end() == 0, process.err
        assert json.loads(process.out)["submissions"][0]["verdict"] == "true"
    spans = sorted(
        tuple(int(number) for number in run.stdout.split())
        for name in ("one", "two")
        for run in recorded_runs(tmp_path / name / "record")
    )
    assert len(spans) == 30
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
