"""The seat: which box a run gets under each isolation, what becomes of the box, and one compile for all of it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio
import pytest

from grader.core.captured import Captured
from grader.core.outcomes import Measures, RunOutcome, StreamOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Ear, Failed, Isolation, Port, PortSeen, Program, Reply
from grader.sandbox.bench import Bench
from grader.sandbox.docker.box_runs import BoxInvocation, BoxKind, BoxReport, NoBoxError, Tree
from grader.sandbox.docker.losses import BoxLoss, BoxLostError, LossBudget
from grader.sandbox.docker.seat import BOXES_PER_SEAT, SHARED_USES, CompileCache, DockerSeat, SeatServices
from grader.sandbox.fake import FakeSandbox, in_order

pytestmark = pytest.mark.anyio
BENCH = Bench(FakeSandbox(in_order()), ProfileInForce(name="any", image_id="sha256:1"))
KEPT = (SubmissionFile(b"made", b"product", executable=True),)
LOST = BoxLostError(BoxLoss("eof", has_begun=True))


def outcome(exit_code: int = 0) -> RunOutcome:
    nothing = StreamOutcome(captured=Captured.whole(b""))
    measures = Measures(exit_code=exit_code, wall_time_ns=1)
    return RunOutcome(command=(b"x",), command_is_submission=False, measures=measures, stdout=nothing, stderr=nothing)


Answers = Callable[[BoxInvocation], BoxReport]


class Box:
    cpus = (0,)

    def __init__(self, boxes: "Boxes", kind: BoxKind) -> None:
        self._boxes = boxes
        self.kind = kind
        self.uses = 0
        self.tree: Tree | None = None

    async def fill(self, tree: Tree) -> None:
        self.tree = tree

    async def run(self, asked: BoxInvocation, ear: Ear | None = None) -> BoxReport:
        self.uses += 1
        self._boxes.ears.append(ear)
        self._boxes.asked.append((asked, self.tree))
        report = self._boxes.answer(asked)
        if asked.keeps_work:
            self.tree = report.kept
        await anyio.lowlevel.checkpoint()
        return report


class Boxes:
    """A box source that knows where every box is."""

    def __init__(self, answer: Answers) -> None:
        self.answer = answer
        self.opened: list[Box] = []
        self.stock: list[tuple[BoxKind, Box]] = []
        self.out: set[Box] = set()
        self.discarded: list[Box] = []
        self.asked: list[tuple[BoxInvocation, Tree | None]] = []
        self.ears: list[Ear | None] = []

    async def claim(self, kind: BoxKind) -> Box:
        for entry in self.stock:
            if entry[0] == kind:
                self.stock.remove(entry)
                self.out.add(entry[1])
                return entry[1]
        box = Box(self, kind)
        self.opened.append(box)
        self.out.add(box)
        return box

    def give_back(self, kind: BoxKind, box: object) -> None:
        assert isinstance(box, Box)
        self.out.remove(box)
        self.stock.append((kind, box))

    def discard(self, box: object) -> None:
        assert isinstance(box, Box)
        self.out.remove(box)
        self.discarded.append(box)


@dataclass
class Setting:
    boxes: Boxes
    services: SeatServices

    def seat(self, program: Program | None = None) -> DockerSeat:
        return DockerSeat(program if program is not None else BENCH.probe(), self.services)


def setting(answer: Answers | None = None, isolation: Isolation = "submission") -> Setting:
    @asynccontextmanager
    async def slot(_cpus: tuple[int, ...]) -> AsyncGenerator[None]:
        yield

    def well(asked: BoxInvocation) -> BoxReport:
        return BoxReport(outcome(), kept=KEPT if asked.keeps_work else None)

    boxes = Boxes(answer if answer is not None else well)
    return Setting(boxes, SeatServices(isolation, boxes, slot, LossBudget(), CompileCache()))


def raises(error: Exception) -> Answers:
    def answer(_asked: BoxInvocation) -> BoxReport:
        raise error

    return answer


@pytest.mark.parametrize(("isolation", "opened"), [("run", 3), ("submission", 1), ("shared", 1)])
async def test_a_fresh_box_for_every_run_or_for_every_submission(isolation: Isolation, opened: int) -> None:
    s = setting(isolation=isolation)
    seat = s.seat()
    for _ in range(3):
        assert isinstance(await seat.run(BENCH.invocation(b"right")), RunOutcome)
    seat.leave()
    assert len(s.boxes.opened) == opened
    assert not s.boxes.out
    assert all(tree == BENCH.probe().files for _, tree in s.boxes.asked)


class SilentEar:
    port = Port(4318)

    def hear(self, connection: int, data: bytes) -> Reply:
        del connection, data
        return Reply()

    def finish(self, seen: PortSeen) -> None: ...


async def test_whoever_listens_to_a_run_is_handed_to_its_box_and_the_run_gets_the_port() -> None:
    s, ear = setting(), SilentEar()
    seat = s.seat()
    invocation = BENCH.invocation(b"right")
    for listens in (None, ear, None):
        await seat.run(invocation, listens)
    seat.leave()
    assert s.boxes.ears == [None, ear, None]
    assert [asked.port for asked, _ in s.boxes.asked] == [None, ear.port, None]


@pytest.mark.parametrize(("isolation", "opened"), [("submission", 2), ("shared", 1)])
async def test_only_shared_boxes_serve_the_next_submission(isolation: Isolation, opened: int) -> None:
    s = setting(isolation=isolation)
    trees = [(SubmissionFile(b"main.sh", name.encode()),) for name in "ab"]
    for tree in trees:
        seat = s.seat(replace(BENCH.probe(submission_digest=tree[0].content.hex()), files=tree))
        for _ in range(2):
            await seat.run(BENCH.invocation(b"right"))
        seat.leave()
    assert len(s.boxes.opened) == opened
    assert [tree for _, tree in s.boxes.asked] == [trees[0], trees[0], trees[1], trees[1]]


@pytest.mark.parametrize(
    ("report", "stays_for_shared", "stays_for_submission"),
    [
        (BoxReport(outcome()), True, True),
        (BoxReport(outcome(), box_is_as_new=False), False, True),
        (BoxReport(outcome(), box_is_usable=False), False, False),
    ],
)
async def test_a_box_is_replaced_after_anything_unusual(
    report: BoxReport, stays_for_shared: bool, stays_for_submission: bool
) -> None:
    for isolation, stays in (("shared", stays_for_shared), ("submission", stays_for_submission)):
        s = setting(lambda _: report, isolation)  # pyright: ignore[reportArgumentType]
        seat = s.seat()
        await seat.run(BENCH.invocation(b"right"))
        assert bool(s.boxes.out) is stays
        seat.leave()
        assert not s.boxes.out


async def test_a_shared_box_is_replaced_when_it_was_used_often() -> None:
    s = setting(isolation="shared")
    seat = s.seat()
    await seat.run(BENCH.invocation(b"right"))
    box = next(iter(s.boxes.out))
    box.uses = SHARED_USES - 1
    await seat.run(BENCH.invocation(b"right"))
    assert s.boxes.discarded == [box]
    await seat.run(BENCH.invocation(b"right"))
    seat.leave()
    assert [box.uses for _, box in s.boxes.stock] == [1]


async def test_other_memory_takes_another_box_and_few_are_kept() -> None:
    s = setting()
    seat = s.seat()
    for memory in (1, 2, 3, 4, 5, 5, 4):
        await seat.run(BENCH.invocation(b"right", limits=BENCH.limits(memory_bytes=memory * 2**24)))
    assert len(s.boxes.opened) == 5
    assert len(s.boxes.out) == BOXES_PER_SEAT
    seat.leave()
    assert not s.boxes.out


async def test_a_lost_box_is_a_missing_run_and_the_next_run_gets_another_box() -> None:
    errors = [LOST]

    def answer(_asked: BoxInvocation) -> BoxReport:
        if errors:
            raise errors.pop()
        return BoxReport(outcome())

    s = setting(answer)
    seat = s.seat()
    lost = await seat.run(BENCH.invocation(b"right"))
    assert isinstance(lost, Failed)
    assert lost.code is ReasonCode.SUPERVISOR_LOST
    assert isinstance(await seat.run(BENCH.invocation(b"right")), RunOutcome)
    assert len(s.boxes.opened) == 2
    assert [tree for _, tree in s.boxes.asked] == [BENCH.probe().files] * 2


async def test_a_submission_that_destroys_its_boxes_gets_no_further_one() -> None:
    s = setting(raises(LOST))
    last: object = None
    for _ in range(20):  # a new seat each time, as the runner does it
        seat = s.seat()
        last = await seat.run(BENCH.invocation(b"right"))
        seat.leave()
    assert len(s.boxes.opened) == 8
    assert isinstance(last, Failed)
    assert (last.code, last.retryable) == (ReasonCode.BOX_LOST, False)


async def test_losses_for_which_no_program_is_to_blame_do_not_count() -> None:
    s = setting(raises(BoxLostError(BoxLoss("eof", has_begun=True, engine_answers=False))))
    seat = s.seat()
    for _ in range(20):
        last = await seat.run(BENCH.invocation(b"right"))
        assert isinstance(last, Failed)
        assert last.code is ReasonCode.ENGINE_UNREACHABLE


async def test_no_box_is_a_missing_run() -> None:
    failed = Failed(ReasonCode.IMAGE_MISSING, "no such image", retryable=False)
    s = setting()

    async def claim(kind: BoxKind) -> Box:
        raise NoBoxError(failed)

    s.boxes.claim = claim
    assert await s.seat().run(BENCH.invocation(b"right")) == failed


async def test_a_cancelled_run_gives_its_box_away() -> None:
    s = setting()
    seat = s.seat()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await seat.run(BENCH.invocation(b"right"))
    assert not s.boxes.out
    assert len(s.boxes.discarded) == 1


def compiling(**changed: object) -> Program:
    profile = BENCH.profile.model_copy(update={"compile_limits": BENCH.limits()})
    return replace(BENCH.probe(profile=profile, compile_command=(b"cc",)), **changed)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("isolation", ["run", "submission", "shared"])
async def test_the_compiled_tree_goes_into_every_box_and_is_compiled_once(isolation: Isolation) -> None:
    s = setting(isolation=isolation)
    for _ in range(2):
        seat = s.seat(compiling())
        assert await seat.prepare() is None
        assert seat.compiled is not None
        for memory in (64, 128):
            limits = BENCH.limits(memory_bytes=memory * 2**20)
            await seat.run(BENCH.invocation(b"right", limits=limits))
        seat.leave()
    compiles = [asked for asked, _ in s.boxes.asked if asked.keeps_work]
    assert [(asked.command, asked.files) for asked in compiles] == [((b"cc",), BENCH.probe().files)]
    assert [tree for asked, tree in s.boxes.asked if asked.keeps_work] == [
        ()
    ]  # not beside what a shared box had before
    assert [tree for asked, tree in s.boxes.asked if not asked.keeps_work] == [KEPT] * 4


async def test_a_failed_compile_is_recorded_and_not_remembered() -> None:
    s = setting(lambda _: BoxReport(outcome(exit_code=1)))
    for _ in range(2):
        seat = s.seat(compiling())
        assert await seat.prepare() is None
        assert seat.compiled is not None
        assert seat.compiled.outcome is not None
    assert len(s.boxes.asked) == 2


async def test_a_compile_whose_files_were_lost_is_our_failure() -> None:
    s = setting(lambda _: BoxReport(outcome(), kept=None))
    assert isinstance(await s.seat(compiling()).prepare(), Failed)


async def test_a_compile_that_cannot_be_tried_again_is_a_record_of_a_missing_run() -> None:
    s = setting(raises(LOST))
    seat = s.seat(compiling())
    assert await seat.prepare() is None
    assert seat.compiled is not None
    assert seat.compiled.missing is not None
    s = setting(raises(BoxLostError(BoxLoss("eof", has_begun=False))))
    assert isinstance(await s.seat(compiling()).prepare(), Failed)


async def test_another_submission_command_or_profile_is_compiled_anew() -> None:
    s = setting()
    other_profile = compiling().profile.model_copy(update={"image_id": "sha256:2"})
    for program in (compiling(), compiling(submission_digest="b"), compiling(compile_command=(b"cc", b"-O2"))):
        await s.seat(program).prepare()
    await s.seat(compiling(profile=other_profile)).prepare()
    assert len(s.boxes.asked) == 4


async def test_the_compile_cache_is_bounded() -> None:
    big = (SubmissionFile(b"big", bytes(30)),)
    s = setting(lambda _: BoxReport(outcome(), kept=big))
    s = Setting(s.boxes, replace(s.services, compile_cache=CompileCache(most_bytes=140)))
    for digest in "abcdea":
        await s.seat(compiling(submission_digest=digest)).prepare()
    assert len(s.boxes.asked) == 6
    await s.seat(compiling(submission_digest="e")).prepare()
    assert len(s.boxes.asked) == 6
