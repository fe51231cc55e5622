"""What one run says of its case: the ending first, then every matcher."""

from __future__ import annotations

from collections.abc import Callable

from grader.core.bytes_field import plain_bytes
from grader.core.captured import Captured
from grader.core.cases import OutputFile, ProgramCase
from grader.core.endings import Ending, EndingKind, NoEnding, decide_ending
from grader.core.expectation import Task
from grader.core.limits import NS_PER_S, EffectiveLimits
from grader.core.matching import Match, Matcher
from grader.core.observation import CompileRecord, RunRecord
from grader.core.outcomes import FileOutcome, RunOutcome
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri, all_of
from grader.core.verdict import Finding, RunVerdict

_ENDING_REASONS = {
    EndingKind.SIGNALED: ReasonCode.SIGNAL,
    EndingKind.CPU_TIME_EXCEEDED: ReasonCode.CPU_TIME_EXCEEDED,
    EndingKind.WALL_TIME_EXCEEDED: ReasonCode.WALL_TIME_EXCEEDED,
    EndingKind.MEMORY_EXCEEDED: ReasonCode.MEMORY_EXCEEDED,
    EndingKind.OUTPUT_EXCEEDED: ReasonCode.OUTPUT_EXCEEDED,
    EndingKind.FILE_SIZE_EXCEEDED: ReasonCode.FILE_SIZE_EXCEEDED,
    EndingKind.CANNOT_START: ReasonCode.CANNOT_START,
    EndingKind.COMPILE_FAILED: ReasonCode.COMPILE_FAILED,
}

# Numbers and names are those of Linux on x86-64 and arm64 (signal(7), errno(3)); the host's own tables may differ.
_SIGNALS = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
}  # fmt: skip
_ERRNOS = {
    2: "no such file, or its interpreter is missing",
    7: "arguments and environment are larger than the kernel allows",
    8: "not a program of this architecture, nor a script",
    13: "not executable",
}


def judge_run(
    record: RunRecord, case: ProgramCase, task: Task, limits: EffectiveLimits, *, repetition: int
) -> RunVerdict:
    """One run's verdict: AND of its ending and all matchers of its case."""
    if record.outcome is None:
        missing = record.missing
        code = missing.code if missing is not None else ReasonCode.INTERRUPTED
        finding = Finding(code=code, detail=missing.detail if missing is not None else "")
        return missing_run(repetition, record.attempt, finding)
    ending = decide_ending(record.outcome, limits)
    if isinstance(ending, NoEnding):
        return missing_run(repetition, record.attempt, Finding(code=ending.code, detail=ending.detail))
    if ending.kind is EndingKind.EXITED:
        value, findings = _judge_output(record.outcome, case, ending)
    else:
        detail = describe_ending(ending, limits, source=_limit_source(ending, case, task))
        value, findings = Tri.FALSE, (Finding(code=_ENDING_REASONS[ending.kind], detail=detail),)
    return RunVerdict(
        repetition=repetition,
        attempts=record.attempt,
        value=value,
        ending=str(ending),
        findings=findings,
        notes=_notes(record.outcome),
    )


def missing_run(repetition: int, attempts: int, finding: Finding) -> RunVerdict:
    """The verdict of a run that says nothing: undetermined."""
    return RunVerdict(
        repetition=repetition, attempts=attempts, value=Tri.UNDETERMINED, is_missing=True, findings=(finding,)
    )


def judge_compile(compiled: CompileRecord) -> Finding | None:
    """Why no run of the profile could take place, or None if the compile command ended well."""
    if compiled.outcome is None:
        missing = compiled.missing
        code = missing.code if missing is not None else ReasonCode.INTERRUPTED
        return Finding(code=code, detail=missing.detail if missing is not None else "")
    ending = decide_ending(compiled.outcome, compiled.limits)
    if isinstance(ending, NoEnding):
        return Finding(code=ending.code, detail=f"while compiling: {ending.detail}")
    if ending == Ending(EndingKind.EXITED, 0):
        return None
    detail = f"the compile command {describe_ending(ending, compiled.limits, source='the profile')}"
    return Finding(code=ReasonCode.COMPILE_FAILED, detail=detail)


def describe_ending(ending: Ending, limits: EffectiveLimits, *, source: str) -> str:
    """How the program ended, in words, with the limit it broke and whose limit that is."""
    number = ending.number if ending.number is not None else 0
    texts: dict[EndingKind, Callable[[], str]] = {
        EndingKind.EXITED: lambda: f"exited with code {number}",
        EndingKind.SIGNALED: lambda: f"was ended by signal {number}{_named(number)}",
        EndingKind.CPU_TIME_EXCEEDED: lambda: f"used more CPU time than {_seconds(limits.cpu_time_ns)} ({source})",
        EndingKind.WALL_TIME_EXCEEDED: lambda: f"ran longer than {_seconds(limits.wall_time_ns)} ({source})",
        EndingKind.MEMORY_EXCEEDED: lambda: f"was killed at the memory limit of {size(limits.memory_bytes)} ({source})",
        EndingKind.OUTPUT_EXCEEDED: lambda: f"wrote more than {_output_limit(ending, limits)} ({source})",
        EndingKind.FILE_SIZE_EXCEEDED: lambda: f"wrote a file larger than {size(limits.file_size_bytes)} ({source})",
        EndingKind.CANNOT_START: lambda: f"could not be started: {_ERRNOS.get(number, f'error {number}')}",
        EndingKind.COMPILE_FAILED: lambda: "did not compile",
    }  # fmt: skip
    return texts[ending.kind]()


def size(count: int) -> str:
    """A number of bytes as a person reads it: `64 MiB`, `1,000 bytes`."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count:,} byte{'' if count == 1 else 's'}"


def _judge_output(outcome: RunOutcome, case: ProgramCase, ending: Ending) -> tuple[Tri, tuple[Finding, ...]]:
    """AND of the exit code and every matcher; none is skipped, so that all that is wrong is told at once."""
    collected = {file.name: file for file in outcome.files}
    checks = [_judge_exit_code(case, ending)]
    if case.stdout is not None:
        checks.append(_judge_value(case.stdout, outcome.stdout.captured, ReasonCode.STDOUT_DIFFERS))
    if case.stderr is not None:
        checks.append(_judge_value(case.stderr, outcome.stderr.captured, ReasonCode.STDERR_DIFFERS))
    checks.extend(_judge_file(expected, collected.get(expected.name)) for expected in case.output_files)
    return all_of(value for value, _ in checks), tuple(finding for _, finding in checks if finding is not None)


_Check = tuple[Tri, Finding | None]


def _judge_exit_code(case: ProgramCase, ending: Ending) -> _Check:
    if case.exit_code is None or ending.number in case.exit_code:
        return Tri.TRUE, None
    allowed = " or ".join(str(code) for code in case.exit_code)
    detail = f"exited with code {ending.number}, not {allowed}"
    return Tri.FALSE, Finding(code=ReasonCode.EXIT_CODE, detail=detail)


def _judge_value(matcher: Matcher, captured: Captured, code: ReasonCode, place: str = "") -> _Check:
    match = _guarded(matcher, captured)
    if match.value is Tri.TRUE:
        return Tri.TRUE, None
    reason = code if match.value is Tri.FALSE else (match.code or ReasonCode.MATCHER_FAILED)
    return match.value, Finding(code=reason, detail=f"{place}{match.detail}")


def _guarded(matcher: Matcher, captured: Captured) -> Match:
    """A matcher's own failure on hostile data is not a verdict on the program."""
    try:
        return matcher.match(captured)
    except (RecursionError, MemoryError, ArithmeticError, ValueError) as error:
        return Match.undetermined(f"{matcher.matcher_name}: {type(error).__name__}", ReasonCode.MATCHER_FAILED)


def _judge_file(expected: OutputFile, found: FileOutcome | None) -> _Check:
    name = _shown(expected.name)
    if found is None:
        detail = f"{name} was not read back when the program ran"
        return Tri.UNDETERMINED, Finding(code=ReasonCode.EVIDENCE_NOT_COLLECTED, detail=detail)
    if found.status == "missing":
        return Tri.FALSE, Finding(code=ReasonCode.FILE_MISSING, detail=f"{name} does not exist")
    if found.status == "too_large" and found.captured is None:
        detail = f"{name} is larger than what is kept of an output file ({found.detail or 'size unknown'})"
        return Tri.UNDETERMINED, Finding(code=ReasonCode.EVIDENCE_TRUNCATED, detail=detail)
    if found.captured is None:
        detail = f"{name} is {found.kind or found.detail or 'not a regular file'}"
        return Tri.FALSE, Finding(code=ReasonCode.FILE_NOT_REGULAR, detail=detail)
    return _judge_value(expected.expected, found.captured, ReasonCode.FILE_DIFFERS, f"{name}: ")


def _notes(outcome: RunOutcome) -> tuple[str, ...]:
    notes: list[str] = []
    for name, stream in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        if stream.wrote_after_main_bytes:
            notes.append(f"{size(stream.wrote_after_main_bytes)} of {name} came after the main process had ended")
    if outcome.measures.survivors:
        notes.append(f"{outcome.measures.survivors} processes outlived the main process and were killed")
    return tuple(notes)


def _limit_source(ending: Ending, case: ProgramCase, task: Task) -> str:
    """Whose limit was broken, for the sentence that tells of it."""
    field = {
        EndingKind.CPU_TIME_EXCEEDED: "cpu_time_s",
        EndingKind.WALL_TIME_EXCEEDED: "wall_time_s",
        EndingKind.MEMORY_EXCEEDED: "memory_bytes",
        EndingKind.OUTPUT_EXCEEDED: f"{ending.stream}_bytes",
        EndingKind.FILE_SIZE_EXCEEDED: "file_size_bytes",
    }.get(ending.kind)
    if field is None:
        return ""
    for limits, name in ((case.limits, "the case"), (task.limits, "the task")):
        if getattr(limits, field) is not None:
            return f"limit of {name}"
        if field == "wall_time_s" and limits.cpu_time_s is not None:
            return f"derived from the CPU limit of {name}"
    return "limit of the profile"


def _output_limit(ending: Ending, limits: EffectiveLimits) -> str:
    most = limits.stderr_bytes if ending.stream == "stderr" else limits.stdout_bytes
    return f"{size(most)} to {ending.stream}"


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds / NS_PER_S:g} s"


def _named(number: int) -> str:
    return f" ({_SIGNALS[number]})" if number in _SIGNALS else ""


def _shown(name: bytes) -> str:
    plain = plain_bytes(name)
    return plain if isinstance(plain, str) and plain.isprintable() else repr(name)[1:]
