"""Executing a plan: which attempts there are, what is recorded, and that nothing is tried twice that must not be."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.limits import LimitRange, Limits
from grader.core.observation import CompileRecord, RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, Plan, PlannedRun, ProfileInForce, make_plan
from grader.core.reasons import ReasonCode
from grader.runner.run import Listener, Rules, execute
from grader.sandbox.base import Ear, Failed, Program
from grader.sandbox.fake import HANGS, Answer, Behaviour, CompileScript, FakeSandbox, Script, in_order

OK = Behaviour(stdout=b"ok\n")
RULES = Rules(retries=2, pause_s=0)


class Log:
    """What a listener was told."""

    def __init__(self) -> None:
        self.runs: list[tuple[int, int, str]] = []
        self.compiles: list[CompileRecord] = []
        self.settled: list[int] = []
        self.stop_after = 10**9

    def run_ended(self, planned: PlannedRun, record: RunRecord) -> None:
        assert planned.index == record.index
        what = "ran" if record.outcome is not None else str(record.missing.code if record.missing else None)
        self.runs.append((record.index, record.attempt, what))

    def listener(self) -> Listener:
        return Listener(
            run_ended=self.run_ended,
            compile_ended=self.compiles.append,
            run_settled=lambda run: self.settled.append(run.index),
            should_stop=lambda: len(self.settled) >= self.stop_after,
        )


def plan_of(cases: int, repetitions: int = 1, *, compiles: bool = False) -> tuple[Plan, dict[str, Program]]:
    profile = ProfileInForce(
        name="python", image_id="fake", compile_limits=LimitRange().effective(Limits()) if compiles else None
    )
    program = ProgramBehaves(
        cases=tuple(ProgramCase(stdin=str(n).encode()) for n in range(cases)), repetitions=repetitions
    )
    plan = make_plan(Task(conditions=(program,)), [profile])
    return plan, {
        "python": Program(
            submission_digest="d",
            files=(),
            entry=b"main.py",
            profile=profile,
            compile_command=(b"cc",) if compiles else None,
            run_command=(b"/usr/bin/python3", b"/submission/main.py"),
            command_is_submission=False,
        )
    }


def run_all(
    script: Script,
    *,
    cases: int = 1,
    repetitions: int = 1,
    compiles: CompileScript | None = None,
    rules: Rules = RULES,
    prepare: Callable[[FakeSandbox], FakeSandbox] = lambda sandbox: sandbox,
    stop_after: int = 10**9,
) -> tuple[Log, FakeSandbox]:
    log = Log()
    log.stop_after = stop_after
    plan, programs = plan_of(cases, repetitions, compiles=compiles is not None)

    async def main() -> FakeSandbox:
        async with prepare(FakeSandbox(script, compiles=compiles)) as sandbox:
            with anyio.fail_after(5):
                await execute(plan.runs, programs, sandbox, anyio.Semaphore(2), log.listener(), rules)
        assert isinstance(sandbox, FakeSandbox)
        return sandbox

    sandbox = anyio.run(main)
    assert sandbox.seats_open == 0
    return log, sandbox


def test_every_run_once_in_plan_order() -> None:
    log, _ = run_all(lambda _: OK, cases=3, repetitions=2)
    assert log.runs == [(index, 1, "ran") for index in range(6)]
    assert log.settled == list(range(6))


def test_a_retryable_failure_is_tried_again_and_every_attempt_is_recorded() -> None:
    lost = Failed(ReasonCode.ENGINE_UNREACHABLE, "gone", retryable=True)
    log, _ = run_all(in_order(lost, lost, OK))
    assert log.runs == [(0, 1, "engine.unreachable"), (0, 2, "engine.unreachable"), (0, 3, "ran")]
    assert log.settled == [0]


def test_attempts_are_bounded() -> None:
    lost = Failed(ReasonCode.ENGINE_UNREACHABLE, "gone", retryable=True)
    log, sandbox = run_all(lambda _: lost)
    assert [attempt for _, attempt, _ in log.runs] == [1, 2, 3]
    assert len(sandbox.calls) == 3


def test_a_program_gets_no_second_throw_of_the_dice() -> None:
    lost = Failed(ReasonCode.BOX_LOST, "died alone", retryable=False)
    log, sandbox = run_all(in_order(lost, OK), cases=2)
    assert log.runs == [(0, 1, "box.lost"), (1, 1, "ran")]
    assert len(sandbox.calls) == 2


def test_a_starved_run_is_tried_again() -> None:
    starved = Behaviour(measures={"stopped_for": "starved"})
    log, _ = run_all(in_order(starved, OK))
    assert log.runs == [(0, 1, "ran"), (0, 2, "ran")]


@pytest.mark.parametrize(
    "ending",
    [
        Behaviour(wall_time_s=1e6),
        Behaviour(cpu_time_s=1e6),
        Behaviour(exit_code=1),
        Behaviour(signal=9),
        Behaviour(peak_memory_bytes=2**40),
        Behaviour(start_error=2),
    ],
)
def test_what_the_program_did_is_never_tried_again(ending: Behaviour) -> None:
    log, sandbox = run_all(lambda _: ending)
    assert log.runs == [(0, 1, "ran")]
    assert len(sandbox.calls) == 1


def test_a_sandbox_that_cannot_prepare_blocks_every_run_after_bounded_attempts() -> None:
    def no(_: Program) -> Answer:
        return Failed(ReasonCode.ENGINE_UNREACHABLE, "gone", retryable=True)

    log, sandbox = run_all(lambda _: OK, cases=50, compiles=no)
    assert log.runs[:3] == [(0, attempt, "engine.unreachable") for attempt in (1, 2, 3)]
    assert log.runs[3:] == [(index, 1, "engine.unreachable") for index in range(1, 50)]
    assert sandbox.compile_count == 3
    assert log.settled == list(range(50))


def test_a_failed_compile_is_one_record_and_nothing_runs() -> None:
    log, sandbox = run_all(lambda _: OK, cases=5, compiles=lambda _: Behaviour(exit_code=1))
    assert len(log.compiles) == 1
    assert log.runs == []
    assert sandbox.calls == []
    assert log.settled == list(range(5))


def test_a_starved_compile_is_tried_again() -> None:
    answers = iter([Behaviour(measures={"stopped_for": "starved"}), Behaviour()])
    log, _ = run_all(lambda _: OK, compiles=lambda _: next(answers))
    assert [record.attempt for record in log.compiles] == [1, 2]
    assert log.runs == [(0, 1, "host.starved"), (0, 2, "ran")]


def test_a_good_compile_is_told_once() -> None:
    log, _ = run_all(lambda _: OK, cases=100, compiles=lambda _: Behaviour(), rules=Rules(seats_per_profile=4))
    assert len(log.compiles) == 1
    assert sorted(index for index, _, _ in log.runs) == list(range(100))


def test_stopping_early_leaves_the_rest_without_a_record() -> None:
    log, _ = run_all(lambda _: OK, cases=10, stop_after=3)
    assert [index for index, _, _ in log.runs] == [0, 1, 2]


def test_seats_are_only_opened_for_enough_runs() -> None:
    for cases, most in ((16, 1), (17, 2), (100, 4)):
        seen: list[int] = []

        def watch(sandbox: FakeSandbox, seen: list[int] = seen) -> FakeSandbox:
            original = sandbox.execute

            async def execute_and_look(
                program: Program, invocation: Invocation, ear: Ear | None = None
            ) -> RunOutcome | Failed:
                seen.append(sandbox.seats_open)
                return await original(program, invocation, ear)

            sandbox.execute = execute_and_look
            return sandbox

        run_all(lambda _: OK, cases=cases, rules=Rules(seats_per_profile=4), prepare=watch)
        assert max(seen) == most


def test_cancelling_gives_every_seat_back() -> None:
    plan, programs = plan_of(4)
    log = Log()

    async def main() -> FakeSandbox:
        async with FakeSandbox(lambda _: HANGS) as sandbox:
            with anyio.move_on_after(0.05):
                await execute(plan.runs, programs, sandbox, anyio.Semaphore(2), log.listener(), RULES)
        assert isinstance(sandbox, FakeSandbox)
        return sandbox

    sandbox = anyio.run(main)
    assert sandbox.seats_open == 0
    assert log.runs == []
