"""The fake sandbox: limits are applied to scripted behaviours, and time is the clock's."""

import math

import anyio
import pytest

from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, ProfileInForce
from grader.core.reasons import ReasonCode
from grader.sandbox.base import Failed, Program, Seat
from grader.sandbox.bench import Bench
from grader.sandbox.fake import HANGS, Answer, Behaviour, FakeSandbox, in_order
from grader.sandbox.fake_clock import HeldClock, InstantClock

pytestmark = pytest.mark.anyio
PROFILE = ProfileInForce(name="any", image_id="none")
LOST = Failed(ReasonCode.BOX_LOST, "gone", retryable=False)


def invocation(bench: Bench, **limits: float) -> Invocation:
    return bench.invocation(b"x", limits=bench.limits(**limits), collect=(b"f",))


async def ending_of(behaviour: Behaviour, **limits: float) -> object:
    async with FakeSandbox(in_order(behaviour)) as sandbox:
        bench = Bench(sandbox, PROFILE)
        asked = invocation(bench, **limits)
        async with bench.seat() as seat:
            outcome = await seat.run(asked)
    assert isinstance(outcome, RunOutcome)
    return decide_ending(outcome, asked.limits)


@pytest.mark.parametrize(
    ("behaviour", "expected"),
    [
        (Behaviour(), Ending(EndingKind.EXITED, 0)),
        (Behaviour(signal=11), Ending(EndingKind.SIGNALED, 11)),
        (Behaviour(stdout=b"x" * 10), Ending(EndingKind.EXITED, 0)),
        (Behaviour(stdout=b"x" * 11), Ending(EndingKind.OUTPUT_EXCEEDED, stream="stdout")),
        (Behaviour(stderr=b"x" * 11), Ending(EndingKind.OUTPUT_EXCEEDED, stream="stderr")),
        (Behaviour(files={b"f": b"x" * 11}), Ending(EndingKind.FILE_SIZE_EXCEEDED)),
        (Behaviour(cpu_time_s=1), Ending(EndingKind.EXITED, 0)),
        (Behaviour(cpu_time_s=1.000000001), Ending(EndingKind.CPU_TIME_EXCEEDED)),
        (Behaviour(wall_time_s=math.inf), Ending(EndingKind.WALL_TIME_EXCEEDED)),
        (Behaviour(peak_memory_bytes=2**30), Ending(EndingKind.MEMORY_EXCEEDED)),
        (Behaviour(start_error=2), ReasonCode.PREREQUISITE_MISSING),
    ],
)
async def test_limits_are_applied_to_what_a_program_would_do(behaviour: Behaviour, expected: object) -> None:
    got = await ending_of(
        behaviour, stdout_bytes=10, stderr_bytes=10, file_size_bytes=10, cpu_time_s=1, memory_bytes=2**20
    )
    assert getattr(got, "code", got) == expected


async def test_calls_are_counted_over_all_and_for_each_submission_and_invocation() -> None:
    sandbox = FakeSandbox(in_order(*[Behaviour()] * 4))
    async with sandbox:
        bench = Bench(sandbox, PROFILE)
        async with bench.seat() as seat:
            for argument in (b"a", b"b", b"a"):
                await seat.run(bench.invocation(argument))
        async with bench.seat(bench.probe(submission_digest="another")) as seat:
            await seat.run(bench.invocation(b"a"))
    assert [(call.number, call.repeat) for call in sandbox.calls] == [(0, 0), (1, 0), (2, 1), (3, 0)]


async def test_failures_of_the_sandbox_are_scripted_too() -> None:
    async with FakeSandbox(in_order(LOST, Behaviour())) as sandbox:
        bench = Bench(sandbox, PROFILE)
        async with bench.seat() as seat:
            assert await seat.run(bench.invocation()) == LOST
            assert isinstance(await seat.run(bench.invocation()), RunOutcome)
            with pytest.raises(LookupError, match="run number 3"):
                await seat.run(bench.invocation())


async def test_a_held_clock_keeps_a_run_waiting_until_its_time_has_come() -> None:
    clock = HeldClock()
    answers: list[object] = []

    async def run(seat: Seat, bench: Bench) -> None:
        answers.append(await seat.run(bench.invocation()))

    async with FakeSandbox(in_order(Behaviour(wall_time_s=3)), clock=clock) as sandbox:
        bench = Bench(sandbox, PROFILE)
        async with bench.seat() as seat, anyio.create_task_group() as tasks:
            tasks.start_soon(run, seat, bench)
            await anyio.wait_all_tasks_blocked()
            clock.advance(2.9)
            await anyio.wait_all_tasks_blocked()
            assert not answers
            assert clock.sleepers == 1
            clock.advance(0.1)
        assert len(answers) == 1


async def test_an_instant_clock_never_waits() -> None:
    clock = InstantClock()
    async with FakeSandbox(in_order(Behaviour(wall_time_s=100)), clock=clock) as sandbox:
        bench = Bench(sandbox, PROFILE)
        async with bench.seat() as seat:
            await seat.run(bench.invocation(b"x", limits=bench.limits(wall_time_s=120)))
    assert clock.now_s == 100


async def test_hanging_ends_by_cancellation_only_and_gives_the_seat_back() -> None:
    sandbox = FakeSandbox(lambda _: HANGS)
    async with sandbox:
        bench = Bench(sandbox, PROFILE)
        with anyio.move_on_after(0.02) as scope:
            async with bench.seat() as seat:
                assert sandbox.seats_open == 1
                await seat.run(bench.invocation())
    assert scope.cancelled_caught
    assert sandbox.seats_open == 0


def compiling(bench: Bench) -> Program:
    profile = PROFILE.model_copy(update={"compile_limits": bench.limits()})
    return bench.probe(profile=profile, compile_command=(b"cc",))


@pytest.mark.parametrize(
    ("answer", "is_seat", "missing"),
    [
        (Behaviour(exit_code=1), True, None),
        (Failed(ReasonCode.BOX_LOST, "gone", retryable=False), True, ReasonCode.BOX_LOST),
        (Failed(ReasonCode.ENGINE_UNREACHABLE, "gone", retryable=True), False, None),
    ],
)
async def test_compiling_is_scripted(answer: Answer, is_seat: bool, missing: ReasonCode | None) -> None:
    async with FakeSandbox(in_order(), compiles=lambda _: answer) as sandbox:
        bench = Bench(sandbox, PROFILE)
        async with sandbox.prepare(compiling(bench)) as seat:
            assert isinstance(seat, Failed) is not is_seat
            record = None if isinstance(seat, Failed) else seat.compiled
            assert (record and record.missing and record.missing.code) == missing


async def test_a_seat_runs_one_invocation_at_a_time() -> None:
    async with FakeSandbox(lambda _: HANGS) as sandbox:
        bench = Bench(sandbox, PROFILE)
        async with bench.seat() as seat, anyio.create_task_group() as tasks:
            tasks.start_soon(seat.run, bench.invocation())
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(RuntimeError, match="one invocation at a time"):
                await seat.run(bench.invocation())
            tasks.cancel_scope.cancel()


async def test_a_sandbox_that_is_not_open_prepares_nothing() -> None:
    sandbox = FakeSandbox(in_order())
    with pytest.raises(RuntimeError, match="not open"):
        async with sandbox.prepare(Bench(sandbox, PROFILE).probe()):
            pass
