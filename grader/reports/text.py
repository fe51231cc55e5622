"""The report for people: a line a case that is not true, a summary line, and the commands that show more."""

from __future__ import annotations

from collections.abc import Sequence

from grader.core.judging.conditions import JudgeCondition
from grader.core.tri import Tri, all_of
from grader.core.verdict import CellVerdict, ConditionVerdict
from grader.reports.grading import (
    Grading,
    Refusal,
    Row,
    composites,
    counts,
    deciding,
    leaves,
    never_ran,
    profiles,
    reasons_of_not,
    rows,
    sandbox_time_s,
)
from grader.reports.judged import judged_lines
from grader.reports.look import BOLD, COLORS, MARKS, TextOptions, pad, paint, reason, run_marks, text_width
from grader.reports.sanitize import safe_line
from grader.reports.scored import scored_lines
from grader.reports.traced import traced_lines

LONGEST_LABEL = 40
MOST_REASONS = 3
"""How many reasons of one case are shown."""


def text_report(
    graded: Sequence[Grading | Refusal],
    *,
    exit_code: int | None = None,
    wall_time_s: float | None = None,
    options: TextOptions | None = None,
) -> str:
    """The text report; it ends in a newline. `wall_time_s`: how long several submissions took together."""
    look = options if options is not None else TextOptions()
    lines: list[str] = []
    for item in graded:
        if len(graded) > 1 and not look.quiet:
            lines.append(paint(safe_line(item.submission), BOLD, look))
        if isinstance(item, Refusal):
            lines.extend(_refusal(item, look))
            continue
        if not look.quiet:
            lines.extend(_body(item, look))
        lines.append(
            _summary(item, exit_code if len(graded) == 1 else None, look, named=len(graded) > 1 and look.quiet)
        )
        if not look.quiet:
            lines.extend(_next(item, one_of_several=len(graded) > 1))
            if len(graded) > 1:
                lines.append("")
    if len(graded) > 1:
        lines.append(_total(graded, exit_code, wall_time_s, look))
    return "\n".join(lines) + "\n"


def cell_line(label: str, cell: CellVerdict, options: TextOptions) -> str:
    """One cell on one line: for progress that is not on a terminal, and for `-v`."""
    mark = paint(MARKS[cell.value], COLORS[cell.value], options)
    finding = deciding(cell)
    said = "" if finding is None else f"  {reason(finding)}"
    return f"{mark} {safe_line(label)}  [{safe_line(cell.profile)}]  {run_marks(cell.runs, options)}{said}"


def _refusal(item: Refusal, look: TextOptions) -> list[str]:
    place = f"{item.problem.where}: " if item.problem.where is not None else ""
    lines = [f"{paint('refused', '31', look)} {safe_line(item.code)}  {safe_line(place + item.problem.message)}"]
    if item.problem.hint is not None:
        lines.append(f"  mend: {safe_line(item.problem.hint)}")
    return lines


def _body(item: Grading, look: TextOptions) -> list[str]:
    if item.judged is not None:
        return judged_lines(item, look)
    return _conditions(item, look) if item.tools is None else scored_lines(item, look)


def _conditions(item: Grading, look: TextOptions) -> list[str]:
    lines: list[str] = []
    found = rows(item.verdict)
    if found:
        lines.extend(_case_lines(found, look))
    for condition, leaf in zip(item.task.leaves(), leaves(item.verdict), strict=True):
        if leaf.cells:
            lines.extend(traced_lines(condition, leaf, look))
        elif not leaf.cases:
            lines.extend(_leaf_lines(leaf, look))
    for _, condition in composites(item.verdict):
        lines.extend(_tree(condition, look, depth=0))
    return lines


def _case_lines(found: list[Row], look: TextOptions) -> list[str]:
    names = profiles(found)
    shown = [row for row in found if look.show_all or row.case.value is not Tri.TRUE or _has_unsettled(row)]
    hidden = len(found) - len(shown)
    lines: list[str] = []
    if shown:
        labels = [_cut(safe_line(row.label)) for row in shown]
        label_width = max(text_width(label) for label in labels)
        cells = [{cell.profile: cell for cell in row.case.cells} for row in shown]
        plain = TextOptions()
        widths = [
            max(
                [text_width(safe_line(name)), *(text_width(run_marks(c[name].runs, plain)) for c in cells if name in c)]
            )
            for name in names
        ]
        header = "   ".join(pad(safe_line(name), width) for name, width in zip(names, widths, strict=True))
        lines.append(" " * (label_width + 4) + header.rstrip())
        indent = " " * (label_width + 4 + sum(widths) + 3 * (len(widths) - 1) + 3)
        for row, label, by_profile in zip(shown, labels, cells, strict=True):
            marks = "   ".join(
                pad(run_marks(by_profile[name].runs, look) if name in by_profile else "", width, look)
                for name, width in zip(names, widths, strict=True)
            )
            mark = paint(MARKS[row.case.value], COLORS[row.case.value], look)
            first, *more = _reasons(row, several=len(names) > 1) or [""]
            lines.append(f"{mark} {pad(label, label_width)}  {marks}   {first}".rstrip())
            lines.extend(indent + reason for reason in more)
    if hidden:
        more = " more" if shown else ""
        verb = f"{hidden}{more} case{' is' if hidden == 1 else 's are'}"
        lines.append(f"{verb} true in every run (--all lists them)")
    return lines


def _has_unsettled(row: Row) -> bool:
    """A case is listed even when another cell has decided it."""
    return any(cell.value is Tri.UNDETERMINED for cell in row.case.cells)


def _reasons(row: Row, *, several: bool) -> list[str]:
    """Why a case is not true: each reason once, those that decide first, with the profile where they differ."""
    by_reason: dict[str, list[str]] = {}
    ordered = sorted(row.case.cells, key=lambda cell: cell.value is not row.case.value)
    for cell in ordered:
        finding = deciding(cell)
        if finding is not None:
            said = reason(finding) if not never_ran(cell) else f"{finding.code}  not run"
            by_reason.setdefault(said, []).append(cell.profile)
    lines: list[str] = []
    for said, where in by_reason.items():
        tagged = several and len(by_reason) > 1
        lines.append(f"{said}  [{safe_line(', '.join(where))}]" if tagged else said)
    if len(lines) > MOST_REASONS:
        lines[MOST_REASONS:] = [f"and {len(lines) - MOST_REASONS} more"]
    return lines


def _leaf_lines(leaf: ConditionVerdict, look: TextOptions) -> list[str]:
    if leaf.value is Tri.TRUE and not look.show_all:
        return []
    mark = paint(MARKS[leaf.value], COLORS[leaf.value], look)
    lines = [f"{mark} {safe_line(leaf.condition_type)}  {safe_line(leaf.rationale)}".rstrip()]
    lines.extend(f"    {reason(finding)}" for finding in leaf.findings)
    return lines


def _tree(condition: ConditionVerdict, look: TextOptions, depth: int) -> list[str]:
    mark = paint(MARKS[condition.value], COLORS[condition.value], look)
    indent = "  " * depth
    lines = [f"{indent}{mark} {safe_line(condition.condition_type)}"]
    lines.extend(f"{indent}    {reason(finding)}" for finding in reasons_of_not(condition))
    for part in condition.parts:
        lines.extend(_tree(part, look, depth + 1))
    return lines


def _summary(item: Grading, exit_code: int | None, look: TextOptions, *, named: bool) -> str:
    value = item.verdict.value
    parts = [paint(value.value.upper(), f"{BOLD};{COLORS[value]}", look)]
    if named:
        parts[0] += f"  {safe_line(item.submission)}"
    found = rows(item.verdict)
    if found:
        parts.append(f"cases {len(found)}: {_counted([row.case.value for row in found], look)}")
        parts.append(f"runs {sum(len(cell.runs) for row in found for cell in row.case.cells)}")
        parts.extend(_about_runs(item, look))
    else:
        parts.append(
            f"conditions {len(item.verdict.conditions)}: {_counted([c.value for c in item.verdict.conditions], look)}"
        )
    if item.selection is not None and not item.selection.is_whole:
        parts.append(safe_line(str(item.selection)))
    parts.extend(_times(item))
    if exit_code is not None:
        parts.append(f"exit {exit_code}")
    return "    ".join(parts)


def _about_runs(item: Grading, look: TextOptions) -> list[str]:
    """How many of the conditions beside the programs have which value."""
    told: dict[str, list[Tri]] = {}
    for condition, leaf in zip(item.task.leaves(), leaves(item.verdict), strict=True):
        if leaf.cells:
            told.setdefault("for a judge" if isinstance(condition, JudgeCondition) else "about tools", []).append(
                leaf.value
            )
    return [f"{kind} {len(values)}: {_counted(values, look)}" for kind, values in told.items()]


def _times(item: Grading) -> list[str]:
    inside = sandbox_time_s(item)
    times = [] if item.wall_time_s is None else [f"{_duration(item.wall_time_s)} wall"]
    if inside is not None:
        times.append(f"{_duration(inside)} in sandboxes")
    return [", ".join(times) + (", replayed" if item.is_replay else "")] if times else []


def _counted(values: Sequence[Tri], look: TextOptions) -> str:
    found = counts(values)
    return "  ".join(paint(f"{MARKS[v]} {found[v]}", COLORS[v], look) for v in MARKS if found[v])


def _total(
    graded: Sequence[Grading | Refusal], exit_code: int | None, wall_time_s: float | None, look: TextOptions
) -> str:
    verdicts = [item.verdict.value for item in graded if isinstance(item, Grading)]
    refused = len(graded) - len(verdicts)
    parts: list[str] = []
    if verdicts:
        value = all_of(verdicts)
        parts.append(paint(value.value.upper(), f"{BOLD};{COLORS[value]}", look))
    parts.append(f"submissions {len(graded)}: {_counted(verdicts, look)}" + (f"  refused {refused}" if refused else ""))
    if wall_time_s is not None:
        parts.append(f"{_duration(wall_time_s)} wall")
    if exit_code is not None:
        parts.append(f"exit {exit_code}")
    return "    ".join(parts)


def _next(item: Grading, *, one_of_several: bool) -> list[str]:
    """The commands that show more of what is not true."""
    if item.record is None:
        return []
    commands: list[str] = []
    worst = [row for row in rows(item.verdict) if row.case.value is not Tri.TRUE]
    worst.sort(key=lambda row: row.case.value is not Tri.UNDETERMINED)
    record = shell_word(item.record)
    if worst:
        which = f" -s {shell_word(item.submission)}" if one_of_several else ""
        commands.append(f"grader show {record} {shell_word(worst[0].label)}{which}")
    elif item.tools is not None and not item.is_replay:
        commands.append(f"grader show {record}")
    if not one_of_several:
        commands.append(f"grader replay {record}")
    if not commands:
        return []
    return ["next    " + " · ".join(commands)]


def shell_word(text: str) -> str:
    """`text` as one word of a shell command, harmless to look at; bytes that cannot be shown are written `$'\\xFF'`."""
    shown = safe_line(text, len(text))
    if shown != text:
        return "$'" + "".join(_in_dollar_quotes(char) for char in text) + "'"
    plain = all(char.isalnum() or char in "@%+=:,./-_" for char in shown) and shown != ""
    return shown if plain else "'" + shown.replace("'", "'\"'\"'") + "'"


def _in_dollar_quotes(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if safe_line(char) == char:
        return char
    stands_for_a_byte = "\udc80" <= char <= "\udcff"
    data = char.encode("utf-8", "surrogateescape" if stands_for_a_byte else "surrogatepass")
    return "".join(f"\\x{byte:02X}" for byte in data)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def _cut(label: str) -> str:
    return label if text_width(label) <= LONGEST_LABEL else label[: LONGEST_LABEL - 1] + "…"
