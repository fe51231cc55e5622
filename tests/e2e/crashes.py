"""A grader as a process that tests kill, and what it left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.e2e.conftest import COMMAND, WITHIN_S, environment

TASK = """\
runtime_profiles: [bash]
conditions:
  - condition_type: program_behaves
    repetitions: {repetitions}
    cases:
      - {{name: quick, arguments: ["0.01"], stdout: {{equals: "right\\n"}}}}
      - {{name: slower, arguments: ["0.03"], stdout: {{equals: "right\\n"}}}}
      - {{name: memory, arguments: ["0.02"], limits: {{memory_bytes: 64 MiB}}, stdout: {{equals: "right\\n"}}}}
      - {{name: large, arguments: ["0", "300000"], stdout: {{contains: "right\\n"}}}}
"""
PROGRAM = "sleep $1\necho right\n[ -z $2 ] || head -c $2 /dev/zero | tr '\\0' x\n"


def write_task(folder: Path, repetitions: int = 4) -> None:
    """A task of 4 x `repetitions` short runs, and the program that gets them right."""
    (folder / "task.yaml").write_text(TASK.format(repetitions=repetitions))
    (folder / "main.sh").write_text(PROGRAM)


_started: list[Process] = []


@pytest.fixture(autouse=True)
def no_process_stays() -> Generator[None]:
    """Import it: whatever fails, the processes of a test end with it."""
    yield
    while _started:
        process = _started.pop().process
        process.kill()
        process.communicate(timeout=30)


class Process:
    """`grader` with these arguments, started in a folder, in a runtime folder of the test's own."""

    def __init__(self, folder: Path, *arguments: str, **changes: str) -> None:
        changes.setdefault("GRADER_RUNTIME_DIR", str(folder / "runtime"))
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], cwd=folder, env=environment(folder, **changes),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.out = self.err = ""
        _started.append(self)

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait_for(self, text: str) -> None:
        """Read stderr up to the line with this text."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.err += line
            if text in line:
                return
        raise AssertionError(f"{text!r} never came:\n{self.err}")

    def end(self, within_s: float = WITHIN_S) -> int:
        """Wait for the end; the exit code (minus the number of a signal that killed it)."""
        try:
            out, err = self.process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate(timeout=30)
            raise AssertionError(f"it did not end in time:\n{err}") from None
        self.out += out
        self.err += err
        return self.process.returncode


def containers(label: str) -> list[str]:
    """The ids of all containers with a label, whatever their state."""
    command = ["docker", "ps", "-aq", "--no-trunc", "--filter", f"label={label}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()


def containers_of(pid: int) -> list[str]:
    """The ids of the containers that a grader owns."""
    return containers(f"grader.owner.pid={pid}")


def becomes(condition: Callable[[], bool], within_s: float = 20) -> bool:
    """Whether a condition becomes true in time."""
    end_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.05)
    return True


def left_in_runtime_folder(folder: Path) -> list[str]:
    """Files of the runtime folder that are not lock files, which stay."""
    runtime = folder / "runtime"
    return sorted(name for name in os.listdir(runtime) if not name.endswith(".lock")) if runtime.is_dir() else []
