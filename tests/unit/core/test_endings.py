"""Endings: one row for each rule of precedence, and the measures that are not the program's."""

from __future__ import annotations

from typing import Any

import pytest

from grader.core.captured import Captured
from grader.core.endings import Ending, EndingKind, NoEnding, decide_ending
from grader.core.limits import LimitRange, Limits
from grader.core.outcomes import Measures, RunOutcome, StreamOutcome
from grader.core.reasons import ReasonCode

S = 1_000_000_000
LIMITS = LimitRange().effective(Limits(cpu_time_s=1, wall_time_s=2, stdout_bytes=10, stderr_bytes=20))

K = EndingKind
MISSING = ReasonCode


def outcome(*, stdout: int = 0, stderr: int = 0, ours: bool = True, **measures: Any) -> RunOutcome:
    base: dict[str, Any] = {"wall_time_ns": S, "cpu_time_ns": S // 2, "exit_code": 0, "oom_kills": 0}
    return RunOutcome(
        command=(b"/usr/bin/python3",),
        command_is_submission=ours,
        measures=Measures.model_validate({**base, "memory_limit_hits": 0, **measures}),
        stdout=StreamOutcome(captured=Captured(b"", stdout, "0" * 64)),
        stderr=StreamOutcome(captured=Captured(b"", stderr, "0" * 64)),
    )


ROWS: list[tuple[dict[str, Any], object]] = [
    ({}, Ending(K.EXITED, 0)),
    ({"exit_code": 137}, Ending(K.EXITED, 137)),
    ({"exit_code": None, "signal": 9}, Ending(K.SIGNALED, 9)),
    # Over is exceeded, equal is fine, for every limit that is measured.
    ({"cpu_time_ns": S}, Ending(K.EXITED, 0)),
    ({"cpu_time_ns": S + 1}, Ending(K.CPU_TIME_EXCEEDED)),
    ({"wall_time_ns": 2 * S}, Ending(K.EXITED, 0)),
    ({"wall_time_ns": 2 * S + 1}, Ending(K.WALL_TIME_EXCEEDED)),
    ({"stdout": 10}, Ending(K.EXITED, 0)),
    ({"stdout": 11}, Ending(K.OUTPUT_EXCEEDED, stream="stdout")),
    ({"stderr": 20}, Ending(K.EXITED, 0)),
    ({"stderr": 21}, Ending(K.OUTPUT_EXCEEDED, stream="stderr")),
    # What the supervisor stopped it for.
    ({"stopped_for": "stdout", "signal": 9}, Ending(K.OUTPUT_EXCEEDED, stream="stdout")),
    ({"stopped_for": "stderr", "signal": 9}, Ending(K.OUTPUT_EXCEEDED, stream="stderr")),
    ({"stopped_for": "file_size", "signal": 25}, Ending(K.FILE_SIZE_EXCEEDED)),
    ({"stopped_for": "cpu", "cpu_time_ns": S + 1, "signal": 9}, Ending(K.CPU_TIME_EXCEEDED)),
    ({"stopped_for": "wall", "wall_time_ns": 2 * S + 1, "signal": 9}, Ending(K.WALL_TIME_EXCEEDED)),
    # Stopped by us although the final measure is within the limit: ours, never the program's.
    ({"stopped_for": "cpu", "cpu_time_ns": S, "signal": 9}, MISSING.HOST_STARVED),
    ({"stopped_for": "wall", "wall_time_ns": 2 * S, "signal": 9}, MISSING.HOST_STARVED),
    ({"stopped_for": "starved", "wall_time_ns": 7 * S, "signal": 9}, MISSING.HOST_STARVED),
    # Time that the machine or our feed took is not charged.
    ({"wall_time_ns": 3 * S, "canary_lateness_ns": S}, Ending(K.EXITED, 0)),
    ({"wall_time_ns": 3 * S, "canary_lateness_ns": S - 1}, Ending(K.WALL_TIME_EXCEEDED)),
    ({"wall_time_ns": 3 * S, "stdin_starved_ns": S}, Ending(K.EXITED, 0)),
    # Time that the machine may have taken is charged, but then "too long" is not certain.
    ({"wall_time_ns": 3 * S, "contended_ns": S}, MISSING.HOST_STARVED),
    ({"wall_time_ns": 3 * S, "contended_ns": S, "stopped_for": "wall", "signal": 9}, MISSING.HOST_STARVED),
    ({"wall_time_ns": 3 * S, "contended_ns": S - 1}, Ending(K.WALL_TIME_EXCEEDED)),
    ({"wall_time_ns": 3 * S, "contended_ns": S - 1, "canary_lateness_ns": S - 1}, Ending(K.WALL_TIME_EXCEEDED)),
    ({"wall_time_ns": 4 * S, "contended_ns": S, "stdin_starved_ns": S}, MISSING.HOST_STARVED),
    ({"wall_time_ns": 2 * S, "contended_ns": S}, Ending(K.EXITED, 0)),
    ({"cpu_time_ns": S + 5, "steal_ns": 5}, MISSING.HOST_STARVED),
    ({"cpu_time_ns": S + 6, "steal_ns": 5}, Ending(K.CPU_TIME_EXCEEDED)),
    # Memory: an OOM kill and the box's own limit, both.
    ({"oom_kills": 1, "memory_limit_hits": 3}, Ending(K.MEMORY_EXCEEDED)),
    ({"oom_kills": 1, "memory_limit_hits": 0}, MISSING.HOST_OUT_OF_MEMORY),
    ({"oom_kills": 1, "memory_limit_hits": None}, MISSING.HOST_OUT_OF_MEMORY),
    ({"oom_kills": 0, "memory_limit_hits": 3}, Ending(K.EXITED, 0)),
    ({"oom_kills": None, "memory_limit_hits": None, "signal": 9}, Ending(K.SIGNALED, 9)),
    # Precedence: output > file size > memory > CPU > wall > signal.
    ({"stdout": 11, "stopped_for": "file_size", "oom_kills": 1}, Ending(K.OUTPUT_EXCEEDED, stream="stdout")),
    ({"stopped_for": "file_size", "oom_kills": 1, "memory_limit_hits": 1}, Ending(K.FILE_SIZE_EXCEEDED)),
    ({"oom_kills": 1, "memory_limit_hits": 1, "cpu_time_ns": 2 * S}, Ending(K.MEMORY_EXCEEDED)),
    ({"cpu_time_ns": 2 * S, "wall_time_ns": 9 * S}, Ending(K.CPU_TIME_EXCEEDED)),
    ({"wall_time_ns": 9 * S, "signal": 11}, Ending(K.WALL_TIME_EXCEEDED)),
    # Starting.
    ({"start_error": 2, "exit_code": None}, Ending(K.CANNOT_START, 2)),
    ({"start_error": 2, "exit_code": None, "ours": False}, MISSING.PREREQUISITE_MISSING),
    ({"start_error": 7, "exit_code": None, "ours": False}, Ending(K.CANNOT_START, 7)),
    ({"exit_code": None}, MISSING.SUPERVISOR_LOST),
]


@pytest.mark.parametrize(("facts", "expected"), ROWS, ids=[str(row[0]) for row in ROWS])
def test_ending(facts: dict[str, Any], expected: object) -> None:
    ending = decide_ending(outcome(**facts), LIMITS)
    assert (ending.code if isinstance(ending, NoEnding) else ending) == expected
