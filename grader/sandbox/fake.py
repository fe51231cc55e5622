"""A scripted sandbox: no engine, no process, no waiting. For the tests of those who use grader, and for our own.

A *script* is asked once for every run what the program does: it gets the `Call` and gives a `Behaviour` (the program
did this), a `Failed` (the sandbox could not), or `HANGS` (no answer until cancelled). Limits are applied here as a real
sandbox applies them, so a behaviour says what the program *would* do and the outcome what it got to do:

    def script(call: Call) -> Answer:
        return Behaviour(stdout=call.invocation.stdin.upper())

    async with FakeSandbox(script) as sandbox: ...

Time is that of a `Clock` (fake_clock.py). The default one never waits: a program that takes an hour returns at once,
with an hour on its measures. A `HeldClock` lets a test decide when the time has come.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from grader.core.canonical import sha256_hex
from grader.core.captured import Captured
from grader.core.limits import EffectiveLimits, nanoseconds
from grader.core.observation import CompileRecord, MissingRun
from grader.core.outcomes import FileOutcome, Measures, RunOutcome, StopCause, StreamOutcome
from grader.core.plan import Invocation
from grader.sandbox.base import Ear, Facts, Failed, ImageSource, Port, PortSeen, Program, Sandbox, Seat
from grader.sandbox.fake_clock import Clock, InstantClock

SIGKILL = 9
SIGXFSZ = 25


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a program does when nothing stops it."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int = 0
    signal: int | None = None
    """The signal that ends it, instead of the exit code."""
    start_error: int | None = None
    """errno of an exec that fails; then the program does nothing else."""
    files: Mapping[bytes, bytes | str] = field(default_factory=dict[bytes, bytes | str])
    """Files that it leaves in its work folder. A string instead of bytes: what the name is instead of a file, e.g.
    `fifo`."""
    cpu_time_s: float = 0.001
    wall_time_s: float = 0.002
    """`math.inf`: it never ends by itself."""
    peak_memory_bytes: int = 2**20
    """Above the limit: the kernel kills a process of the run. Whether it was the main one is said by `signal`."""
    sends: tuple[tuple[bytes, ...], ...] = ()
    """What it sends to its port: a connection each, one after the other, as the pieces in which its bytes arrive. A
    connection that the other side closes is not sent the rest. Without a port, nobody hears it."""
    measures: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields of `Measures` to be reported exactly so, whatever follows from the rest."""


@dataclass(frozen=True, slots=True)
class Hangs:
    """The sandbox never answers: only a cancellation ends the run."""


HANGS: Final = Hangs()

Answer = Behaviour | Failed | Hangs
"""What a script can say to a run."""


@dataclass(frozen=True, slots=True)
class Call:
    """One run that was asked for."""

    program: Program
    invocation: Invocation
    number: int
    """How many runs the sandbox was asked for before this one."""
    repeat: int
    """How many of those were of this submission, with this invocation."""
    port: Port | None = None
    """Where it can connect to; None: nowhere."""


Script = Callable[[Call], Answer]
CompileScript = Callable[[Program], Answer]


def in_order(*answers: Answer) -> Script:
    """A script that gives these answers one after the other, whatever is asked. Raises LookupError for one more."""

    def script(call: Call) -> Answer:
        if call.number >= len(answers):
            raise LookupError(f"the script has {len(answers)} answers; run number {call.number + 1} was asked for")
        return answers[call.number]

    return script


class FakeSandbox:
    """A `Sandbox` that runs a script. `compiles` is asked for programs that have a compile command.

    `calls` has every run asked for so far, `compile_count` the compilations, `seats_open` the seats not yet given back.
    """

    def __init__(
        self,
        script: Script,
        *,
        compiles: CompileScript | None = None,
        clock: Clock | None = None,
        facts: Facts | None = None,
    ) -> None:
        self._script = script
        self._compiles = compiles
        self._clock = clock if clock is not None else InstantClock()
        self._facts = facts if facts is not None else Facts(host={"engine": "fake"})
        self.calls: list[Call] = []
        self.answers: list[tuple[bytes, ...]] = []
        """For every run with a port, what each of its connections was answered."""
        self.compile_count = 0
        self.seats_open = 0
        self.is_open = False

    @property
    def facts(self) -> Facts:
        """What was given; by default only that the engine is a fake."""
        return self._facts

    async def __aenter__(self) -> Sandbox:
        self.is_open = True
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.is_open = False

    async def image(self, source: ImageSource, progress: Callable[[str], None]) -> str:
        """An id that names the source; nothing is built."""
        del progress
        return f"fake:{source.folder.name if source.folder is not None else source.reference}"

    @asynccontextmanager
    async def prepare(self, program: Program) -> AsyncGenerator[Seat | Failed]:
        """A seat for the program, compiled as the compile script says."""
        if not self.is_open:
            raise RuntimeError("the sandbox is not open: use it as `async with`")
        compiled = await self._compile(program)
        if isinstance(compiled, Failed):
            yield compiled
            return
        self.seats_open += 1
        try:
            yield _FakeSeat(self, program, compiled)
        finally:
            self.seats_open -= 1

    async def execute(self, program: Program, invocation: Invocation, ear: Ear | None = None) -> RunOutcome | Failed:
        """One run by the script: what a seat does."""
        same = sum(
            call.invocation.digest == invocation.digest and call.program.submission_digest == program.submission_digest
            for call in self.calls
        )
        call = Call(program, invocation, len(self.calls), same, ear.port if ear is not None else None)
        self.calls.append(call)
        answer = self._script(call)
        if not isinstance(answer, Behaviour):
            return await _no_behaviour(answer)
        command = (*program.run_command, *invocation.arguments)
        present = {file.name: file.content for file in invocation.files}
        if ear is not None:
            self.answers.append(_sent(answer, ear))
        return await self._play(answer, command, program.command_is_submission, invocation, present)

    async def _compile(self, program: Program) -> CompileRecord | Failed | None:
        if program.compile_command is None:
            return None
        limits = program.profile.compile_limits
        if limits is None:
            raise ValueError(f"profile {program.profile.name} has a compile command, but no limits for it")
        self.compile_count += 1
        answer = self._compiles(program) if self._compiles is not None else Behaviour()
        if isinstance(answer, Failed):
            missing = MissingRun(code=answer.code, detail=answer.detail)
            return (
                answer
                if answer.retryable
                else CompileRecord(profile=program.profile.name, limits=limits, missing=missing)
            )
        if isinstance(answer, Hangs):
            return await _no_behaviour(answer)
        invocation = Invocation(
            profile=program.profile.name,
            arguments=(),
            stdin=b"",
            environment={},
            files=(),
            collect=(),
            limits=limits,
        )
        outcome = await self._play(answer, program.compile_command, False, invocation, {})
        return CompileRecord(profile=program.profile.name, limits=limits, outcome=outcome)

    async def _play(
        self,
        wanted: Behaviour,
        command: tuple[bytes, ...],
        command_is_submission: bool,
        invocation: Invocation,
        present: Mapping[bytes, bytes | str],
    ) -> RunOutcome:
        limits = invocation.limits
        got = within_limits(wanted, limits)
        measures = measures_of(got, wanted, limits)
        await self._clock.sleep(measures.wall_time_ns / 1e9)
        files = {**present, **got.files}
        return RunOutcome(
            command=command,
            command_is_submission=command_is_submission,
            measures=measures,
            stdout=StreamOutcome(captured=captured(got.stdout, limits.stdout_bytes)),
            stderr=StreamOutcome(captured=captured(got.stderr, limits.stderr_kept_bytes)),
            files=tuple(_collected(name, files.get(name), limits) for name in invocation.collect),
        )


class _FakeSeat:
    def __init__(self, sandbox: FakeSandbox, program: Program, compiled: CompileRecord | None) -> None:
        self._sandbox = sandbox
        self._program = program
        self._compiled = compiled
        self._is_busy = False

    @property
    def compiled(self) -> CompileRecord | None:
        return self._compiled

    async def run(self, invocation: Invocation, ear: Ear | None = None) -> RunOutcome | Failed:
        if self._is_busy:
            raise RuntimeError("a seat runs one invocation at a time")
        self._is_busy = True
        try:
            return await self._sandbox.execute(self._program, invocation, ear)
        finally:
            self._is_busy = False


def _sent(behaviour: Behaviour, ear: Ear) -> tuple[bytes, ...]:
    """Let the ear hear what a program sends, within the bounds of its port; what it answers."""
    port, received, answers = ear.port, 0, list[bytes]()
    is_full, is_over, refused = False, False, 0
    for number, pieces in enumerate(() if behaviour.start_error is not None else behaviour.sends, start=1):
        if number > port.connections_in_all or is_full or is_over:
            refused = 0 if is_full or is_over else 1  # beyond the first one nobody listens any more
            break
        said = b""
        for piece in (*pieces, b""):
            is_full = received + len(piece) > port.most_bytes
            received += 0 if is_full else len(piece)
            reply = ear.hear(number, b"" if is_full else piece)
            said += reply.data
            is_over = reply.ends_port
            if reply.closes or is_full or is_over:
                break
        answers.append(said)
    ear.finish(PortSeen(len(answers), refused, received, is_full))
    return tuple(answers)


def captured(data: bytes, kept_bytes: int) -> Captured:
    """Bytes of which at most `kept_bytes` are kept."""
    return Captured(data[:kept_bytes], len(data), sha256_hex(data))


def within_limits(wanted: Behaviour, limits: EffectiveLimits) -> Behaviour:
    """What a program gets to do of what it would do: output ends one byte above the limit, files at theirs."""
    if wanted.start_error is not None:
        return replace(wanted, stdout=b"", stderr=b"", files={})
    most = limits.file_size_bytes
    return replace(
        wanted,
        stdout=wanted.stdout[: limits.stdout_bytes + 1],
        stderr=wanted.stderr[: limits.stderr_bytes + 1],
        files={
            name: content[:most] if isinstance(content, bytes) else content for name, content in wanted.files.items()
        },
    )


def measures_of(got: Behaviour, wanted: Behaviour, limits: EffectiveLimits) -> Measures:
    """The measures of a behaviour under limits, as a real sandbox would report them."""
    cpu_time_ns = nanoseconds(got.cpu_time_s)
    wall_time_ns = None if math.isinf(got.wall_time_s) else nanoseconds(got.wall_time_s)
    cause = _stop_cause(wanted, cpu_time_ns, wall_time_ns, limits)
    if cause == "cpu":
        cpu_time_ns = limits.cpu_time_ns + 1
    if wall_time_ns is None or wall_time_ns > limits.wall_time_ns:
        wall_time_ns = limits.wall_time_ns + 1
    signal = got.signal
    if cause is not None:
        signal = SIGXFSZ if cause == "file_size" else SIGKILL
    is_over_memory = got.peak_memory_bytes > limits.memory_bytes
    is_started = got.start_error is None
    measures = Measures(
        stopped_for=cause,
        start_error=got.start_error,
        exit_code=got.exit_code if signal is None and is_started else None,
        signal=signal if is_started else None,
        wall_time_ns=wall_time_ns,
        cpu_time_ns=cpu_time_ns,
        peak_memory_bytes=min(got.peak_memory_bytes, limits.memory_bytes),
        peak_memory_source="cgroup",
        oom_kills=1 if is_over_memory else 0,
        memory_limit_hits=1 if is_over_memory else 0,
        survivors=0,
    )
    return Measures.model_validate({**measures.model_dump(), **got.measures})


def _stop_cause(
    wanted: Behaviour, cpu_time_ns: int, wall_time_ns: int | None, limits: EffectiveLimits
) -> StopCause | None:
    if wanted.start_error is not None:
        return None
    if len(wanted.stdout) > limits.stdout_bytes:
        return "stdout"
    if len(wanted.stderr) > limits.stderr_bytes:
        return "stderr"
    if any(isinstance(content, bytes) and len(content) > limits.file_size_bytes for content in wanted.files.values()):
        return "file_size"
    if cpu_time_ns > limits.cpu_time_ns:
        return "cpu"
    if wall_time_ns is None or wall_time_ns > limits.wall_time_ns:
        return "wall"
    return None


def _collected(name: bytes, content: bytes | str | None, limits: EffectiveLimits) -> FileOutcome:
    if content is None:
        return FileOutcome(name=name, status="missing")
    if isinstance(content, str):
        return FileOutcome(name=name, status="not_regular", kind=content)
    if len(content) > limits.output_files_bytes:
        return FileOutcome(name=name, status="too_large", detail=f"{len(content)} bytes")
    return FileOutcome(name=name, status="regular", captured=Captured.whole(content))


async def _no_behaviour(answer: Failed | Hangs) -> Failed:
    if isinstance(answer, Hangs):
        await anyio.sleep_forever()
    await checkpoint()
    assert isinstance(answer, Failed)
    return answer
