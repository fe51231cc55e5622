"""A seat on Docker: a submission under one profile, its compiled tree, and the boxes it runs in.

Boxes may be lost and replaced at any time; the tree goes with the submission, so a new box is as good as the old one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from grader.core.canonical import digest
from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.limits import EffectiveLimits
from grader.core.observation import CompileRecord, MissingRun
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Ear, Failed, Isolation, Port, Program
from grader.sandbox.docker.box_runs import BoxInvocation, BoxKind, BoxReport, NoBoxError, Tree
from grader.sandbox.docker.losses import BoxLostError, LossBudget, failure_of
from grader.sandbox.docker.slots import NoSlotError

BOXES_PER_SEAT = 3
"""A seat whose cases have different limits keeps this many kinds of boxes open."""
SHARED_USES = 500
"""A shared box is replaced after so many runs."""
_ENDED_WELL = Ending(EndingKind.EXITED, 0)


class SeatBox(Protocol):
    """What a seat needs of a box."""

    @property
    def cpus(self) -> tuple[int, ...]:
        """The CPUs it is bound to."""
        ...

    @property
    def uses(self) -> int:
        """How many runs it has served."""
        ...

    async def fill(self, tree: Tree) -> None:
        """Put files into `/submission`, in the place of what is there. Raises NoBoxError, BoxLostError; where that
        was put off until the first run, that raises them."""
        ...

    async def run(self, asked: BoxInvocation, ear: Ear | None = None) -> BoxReport:
        """Run it; `ear` hears what comes to its port.

        Raises BoxLostError if the box is lost meanwhile (but not for memory: that is an outcome).
        """
        ...


class BoxSource(Protocol):
    """Where a seat gets its boxes from."""

    async def claim(self, kind: BoxKind) -> SeatBox:
        """A fresh box, or for the isolation `shared` one that is as good as new. Raises NoBoxError."""
        ...

    def give_back(self, kind: BoxKind, box: SeatBox) -> None:
        """A box that is as good as new but for its `/submission`, for the next submission."""
        ...

    def discard(self, box: SeatBox) -> None:
        """A box that is not needed any more: it is closed in the background."""
        ...


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compile run, and the tree that it left; None if it did not end well."""

    record: CompileRecord
    tree: Tree | None


class CompileCache:
    """Trees of compile runs that ended well, the last used ones, by everything that they depend on."""

    def __init__(self, most_bytes: int = 128 * 2**20) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._known: OrderedDict[str, Compiled] = OrderedDict()

    def get(self, program: Program) -> Compiled | None:
        """What is known of this program."""
        key = _compile_key(program)
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, program: Program, compiled: Compiled) -> None:
        """Remember it if it ended well, and is not larger than a quarter of all that may be remembered."""
        size = _size(compiled)
        if compiled.tree is None or size > self._most_bytes // 4:
            return
        self._known[_compile_key(program)] = compiled
        self._bytes += size
        while self._bytes > self._most_bytes:
            self._bytes -= _size(self._known.popitem(last=False)[1])


def _size(compiled: Compiled) -> int:
    return sum(len(file.content) + len(file.path) for file in compiled.tree or ())


def _compile_key(program: Program) -> str:
    limits = program.profile.compile_limits
    command = [argument.hex() for argument in program.compile_command or ()]
    return digest(
        {
            "submission": program.submission_digest,
            "profile": program.profile.fingerprint,
            "environment": program.profile.environment,
            "command": command,
            "limits": None if limits is None else limits.model_dump(),
        }
    )


@dataclass(frozen=True, slots=True)
class SeatServices:
    """What all seats of a sandbox share."""

    isolation: Isolation
    boxes: BoxSource
    slot: Callable[[tuple[int, ...]], AbstractAsyncContextManager[None]]
    """The slots of a box's CPUs, held while a run is on."""
    budget: LossBudget
    compile_cache: CompileCache


class DockerSeat:
    """Runs the invocations of one submission under one profile, one after the other."""

    def __init__(self, program: Program, services: SeatServices) -> None:
        self._program = program
        self._services = services
        self._tree: Tree = program.files
        self._compiled: CompileRecord | None = None
        self._boxes: OrderedDict[BoxKind, SeatBox] = OrderedDict()
        self._is_busy = False
        self._last: tuple[Invocation, BoxInvocation] | None = None  # a repetition is the very same invocation
        self._limits: EffectiveLimits | None = None
        self._last_kind: BoxKind

    @property
    def compiled(self) -> CompileRecord | None:
        """The compile run; None if the profile does not compile."""
        return self._compiled

    async def prepare(self) -> Failed | None:
        """Compile, if the profile says so. Returns why it could not be done, if another attempt may be made."""
        program = self._program
        if program.compile_command is None:
            return None
        compiled = self._services.compile_cache.get(program)
        if compiled is None:
            compiled = await self._compile(program, program.compile_command)
        if isinstance(compiled, Failed):
            return compiled
        self._services.compile_cache.put(program, compiled)
        self._compiled = compiled.record
        self._tree = compiled.tree if compiled.tree is not None else ()
        return None

    async def run(self, invocation: Invocation, ear: Ear | None = None) -> RunOutcome | Failed:
        """Execute one invocation; see `Seat`."""
        if self._is_busy:
            raise RuntimeError("a seat runs one invocation at a time")
        self._is_busy = True
        try:
            report = await self._run(self._in_box(invocation, ear.port if ear is not None else None), ear)
        finally:
            self._is_busy = False
        return report.outcome if isinstance(report, BoxReport) else report

    def leave(self) -> None:
        """Give the boxes back, or away."""
        while self._boxes:
            self._part_with(*self._boxes.popitem())

    def abandon(self) -> None:
        """Give the boxes away without another word to them: the seat was cancelled."""
        while self._boxes:
            self._services.boxes.discard(self._boxes.popitem()[1])

    async def _run(self, asked: BoxInvocation, ear: Ear | None = None) -> BoxReport | Failed:
        """One run in a box of the seat. Whatever ends it early, no box is forgotten."""
        refusal = self._services.budget.refusal(self._program.submission_digest)
        if refusal is not None:
            return refusal
        kind = self._kind(asked.limits)
        try:
            box, is_new = await self._box(kind)
            try:
                if is_new:
                    await box.fill(() if asked.keeps_work else self._tree)
                async with self._services.slot(box.cpus):
                    report = await box.run(asked, ear)
                    if self._may_stay(box, report):
                        self._boxes[kind] = box
                    return report
            finally:
                if self._boxes.get(kind) is not box:
                    self._services.boxes.discard(box)
        except NoBoxError as error:
            return error.failed
        except NoSlotError as error:
            return Failed(ReasonCode.HOST_STARVED, str(error), retryable=True)
        except BoxLostError as error:
            if error.loss.has_begun and error.loss.engine_answers:
                self._services.budget.note(self._program.submission_digest)
            return failure_of(error.loss)

    async def _box(self, kind: BoxKind) -> tuple[SeatBox, bool]:
        """A box of this kind, taken out of the seat's, and whether it is new. The taker puts it back or away."""
        box = self._boxes.pop(kind, None)
        if box is not None:
            return box, False
        while len(self._boxes) >= BOXES_PER_SEAT:
            self._part_with(*self._boxes.popitem(last=False))
        return await self._services.boxes.claim(kind), True

    def _kind(self, limits: EffectiveLimits) -> BoxKind:
        """The kind of box for these limits: mostly those of the last run, the very same object."""
        if limits is not self._limits:
            self._limits, self._last_kind = limits, BoxKind.of(self._program.profile, limits)
        return self._last_kind

    def _may_stay(self, box: SeatBox, report: BoxReport) -> bool:
        if self._services.isolation == "run" or not report.box_is_usable:
            return False
        if self._services.isolation == "submission":
            return True
        return report.box_is_as_new and box.uses < SHARED_USES

    def _part_with(self, kind: BoxKind, box: SeatBox) -> None:
        """Boxes that are not as good as new have not stayed, see `_may_stay`."""
        if self._services.isolation == "shared":
            self._services.boxes.give_back(kind, box)
        else:
            self._services.boxes.discard(box)

    def _in_box(self, invocation: Invocation, port: Port | None) -> BoxInvocation:
        if self._last is not None and self._last[0] is invocation and self._last[1].port == port:
            return self._last[1]
        files = tuple(SubmissionFile(f.name, f.content, f.executable) for f in invocation.files)
        asked = BoxInvocation(
            command=(*self._program.run_command, *invocation.arguments),
            command_is_submission=self._program.command_is_submission,
            environment=invocation.environment,
            stdin=invocation.stdin,
            files=files,
            collect=invocation.collect,
            limits=invocation.limits,
            port=port,
        )
        self._last = (invocation, asked)
        return asked

    async def _compile(self, program: Program, command: tuple[bytes, ...]) -> Compiled | Failed:
        limits = program.profile.compile_limits
        if limits is None:
            raise ValueError(f"profile {program.profile.name} has a compile command, but no limits for it")
        asked = BoxInvocation(
            command=command,
            command_is_submission=False,
            environment={name: value.encode() for name, value in program.profile.environment.items()},
            stdin=b"",
            files=program.files,
            collect=(),
            limits=limits,
            keeps_work=True,
        )
        report = await self._run(asked)
        outcome = report.outcome if isinstance(report, BoxReport) else report
        name = program.profile.name
        if isinstance(outcome, Failed):
            missing = MissingRun(code=outcome.code, detail=outcome.detail)
            record = CompileRecord(profile=name, limits=limits, missing=missing)
            return outcome if outcome.retryable else Compiled(record, None)
        record = CompileRecord(profile=name, limits=limits, outcome=outcome)
        if decide_ending(outcome, limits) != _ENDED_WELL:
            return Compiled(record, None)
        kept = report.kept if isinstance(report, BoxReport) else None
        if kept is None:  # without its tree the seat would run nothing, and blame the program for it
            return Failed(ReasonCode.BOX_LOST, "the compile command ended well, but its files are not here", False)
        return Compiled(record, kept)
