"""How a run ended, decided from its recorded measures alone.

The order of precedence and every rule are those of the verdict specification: over a limit is exceeded, equal is fine;
what one poll saw together counts as output > file size > memory > CPU > wall > signal > exit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from grader.core.limits import EffectiveLimits
from grader.core.outcomes import Measures, RunOutcome
from grader.core.reasons import ReasonCode

E2BIG = 7
"""errno for arguments and environment that are larger than the kernel allows."""


class EndingKind(StrEnum):
    """The closed list of ways in which a run can end."""

    EXITED = "exited"
    SIGNALED = "signaled"
    CPU_TIME_EXCEEDED = "cpu_time_exceeded"
    WALL_TIME_EXCEEDED = "wall_time_exceeded"
    MEMORY_EXCEEDED = "memory_exceeded"
    OUTPUT_EXCEEDED = "output_exceeded"
    FILE_SIZE_EXCEEDED = "file_size_exceeded"
    CANNOT_START = "cannot_start"
    COMPILE_FAILED = "compile_failed"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended: the kind, with the exit code, signal number, errno, or the name of the stream."""

    kind: EndingKind
    number: int | None = None
    stream: str | None = None

    def __str__(self) -> str:
        detail = self.stream if self.stream is not None else self.number
        return self.kind.value if detail is None else f"{self.kind.value}({detail})"


@dataclass(frozen=True, slots=True)
class NoEnding:
    """The run took place but says nothing of the program, for a cause of ours: it is a missing run."""

    code: ReasonCode
    detail: str


def decide_ending(outcome: RunOutcome, limits: EffectiveLimits) -> Ending | NoEnding:
    """How a run ended, or why it counts as missing."""
    measures = outcome.measures
    if measures.start_error is not None:
        return _not_started(outcome, measures.start_error)
    return (
        _too_much_written(outcome, limits)
        or _out_of_memory(measures)
        or _too_much_cpu(measures, limits)
        or _too_long(measures, limits)
        or _ended_by_itself(measures)
    )


def charged_wall_time_ns(measures: Measures) -> int:
    """Wall time charged to the run: without the time in which the machine, or our feed, kept it waiting."""
    waived = (measures.canary_lateness_ns or 0) + (measures.stdin_starved_ns or 0)
    return max(0, measures.wall_time_ns - waived)


def _shortest_wall_time_ns(measures: Measures) -> int:
    """The wall time that is certainly the program's own: without any time in which others may have kept it waiting."""
    waived = max(measures.canary_lateness_ns or 0, measures.contended_ns or 0) + (measures.stdin_starved_ns or 0)
    return max(0, measures.wall_time_ns - waived)


def _not_started(outcome: RunOutcome, errno: int) -> Ending | NoEnding:
    if outcome.command_is_submission or errno == E2BIG:
        return Ending(EndingKind.CANNOT_START, errno)
    name = outcome.command[0].decode("utf-8", "backslashreplace")
    return NoEnding(ReasonCode.PREREQUISITE_MISSING, f"the profile's {name} could not be executed (errno {errno})")


def _too_much_written(outcome: RunOutcome, limits: EffectiveLimits) -> Ending | None:
    stopped_for = outcome.measures.stopped_for
    if stopped_for == "stdout" or outcome.stdout.captured.total_bytes > limits.stdout_bytes:
        return Ending(EndingKind.OUTPUT_EXCEEDED, stream="stdout")
    if stopped_for == "stderr" or outcome.stderr.captured.total_bytes > limits.stderr_bytes:
        return Ending(EndingKind.OUTPUT_EXCEEDED, stream="stderr")
    if stopped_for == "file_size":
        return Ending(EndingKind.FILE_SIZE_EXCEEDED)
    return None


def _out_of_memory(measures: Measures) -> Ending | NoEnding | None:
    """An OOM kill is the program's only if the box's own limit was hit during the run; otherwise it is the host's."""
    if not measures.oom_kills:
        return None
    if measures.memory_limit_hits:
        return Ending(EndingKind.MEMORY_EXCEEDED)
    if measures.memory_limit_hits == 0:
        return NoEnding(ReasonCode.HOST_OUT_OF_MEMORY, "a process was killed for memory below the box's own limit")
    return NoEnding(ReasonCode.HOST_OUT_OF_MEMORY, "a process was killed for memory, and the box's limit is unreadable")


def _too_much_cpu(measures: Measures, limits: EffectiveLimits) -> Ending | NoEnding | None:
    used = measures.cpu_time_ns
    if used is not None and used > limits.cpu_time_ns:
        # Time that the hypervisor took away can be booked as the program's.
        if used - (measures.steal_ns or 0) > limits.cpu_time_ns:
            return Ending(EndingKind.CPU_TIME_EXCEEDED)
        return NoEnding(ReasonCode.HOST_STARVED, "the machine's CPU was taken away while the program ran")
    if measures.stopped_for == "cpu":
        return NoEnding(ReasonCode.HOST_STARVED, "stopped for CPU time, but its final measure is within the limit")
    return None


def _too_long(measures: Measures, limits: EffectiveLimits) -> Ending | NoEnding | None:
    if measures.stopped_for == "starved":
        return NoEnding(ReasonCode.HOST_STARVED, "the machine was too busy: stopped at three times the wall-time limit")
    if charged_wall_time_ns(measures) > limits.wall_time_ns:
        if _shortest_wall_time_ns(measures) > limits.wall_time_ns:
            return Ending(EndingKind.WALL_TIME_EXCEEDED)
        return NoEnding(ReasonCode.HOST_STARVED, "over the wall-time limit, but others kept the CPU busy for so long")
    if measures.stopped_for == "wall":
        return NoEnding(ReasonCode.HOST_STARVED, "stopped for wall time, but the time charged is within the limit")
    return None


def _ended_by_itself(measures: Measures) -> Ending | NoEnding:
    if measures.signal is not None:
        return Ending(EndingKind.SIGNALED, measures.signal)
    if measures.exit_code is not None:
        return Ending(EndingKind.EXITED, measures.exit_code)
    return NoEnding(ReasonCode.SUPERVISOR_LOST, "the supervisor did not say how the run ended")
