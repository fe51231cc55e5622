"""Only boxes of dead owners are removed, others only by age; what cannot be seen is never taken for dead."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from grader.sandbox.docker.engine_facts import ContainerFacts
from grader.sandbox.docker.reaper import Owner, is_abandoned, owner_of, started_of

HERE = Owner("boot-a", "pid:[1]", 100, "5000")
CREATED_S = 1_000_000.0
HOUR = 3600.0


def container(owner: Owner, state: str = "running", changes: Mapping[str, str] | None = None) -> ContainerFacts:
    return ContainerFacts("c", {**owner.labels(HOUR), **(changes or {})}, state, CREATED_S)


def alive(started: str | None = "5000") -> Callable[[int], str | None]:
    def started_when(pid: int) -> str | None:
        return started

    return started_when


@pytest.mark.parametrize("state", ["created", "running", "exited", "dead"])
def test_of_a_dead_owner_every_container_goes_started_or_not(state: str) -> None:
    assert is_abandoned(container(HERE, state=state), HERE, alive(None), CREATED_S)
    assert not is_abandoned(container(HERE, state=state), HERE, alive(), CREATED_S)


def test_a_pid_that_came_again_is_another_process() -> None:
    assert is_abandoned(container(HERE), HERE, alive("5001"), CREATED_S)


def test_a_living_owners_old_box_stays() -> None:
    assert not is_abandoned(container(HERE), HERE, alive(), CREATED_S + 1000 * HOUR)


@pytest.mark.parametrize("elsewhere", [replace(HERE, boot="boot-b"), replace(HERE, pid_namespace="pid:[2]")])
def test_of_an_owner_out_of_sight_only_what_outlived_its_lifetime_goes(elsewhere: Owner) -> None:
    theirs = container(elsewhere)
    assert not is_abandoned(theirs, HERE, alive(None), CREATED_S + HOUR)
    assert is_abandoned(theirs, HERE, alive(None), CREATED_S + HOUR + 601)
    assert not is_abandoned(theirs, HERE, alive(None), None), "the engine's clock is unknown"


@pytest.mark.parametrize(
    "changes",
    [
        {"grader.owner.pid": ""},
        {"grader.owner.pid": "-1"},
        {"grader.owner.pid": "²"},
        {"grader.owner.pid": "9" * 400},
        {"grader.owner.boot": ""},
        {"grader.owner.started": ""},
    ],
)
def test_broken_labels_are_of_an_owner_out_of_sight(changes: dict[str, str]) -> None:
    broken = container(HERE, changes=changes)
    assert owner_of(broken.labels) is None
    assert not is_abandoned(broken, HERE, alive(None), CREATED_S)
    assert is_abandoned(broken, HERE, alive(None), CREATED_S + 2 * HOUR)


@pytest.mark.parametrize("text", ["", "soon", "-1", "inf", "nan", "9" * 400])
def test_a_broken_lifetime_is_a_day(text: str) -> None:
    elsewhere = container(replace(HERE, boot="b"), changes={"grader.lifetime_s": text})
    assert not is_abandoned(elsewhere, HERE, alive(None), CREATED_S + 24 * HOUR)
    assert is_abandoned(elsewhere, HERE, alive(None), CREATED_S + 25 * HOUR)


def test_labels_come_back() -> None:
    assert owner_of(HERE.labels(60)) == HERE
    current = Owner.current()
    assert owner_of(current.labels(60)) == current
    assert current.pid == os.getpid()
    assert started_of(current.pid) == current.started


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        started = started_of(process.pid)
        assert started is not None
        assert started_of(process.pid) == started
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert started_of(process.pid) is None, "it is not reaped yet"
    assert started_of(process.pid) is None
