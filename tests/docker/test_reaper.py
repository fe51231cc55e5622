"""The sweep, on a real engine: what dead graders left goes, what living ones use stays."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from grader.runtimes import data_folder, find_profile
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import ImageRecipe, Images
from grader.sandbox.docker.reaper import Owner, remove_own, sweep

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

TEST_LABEL = "grader.test.reaper"


def quiet(line: str) -> None:
    """No progress."""


@pytest.fixture
async def engine() -> AsyncGenerator[Engine]:
    """The engine; containers of the test are removed when it ends."""
    engine = await Engine.connect()
    yield engine
    for container in await engine.containers(TEST_LABEL):
        await engine.remove(container.container_id)
    await engine.close()


@pytest.fixture
async def image_id(engine: Engine) -> str:
    """An image with a shell."""
    folder = find_profile("bash").image_folder()
    image = await Images(engine, data_folder("Dockerfiles"), quiet).runtime(ImageRecipe("bash", folder))
    return image.image_id


def config(image_id: str, owner: Owner) -> dict[str, object]:
    return {
        "Image": image_id,
        "Entrypoint": ["/bin/sleep", "1000"],
        "Cmd": [],
        "Labels": {**owner.labels(3600), TEST_LABEL: "1"},
        "HostConfig": {"NetworkMode": "none"},
    }


async def left(engine: Engine) -> set[str]:
    return {container.container_id for container in await engine.containers(TEST_LABEL)}


async def test_the_sweep_removes_what_dead_owners_left_and_nothing_else(engine: Engine, image_id: str) -> None:
    here = Owner.current()
    dead = replace(here, started="1")
    elsewhere = replace(here, pid_namespace="pid:[1]")
    never_started = await engine.create(config(image_id, dead))
    running = await engine.create(config(image_id, dead))
    await engine.start(running)
    mine = await engine.create(config(image_id, here))
    theirs = await engine.create(config(image_id, elsewhere))
    assert await sweep(engine, here) >= 2
    assert await left(engine) == {mine, theirs}
    assert {never_started, running} & await left(engine) == set()
    await sweep(engine, here)
    assert await left(engine) == {mine, theirs}


async def test_kill_9_between_create_and_start_leaves_a_container_that_the_next_start_removes(
    engine: Engine, image_id: str
) -> None:
    script = textwrap.dedent(f"""
        import anyio, os, signal
        from grader.sandbox.docker.engine import Engine
        from grader.sandbox.docker.reaper import Owner
        async def main():
            engine = await Engine.connect()
            config = {config(image_id, Owner("", "", 0, ""))!r}
            config["Labels"].update(Owner.current().labels(3600))
            await engine.create(config)
            os.kill(os.getpid(), signal.SIGKILL)
        anyio.run(main)
    """)
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)  # noqa: ASYNC221
    assert len(await left(engine)) == 1
    await sweep(engine)
    assert await left(engine) == set()


async def test_remove_own_takes_only_those_of_this_process(engine: Engine, image_id: str) -> None:
    here = Owner.current()
    mine = await engine.create(config(image_id, here))
    other = await engine.create(config(image_id, replace(here, pid_namespace="pid:[1]")))
    assert await remove_own(engine, replace(here, pid=here.pid)) >= 1
    assert mine not in await left(engine)
    assert other in await left(engine)
