"""The command line as a process: exit codes, streams, signals, start-up time; with a real engine where it says so."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, EXAMPLES, WITHIN_S, Grader, environment

ROT13 = EXAMPLES / "rot13"
WORDS = EXAMPLES / "word-order"
NO_ENGINE = {"DOCKER_HOST": "unix:///nonexistent/docker.sock"}


def containers_of(pid: int) -> list[str]:
    command = ["docker", "ps", "-aq", "--filter", f"label=grader.owner.pid={pid}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.split()


@pytest.mark.docker
def test_good_wrong_and_flaky_are_0_1_and_3_and_replay_without_an_engine_says_the_same(grader: Grader) -> None:
    for task, word, code in ((ROT13, "good", 0), (ROT13, "wrong", 1), (WORDS, "flaky", 3)):
        ended = grader("run", task, task / "submissions" / f"{word}.py")
        assert ended.code == code, ended.err
        assert ended.out.splitlines()[-2].endswith(f"exit {code}")
        replayed = grader("replay", **NO_ENGINE)
        assert replayed.code == code
        assert replayed.out.splitlines()[:-2] == ended.out.splitlines()[:-2]


@pytest.mark.docker
def test_results_are_alone_on_stdout(grader: Grader) -> None:
    ended = grader("run", ROT13, ROT13 / "submissions" / "wrong.py", "--format", "json")
    assert json.loads(ended.out)["exit_code"] == ended.code == 1
    assert "4 cases × 3 repetitions × 1 profile = 12 runs" in ended.err
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.docker
def test_hostile_output_and_names(grader: Grader, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(
        "runtime_profiles: [python]\nconditions:\n  - condition_type: program_behaves\n"
        '    cases: [{name: "\\e[2J<&\\u202e", stdout: {equals: a}}]\n'
    )
    (tmp_path / "main.py").write_text(
        "import sys\nsys.stdout.buffer.write(bytes(range(256)))\nsys.stderr.buffer.write(b'\\x1b]0;owned\\x07\\n')\n"
    )
    for arguments in (
        ("run", "task.yaml", "main.py"), ("show", "latest", "0"), ("replay", "--format", "junit"),
        ("replay", "--format", "markdown"), ("replay", "--format", "json"),
    ):  # fmt: skip
        ended = grader(*arguments)
        assert ended.code == (0 if arguments[0] == "show" else 1), ended.err
        assert not {"\x1b", "\x07", "\x00", "\x7f", "\x9b", "\u202e"} & set(ended.out + ended.err)


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_removes_boxes_and_keeps_the_record(grader: Grader, tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "task.yaml").write_text(
        "runtime_profiles: [python]\nlimits: {cpu_time_s: 5, wall_time_s: 20}\nconditions:\n"
        "  - condition_type: program_behaves\n    cases:\n"
        '      - {name: quick, arguments: ["0"], stdout: {equals: ""}}\n'
        '      - {name: slow, arguments: ["15"], stdout: {equals: ""}}\n'
    )
    (tmp_path / "main.py").write_text("import sys, time\ntime.sleep(float(sys.argv[1]))\n")
    process = subprocess.Popen(
        [*COMMAND, "run", "task.yaml", "main.py", "-j", "1"], cwd=tmp_path, env=environment(tmp_path),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "quick" in line:
            break
    assert len(containers_of(process.pid)) >= 1
    process.send_signal(number)
    _, err = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 128 + number
    assert "To go on: grader run task.yaml main.py -j 1 --resume .grader/records/" in err
    assert containers_of(process.pid) == []
    replayed = grader("replay", "--format", "json", **NO_ENGINE)
    assert replayed.code == 3
    assert [cell["verdict"] for cell in json.loads(replayed.out)["submissions"][0]["cells"]] == ["true", "undetermined"]


def test_no_engine_is_4_with_the_mend(grader: Grader) -> None:
    ended = grader("run", ROT13, ROT13 / "submissions" / "good.py", **NO_ENGINE)
    assert (ended.code, ended.out) == (4, "")
    assert "no Docker engine answers at unix:///nonexistent/docker.sock" in ended.err
    assert "mend: " in ended.err


def test_nothing_selected_is_5(grader: Grader) -> None:
    assert grader("run", ROT13, ROT13 / "submissions" / "good.py", "-k", "nosuch", **NO_ENGINE).code == 5


GOOD = "conditions: [{condition_type: program_behaves, cases: [{stdout: {equals: a}}]}]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2\n" + GOOD, "task.yaml:2:1: the key 'a' stands here for the second time"),
        ("a: &a [x]\nb: [" + "*a, " * 21 + "]\n" + GOOD, "task.yaml:2:85: more than 20 aliases"),
        (GOOD.replace("equals: a", "equals: 5"), "task.yaml:1:74: equals: expected text in quotes, not the number 5"),
        ("conditions: [{condition_type: program_behaves, cases: []}]\n", "task.yaml:1:55: no cases"),
        (GOOD.replace("program_behaves", "program_behave"), "task.yaml:1:31: unknown condition_type 'program_behave'"),
        ("limits: {cpu_time_s: 0}\n" + GOOD, "task.yaml:1:22: cpu_time_s: a limit must be greater than 0, not 0"),
        ("limits: {cpu_time_s: -1}\n" + GOOD, "task.yaml:1:22: cpu_time_s: a limit must be greater than 0, not -1"),
        ("limits: {cpu_time_s: .nan}\n" + GOOD, "task.yaml:1:22: cpu_time_s: a limit must be a finite number"),
        (GOOD.replace("equals: a", "equals: {file: ../x}"), "task.yaml:1:81: '../x' leaves the task's folder"),
    ],
)
def test_a_bad_task_is_2_with_its_place(grader: Grader, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "task.yaml").write_text(text)
    (tmp_path / "main.py").write_text("print()")
    ended = grader("run", "task.yaml", "main.py", **NO_ENGINE)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert said in grader("lint", "task.yaml").out


@pytest.mark.docker
@pytest.mark.parametrize("text", ["runtime_profiles: [nosuch]\n", "limits: {cpu_time_s: 100000}\n"])
def test_profiles_and_their_maxima_are_2(grader: Grader, tmp_path: Path, text: str) -> None:
    (tmp_path / "task.yaml").write_text(text + GOOD)
    (tmp_path / "main.py").write_text("print()")
    ended = grader("run", "task.yaml", "main.py")
    assert (ended.code, ended.out) == (2, "")
    assert "error: " in ended.err
    assert "mend: " in ended.err


def test_help_is_quick(grader: Grader) -> None:
    times: list[float] = []
    for _ in range(3):
        start = time.monotonic()
        assert grader("--help").code == 0
        times.append(time.monotonic() - start)
    command = [COMMAND[0], "-X", "importtime", "-c", "import grader.cli.app"]
    modules = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr
    # The time itself depends on the machine; what must never be loaded for it does not.
    for heavy in ("pydantic", "docker", "anyio", "rich", "yaml", "psutil"):
        assert f" {heavy}\n" not in modules, f"grader --help imports {heavy}"
    assert min(times) < 2
