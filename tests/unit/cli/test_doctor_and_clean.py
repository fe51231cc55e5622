"""doctor and clean without an engine, and what doctor says of engines that are not good enough."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from grader.cli import cleaning
from grader.cli.checkup import Level, engine_findings, governor_finding, image_findings
from grader.cli.console import Console
from grader.sandbox.docker.engine_facts import EngineFacts
from grader.sandbox.docker.locks import IMAGES, held_if_free, held_lock
from grader.store import removing
from grader.store.lock import WriterLock
from tests.unit.cli.conftest import RunIt

GOOD = EngineFacts(
    version="20.10.24", api_version="1.41", name="Docker Engine", engine_id="x", kernel="6", architecture="x86_64",
    cpus=2, memory_bytes=2**33, cgroup_version="2", runc="1.1", runtimes=("runc",),
    security=("name=seccomp",), now_s=0.0,
)  # fmt: skip
SOCKET = "unix:///var/run/docker.sock"


def levels(facts: EngineFacts, address: str = SOCKET) -> list[Level]:
    found = list(engine_findings(facts, address))
    assert all(finding.mend for finding in found if finding.level is Level.FAIL)
    return [finding.level for finding in found]


def test_a_good_engine() -> None:
    assert set(levels(GOOD)) == {Level.OK}


@pytest.mark.parametrize(
    "facts",
    [
        replace(GOOD, api_version="1.39"),
        replace(GOOD, api_version="?"),
        replace(GOOD, security=()),
        replace(GOOD, cgroup_version=""),
    ],
)
def test_engines_that_cannot_be_used(facts: EngineFacts) -> None:
    assert levels(facts).count(Level.FAIL) == 1


def test_plain_tcp_is_a_failure_and_rootless_a_caution() -> None:
    assert Level.FAIL in levels(GOOD, "tcp://127.0.0.1:2375")
    assert Level.CAUTION in levels(replace(GOOD, security=("name=seccomp", "name=rootless")))


def test_an_image_that_is_not_built_yet_is_no_trouble_and_is_named() -> None:
    there, missing = image_findings({"c": True, "go": False, "lua": False, "python": True})
    assert there.what.endswith(": c, python")
    assert missing.what.endswith(": go, lua")
    assert {there.level, missing.level} == {Level.OK}
    assert [finding.what for finding in image_findings({"c": True})] == ["images that are there: c"]


def test_without_an_engine_doctor_says_so_with_the_mend(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    ended = grader("doctor")
    assert ended.code == 4
    fail, mend = ended.out.splitlines()[-2:]
    assert fail.startswith("FAIL     no Docker engine answers at unix:///nonexistent/docker.sock")
    assert mend.startswith("         mend: ")
    assert "Traceback" not in ended.err


def test_clean_without_an_engine_is_4(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    ended = grader("clean")
    assert ended.code == 4
    assert "mend: " in ended.err


def test_clean_removes_old_records_but_never_the_latest_or_other_folders(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        grader("run", ".", "all/good.py")
    root = workplace / ".grader" / "records"
    (root / "mine").mkdir()
    first, second, latest = sorted(folder for folder in root.glob("*-*"))
    old = time.time() - 10 * 86_400
    for folder in (first, latest, root / "mine"):
        for path in (*folder.iterdir(), folder):
            os.utime(path, (old, old))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    ended = grader("clean", "--records", "5")
    assert "removed 1 record\n" in ended.err
    assert [folder.exists() for folder in (first, second, latest, root / "mine")] == [False, True, True, True]


def test_clean_says_which_record_it_left_and_why_also_when_quiet(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    for _ in range(2):
        grader("run", ".", "all/good.py")
    root = workplace / ".grader" / "records"
    first, latest = sorted(root.glob("*-*"))
    old = time.time() - 10 * 86_400
    for path in first.iterdir():
        os.utime(path, (old, old))
    lock = WriterLock(first)
    said = f"left alone: {first.relative_to(workplace)}: another grader is writing this record\n  mend: wait until"
    assert said in grader("clean", "--records", "5", "-q").err
    ended = grader("clean", "--records", "5")
    assert ended.err.startswith("removed 0 records\n")
    lock.release()
    assert "left alone" not in grader("clean", "--records", "5").err
    assert [first.exists(), latest.exists()] == [False, True]


def test_clean_tries_every_record_before_it_says_that_one_does_not_go(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        grader("run", ".", "all/good.py")
    first, second, latest = sorted((workplace / ".grader" / "records").glob("*-*"))
    old = time.time() - 10 * 86_400
    for path in (*first.iterdir(), *second.iterdir()):
        os.utime(path, (old, old))
    really_remove = removing._remove  # pyright: ignore[reportPrivateUsage]

    def remove(folder: Path) -> None:
        if folder.name == first.name:
            raise PermissionError(1, "Operation not permitted")
        really_remove(folder)

    monkeypatch.setattr(removing, "_remove", remove)
    ended = grader("clean", "--records", "5")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err.startswith("removed 1 record\n")
    assert f"error: {first.relative_to(workplace)}: cannot be removed: Operation not permitted\n  mend: " in ended.err
    assert [first.exists(), second.exists(), latest.exists()] == [True, False, True]


class _Engine:
    """Has nothing on it."""

    @classmethod
    async def connect(cls) -> _Engine:
        return cls()

    async def close(self) -> None:
        pass


def test_clean_leaves_images_while_a_grader_runs_and_says_so(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[str] = []

    async def boxes(engine: object) -> int:
        return 0

    async def images(engine: object) -> int:
        removed.append("images")
        return 3

    monkeypatch.setenv("GRADER_RUNTIME_DIR", str(workplace / "runtime"))
    for name, stand_in in (("Engine", _Engine), ("sweep", boxes), ("remove_all", boxes), ("remove_images", images)):
        monkeypatch.setattr(cleaning, name, stand_in)

    async def clean_beside_one() -> None:
        async with held_lock(IMAGES, is_shared=True):
            await cleaning.clean_engine(Console(quiet=True), images=True, all_boxes=True)

    anyio.run(clean_beside_one)
    assert removed == []
    ended = grader("clean", "--images")
    assert (ended.code, ended.err) == (0, "removed 0 boxes of dead graders\nremoved 3 images\n")


def test_what_clean_leaves_of_images_is_said_also_when_quiet(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def none(engine: object) -> int:
        return 0

    monkeypatch.setenv("GRADER_RUNTIME_DIR", str(workplace / "runtime"))
    for name, stand_in in (("Engine", _Engine), ("sweep", none), ("remove_images", none)):
        monkeypatch.setattr(cleaning, name, stand_in)
    with held_if_free(IMAGES):
        anyio.run(partial(cleaning.clean_engine, Console(quiet=True), images=True, all_boxes=False))
    assert capsys.readouterr().err == "left alone: the images; another grader is running and may need them\n"


def test_a_governor_that_changes_the_speed_is_named_with_its_mend() -> None:
    assert governor_finding([]).level is governor_finding({"performance"}).level is Level.OK
    found = governor_finding({"performance", "powersave"})
    assert found.level is Level.CAUTION
    assert found.what.endswith("performance, powersave")
    assert found.mend is not None
    assert "cpupower" in found.mend
