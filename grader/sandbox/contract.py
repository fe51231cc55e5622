"""What every sandbox must do, as named checks. Used by the tests on each sandbox there is, and by `grader doctor`.

A check runs the probe (probe.py) through a `Sandbox` exactly as the runner would, and raises `ContractBrokenError` with
what was expected and what came. It knows nothing of Docker. Example:

    bench = Bench(sandbox, profile)
    for check in CHECKS:
        await check.run(bench)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from grader.core.canonical import sha256_hex
from grader.core.cases import InputFile
from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.outcomes import FileOutcome
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Failed, Port, PortSeen, Program, Reply, Seat
from grader.sandbox.bench import EXIT_0, Bench, ContractBrokenError, asked, ended, outcome_of, printed, same
from grader.sandbox.probe import COMPILE, COMPILED_NAME, PROBE, PROBE_NAME

ALL_BYTES = bytes(range(256))


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that every sandbox must do."""

    name: str
    holds: str
    """What is true of the sandbox if the check passes, in a sentence."""
    run: Callable[[Bench], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What came of a check: `broken` is None if it passed."""

    check: Check
    broken: str | None


async def run_checks(bench: Bench, checks: Sequence[Check], *, at_most_s: float = 60) -> tuple[CheckResult, ...]:
    """Run the checks one after the other; one that takes longer than `at_most_s` counts as broken."""
    results: list[CheckResult] = []
    for check in checks:
        broken = None
        try:
            with anyio.fail_after(at_most_s):
                await check.run(bench)
        except ContractBrokenError as error:
            broken = str(error)
        except TimeoutError:
            broken = f"no answer within {at_most_s:g} s"
        results.append(CheckResult(check, broken))
    return tuple(results)


async def _carries_bytes(bench: Bench) -> None:
    async with bench.seat() as seat:
        for data in (ALL_BYTES, b"", b"a\r\nb\r\n", b"no newline", b"\x00", ALL_BYTES * 4096):
            await printed(seat, bench.invocation(b"echo", stdin=data), data)
        await printed(seat, bench.invocation(b"split"), "é".encode())


async def _separates_streams(bench: Bench) -> None:
    async with bench.seat() as seat:
        outcome = await printed(seat, bench.invocation(b"both"), b"out")
        same("standard error", outcome.stderr.captured.kept, b"err")


async def _passes_arguments(bench: Bench) -> None:
    arguments = (b"", b" ", b"-rf", b"a b", b"$(id)", b"'\"", b"new\nline", b"\xff\xfe", b"*", b"x" * 100_000)
    async with bench.seat() as seat:
        expected = b"".join(argument + b"\0" for argument in arguments)
        outcome = await printed(seat, bench.invocation(b"arguments", *arguments), expected)
        same("the command of the outcome", outcome.command[-len(arguments) :], arguments)


async def _gives_only_the_environment(bench: Bench) -> None:
    environment = {"PATH": b"/usr/bin:/bin", "EMPTY": b"", "ODD": b"a=b\n\xff"}
    async with bench.seat() as seat:
        outcome = await ended(seat, bench.invocation(b"environment", environment=environment), EXIT_0)
        got = sorted(outcome.stdout.captured.kept.split(b"\0")[:-1])
        same("the environment", got, sorted(k.encode() + b"=" + v for k, v in environment.items()))


async def _gives_files(bench: Bench) -> None:
    files = (InputFile(name=b"data.txt", content=b"abc"), InputFile(name=b"deep/er/\xff\n", content=ALL_BYTES))
    async with bench.seat() as seat:
        for file in files:
            await printed(seat, bench.invocation(b"read", file.name, files=files), file.content)
        await printed(seat, bench.invocation(b"where"), b"/work\n")


async def _collects_files(bench: Bench) -> None:
    async with bench.seat() as seat:
        got = await _file(bench, seat, b"write", b"out.txt", b"made")
        same("an output file", (got.status, got.captured and got.captured.kept), ("regular", b"made"))
        got = await _file(bench, seat, b"write-big", b"out.txt", b"1000", output_files_bytes=1000)
        same("a file of exactly the size to keep", got.captured and got.captured.total_bytes, 1000)
        got = await _file(bench, seat, b"write-big", b"out.txt", b"1001", output_files_bytes=1000)
        same("a larger file", (got.status, got.captured), ("too_large", None))
        outcome = await ended(seat, bench.invocation(b"silent", collect=(b"none",)), EXIT_0)
        same("a missing file", outcome.files[0].status, "missing")
        for kind in (b"fifo", b"directory", b"symlink"):
            got = await _file(bench, seat, b"make", kind, b"out.txt")
            same(f"a {kind.decode()}", (got.status, got.kind), ("not_regular", kind.decode()))


async def _file(bench: Bench, seat: Seat, *arguments: bytes, **limits: float) -> FileOutcome:
    invocation = bench.invocation(*arguments, collect=(b"out.txt",), limits=bench.limits(**limits))
    outcome = await ended(seat, invocation, EXIT_0)
    same("the files reported", [file.name for file in outcome.files], [b"out.txt"])
    return outcome.files[0]


async def _tells_endings_apart(bench: Bench) -> None:
    async with bench.seat() as seat:
        for code in (0, 1, 124, 137, 143, 255):
            await ended(seat, bench.invocation(b"exit", b"%d" % code), Ending(EndingKind.EXITED, code))
        for signal in (6, 9, 11, 15):
            await ended(seat, bench.invocation(b"signal", b"%d" % signal), Ending(EndingKind.SIGNALED, signal))


async def _limits_output(bench: Bench) -> None:
    limits = bench.limits(stdout_bytes=50_000, stderr_bytes=100_000, stderr_kept_bytes=1_000)
    async with bench.seat() as seat:
        outcome = await printed(seat, bench.invocation(b"flood", b"50000", limits=limits), bytes(50_000))
        over = bench.invocation(b"flood", b"50001", limits=limits)
        await ended(seat, over, Ending(EndingKind.OUTPUT_EXCEEDED, stream="stdout"))
        outcome = await ended(
            seat, bench.invocation(b"endless", limits=limits), Ending(EndingKind.OUTPUT_EXCEEDED, stream="stdout")
        )
        same("what is kept of endless output", outcome.stdout.captured.kept, b"y\n" * 25_000)
        outcome = await ended(seat, bench.invocation(b"flood-stderr", b"100000", limits=limits), EXIT_0)
        kept = outcome.stderr.captured
        same("what is kept of standard error", (len(kept.kept), kept.total_bytes), (1_000, 100_000))
        same("the digest of all of it", kept.sha256, sha256_hex(bytes(100_000)))
        over = bench.invocation(b"flood-stderr", b"100001", limits=limits)
        await ended(seat, over, Ending(EndingKind.OUTPUT_EXCEEDED, stream="stderr"))


async def _limits_time(bench: Bench) -> None:
    async with bench.seat() as seat:
        spin = bench.invocation(b"spin", limits=bench.limits(cpu_time_s=0.2))
        await ended(seat, spin, Ending(EndingKind.CPU_TIME_EXCEEDED))
        for verb in (b"sleep", b"stop"):
            late = bench.invocation(verb, limits=bench.limits(wall_time_s=0.3))
            await ended(seat, late, Ending(EndingKind.WALL_TIME_EXCEEDED))
        await printed(seat, bench.invocation(b"right"), b"right")


async def _limits_memory(bench: Bench) -> None:
    async with bench.seat() as seat:
        await ended(seat, bench.invocation(b"hog"), Ending(EndingKind.MEMORY_EXCEEDED))
        outcome = await ended(seat, bench.invocation(b"child-hog"), Ending(EndingKind.MEMORY_EXCEEDED))
        same("the exit code of the parent", outcome.measures.exit_code, 0)
        await printed(seat, bench.invocation(b"right"), b"right")


async def _limits_file_size(bench: Bench) -> None:
    limits = bench.limits(file_size_bytes=10_000)
    async with bench.seat() as seat:
        outcome = await ended(seat, bench.invocation(b"write-big", b"f", b"10000", limits=limits), EXIT_0)
        outcome = await outcome_of(seat, bench.invocation(b"write-big", b"f", b"10001", limits=limits, collect=(b"f",)))
        ending = decide_ending(outcome, limits)
        if isinstance(ending, Ending) and ending == EXIT_0:
            raise ContractBrokenError("a file above the limit was written as if there were none")
        captured = outcome.files[0].captured
        if captured is not None and captured.total_bytes > 10_000:
            raise ContractBrokenError(f"a file of {captured.total_bytes} bytes, above the limit, was written")


async def _survives_process_tricks(bench: Bench) -> None:
    too_much = (Ending(EndingKind.CPU_TIME_EXCEEDED), Ending(EndingKind.WALL_TIME_EXCEEDED))
    async with bench.seat() as seat:
        await printed(seat, bench.invocation(b"daemon"), b"right")
        bomb = bench.invocation(b"bomb", limits=bench.limits(cpu_time_s=0.5, wall_time_s=1))
        await ended(seat, bomb, *too_much)
        await printed(seat, bench.invocation(b"kill-all"), b"right")
        await printed(seat, bench.invocation(b"right"), b"right")


async def _does_not_wait_for_readers(bench: Bench) -> None:
    async with bench.seat() as seat:
        await printed(seat, bench.invocation(b"right", stdin=bytes(4 * 2**20)), b"right")
        await printed(seat, bench.invocation(b"silent"), b"")
        await printed(seat, bench.invocation(b"echo"), b"")


async def _passes_nothing_on(bench: Bench) -> None:
    async with bench.seat() as seat:
        await printed(seat, bench.invocation(b"litter"), b"right")
        await printed(seat, bench.invocation(b"look"), b"")
        await printed(seat, bench.invocation(b"spoil"), b"refused")
        await printed(seat, bench.invocation(b"root"), b"user")


async def _tells_cannot_start(bench: Bench) -> None:
    name = b"/submission/" + PROBE_NAME
    async with bench.seat(bench.probe(run_command=(name,), command_is_submission=True)) as seat:
        await ended(seat, bench.invocation(b"right"), Ending(EndingKind.CANNOT_START, 13))


async def _runs_executables(bench: Bench) -> None:
    tool = SubmissionFile(b"bin/tool", PROBE, executable=True)
    program = bench.probe(tool, run_command=(b"/submission/bin/tool",), command_is_submission=True)
    async with bench.seat(program) as seat:
        outcome = await printed(seat, bench.invocation(b"right"), b"right")
        same("the command of the outcome", outcome.command, (b"/submission/bin/tool", b"right"))
        same("whether the command is the submission's", outcome.command_is_submission, True)


async def _compiles(bench: Bench) -> None:
    program = _compiled_probe(bench, COMPILE)
    async with bench.seat(program) as seat:
        record = seat.compiled
        if record is None or record.outcome is None:
            raise ContractBrokenError(f"no record of the compile run: {record!r}")
        same("the ending of the compile run", decide_ending(record.outcome, record.limits), EXIT_0)
        for _ in range(2):
            await printed(seat, bench.invocation(b"right"), b"right")
        larger = bench.limits(memory_bytes=96 * 2**20)  # may take another box: the product must be there too
        await printed(seat, bench.invocation(b"right", limits=larger), b"right")
        leak = bench.invocation(b"read", b"/submission/made/link")
        await ended(seat, leak, Ending(EndingKind.EXITED, 1))


async def _reports_failed_compiles(bench: Bench) -> None:
    async with bench.seat(_compiled_probe(bench, b"echo wrong >&2; exit 3")) as seat:
        record = seat.compiled
        if record is None or record.outcome is None:
            raise ContractBrokenError(f"no record of the compile run: {record!r}")
        same("its ending", decide_ending(record.outcome, record.limits), Ending(EndingKind.EXITED, 3))
        same("its message", record.outcome.stderr.captured.kept, b"wrong\n")


def _compiled_probe(bench: Bench, script: bytes) -> Program:
    profile = bench.profile.model_copy(update={"compile_limits": bench.limits(memory_bytes=128 * 2**20)})
    return bench.probe(
        profile=profile,
        compile_command=(b"/bin/sh", b"-c", script),
        run_command=(b"/submission/" + COMPILED_NAME,),
        command_is_submission=True,
    )


async def _measures(bench: Bench) -> None:
    async with bench.seat() as seat:
        measures = (await printed(seat, bench.invocation(b"right"), b"right")).measures
        for name in ("cpu_time_ns", "peak_memory_bytes", "oom_kills", "memory_limit_hits"):
            if getattr(measures, name) is None:
                raise ContractBrokenError(f"{name} is not measured")
        if not 0 < measures.wall_time_ns <= 6_000_000_000:
            raise ContractBrokenError(f"a wall time of {measures.wall_time_ns} ns cannot be")


class _Listener:
    """An ear that writes down what it hears, and says `heard` once to each connection; or one that ends its port."""

    def __init__(self, port: Port, *, ends_it: bool = False) -> None:
        self.port = port
        self._ends_it = ends_it
        self.heard: dict[int, bytes] = {}
        self.seen: PortSeen | None = None

    def hear(self, connection: int, data: bytes) -> Reply:
        is_first = connection not in self.heard
        self.heard[connection] = self.heard.get(connection, b"") + data
        # Whoever ends the port does not answer: the program would go on, and could be back before the port has ended.
        return Reply(b"heard\n" if is_first and not self._ends_it else b"", ends_port=self._ends_it)

    def finish(self, seen: PortSeen) -> None:
        self.seen = seen


async def _has_a_port(bench: Bench) -> None:
    async def heard(
        seat: Seat, expected: bytes | None, *arguments: bytes, ends_it: bool = False, **bounds: int
    ) -> _Listener:
        ear = _Listener(Port(4318, **bounds), ends_it=ends_it)
        invocation = bench.invocation(arguments[0], b"4318", *arguments[1:])
        outcome = await seat.run(invocation, ear)
        if isinstance(outcome, Failed):
            raise ContractBrokenError(f"{asked(invocation)} did not run: {outcome.code}: {outcome.detail}")
        if expected is not None:
            same(f"standard output of {asked(invocation)}", outcome.stdout.captured.kept, expected)
        return ear

    async with bench.seat() as seat:
        await ended(seat, bench.invocation(b"send", b"4318", b"x"), Ending(EndingKind.EXITED, 1))
        for verb, said in ((b"send", b"heard\n"), (b"leave", b"right"), (b"hold", b"right")):
            ear = await heard(seat, said, verb, b"hello")
            same(
                f"what `probe {verb.decode()}` was heard saying",
                (ear.heard, ear.seen),
                ({1: b"hello"}, PortSeen(1, 0, 5)),
            )
        ear = await heard(seat, b"heard\nheard\nright", b"dial", b"4", connections_in_all=2)
        same("what is heard of two connections", ear.heard, {1: b"1", 2: b"2"})
        same("the connections that were refused", ear.seen and ear.seen.refused, 1)
        ear = await heard(seat, None, b"dial", b"3", ends_it=True)
        same("what is heard before the port was ended", ear.heard, {1: b"1"})
        ear = await heard(seat, None, b"pour", b"4194304", most_bytes=100_000)
        if ear.seen is None or not ear.seen.is_full or sum(map(len, ear.heard.values())) > 100_000:
            raise ContractBrokenError(f"a port that takes 100,000 bytes was not full: {ear.seen!r}")
        await printed(seat, bench.invocation(b"right"), b"right")


async def _has_seats_side_by_side(bench: Bench) -> None:
    async def one(text: bytes) -> None:
        async with bench.seat() as seat:
            for _ in range(3):
                await printed(seat, bench.invocation(b"echo", stdin=text), text)

    try:
        async with bench.seat() as outer, anyio.create_task_group() as tasks:
            for index in range(3):
                tasks.start_soon(one, b"%d" % index)
            await printed(outer, bench.invocation(b"echo", stdin=b"outer"), b"outer")
    except BaseExceptionGroup as group:
        broken, rest = group.split(ContractBrokenError)
        if broken is None or rest is not None:
            raise
        raise ContractBrokenError("; ".join(str(error) for error in broken.exceptions)) from group


async def _can_be_cancelled(bench: Bench) -> None:
    long = bench.invocation(b"sleep", limits=bench.limits(wall_time_s=60))
    with anyio.move_on_after(0.5) as scope:
        async with bench.seat() as seat:
            await seat.run(long)
    if not scope.cancelled_caught:
        return  # only a clock that never waits ends a long run before the cancellation
    async with bench.seat() as seat:
        await printed(seat, bench.invocation(b"right"), b"right")


CHECKS: tuple[Check, ...] = (
    Check("bytes", "standard input and output carry every byte unchanged, empty and large ones too", _carries_bytes),
    Check("streams", "standard output and standard error are kept apart", _separates_streams),
    Check("arguments", "arguments arrive byte for byte, through no shell", _passes_arguments),
    Check("environment", "the program has exactly the environment asked for", _gives_only_the_environment),
    Check("input-files", "input files are in the work folder, which is the current one", _gives_files),
    Check("output-files", "output files are read back; what is no regular file is named", _collects_files),
    Check("endings", "exit codes and signals are the program's own, never guessed", _tells_endings_apart),
    Check("output-limit", "output up to the limit is fine, one byte more ends the run", _limits_output),
    Check("time-limits", "CPU and wall time are limited, each with its own ending", _limits_time),
    Check("memory-limit", "memory is limited for the whole tree of processes", _limits_memory),
    Check("file-size-limit", "no file grows above its limit", _limits_file_size),
    Check("processes", "daemons, fork bombs and kill(-1) end with the run", _survives_process_tricks),
    Check(
        "stdin-unread",
        "a program that reads nothing, or has nothing to read, is not waited for",
        _does_not_wait_for_readers,
    ),
    Check(
        "no-traces", "nothing written in one run is there in the next; the submission is read-only", _passes_nothing_on
    ),
    Check(
        "cannot-start", "an entry point that cannot be executed is told apart from our failures", _tells_cannot_start
    ),
    Check("executables", "an executable file of the submission can be the command", _runs_executables),
    Check("compile", "the compile command runs once, and its product is what the runs execute", _compiles),
    Check("compile-failure", "a compile command that fails is recorded with its message", _reports_failed_compiles),
    Check("measures", "time, CPU time, memory and memory kills are measured", _measures),
    Check("port", "a program reaches its port and nobody else's, however it leaves, within bounds", _has_a_port),
    Check("side-by-side", "seats run side by side, more of them than there are CPUs", _has_seats_side_by_side),
    Check("cancellation", "a cancelled run ends at once, and the sandbox goes on", _can_be_cancelled),
)
"""All checks, cheap ones first."""
