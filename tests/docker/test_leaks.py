"""After many runs nothing is left: no container, volume, network, descriptor, thread or file; memory stays flat."""

from __future__ import annotations

import gc
import os
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import psutil
import pytest

from grader.api import Runner
from grader.core.expectation import Task
from grader.core.tri import Tri
from grader.formats.task_file import load_task
from grader.runner.grading import Watcher
from grader.store import open_record
from grader.submission import Submission

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

MIB = 2**20
RUNS_EACH = 20


class Steps(Watcher):
    """Remembers whether an image was built."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def image_step(self, line: str) -> None:
        self.lines.append(line)


def docker_lines(*arguments: str) -> set[str]:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def on_the_engine() -> dict[str, set[str]]:
    """What this process has on the engine, and what nothing of grader's may ever add."""
    return {
        "containers": docker_lines("ps", "-aq", "--filter", f"label=grader.owner.pid={os.getpid()}"),
        "volumes": docker_lines("volume", "ls", "-q"),
        "networks": docker_lines("network", "ls", "-q"),
    }


def in_this_process() -> dict[str, set[str]]:
    threads = {thread.name for thread in threading.enumerate() if not thread.name.startswith("AnyIO worker")}
    files = {os.readlink(f"/proc/self/fd/{number}") for number in descriptors()}
    return {"threads": threads, "files": {file for file in files if not file.startswith(("anon_inode", "/proc/"))}}


def descriptors() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue  # that of the listing itself
        found.append(int(name))
    return found


async def submissions(task: Task, count: int) -> AsyncIterator[tuple[Task, Submission]]:
    for number in range(count):
        yield task, Submission.from_source(f"echo right # {number}\n", language="bash")


@pytest.mark.parametrize("runs", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
async def test_many_runs_in_shared_boxes_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: int
) -> None:
    (tmp_path / "task.yaml").write_text(
        "runtime_profiles: [bash]\nconditions:\n  - condition_type: program_behaves\n"
        f'    repetitions: {RUNS_EACH}\n    cases: [{{stdout: {{equals: "right\\n"}}}}]\n'
    )
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("GRADER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    task = load_task(tmp_path / "task.yaml")
    steps = Steps()
    async with Runner(
        isolation="shared", watcher=steps
    ) as runner:  # what is loaded, built or started once is not a leak
        await runner.grade(task, Submission.from_source("echo right\n", language="bash"))
    steps.lines.clear()
    gc.collect()
    engine_before, process_before, count_before = on_the_engine(), in_this_process(), len(descriptors())
    assert engine_before["containers"] == set()
    memory: list[int] = []
    verdicts: Counter[Tri] = Counter()
    async with Runner(isolation="shared", record=tmp_path / "record", watcher=steps) as runner:
        async with aclosing(runner.grade_many(submissions(task, runs // RUNS_EACH))) as many:
            async for graded in many:
                assert graded.verdict is not None
                verdicts[graded.verdict.value] += 1
                memory.append(psutil.Process().memory_info().rss)
        boxes = on_the_engine()["containers"]
        assert len(boxes) <= 2 * runner.max_parallel
    assert verdicts == {Tri.TRUE: runs // RUNS_EACH}
    assert sum(len(entry.runs) for entry in open_record(tmp_path / "record")) == runs
    gc.collect()
    engine_after, process_after = on_the_engine(), in_this_process()
    assert engine_after["containers"] == set()
    for kind in ("volumes", "networks"):
        assert engine_after[kind] - engine_before[kind] == set()
    for kind, before in process_before.items():
        assert process_after[kind] - before == set(), kind
    assert len(descriptors()) <= count_before
    assert list((tmp_path / "temporary").iterdir()) == []
    assert {path.suffix for path in (tmp_path / "runtime").iterdir()} == {".lock"}
    assert steps.lines == []  # and so no image
    early, late = max(memory[: len(memory) // 4 + 1]), max(memory)
    print(f"memory of the client: {early / MIB:.1f} MiB after a quarter, {late / MIB:.1f} MiB at most")
    assert late - early < 16 * MIB
