"""Conditions about the traces of runs: a line a cell in the text report, and in `grader show` what each run says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from grader.core.conditions import Condition
from grader.core.tools.calls import ToolsPayload
from grader.core.tri import Tri
from grader.core.verdict import ConditionCell, ConditionVerdict, Verdict
from grader.reports.grading import leaves
from grader.reports.judged import judged_label
from grader.reports.look import COLORS, MARKS, TextOptions, pad, paint, reason, run_marks, text_width
from grader.reports.sanitize import safe_line
from grader.reports.scored import calls_lines, evidence_lines

_LONGEST_REASON = 600


def traced_lines(condition: Condition, verdict: ConditionVerdict, look: TextOptions) -> list[str]:
    """One condition about traces: its tools, and below them every cell that is not true."""
    if verdict.value is Tri.TRUE and not look.show_all:
        return []
    mark = paint(MARKS[verdict.value], COLORS[verdict.value], look)
    lines = [f"{mark} {verdict.condition_type}  {safe_line(judged_label(condition), 200)}".rstrip()]
    shown = [found for found in verdict.cells if look.show_all or found.cell.value is not Tri.TRUE]
    labels = _labels(shown, several=len({found.cell.profile for found in verdict.cells}) > 1)
    width = max((text_width(label) for label in labels), default=0)
    for label, found in zip(labels, shown, strict=True):
        cell = found.cell
        said = (
            reason(cell.findings[0], _LONGEST_REASON) if cell.findings else safe_line(cell.rationale, _LONGEST_REASON)
        )
        lines.append(f"    {pad(label, width)}  {run_marks(cell.runs, look)}  {said}".rstrip())
    return lines


def cell_name(found: ConditionCell) -> str:
    """The case's name, or its number."""
    return found.name if found.name is not None else f"case {found.case}"


def conditions_of_cell(
    conditions: Sequence[Condition], verdict: Verdict, place: tuple[int, int, str], look: TextOptions
) -> Iterator[str]:
    """What every condition about traces says of one cell, named by program, case and profile."""
    for condition, leaf in zip(conditions, leaves(verdict), strict=True):
        for found in leaf.cells:
            if (found.program, found.case, found.cell.profile) != place:
                continue
            mark = paint(MARKS[found.cell.value], COLORS[found.cell.value], look)
            label = safe_line(judged_label(condition), 200)
            yield f"    {mark} {leaf.condition_type}  {label}  {run_marks(found.cell.runs, look)}"
            yield f"        {safe_line(found.cell.rationale, _LONGEST_REASON)}"


def run_lines(payload: ToolsPayload, indent: str) -> Iterator[str]:
    """What one run says it did: how complete that is, and its calls."""
    look = TextOptions()
    for line in (*evidence_lines(payload, look), *calls_lines(payload, look)):
        yield indent + line


def _labels(cells: Sequence[ConditionCell], *, several: bool) -> list[str]:
    return [safe_line(cell_name(found) + (f" [{found.cell.profile}]" if several else "")) for found in cells]
