"""What every report is made from: submissions that were graded or refused, and evidence that was scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from grader.core.conditions import Not
from grader.core.expectation import Task
from grader.core.judging.judgement import JudgementPayload
from grader.core.observation import ProgramRuns
from grader.core.plan import Plan
from grader.core.reasons import ReasonCode
from grader.core.selection import Selection
from grader.core.tools.calls import ToolsPayload
from grader.core.tri import Tri
from grader.core.verdict import CaseVerdict, CellVerdict, ConditionVerdict, Finding, Verdict
from grader.errors import Problem


@dataclass(frozen=True)
class Grading:
    """One submission, graded. `verdict` is that of the effective task: of what was selected, if a selection is set.

    Of evidence that was scored, `tools` is set, and `submission` is the name of what was read.
    """

    submission: str
    task: Task
    verdict: Verdict
    plan: Plan | None = None
    runs: ProgramRuns | None = None
    selection: Selection | None = None
    folder: str | None = None
    """The record's folder; None if none was kept."""
    record: str | None = None
    """What `grader show` and `grader replay` take to find the record; None if none was kept."""
    wall_time_s: float | None = None
    """How long the grading took; None if it is not known of this submission alone."""
    is_replay: bool = False
    """Whether a record was judged again: nothing was run."""
    tools: ToolsPayload | None = None
    """What an agent did, when that was scored instead of a program run."""
    exported: Mapping[int, ToolsPayload] = field(default_factory=dict[int, ToolsPayload])
    """What the runs of an agent program say they did, by their place in the plan; only where that was asked for."""
    judged: JudgementPayload | None = None
    """What a judge was asked and answered, when one was asked."""
    warnings: tuple[str, ...] = ()
    """What one should know before trusting the verdict."""


@dataclass(frozen=True)
class Refusal:
    """A submission that was refused before any of it ran, and why."""

    submission: str
    problem: Problem
    code: str


@dataclass(frozen=True)
class Row:
    """A case of one program condition, as reports list it."""

    label: str
    case: CaseVerdict
    program: int
    """Which program condition, from left to right; equal ones are one."""


def leaves(verdict: Verdict) -> Iterator[ConditionVerdict]:
    """The verdicts at the ends of the condition tree, from left to right."""
    stack = list(reversed(verdict.conditions))
    while stack:
        condition = stack.pop()
        if condition.parts:
            stack.extend(reversed(condition.parts))
        else:
            yield condition


def composites(verdict: Verdict) -> list[tuple[int, ConditionVerdict]]:
    """The conditions of the expectation that combine others, with their places in it, from 0."""
    return [(place, condition) for place, condition in enumerate(verdict.conditions) if condition.parts]


def reasons_of_not(condition: ConditionVerdict) -> tuple[Finding, ...]:
    """Why a `not` is false, which none of its parts says: they are as they are."""
    is_false = condition.condition_type == Not.condition_type and condition.value is Tri.FALSE
    return condition.findings if is_false else ()


def program_leaves(verdict: Verdict) -> list[tuple[int, ConditionVerdict]]:
    """The verdicts on program conditions, each with its place among the leaves.

    Equal conditions share their runs and stand here once, so that the order is that of `Expectation.programs()`.
    """
    found: dict[str, tuple[int, ConditionVerdict]] = {}
    for place, leaf in enumerate(leaves(verdict)):
        if leaf.cases:
            found.setdefault(leaf.fingerprint, (place, leaf))
    return list(found.values())


def rows(verdict: Verdict) -> list[Row]:
    """Every case of every program condition. With several of them the label begins with the number of its own."""
    programs = program_leaves(verdict)
    found: list[Row] = []
    for program, (_, leaf) in enumerate(programs):
        prefix = f"{program + 1}/" if len(programs) > 1 else ""
        found.extend(Row(prefix + case_name(case), case, program) for case in leaf.cases)
    return found


def case_name(case: CaseVerdict) -> str:
    """The name of a case, or its number."""
    return case.name if case.name is not None else f"case {case.index}"


def profiles(found: Sequence[Row]) -> list[str]:
    """The profiles of the rows, in order of first appearance."""
    return list(dict.fromkeys(cell.profile for row in found for cell in row.case.cells))


def never_ran(cell: CellVerdict) -> bool:
    """Whether no run of the cell took place because grading ended before."""
    return all(
        run.is_missing and all(finding.code is ReasonCode.INTERRUPTED for finding in run.findings) for run in cell.runs
    )


def deciding(cell: CellVerdict) -> Finding | None:
    """The finding that says best why a cell is not true."""
    return cell.findings[0] if cell.findings and cell.value is not Tri.TRUE else None


def counts(values: Sequence[Tri]) -> Counter[Tri]:
    """How many of each value."""
    return Counter(values)


def sandbox_time_s(grading: Grading) -> float | None:
    """Wall time in the sandbox over all attempts and compile runs; None if nothing ran."""
    if grading.runs is None:
        return None
    outcomes = [record.outcome for record in (*grading.runs.runs, *grading.runs.compiles)]
    times = [outcome.measures.wall_time_ns for outcome in outcomes if outcome is not None]
    return sum(times) / 1e9 if times else None


def cell_times_s(grading: Grading) -> dict[tuple[int, int, str], float]:
    """Wall time of the last attempts of each cell, by (program, case, profile)."""
    found: dict[tuple[int, int, str], float] = {}
    if grading.runs is None or grading.plan is None:
        return found
    last = grading.runs.last_attempts()
    for planned in grading.plan.runs:
        record = last.get(planned.index)
        if record is not None and record.outcome is not None:
            wall_time_s = record.outcome.measures.wall_time_ns / 1e9
            found[planned.cell] = found.get(planned.cell, 0.0) + wall_time_s
    return found
