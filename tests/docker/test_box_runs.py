"""Runs on the real engine that the contract does not cover: sizes beyond the buffers, boxes opened ahead."""

import hashlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.outcomes import RunOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Failed, ImageSource, Isolation
from grader.sandbox.bench import Bench, outcome_of
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.sandbox import DockerSandbox

pytestmark = [pytest.mark.anyio, pytest.mark.docker]
DOCKERFILE = Path(__file__).resolve().parents[2] / "Dockerfiles" / "bash"


async def bench_of(sandbox: object) -> Bench:
    assert isinstance(sandbox, DockerSandbox)
    image_id = await sandbox.image(ImageSource(folder=DOCKERFILE), lambda _: None)
    return Bench(sandbox, ProfileInForce(name="bash", image_id=image_id))


@pytest.fixture
async def bench() -> AsyncGenerator[Bench]:
    async with DockerSandbox() as sandbox:
        yield await bench_of(sandbox)


async def test_input_and_output_beyond_the_boxs_buffers_are_carried_whole(bench: Bench) -> None:
    data = bytes(range(256)) * (20 * 2**20 // 256)
    limits = bench.limits(stdout_bytes=24 * 2**20, wall_time_s=30, cpu_time_s=10)
    async with bench.seat() as seat:
        outcome = await outcome_of(seat, bench.invocation(b"echo", stdin=data, limits=limits))
    assert decide_ending(outcome, limits) == Ending(EndingKind.EXITED, 0)
    assert outcome.stdout.captured.total_bytes == len(data)
    assert outcome.stdout.captured.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})], ids=["uvloop"])
async def test_another_event_loop_than_asyncios_own_carries_a_run(bench: Bench) -> None:
    data = os.urandom(3 * 2**20)
    async with bench.seat() as seat:
        outcome = await outcome_of(seat, bench.invocation(b"echo", stdin=data))
    assert outcome.stdout.captured.sha256 == hashlib.sha256(data).hexdigest()


async def test_streamed_input_that_nobody_reads_does_not_hang(bench: Bench) -> None:
    async with bench.seat() as seat:
        outcome = await outcome_of(seat, bench.invocation(b"right", stdin=bytes(40 * 2**20)))
    assert outcome.stdout.captured.kept == b"right"


async def test_a_submission_too_large_for_its_box_is_a_missing_run(bench: Bench) -> None:
    big = SubmissionFile(b"big", bytes(40 * 2**20))
    async with bench.seat(bench.probe(big)) as seat:
        failed = await seat.run(bench.invocation(b"right"))
    assert isinstance(failed, Failed)
    assert (failed.code, failed.retryable) == (ReasonCode.BOX_LOST, False)
    assert "big could not be written into the box" in failed.detail


async def test_arguments_at_and_above_what_the_kernel_takes(bench: Bench) -> None:
    async with bench.seat() as seat:
        most = bench.invocation(b"arguments", b"x" * (128 * 2**10 - 1))
        outcome = await outcome_of(seat, most)
        assert outcome.stdout.captured.total_bytes == 128 * 2**10
        for arguments in ((b"x" * 128 * 2**10,), (b"x" * 100_000,) * 50):
            outcome = await outcome_of(seat, bench.invocation(b"arguments", *arguments))
            assert decide_ending(outcome, bench.limits()) == Ending(EndingKind.CANNOT_START, 7)


async def test_a_missing_tool_of_the_profile_is_not_the_programs_fault(bench: Bench) -> None:
    async with bench.seat(bench.probe(run_command=(b"python9", b"/submission/probe.sh"))) as seat:
        outcome = await outcome_of(seat, bench.invocation(b"right"))
    ending = decide_ending(outcome, bench.limits())
    assert getattr(ending, "code", None) is ReasonCode.PREREQUISITE_MISSING


@pytest.mark.parametrize(("isolation", "expected"), [("run", 1), ("submission", 1), ("shared", 1)])
async def test_after_seats_are_left_only_what_was_opened_ahead_or_is_shared_stays(
    isolation: Isolation, expected: int
) -> None:
    engine = await Engine.connect()
    async with DockerSandbox(isolation=isolation) as sandbox:
        bench = await bench_of(sandbox)
        for text in (b"a", b"b", b"c"):
            async with bench.seat(bench.probe(submission_digest=text.decode())) as seat:
                outcome = await outcome_of(seat, bench.invocation(b"echo", stdin=text))
                assert outcome.stdout.captured.kept == text
        ours = f"grader.owner.pid={os.getpid()}"
        with anyio.fail_after(10):
            while len(await engine.containers(ours)) != expected:  # noqa: ASYNC110 (the engine is asked)
                await anyio.sleep(0.05)
    assert await engine.containers(ours) == ()
    await engine.close()


async def test_sixty_runs_in_a_row_leave_no_trace_in_their_box(bench: Bench) -> None:
    async with bench.seat() as seat:
        for index in range(60):
            outcome = await outcome_of(seat, bench.invocation(b"litter" if index % 2 else b"look"))
            expected = b"right" if index % 2 else b""
            assert outcome.stdout.captured.kept == expected


async def test_a_file_that_is_too_large_for_the_work_folder_is_an_error_of_the_program(bench: Bench) -> None:
    limits = bench.limits(disk_bytes=2**20, file_size_bytes=8 * 2**20)
    async with bench.seat() as seat:
        outcome = await seat.run(bench.invocation(b"write-big", b"f", b"4000000", limits=limits))
    assert isinstance(outcome, RunOutcome)
    assert decide_ending(outcome, limits) == Ending(EndingKind.EXITED, 1)
    assert b"No space left on device" in outcome.stderr.captured.kept


async def test_what_is_known_of_host_and_engine(bench: Bench) -> None:
    async with bench.seat() as seat:
        await seat.run(bench.invocation(b"right"))
    facts = bench.sandbox.facts
    assert {"engine", "kernel", "architecture", "cgroup_version", "cpus"} <= set(facts.host)
    assert len(facts.host["supervisor_sha256"]) == 64
