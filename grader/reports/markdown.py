"""Markdown: a table of what is not true, for a pull request or an issue."""

from __future__ import annotations

from collections.abc import Sequence

from grader.core.tri import Tri
from grader.reports.evidence import condition_label, coverage_in_words, size_in_words
from grader.reports.grading import Grading, Refusal, composites, counts, deciding, leaves, rows
from grader.reports.look import MARKS, TextOptions
from grader.reports.sanitize import markdown_text
from grader.reports.text import run_marks


def markdown_report(graded: Sequence[Grading | Refusal], *, exit_code: int | None = None) -> str:
    """A heading and a table a submission; it ends in a newline."""
    parts = [_refused(item) if isinstance(item, Refusal) else _grading(item) for item in graded]
    if exit_code is not None:
        parts.append(f"exit code {exit_code}\n")
    return "\n".join(parts)


def _grading(item: Grading) -> str:
    found = rows(item.verdict)
    counted = counts([row.case.value for row in found])
    lines = [f"### {MARKS[item.verdict.value]} {markdown_text(item.submission)}: {item.verdict.value.value}", ""]
    if found:
        lines.append(f"{len(found)} cases: " + ", ".join(f"{counted[v]} {v.value}" for v in MARKS if counted[v]) + ".")
    if item.selection is not None and not item.selection.is_whole:
        lines.append(markdown_text(str(item.selection)) + ".")
    shown = [(row, cell) for row in found for cell in row.case.cells if cell.value is not Tri.TRUE]
    if shown:
        lines.extend(["", "| case | profile | runs | reason | detail |", "|---|---|---|---|---|"])
    for row, cell in shown:
        finding = deciding(cell)
        code = finding.code.value if finding is not None else ""
        detail = (finding.detail or finding.code.meaning) if finding is not None else ""
        marks = run_marks(cell.runs, TextOptions())
        cells = (markdown_text(row.label), markdown_text(cell.profile), marks, f"`{code}`", markdown_text(detail))
        lines.append(f"| {' | '.join(cells)} |")
    if item.tools is not None:
        return "\n".join([*lines, *_scored(item)]) + "\n"
    for leaf in leaves(item.verdict):
        if not leaf.cases and leaf.value is not Tri.TRUE:
            lines.append(f"- {MARKS[leaf.value]} `{leaf.condition_type}` {markdown_text(leaf.rationale)}")
    for _, condition in composites(item.verdict):
        if condition.value is not Tri.TRUE:
            codes = " ".join(f"`{finding.code.value}`" for finding in condition.findings)
            detail = markdown_text(condition.rationale)
            lines.append(f"- {MARKS[condition.value]} `{condition.condition_type}` {codes} {detail}")
    return "\n".join(lines) + "\n"


def _scored(item: Grading) -> list[str]:
    """Every condition, and how complete the evidence is."""
    assert item.tools is not None
    lines = ["| | condition | tools | reason | detail |", "|---|---|---|---|---|"]
    for condition, leaf in zip(item.task.leaves(), leaves(item.verdict), strict=True):
        codes = " ".join(f"`{finding.code.value}`" for finding in leaf.findings)
        label, detail = markdown_text(condition_label(condition)), markdown_text(leaf.rationale)
        lines.append(f"| {MARKS[leaf.value]} | `{leaf.condition_type}` | {label} | {codes} | {detail} |")
    said = (
        f"evidence: {coverage_in_words(item.tools)}; {size_in_words(item.tools)}; executions: {len(item.tools.calls)}"
    )
    return [*lines, "", f"{markdown_text(said)}.", *(f"- warning: {markdown_text(text)}" for text in item.warnings)]


def _refused(item: Refusal) -> str:
    return f"### {markdown_text(item.submission)}: refused\n\n`{item.code}` {markdown_text(item.problem.message)}\n"
