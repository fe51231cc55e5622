"""What a record holds, read back as the product reads it: outcomes and endings of every attempt, by case name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.core.endings import NoEnding, decide_ending
from grader.core.observation import RunRecord
from grader.core.plan import PlannedRun, make_plan
from grader.store import open_record


@dataclass(frozen=True)
class Recorded:
    """One attempt at a run, and the case that it is of."""

    case: str
    planned: PlannedRun
    record: RunRecord

    @property
    def ending(self) -> str:
        """How it ended, such as `exited(0)`; or the reason code why nothing is known of the program."""
        if self.record.outcome is None:
            assert self.record.missing is not None
            return str(self.record.missing.code)
        ending = decide_ending(self.record.outcome, self.planned.invocation.limits)
        return str(ending.code) if isinstance(ending, NoEnding) else str(ending)

    @property
    def stdout(self) -> bytes:
        """All that is kept of its standard output."""
        assert self.record.outcome is not None
        return self.record.outcome.stdout.captured.kept


def recorded_runs(folder: Path) -> Iterator[Recorded]:
    """Every attempt of every submission in a record, in the order in which they ended."""
    for entry in open_record(folder):
        runs = make_plan(entry.task, entry.profiles).runs
        for record in entry.payload.runs:
            planned = runs[record.index]
            name = entry.task.programs()[planned.program].cases[planned.case].name
            yield Recorded(name or str(planned.case), planned, record)


def endings(folder: Path) -> dict[str, Counter[str]]:
    """How often each case ended how."""
    counts: dict[str, Counter[str]] = {}
    for run in recorded_runs(folder):
        counts.setdefault(run.case, Counter())[run.ending] += 1
    return counts
