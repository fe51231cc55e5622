"""Boxes that are lost on the real engine: the right reason, a fresh box afterwards, and no container that stays."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import pytest

from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, ProfileInForce
from grader.core.reasons import ReasonCode
from grader.sandbox.base import Failed, ImageSource, Seat
from grader.sandbox.bench import Bench
from grader.sandbox.docker import box as box_module
from grader.sandbox.docker import talk as talk_module
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.engine_facts import ContainerFacts
from grader.sandbox.docker.policy import BoxPolicy, container_config
from grader.sandbox.docker.sandbox import DockerSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.docker]
DOCKERFILE = Path(__file__).resolve().parents[2] / "Dockerfiles" / "bash"


@pytest.fixture
async def engine() -> AsyncGenerator[Engine]:
    engine = await Engine.connect()
    yield engine
    await engine.close()


@pytest.fixture
async def image_id() -> str:
    async with DockerSandbox() as sandbox:
        return await sandbox.image(ImageSource(folder=DOCKERFILE), lambda _: None)


async def ours(engine: Engine, pid: int | None = None) -> tuple[ContainerFacts, ...]:
    """The containers of this process (or another)."""
    return await engine.containers(f"grader.owner.pid={pid if pid is not None else os.getpid()}")


async def none_left(engine: Engine, pid: int | None = None, within_s: float = 10) -> bool:
    with anyio.move_on_after(within_s):
        while await ours(engine, pid):  # noqa: ASYNC110 (the engine is asked)
            await anyio.sleep(0.05)
        return True
    return False


def bench_of(sandbox: object, image_id: str) -> Bench:
    assert isinstance(sandbox, DockerSandbox)
    return Bench(sandbox, ProfileInForce(name="bash", image_id=image_id))


def sleeping(bench: Bench, wall_time_s: float = 30) -> Invocation:
    return bench.invocation(b"sleep", limits=bench.limits(wall_time_s=wall_time_s))


async def run_while(bench: Bench, seat: Seat, invocation: Invocation, act: Callable[[], Awaitable[None]]) -> object:
    """Start a run, and do something when it is on; what the run came to."""
    # The box is open before: on a busy machine opening one takes longer than any pause that a test would make.
    assert isinstance(await seat.run(bench.invocation(b"right")), RunOutcome)
    running = asyncio.create_task(seat.run(invocation))
    await asyncio.sleep(1.5)
    await act()
    return await running


async def kill_ours(engine: Engine) -> None:
    for container in await ours(engine):
        await engine.kill(container.container_id)


async def test_a_box_killed_from_outside_is_a_missing_run_for_good(engine: Engine, image_id: str) -> None:
    async with DockerSandbox() as sandbox:
        bench = bench_of(sandbox, image_id)
        async with bench.seat() as seat:
            lost = await run_while(bench, seat, sleeping(bench), partial(kill_ours, engine))
            assert isinstance(lost, Failed)
            assert (lost.code, lost.retryable) == (ReasonCode.BOX_LOST, False)
            assert isinstance(await seat.run(bench.invocation(b"right")), RunOutcome)
    assert await none_left(engine)


async def test_a_box_that_answers_no_more_is_given_up_and_removed(
    engine: Engine, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talk_module, "GRACE_S", 1.0)
    monkeypatch.setattr(talk_module, "SLOWEST_BYTES_PER_S", 2**30)
    async with DockerSandbox() as sandbox:
        bench = bench_of(sandbox, image_id)
        async with bench.seat() as seat:
            await seat.run(bench.invocation(b"right"))
            (container,) = await ours(engine)
            await asyncio.to_thread(subprocess.run, ["docker", "pause", container.container_id], check=True)
            with anyio.fail_after(30):
                lost = await seat.run(sleeping(bench, wall_time_s=0.2))
            assert isinstance(lost, Failed)
            assert (lost.code, lost.retryable) == (ReasonCode.SUPERVISOR_LOST, False)
            assert "no answer" in lost.detail
    assert await none_left(engine)


class CutOffEngine:
    """A door to the engine that can be shut, as if the engine had died."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "engine.sock"
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return f"unix://{self.path}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection("/var/run/docker.sock")
        self._writers += [writer, back]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._copy, reader, back)
            tasks.start_soon(self._copy, there, writer)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(2**16):
                target.write(data)
                await target.drain()
            target.write_eof()
        except (OSError, RuntimeError):
            pass

    async def shut(self) -> None:
        self.path.unlink()
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()


# docker-py leaves its own sockets to the garbage collector when the engine is gone: collected here, in no other test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
async def test_an_engine_that_dies_in_a_run_is_unreachable_and_the_run_may_be_tried_again(
    engine: Engine, image_id: str, tmp_path: Path
) -> None:
    door = CutOffEngine(tmp_path)
    async with DockerSandbox(engine=await door.open()) as sandbox:
        bench = bench_of(sandbox, image_id)
        async with bench.seat() as seat:
            lost = await run_while(bench, seat, sleeping(bench), door.shut)
            assert isinstance(lost, Failed)
            assert (lost.code, lost.retryable) == (ReasonCode.ENGINE_UNREACHABLE, True)
            again = await seat.run(bench.invocation(b"right"))
            assert isinstance(again, Failed)
            assert again.code is ReasonCode.ENGINE_UNREACHABLE
    assert await none_left(engine)  # the box's stdin ended with our stream
    gc.collect()


@pytest.mark.parametrize("delay_s", [0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.6])
async def test_a_cancellation_at_any_moment_leaves_no_container(engine: Engine, image_id: str, delay_s: float) -> None:
    async with DockerSandbox() as sandbox:
        bench = bench_of(sandbox, image_id)
        with anyio.move_on_after(delay_s) as scope:
            async with bench.seat() as seat:
                await seat.run(sleeping(bench))
        assert scope.cancelled_caught
        assert await none_left(engine, within_s=5)  # while the sandbox is still open
        async with bench.seat() as seat:
            assert isinstance(await seat.run(bench.invocation(b"right")), RunOutcome)
    assert await none_left(engine)


# A call to the engine that was given up ends in its thread, and docker-py leaves its socket to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("delay_s", [0.005, 0.05, 0.2, 0.5])
async def test_asyncios_own_cancellation_leaves_no_container_either(
    engine: Engine, image_id: str, delay_s: float
) -> None:
    async def grade() -> None:
        async with DockerSandbox() as sandbox:
            bench = bench_of(sandbox, image_id)
            for _ in range(3):  # the later ones are opened ahead
                async with bench.seat() as seat:
                    await seat.run(sleeping(bench, wall_time_s=0.1))

    grading = asyncio.create_task(grade())
    await asyncio.sleep(0.15 + delay_s)
    grading.cancel()
    await asyncio.wait([grading])
    assert await none_left(engine, within_s=1)
    gc.collect()


CLIENT = """
import sys
from pathlib import Path
import anyio
from grader.core.plan import ProfileInForce
from grader.sandbox.bench import Bench
from grader.sandbox.docker.sandbox import DockerSandbox

async def main() -> None:
    async with DockerSandbox() as sandbox:
        bench = Bench(sandbox, ProfileInForce(name="bash", image_id=sys.argv[1]))
        print("open", flush=True)
        async with bench.seat() as seat:
            await seat.run(bench.invocation(b"sleep", limits=bench.limits(wall_time_s=60)))

anyio.run(main)
"""


@pytest.mark.parametrize("delay_s", [0.01, 0.05, 0.15, 1.0])
def test_a_killed_grader_leaves_no_container(image_id_sync: str, delay_s: float) -> None:
    with subprocess.Popen([sys.executable, "-c", CLIENT, image_id_sync], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"open\n"
        threading.Event().wait(delay_s)
        client.send_signal(signal.SIGKILL)
        client.wait()

    async def look() -> tuple[bool, bool]:
        engine = await Engine.connect()
        by_itself = await none_left(engine, client.pid, within_s=3)
        async with DockerSandbox():
            pass  # its sweep removes what was created and never started
        swept = await none_left(engine, client.pid, within_s=3)
        await engine.close()
        return by_itself, swept

    by_itself, swept = anyio.run(look)
    assert swept
    if delay_s >= 1:
        assert by_itself


@pytest.fixture
def image_id_sync() -> str:
    async def build() -> str:
        async with DockerSandbox() as sandbox:
            return await sandbox.image(ImageSource(folder=DOCKERFILE), lambda _: None)

    return anyio.run(build)


async def test_a_box_that_is_not_what_was_asked_for_is_refused_and_removed(
    engine: Engine, image_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def weaker(policy: BoxPolicy, labels: Mapping[str, str]) -> dict[str, object]:
        config = container_config(policy, labels)
        host = config["HostConfig"]
        assert isinstance(host, dict)
        host["SecurityOpt"] = ["no-new-privileges:true", "seccomp=unconfined"]
        return config

    monkeypatch.setattr(box_module, "container_config", weaker)
    async with DockerSandbox() as sandbox:
        bench = bench_of(sandbox, image_id)
        async with bench.seat() as seat:
            refused = await seat.run(bench.invocation(b"right"))
        assert isinstance(refused, Failed)
        assert (refused.code, refused.retryable) == (ReasonCode.BOX_LOST, False)
        assert "Seccomp is 0, not 2" in refused.detail
        assert await none_left(engine, within_s=1)


async def test_an_image_that_is_gone_is_missing(image_id: str) -> None:
    async with DockerSandbox() as sandbox:
        bench = bench_of(sandbox, "sha256:" + "0" * 64)
        async with bench.seat() as seat:
            failed = await seat.run(bench.invocation(b"right"))
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == (ReasonCode.IMAGE_MISSING, False)
