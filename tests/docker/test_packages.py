"""Every hostile program of tests/packages on the real engine: its verdict and reasons, a clean run, nothing left."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
import docker
import pytest

from grader import Graded, Runner, Submission, Task
from grader.core.observation import Observation, ProgramRuns
from grader.core.outcomes import BoxSeen
from grader.sandbox.base import ISOLATIONS, Isolation
from grader.sandbox.docker.engine import Engine
from grader.store import open_record

from .packages import PACKAGES, RUNTIMES, Entry, Expected, clean_run, entries, packages

pytestmark = pytest.mark.anyio
PORT_OF_THE_HOST = 47171
"""H03 tries to reach it."""
OURS = f"grader.owner.pid={os.getpid()}"
TRIES = 3
"""How often an entry is graded at most while all that comes of it is that this machine is too busy."""


@pytest.fixture
def listening() -> Generator[socket.socket]:
    """Listens on the loopback of the host, where no box may come."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(("127.0.0.1", PORT_OF_THE_HOST))
        listener.listen()
        listener.setblocking(False)
        yield listener


def test_the_packages_are_whole() -> None:
    numbers = {int(package.name[1:3]) for package in packages() if package.name[0] == "H"}
    elsewhere = {23, 39, 40, 41, 45, 50, 54}  # see docs/explanation/hostile-programs.md
    assert numbers | elsewhere == set(range(1, 55))
    assert numbers & elsewhere == set()


def test_the_document_names_every_entry_and_package() -> None:
    text = (PACKAGES.parents[1] / "docs" / "explanation" / "hostile-programs.md").read_text()
    missing = [f"H{number:02}" for number in range(1, 55) if f"| H{number:02} |" not in text]
    missing += [package.name for package in packages() if f"`{package.name}`" not in text]
    assert missing == []


@pytest.mark.docker
@pytest.mark.timeout(900)
async def test_the_first_program_of_each_package(listening: socket.socket, tmp_path: Path) -> None:
    await _check("submission", [entries(package)[0] for package in packages()], listening, tmp_path)


@pytest.mark.docker
async def test_the_network_of_every_run_is_in_its_record(tmp_path: Path) -> None:
    """What H03 asks for beside its verdict: a reader of the record sees that there was no network."""
    (entry,) = entries(PACKAGES / "H03-network")
    async with Runner(record=tmp_path / "record") as runner:
        graded = await runner.grade(entry.task, Submission.from_path(entry.submission))
    (recorded,) = open_record(tmp_path / "record")
    boxes = [run.outcome.box for run in recorded.runs if run.outcome is not None]
    assert boxes == [BoxSeen(interfaces=("lo",))] * 2
    assert graded.observation is not None
    assert _networks(graded.observation) == {("lo", 0)}
    command = [sys.executable, "-c", "from grader.cli.app import main; main()", "show", str(tmp_path / "record")]
    shown = await anyio.run_process(command)
    assert b"network     lo; no route\n" in shown.stdout


@pytest.mark.docker
@pytest.mark.timeout(300)
async def test_every_hostile_exporter(listening: socket.socket, tmp_path: Path) -> None:
    """What is sent to the trace endpoint passes through this process: each program of it is in the usual tests."""
    await _check("submission", entries(PACKAGES / "P34-hostile-exporters"), listening, tmp_path)


@pytest.mark.docker
@pytest.mark.timeout(300)
async def test_floods_of_spans_in_a_shared_box(listening: socket.socket, tmp_path: Path) -> None:
    """A flood leaves connections and memory behind if anything does, and the next submission gets the same box."""
    exporters = entries(PACKAGES / "P34-hostile-exporters")
    floods = [entry for entry in exporters if entry.submission.name.startswith("floods")]
    assert len(floods) == 3
    await _check("shared", floods, listening, tmp_path)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_every_program_of_every_package(isolation: Isolation, listening: socket.socket, tmp_path: Path) -> None:
    await _check(isolation, [entry for package in packages() for entry in entries(package)], listening, tmp_path)


async def _check(isolation: Isolation, chosen: Sequence[Entry], listening: socket.socket, folder: Path) -> None:
    async with _leaves_nothing() as boxes:
        wrong = await _grade_all(isolation, chosen, folder / "record")
    assert wrong == []
    assert boxes, "no box was ever seen"
    if isolation == "shared":
        assert len(boxes) < len(chosen), "boxes are to be shared"
    with pytest.raises(BlockingIOError):
        listening.accept()


async def _grade_all(isolation: Isolation, chosen: Sequence[Entry], record: Path) -> list[str]:
    """Grade all entries (where boxes are shared: each followed by a look at what it left); what is wrong, in words."""
    wrong: list[str] = []
    left = {entry.name: entry for entry in chosen}
    # One after the other where boxes are shared, so that the look gets the box of the program before it.
    at_once = 1 if isolation == "shared" else None
    async with Runner(isolation=isolation, runtimes=RUNTIMES, max_parallel=at_once, record=record) as runner:
        for attempt in range(TRIES):
            async for graded in runner.grade_many(_pairs(isolation, list(left.values()))):
                if _was_starved(graded) and attempt < TRIES - 1:
                    continue
                name = graded.submission_name
                entry = left.pop(name, None)
                expected = Expected("true") if entry is None else entry.by_isolation[isolation]
                wrong += _differences(name, graded, expected)
            if not left:
                break
    return wrong


def _pairs(isolation: Isolation, chosen: Sequence[Entry]) -> Generator[tuple[Task, Submission]]:
    for entry in chosen:
        yield entry.task, Submission.from_path(entry.submission, name=entry.name)
        if isolation == "shared":
            task, look = clean_run(entry)
            yield task, Submission(look.files, f"look after {entry.name}")


def _was_starved(graded: Graded) -> bool:
    return graded.verdict is not None and "host.starved" in {f.code.value for f in graded.verdict.findings}


def _differences(name: str, graded: Graded, expected: Expected) -> list[str]:
    if graded.verdict is None or graded.observation is None:
        return [f"{name}: refused: {graded.error}"]
    networks = _networks(graded.observation)
    if networks - {("lo", 0)}:  # that some kernels have tunnels, too, is in the record; here there are none
        return [f"{name}: ran with the network {networks}"]
    verdict = graded.verdict
    reasons = tuple(finding.code.value for finding in verdict.findings)
    text = f"{verdict.rationale} {' '.join(str(finding) for finding in verdict.findings)}"
    if (str(verdict.value), reasons) != (expected.verdict, expected.reasons):
        if expected.otherwise is not None:
            return _differences(name, graded, expected.otherwise)
        wanted = f"{expected.verdict} {', '.join(expected.reasons)}"
        return [f"{name}: expected {wanted}; got {verdict.value} {', '.join(reasons)}: {text}"]
    if expected.says not in text:
        return [f"{name}: {expected.says!r} is not said, but: {text}"]
    return []


def _networks(observation: Observation) -> set[tuple[str, int]]:
    """Interfaces and number of routes of every box that a run took place in, as the observation has them."""
    assert isinstance(observation.payload, ProgramRuns)
    outcomes = [run.outcome for run in observation.payload.runs if run.outcome is not None]
    boxes = [outcome.box for outcome in outcomes]
    return {("unknown", -1) if box is None else (" ".join(box.interfaces), box.routes) for box in boxes}


@asynccontextmanager
async def _leaves_nothing() -> AsyncGenerator[set[str]]:
    """Checks, when it is left, that no container, process, volume, network or image has stayed.

    Gives the ids of the boxes that it saw, which grow while the block runs. Others may use the engine meanwhile:
    containers and processes are ours by label and id; nobody makes volumes, networks or nameless images.
    """
    engine = await Engine.connect()
    seen: set[str] = set()

    async def watch() -> None:
        while True:
            seen.update(box.container_id for box in await engine.containers(OURS))
            await anyio.sleep(0.2)

    before = await anyio.to_thread.run_sync(_lasting)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        yield seen
        tasks.cancel_scope.cancel()
    assert await engine.containers(OURS) == ()
    assert _processes_of(seen) == []
    for _ in range(60):  # what somebody else's build has under way goes away; what leaked stays
        if await anyio.to_thread.run_sync(_lasting) <= before:
            break
        await anyio.sleep(1)
    assert await anyio.to_thread.run_sync(_lasting) <= before
    await engine.close()


def _lasting() -> set[str]:
    """Volumes, networks and images without a name: what an engine keeps until somebody removes it."""
    client = cast("Any", docker.from_env())
    try:
        named = {f"volume {volume.id}" for volume in client.volumes.list()}
        named |= {f"network {network['Id']}" for network in client.api.networks()}
        return named | {f"image {image.id}" for image in client.images.list(filters={"dangling": True})}
    finally:
        client.close()


def _processes_of(boxes: set[str]) -> list[str]:
    """Processes of this machine that are in the cgroup of one of the boxes."""
    left: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            cgroup = (process / "cgroup").read_text()
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if any(box in cgroup for box in boxes):
            left.append(f"{process.name}: {command!r}")
    return left
