"""The door to the engine, on a real one: options reach it, streams are byte-exact, nothing stays behind."""

from __future__ import annotations

import socket
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest

from grader.core.reasons import ReasonCode
from grader.errors import PrerequisiteError, SandboxError
from grader.runtimes import data_folder, find_profile
from grader.sandbox.docker.connection import Demultiplexer
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import ImageRecipe, Images, RuntimeImage
from grader.sandbox.docker.reaper import OWNED_LABEL, Owner

pytestmark = [pytest.mark.docker, pytest.mark.anyio]

TEST_LABEL = "grader.test"


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
async def image(engine: Engine) -> RuntimeImage:
    """An image with a shell."""
    folder = find_profile("bash").image_folder()
    return await Images(engine, data_folder("Dockerfiles"), quiet).runtime(ImageRecipe("bash", folder))


def config(image: RuntimeImage, script: str, **changes: object) -> dict[str, object]:
    return {
        "Image": image.image_id,
        "Entrypoint": ["/bin/sh", "-c", script],
        "Cmd": [],
        "Labels": {TEST_LABEL: "1"},
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {"NetworkMode": "none", "AutoRemove": True, "LogConfig": {"Type": "none"}},
        **changes,
    }


async def is_gone(engine: Engine, container_id: str) -> bool:
    for _ in range(100):
        if await engine.state(container_id) is None:
            return True
        await anyio.sleep(0.05)
    return False


async def test_an_engine_that_does_not_answer_is_a_missing_prerequisite_with_a_mend(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="no Docker engine answers") as caught:
        await Engine.connect(f"unix://{tmp_path}/none.sock")
    assert caught.value.code == ReasonCode.ENGINE_UNREACHABLE
    assert "setup-engine" in str(caught.value)


async def test_an_engine_that_accepts_and_says_nothing_is_given_up_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.sandbox.docker.engine._PING_WITHIN_S", 0.3)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen(8)
        started = time.monotonic()
        with pytest.raises(PrerequisiteError, match="no answer in time"):
            await Engine.connect(f"unix://{tmp_path}/silent.sock")
        assert time.monotonic() - started < 5


async def test_facts(engine: Engine) -> None:
    facts = await engine.facts()
    assert facts.version
    assert facts.cpus >= 1
    assert facts.cgroup_version in {"1", "2"}
    assert facts.now_s is not None
    assert abs(facts.now_s - time.time()) < 600
    assert await engine.ping()


async def test_the_attached_stream_is_byte_exact_in_both_directions(engine: Engine, image: RuntimeImage) -> None:
    sent = bytes(range(256)) * 2000
    container_id = await engine.create(config(image, "cat; printf error >&2"))
    stream = await engine.attach(container_id)
    assert isinstance(stream, socket.socket)
    await engine.start(container_id)
    demultiplexer = Demultiplexer()

    def talk() -> bytes:
        stream.settimeout(20)
        received = b""
        for at in range(0, len(sent), 10_000):
            stream.sendall(sent[at : at + 10_000])
        stream.shutdown(socket.SHUT_WR)
        while data := stream.recv(65_536):
            received += b"".join(demultiplexer.feed(data))
        return received

    assert await anyio.to_thread.run_sync(talk) == sent
    assert demultiplexer.stderr_text == "error"
    stream.close()
    assert await is_gone(engine, container_id)


async def test_a_container_ends_when_its_stream_does(engine: Engine, image: RuntimeImage) -> None:
    container_id = await engine.create(config(image, "cat >/dev/null"))
    stream = await engine.attach(container_id)
    await engine.start(container_id)
    state = await engine.state(container_id)
    assert state is not None
    assert state.is_running
    stream.close()
    assert await is_gone(engine, container_id)


async def test_after_kill_9_of_the_client_its_running_container_goes(engine: Engine, image: RuntimeImage) -> None:
    script = textwrap.dedent(f"""
        import anyio, time
        from grader.sandbox.docker.engine import Engine
        async def main():
            engine = await Engine.connect()
            container_id = await engine.create({config(image, "cat >/dev/null")!r})
            stream = await engine.attach(container_id)
            await engine.start(container_id)
            print(container_id, flush=True)
            time.sleep(60)
        anyio.run(main)
    """)
    async with await anyio.open_process([sys.executable, "-c", script]) as process:
        assert process.stdout is not None
        container_id = (await process.stdout.receive()).decode().strip()
        process.kill()
    assert len(container_id) == 64
    assert await is_gone(engine, container_id)


async def test_what_is_gone_is_said_and_what_is_removed_twice_is_fine(engine: Engine, image: RuntimeImage) -> None:
    container_id = await engine.create(config(image, "true"))
    await engine.kill(container_id)  # it does not run
    await engine.remove(container_id)
    await engine.remove(container_id)
    await engine.kill(container_id)
    assert await engine.state(container_id) is None
    with pytest.raises(SandboxError) as caught:
        await engine.start(container_id)
    assert caught.value.code == ReasonCode.BOX_LOST


async def test_a_missing_image_is_named_as_such(engine: Engine, image: RuntimeImage) -> None:
    missing = "sha256:" + "0" * 64
    with pytest.raises(SandboxError) as caught:
        await engine.create({**config(image, "true"), "Image": missing})
    assert caught.value.code == ReasonCode.IMAGE_MISSING
    assert await engine.image(missing) is None


async def test_a_refusal_is_told_in_the_engines_own_words(engine: Engine, image: RuntimeImage) -> None:
    refused = config(image, "true")
    refused["HostConfig"] = {"Memory": 1}
    with pytest.raises(SandboxError, match=r"create a container: .*[Mm]emory"):
        await engine.create(refused)


async def test_a_cancelled_create_leaves_no_container(engine: Engine, image: RuntimeImage) -> None:
    label = "grader.test.cancelled"
    with anyio.CancelScope() as scope:
        scope.cancel()
        await engine.create({**config(image, "true"), "Labels": {TEST_LABEL: "1", label: "1"}})
    assert scope.cancelled_caught
    assert await engine.containers(label) == ()


async def test_events_tell_the_end_of_a_container(engine: Engine, image: RuntimeImage) -> None:
    seen: list[str] = []
    async with engine.events(TEST_LABEL) as events:
        container_id = await engine.create(config(image, "kill -9 $$"))
        await engine.start(container_id)
        with anyio.fail_after(20):
            async for event in events:
                if event.container_id == container_id:
                    seen.append(event.action)
                if event.action == "destroy" and event.container_id == container_id:
                    break
    assert [action for action in seen if action != "attach"] == ["create", "start", "die", "destroy"]


async def test_events_tell_out_of_memory_before_the_end(engine: Engine, image: RuntimeImage) -> None:
    host = {"NetworkMode": "none", "AutoRemove": True, "Memory": 16 << 20, "MemorySwap": 16 << 20}
    seen: list[str] = []
    async with engine.events(TEST_LABEL) as events:
        container_id = await engine.create(config(image, "exec tail /dev/zero", HostConfig=host))
        await engine.start(container_id)
        with anyio.fail_after(20):
            async for event in events:
                seen.append(event.action)
                if event.action == "die":
                    break
    assert seen.index("oom") < seen.index("die")


async def test_listening_to_events_ends_at_once_when_it_is_cancelled(engine: Engine) -> None:
    started = time.monotonic()
    with anyio.move_on_after(0.2):
        async with engine.events(TEST_LABEL) as events:
            async for _ in events:
                pass
    assert time.monotonic() - started < 3


async def test_owners_labels_reach_the_container(engine: Engine, image: RuntimeImage) -> None:
    labels = {**Owner.current().labels(60), TEST_LABEL: "1"}
    container_id = await engine.create({**config(image, "true"), "Labels": labels})
    [found] = [c for c in await engine.containers(OWNED_LABEL) if c.container_id == container_id]
    assert labels.items() <= found.labels.items()
    assert found.state == "created"
    assert abs(found.created_s - time.time()) < 600


async def test_calls_are_bounded_when_the_engine_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging_engine: Callable[[], Path]
) -> None:
    engine = await Engine.connect(f"unix://{hanging_engine()}")
    monkeypatch.setattr("grader.sandbox.docker.engine._PING_WITHIN_S", 0.2)
    assert await engine.ping() is False
    await engine.close()
