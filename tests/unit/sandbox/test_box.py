"""A box against a scripted supervisor and a scripted engine: no way out that leaves a container, no wrong blame."""

import asyncio
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

import anyio
import pytest

from grader.core.endings import Ending, EndingKind, NoEnding, decide_ending
from grader.core.outcomes import RunOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile
from grader.errors import SandboxError
from grader.sandbox.base import Failed
from grader.sandbox.bench import Bench
from grader.sandbox.docker import box as box_module
from grader.sandbox.docker import talk as talk_module
from grader.sandbox.docker.assessment import Assessment
from grader.sandbox.docker.box import Box, BoxHost
from grader.sandbox.docker.box_runs import BoxInvocation, NoBoxError
from grader.sandbox.docker.losses import BoxLostError, failure_of
from grader.sandbox.docker.policy import BoxImage, BoxPolicy
from grader.sandbox.fake import FakeSandbox, in_order
from tests.unit.sandbox.supervisor import box_side

pytestmark = pytest.mark.anyio
BENCH = Bench(FakeSandbox(in_order()), ProfileInForce(name="any", image_id="sha256:1"))
POLICY = BoxPolicy(BoxImage("sha256:2"), 2**26, 32, 2**26, 100)
Answer = Callable[[int], bytes]
"""What the supervisor sends when the run with this id starts."""
END = b""
"""Instead of an answer: the stream ends."""


def counters(run_id: int, hits: int) -> bytes:
    return box_side.frame(133, struct.pack("<12Q", 1, 1, 1, hits, 0, 1, 0, 0, 70, 0, 1, 0), run_id)


class Engine:
    """Makes containers of scripted supervisors, and knows which are there."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.alive: set[str] = set()
        self.tasks: list[asyncio.Task[None]] = []
        self.hangs_in: str | None = None
        self.fails_in: str | None = None
        self.put_step = 0
        self.put_fails: set[bytes] = set()
        self.greets = True
        self.theirs: socket.socket | None = None
        self.puts: list[bytes] = []
        self.clears = True

    async def _step(self, name: str) -> None:
        if self.hangs_in == name:
            await anyio.sleep_forever()
        if self.fails_in == name:
            raise SandboxError(f"{name} failed", code=ReasonCode.HOST_DISK_FULL)
        await asyncio.sleep(0)

    async def create(self, config: object, name: str | None = None) -> str:
        await self._step("create")
        self.alive.add("c")
        return "c"

    async def attach(self, _container_id: str) -> socket.socket:
        await self._step("attach")
        ours, self.theirs = socket.socketpair()
        return ours

    async def start(self, _container_id: str) -> None:
        await self._step("start")
        assert self.theirs is not None
        self.tasks.append(asyncio.create_task(self._supervise(self.theirs)))

    async def remove(self, container_id: str) -> None:
        self.alive.discard(container_id)
        if self.theirs is not None and not self.tasks:
            self.theirs.close()
        for task in self.tasks:
            task.cancel()

    async def _supervise(self, stream: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=stream)
        try:
            with suppress(asyncio.IncompleteReadError, OSError):
                while True:
                    kind, _, length, run_id = struct.unpack("<HHIQ", await reader.readexactly(16))
                    answer = self._answer(kind, await reader.readexactly(length), run_id)
                    if answer is None:
                        continue
                    if answer is END:
                        return
                    ends = answer.endswith(b"<end>")
                    answer = answer.removesuffix(b"<end>")
                    writer.write(struct.pack(">BxxxI", 1, len(answer)) + answer)
                    if ends:
                        return
        finally:
            writer.close()

    def _answer(self, kind: int, payload: bytes, run_id: int) -> bytes | None:
        if kind == 1:
            return box_side.hello(payload[16:32]) if self.greets else None
        if kind == 11:
            return box_side.frame(143, payload + bytes(8), 0)
        if kind == 2:
            self.puts.append(payload[4:])
        if kind == 12:
            self.puts.append(b"<clear>")
            return box_side.frame(144, bytes(8), 0) if self.clears else END
        if kind == 4:
            step = 4 if self.puts[-1] in self.put_fails else self.put_step
            return box_side.frame(132, struct.pack("<II", step, 28 if step else 0), run_id)
        if kind == 9:
            return self.answers.pop(0)(run_id)
        return None


class Events:
    """What the engine is scripted to have said of the container."""

    def __init__(self, *actions: str, answers: bool = True) -> None:
        self.fate = (actions, answers)

    async def watch(self) -> "Events":
        return self

    async def fate_of(self, _container_id: str) -> tuple[tuple[str, ...], bool]:
        return self.fate

    def forget(self, container_id: str) -> None: ...


@pytest.fixture(autouse=True)
def _any_facts_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    assessed_as(monkeypatch, Assessment())


def assessed_as(monkeypatch: pytest.MonkeyPatch, found: Assessment) -> None:
    def assess(_policy: object, _facts: object) -> Assessment:
        return found

    monkeypatch.setattr(box_module, "assess", assess)


class Closed:
    times = 0

    def __call__(self) -> None:
        self.times += 1


async def opened(engine: Engine, events: Events | None = None, closed: Closed | None = None) -> Box:
    host = BoxHost(engine, events or Events(), {})  # pyright: ignore[reportArgumentType]
    return await Box.open(host, POLICY, (0,), closed or Closed())


def asked(**changed: object) -> BoxInvocation:
    fields: dict[str, object] = {
        "command": (b"/bin/true",), "command_is_submission": False, "environment": {}, "stdin": b"", "files": (),
        "collect": (), "limits": BENCH.limits(),
    }  # fmt: skip
    return BoxInvocation(**{**fields, **changed})  # pyright: ignore[reportArgumentType]


def ends_well(run_id: int) -> bytes:
    return box_side.result(run_id=run_id)


# ---- opening and closing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["create", "attach", "start"])
async def test_an_engine_that_refuses_a_step_leaves_no_container(step: str) -> None:
    engine, closed = Engine(), Closed()
    engine.fails_in = step
    with pytest.raises(NoBoxError) as raised:
        await opened(engine, closed=closed)
    assert (raised.value.failed.code, raised.value.failed.retryable) == (ReasonCode.HOST_DISK_FULL, True)
    assert not engine.alive
    assert closed.times == 1


@pytest.mark.parametrize("step", ["create", "attach", "start", "hello"])
async def test_a_cancellation_in_any_step_leaves_no_container(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_module, "_LATE_S", 0.05)
    engine, closed = Engine(), Closed()
    engine.hangs_in, engine.greets = step, step != "hello"
    with anyio.move_on_after(0.05) as scope:
        await opened(engine, closed=closed)
    assert scope.cancelled_caught
    assert not engine.alive
    assert closed.times == 1


@pytest.mark.parametrize("by_scope", [True, False], ids=["scope", "asyncio"])
async def test_a_container_that_is_created_after_the_cancellation_is_removed(by_scope: bool) -> None:
    engine, closed = Engine(), Closed()
    may_create = asyncio.Event()

    async def create(config: object, name: str | None = None) -> str:
        await may_create.wait()
        engine.alive.add("late")
        return "late"

    engine.create = create
    scope = anyio.CancelScope()

    async def open_one() -> None:
        with scope:
            await opened(engine, closed=closed)

    opening = asyncio.create_task(open_one())
    await asyncio.sleep(0.01)
    scope.cancel() if by_scope else opening.cancel()
    asyncio.get_running_loop().call_later(0.02, may_create.set)
    await asyncio.wait([opening], timeout=2)
    assert may_create.is_set()
    assert not engine.alive
    assert closed.times == 1


async def test_a_box_that_does_not_greet_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk_module, "ANSWER_WITHIN_S", 0.05)
    engine = Engine()
    engine.greets = False
    with pytest.raises(NoBoxError, match="no answer within") as raised:
        await opened(engine)
    assert raised.value.failed.retryable
    assert not engine.alive


async def test_a_box_that_differs_from_its_policy_is_refused_with_the_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assessed_as(monkeypatch, Assessment(differences=["Seccomp is 0, not 2"]))
    engine = Engine()
    with pytest.raises(NoBoxError, match="Seccomp is 0, not 2") as raised:
        await opened(engine)
    assert not raised.value.failed.retryable
    assert not engine.alive


async def test_closing_twice_removes_once_and_a_cancellation_does_not_stop_it() -> None:
    engine, closed = Engine(), Closed()
    box = await opened(engine, closed=closed)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await box.close()
    await box.close()
    assert not engine.alive
    assert closed.times == 1


async def test_a_box_that_answers_is_checked_and_one_that_is_gone_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box_module, "BELIEVED_FOR_S", 0)
    engine = Engine()
    box = await opened(engine)
    assert await box.check()
    engine.tasks[0].cancel()
    assert not await box.check()
    await box.close()


async def test_a_box_that_has_just_answered_is_believed_unless_its_stream_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(box_module, "BELIEVED_FOR_S", 60)
    engine = Engine()
    box = await opened(engine)
    engine.tasks[0].cancel()  # nobody is there who could answer
    assert await box.check()
    await box.close()
    assert not await box.check()


# ---- runs -----------------------------------------------------------------------------------------------------------


async def test_runs_follow_one_another_in_one_box() -> None:
    engine = Engine(lambda run: box_side.stream(1, b"hi", run) + printed(run), ends_well)
    box = await opened(engine)
    report = await box.run(asked(files=(SubmissionFile(b"in.txt", b"abc"),)))
    assert isinstance(report.outcome, RunOutcome)
    assert report.outcome.stdout.captured.kept == b"hi"
    assert report.outcome.command == (b"/bin/true",)
    assert (report.box_is_usable, report.box_is_as_new) == (True, True)
    assert engine.puts == [b"in.txt"]
    assert isinstance((await box.run(asked())).outcome, RunOutcome)
    assert box.uses == 2
    await box.close()


def printed(run_id: int) -> bytes:
    return box_side.result({"stdout_total": 2, "stdout_kept": 2}, run_id=run_id)


async def lost(engine: Engine, events: Events) -> Failed | RunOutcome:
    box = await opened(engine, events)
    try:
        return (await box.run(asked())).outcome
    except BoxLostError as error:
        return failure_of(error.loss)
    finally:
        await box.close()


LOSSES: dict[str, tuple[Answer, Events, ReasonCode, bool]] = {
    "died": (lambda _: END, Events("die"), ReasonCode.SUPERVISOR_LOST, False),
    "killed": (lambda _: END, Events("kill", "die"), ReasonCode.BOX_LOST, False),
    "engine": (lambda _: END, Events(answers=False), ReasonCode.ENGINE_UNREACHABLE, True),
    "oom, no counters": (lambda _: END, Events("oom", "die"), ReasonCode.SUPERVISOR_LOST, False),
    "oom, no hit": (lambda r: counters(r, 0) + b"<end>", Events("oom", "die"), ReasonCode.SUPERVISOR_LOST, False),
    "hit, no oom": (lambda r: counters(r, 5) + b"<end>", Events("die"), ReasonCode.SUPERVISOR_LOST, False),
    "other run": (lambda _: box_side.result(run_id=99), Events("die"), ReasonCode.SUPERVISOR_LOST, False),
    "rubbish": (lambda _: b"x" * 40, Events("die"), ReasonCode.SUPERVISOR_LOST, False),
    "two results": (lambda r: box_side.result(run_id=r) * 2, Events("die"), ReasonCode.SUPERVISOR_LOST, False),
    "fatal": (lambda _: box_side.frame(145, bytes(8) + b"x", 0), Events("die"), ReasonCode.SUPERVISOR_LOST, False),
}


@pytest.mark.parametrize("name", LOSSES)
async def test_a_box_lost_in_a_run_is_a_missing_run_with_its_reason(name: str) -> None:
    answer, events, code, retryable = LOSSES[name]
    engine = Engine(answer)
    outcome = await lost(engine, events)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.retryable) == (code, retryable)
    assert not engine.alive


async def test_a_supervisor_killed_for_memory_at_the_boxs_own_limit_is_evidence_about_the_program() -> None:
    outcome = await lost(Engine(lambda run: counters(run, 5) + b"<end>"), Events("oom", "die"))
    assert isinstance(outcome, RunOutcome)
    assert decide_ending(outcome, BENCH.limits()) == Ending(EndingKind.MEMORY_EXCEEDED)
    assert outcome.stdout.captured.total_bytes == 70


async def test_a_supervisor_that_never_answers_is_given_up_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(talk_module, "GRACE_S", 0.0)
    monkeypatch.setattr(talk_module, "SLOWEST_BYTES_PER_S", 2**40)
    box = await opened(Engine(lambda _: box_side.frame(134, bytes(8), 1)[:5]))
    with pytest.raises(BoxLostError, match=r"no answer within 0\.3 s"):
        await box.run(asked(limits=BENCH.limits(wall_time_s=0.1)))
    await box.close()


async def test_a_cancelled_run_removes_its_box_before_the_cancellation_goes_on() -> None:
    engine = Engine(lambda _: box_side.frame(134, bytes(8), 1)[:5])
    box = await opened(engine)
    with anyio.move_on_after(0.02) as scope:
        try:
            await box.run(asked())
        finally:
            assert not engine.alive
    assert scope.cancelled_caught


async def test_an_input_file_that_did_not_arrive_makes_the_run_unknown() -> None:
    engine = Engine(ends_well)
    box = await opened(engine)
    engine.put_step = 4
    report = await box.run(asked(files=(SubmissionFile(b"in.txt", b"abc"),)))
    assert isinstance(report.outcome, Failed)
    assert "in.txt could not be written into the box: No space left on device" in report.outcome.detail
    await box.close()


SMALL = (SubmissionFile(b"main.sh", b"x"),)
LARGE = (SubmissionFile(b"main.sh", bytes(talk_module.SMALL_TREE_BYTES + 1)),)
MANY = tuple(SubmissionFile(b"%d" % number, b"x") for number in range(talk_module.PUT_AHEAD + 1))


@pytest.mark.parametrize(("tree", "goes_with_the_run"), [((), True), (SMALL, True), (LARGE, False), (MANY, False)])
async def test_a_submission_that_does_not_fit_is_no_seat_and_a_small_one_goes_to_the_box_with_its_first_run(
    tree: tuple[SubmissionFile, ...], goes_with_the_run: bool
) -> None:
    engine = Engine(ends_well, ends_well, ends_well)
    box = await opened(engine)
    await box.fill(tree)
    await asyncio.sleep(0.01)
    paths = [file.path for file in tree]
    assert engine.puts == ([] if goes_with_the_run else paths)
    for _ in range(2):  # it goes there once
        assert isinstance((await box.run(asked())).outcome, RunOutcome)
        assert engine.puts == paths
    engine.put_step = 4

    async def fill_and_run() -> None:
        await box.fill(tree)
        await box.run(asked())

    if tree:
        with pytest.raises(NoBoxError, match=r"the submission: .* could not be written") as raised:
            await fill_and_run()
        assert not raised.value.failed.retryable
    await box.close()


async def test_which_file_did_not_fit_is_told_also_where_both_kinds_go_with_the_run() -> None:
    engine = Engine(ends_well)
    box = await opened(engine)
    await box.fill(SMALL)
    engine.put_fails = {b"in.txt"}
    report = await box.run(asked(files=(SubmissionFile(b"in.txt", b"abc"),)))
    assert isinstance(report.outcome, Failed)
    assert report.outcome.detail.startswith("an input file: in.txt could not be written")
    await box.close()


@pytest.mark.parametrize("what", ["the submission", "an input file"])
async def test_memory_that_ran_out_says_nothing_of_a_program_whose_files_were_not_all_there(what: str) -> None:
    tree, inputs = (SMALL, ()) if what == "the submission" else ((), (SubmissionFile(b"in.txt", b"abc"),))
    for fails in (False, True):
        engine = Engine(lambda run: counters(run, 5) + b"<end>")
        box = await opened(engine, Events("oom", "die"))
        await box.fill(tree)
        engine.put_step = 4 if fails else 0
        if fails:
            with pytest.raises(BoxLostError):
                await box.run(asked(files=inputs))
        else:
            assert isinstance((await box.run(asked(files=inputs))).outcome, RunOutcome)
        await box.close()


async def test_a_box_that_was_filled_is_emptied_before_it_is_filled_again() -> None:
    engine = Engine(ends_well, ends_well, ends_well)
    box = await opened(engine)
    for tree in (SMALL, LARGE, SMALL):
        await box.fill(tree)
        await box.run(asked())
    assert engine.puts == [b"main.sh", b"<clear>", b"main.sh", b"<clear>", b"main.sh"]
    await box.close()


async def test_a_box_in_which_a_compile_was_kept_is_emptied_too() -> None:
    engine = Engine(ends_well, ends_well)
    box = await opened(engine)
    await box.fill(())
    await box.run(asked(keeps_work=True))
    assert not engine.puts
    await box.fill(())
    await box.run(asked())
    assert engine.puts == [b"<clear>"]
    await box.close()


async def test_a_box_that_cannot_be_emptied_is_lost_and_runs_nothing() -> None:
    engine = Engine(ends_well, ends_well)
    box = await opened(engine)
    await box.fill(SMALL)
    await box.run(asked())
    engine.clears = False
    await box.fill(SMALL)
    with pytest.raises(BoxLostError):
        await box.run(asked())
    assert len(engine.answers) == 1  # the second run did not start
    await box.close()


@pytest.mark.parametrize(
    ("numbers", "usable", "as_new"),
    [
        ({"box_usable": 0}, False, False),
        ({"scrub": 2}, False, False),
        ({"oom_kills": 1, "memory_limit_hits": 1}, True, False),
        ({"survivors": 1}, True, False),
        ({"scrub": 1, "scrub_removed": 7}, True, True),
    ],
)
async def test_what_becomes_of_a_box_after_a_run(numbers: dict[str, int | None], usable: bool, as_new: bool) -> None:
    box = await opened(Engine(lambda run: box_side.result(numbers, run_id=run)))
    report = await box.run(asked())
    assert (report.box_is_usable, report.box_is_as_new) == (usable, as_new)
    await box.close()


@pytest.mark.parametrize("after", [0, 3, None])
async def test_how_much_came_after_main_is_told_of_a_silent_stream_too(after: int | None) -> None:
    box = await opened(Engine(lambda run: box_side.result({"stdout_after_main": after}, run_id=run)))
    outcome = (await box.run(asked())).outcome
    assert isinstance(outcome, RunOutcome)
    assert (outcome.stdout.captured.total_bytes, outcome.stdout.wrote_after_main_bytes) == (0, after)
    await box.close()


async def test_a_box_in_which_too_much_stayed_is_not_as_new() -> None:
    sizes = [10 * 2**20, 41 * 2**20, 43 * 2**20]

    def answer(run_id: int) -> bytes:
        return box_side.result({"memory_before_bytes": sizes.pop(0)}, run_id=run_id)

    box = await opened(Engine(answer, answer, answer))
    assert [(await box.run(asked())).box_is_as_new for _ in range(3)] == [True, True, False]
    await box.close()


async def test_a_program_that_could_not_be_started_for_our_cause_may_be_tried_again() -> None:
    box = await opened(Engine(lambda run: box_side.result({"start_step": 5, "ended_by": 0}, run_id=run)))
    report = await box.run(asked())
    assert isinstance(report.outcome, Failed)
    assert report.outcome.retryable
    assert not report.box_is_usable
    await box.close()


async def test_an_exec_that_failed_is_the_cores_to_judge() -> None:
    failed: dict[str, int | None] = {"start_step": 9, "start_errno": 2, "ended_by": 0}

    def answer(run_id: int) -> bytes:
        return box_side.result(failed, run_id=run_id)

    box = await opened(Engine(answer, answer))
    ours = await box.run(asked())
    assert isinstance(ours.outcome, RunOutcome)
    assert isinstance(decide_ending(ours.outcome, BENCH.limits()), NoEnding)
    theirs = await box.run(asked(command_is_submission=True))
    assert isinstance(theirs.outcome, RunOutcome)
    assert decide_ending(theirs.outcome, BENCH.limits()) == Ending(EndingKind.CANNOT_START, 2)
    await box.close()


async def test_arguments_beyond_what_any_kernel_takes_cannot_start_and_are_not_sent() -> None:
    box = await opened(Engine())
    report = await box.run(asked(command=(b"x",) + (b"y" * 2**20,) * 5))
    assert isinstance(report.outcome, RunOutcome)
    assert decide_ending(report.outcome, BENCH.limits()) == Ending(EndingKind.CANNOT_START, 7)
    assert await box.check()
    await box.close()


@pytest.mark.parametrize(
    ("numbers", "peak", "source"),
    [
        ({"max_rss_bytes": 50, "sampled_peak_bytes": 40, "memory_before_bytes": 10}, 50, "rusage"),
        ({"max_rss_bytes": 50, "sampled_peak_bytes": 90, "memory_before_bytes": 10}, 80, "sampled"),
        (
            {"max_rss_bytes": 5, "sampled_peak_bytes": 6, "cgroup_peak_bytes": 9, "cgroup_peak_before_bytes": 8},
            9, "cgroup",
        ),
        (
            {"max_rss_bytes": 5, "sampled_peak_bytes": None, "cgroup_peak_bytes": 9, "cgroup_peak_before_bytes": 9},
            5, "rusage",
        ),
        ({"max_rss_bytes": None, "sampled_peak_bytes": None, "cgroup_peak_bytes": None}, None, None),
    ],
)  # fmt: skip
async def test_peak_memory_is_the_largest_known_and_says_which(
    numbers: dict[str, int | None], peak: int | None, source: str | None
) -> None:
    box = await opened(Engine(lambda run: box_side.result(numbers, run_id=run)))
    outcome = (await box.run(asked())).outcome
    assert isinstance(outcome, RunOutcome)
    assert (outcome.measures.peak_memory_bytes, outcome.measures.peak_memory_source) == (peak, source)
    await box.close()


@pytest.mark.parametrize(("complete", "expected"), [(1, EndingKind.EXITED), (0, EndingKind.FILE_SIZE_EXCEEDED)])
async def test_a_compile_that_leaves_more_than_may_be_kept_has_broken_a_limit(
    complete: int, expected: EndingKind
) -> None:
    def answer(run_id: int) -> bytes:
        begin = box_side.frame(138, bytes([1]) + bytes(7) + struct.pack("<Q", 2) + b"bin/x", run_id)
        data = box_side.frame(139, b"hi", run_id)
        end = box_side.frame(141, struct.pack("<4Q", complete, 1, 2, 0), run_id)
        return begin + data + end + box_side.result(run_id=run_id)

    box = await opened(Engine(answer))
    report = await box.run(asked(keeps_work=True))
    assert isinstance(report.outcome, RunOutcome)
    ending = decide_ending(report.outcome, BENCH.limits())
    assert isinstance(ending, Ending)
    assert ending.kind is expected
    assert report.kept == (SubmissionFile(b"bin/x", b"hi", executable=True),)
    await box.close()
