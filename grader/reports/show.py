"""Why a case has its verdict: its runs side by side, grouped by what they did, and the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from grader.core.captured import Captured
from grader.core.cases import ProgramCase
from grader.core.observation import RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import PlannedRun
from grader.core.quoting import quote, quote_around
from grader.core.tools.calls import ToolsPayload
from grader.core.verdict import CellVerdict, RunVerdict
from grader.matchers.evidence import first_difference
from grader.reports.grading import Grading, Row, rows
from grader.reports.sanitize import safe_line, safe_lines
from grader.reports.text import MARKS, TextOptions, cell_line
from grader.reports.traced import conditions_of_cell, run_lines
from grader.scorers.runs import size

EXCERPT = 160
TAIL_LINES = 12
MOST_GROUPS = 10
MOST_RUNS_LISTED = 50


@dataclass(frozen=True)
class _Run:
    """One repetition: what was planned, what was recorded, what it says."""

    planned: PlannedRun
    record: RunRecord | None
    verdict: RunVerdict

    @property
    def outcome(self) -> RunOutcome | None:
        return self.record.outcome if self.record is not None else None

    @property
    def number(self) -> int:
        """The repetition, counted from 0 as verdicts do."""
        return self.planned.repetition


def find_rows(grading: Grading, wanted: str) -> list[Row]:
    """The cases that `wanted` names: by label, name or number exactly, else as a pattern or a part of the label."""
    found = rows(grading.verdict)
    tests: tuple[Callable[[Row], bool], ...] = (
        lambda row: wanted in {row.label, row.case.name, str(row.case.index)},
        lambda row: fnmatchcase(row.label, wanted),
        lambda row: wanted.casefold() in row.label.casefold(),
    )
    for test in tests:
        chosen = [row for row in found if test(row)]
        if chosen:
            return chosen
    return []


def show_report(grading: Grading, chosen: Sequence[Row], options: TextOptions | None = None) -> str:
    """The runs of the chosen cases in full; it ends in a newline."""
    look = options if options is not None else TextOptions()
    lines: list[str] = []
    for row in chosen:
        for cell in row.case.cells:
            lines.extend([*_cell(grading, row, cell, look), ""])
    lines.extend(_compiles(grading, {cell.profile for row in chosen for cell in row.case.cells}))
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(grading: Grading, row: Row, cell: CellVerdict, look: TextOptions) -> Iterator[str]:
    yield cell_line(row.label, cell, look)
    yield f"    {safe_line(cell.rationale)}"
    runs = _runs(grading, row, cell)
    case = grading.task.programs()[row.program].cases[row.case.index]
    if runs:
        yield from _given(runs[0], case)
    groups = _groups(runs, grading.exported)
    for number, group in enumerate(groups[:MOST_GROUPS], start=1):
        yield ""
        yield from _group(number, group, grading.exported.get(group[0].planned.index), several=len(groups) > 1)
    if len(groups) > MOST_GROUPS:
        yield f"    and {len(groups) - MOST_GROUPS} more groups"
    if len(groups) > 1:
        yield ""
        yield from _difference(groups, grading.exported)
    place = (row.program, row.case.index, cell.profile)
    traced = list(conditions_of_cell(grading.task.leaves(), grading.verdict, place, look))
    if traced:
        yield from ("", *traced)
    yield ""
    yield from _measures(runs)
    for note in cell.notes:
        yield f"    note: {safe_line(note)}"


def _runs(grading: Grading, row: Row, cell: CellVerdict) -> list[_Run]:
    if grading.plan is None or grading.runs is None:
        return []
    last = grading.runs.last_attempts()
    place = (row.program, row.case.index, cell.profile)
    planned = [run for run in grading.plan.runs if run.cell == place]
    return [_Run(run, last.get(run.index), verdict) for run, verdict in zip(planned, cell.runs, strict=True)]


def _given(run: _Run, case: ProgramCase) -> Iterator[str]:
    """What the program got, and what is expected."""
    invocation = run.planned.invocation
    outcome = run.outcome
    if outcome is not None:
        yield f"    command   {' '.join(quote(part, EXCERPT) for part in outcome.command)}"
    elif invocation.arguments:
        yield f"    arguments {' '.join(quote(part, EXCERPT) for part in invocation.arguments)}"
    if invocation.stdin:
        yield f"    stdin     {_described(Captured.whole(invocation.stdin))}"
    for file in invocation.files:
        yield f"    file      {quote(file.name)}  {_described(Captured.whole(file.content))}"
    for name, matcher in (("stdout", case.stdout), ("stderr", case.stderr)):
        if matcher is not None:
            yield f"    expected  {name} {safe_line(matcher.describe())}"
    for file in case.output_files:
        yield f"    expected  file {quote(file.name)} {safe_line(file.expected.describe())}"


def _groups(runs: Sequence[_Run], exported: Mapping[int, ToolsPayload]) -> list[list[_Run]]:
    """Runs that did the same, together; the largest group first."""
    found: dict[object, list[_Run]] = {}
    for run in runs:
        found.setdefault(_behaviour(run, exported.get(run.planned.index)), []).append(run)
    return sorted(found.values(), key=len, reverse=True)


def _calls(exported: ToolsPayload | None) -> object:
    """What a run says it called, and with what; not when, which differs from run to run."""
    return None if exported is None else tuple((call.names, call.arguments) for call in exported.calls)


def _behaviour(run: _Run, exported: ToolsPayload | None) -> object:
    outcome = run.outcome
    if outcome is None or run.verdict.is_missing:
        return ("missing", tuple((finding.code, finding.detail) for finding in run.verdict.findings))
    files = tuple((f.name, f.status, f.captured.sha256 if f.captured is not None else f.kind) for f in outcome.files)
    return (run.verdict.ending, _calls(exported), outcome.stdout.captured.sha256, outcome.stderr.captured.sha256, files)


def _group(number: int, group: Sequence[_Run], exported: ToolsPayload | None, *, several: bool) -> Iterator[str]:
    first = group[0]
    which = _numbers([run.number for run in group])
    ending = first.verdict.ending if first.verdict.ending is not None else "missing"
    head = f"group {number}: {which}" if several else which
    value = "missing" if first.verdict.is_missing else first.verdict.value.value
    yield f"    {head}   {MARKS[first.verdict.value]} {value}   {ending}"
    for finding in first.verdict.findings:
        yield f"        {finding.code.value}  {safe_line(finding.detail or finding.code.meaning, 400)}"
    if first.outcome is None:
        return
    yield f"        stdout  {_described(first.outcome.stdout.captured)}"
    yield from _stderr(first.outcome.stderr.captured)
    for file in first.outcome.files:
        if file.captured is not None:
            yield f"        file    {quote(file.name)}  {_described(file.captured)}"
        else:
            yield f"        file    {quote(file.name)}  {safe_line(file.kind or file.status.replace('_', ' '))}"
    if exported is not None:
        yield from run_lines(exported, "        ")
    for note in first.verdict.notes:
        yield f"        note: {safe_line(note)}"


def _stderr(captured: Captured) -> Iterator[str]:
    if captured.total_bytes == 0:
        yield "        stderr  empty"
        return
    lines = safe_lines(captured.kept, 200)
    tail = lines[-TAIL_LINES:]
    which = "" if captured.is_complete and len(tail) == len(lines) else f", the last {len(tail)} lines that were kept"
    yield f"        stderr  {size(captured.total_bytes)}{which}:"
    yield from (f"          | {line}" for line in tail)


def _difference(groups: Sequence[Sequence[_Run]], exported: Mapping[int, ToolsPayload]) -> Iterator[str]:
    """The first difference between the largest group and each other one."""
    base = groups[0][0]
    for number, group in enumerate(groups[1:MOST_GROUPS], start=2):
        said = _first_difference(base, group[0])
        if said is None:
            one, other = (_calls(exported.get(run.planned.index)) for run in (base, group[0]))
            said = "the kind of an output file" if one == other else "the calls of tools, or their arguments"
        yield f"    first difference of group 1 and group {number}: {said}"


def _first_difference(one: _Run, other: _Run) -> str | None:
    """The first of what both left behind in which they differ; None: neither stream, file content nor ending."""
    left, right = one.outcome, other.outcome
    if left is None or right is None or one.verdict.is_missing or other.verdict.is_missing:
        return "one of them is missing"
    for name, a, b in _values(left, right):
        if a is None or b is None:
            return f"{name} is not there in one of them"
        if a.sha256 != b.sha256:
            return _places(name, a, b)
    if one.verdict.ending != other.verdict.ending:
        return f"{one.verdict.ending} and {other.verdict.ending}"
    return None


def _values(left: RunOutcome, right: RunOutcome) -> Iterator[tuple[str, Captured | None, Captured | None]]:
    yield "stdout", left.stdout.captured, right.stdout.captured
    theirs = {file.name: file for file in right.files}
    for file in left.files:
        other = theirs.get(file.name)
        if (file.captured is None) != (other is None or other.captured is None) or file.captured is not None:
            yield f"file {quote(file.name)}", file.captured, other.captured if other is not None else None
    yield "stderr", left.stderr.captured, right.stderr.captured


def _places(name: str, a: Captured, b: Captured) -> str:
    offset = first_difference(a.kept, b.kept)
    if offset == len(a.kept) == len(b.kept):
        return f"{name}, in the part that was not kept"
    line = a.kept.count(b"\n", 0, offset) + 1
    shown = [quote_around(c.kept, offset, 60) if c.total_bytes else "nothing" for c in (a, b)]
    return f"{name}, byte {offset:,} (line {line}): {shown[0]} and {shown[1]}"


def _measures(runs: Sequence[_Run]) -> Iterator[str]:
    yield f"    {'run':>5} {'':1} {'attempt':>7} {'cpu':>10} {'wall':>10} {'memory':>10}  ended"
    for run in runs[:MOST_RUNS_LISTED]:
        m = run.outcome.measures if run.outcome is not None else None
        cells = (
            _milliseconds(m.cpu_time_ns if m is not None else None),
            _milliseconds(m.wall_time_ns if m is not None else None),
            _memory(m.peak_memory_bytes if m is not None else None),
        )
        ending = run.verdict.ending if run.verdict.ending is not None else _why(run.verdict)
        listed = " ".join(f"{cell:>10}" for cell in cells)
        yield f"    {run.number:>5} {MARKS[run.verdict.value]} {run.verdict.attempts:>7} {listed}  {ending}"
    if len(runs) > MOST_RUNS_LISTED:
        yield f"    and {len(runs) - MOST_RUNS_LISTED} more runs"


def _compiles(grading: Grading, profiles: set[str]) -> Iterator[str]:
    """Compile runs that did not end well, with what the compiler said."""
    if grading.runs is None:
        return
    for profile, record in grading.runs.last_compiles().items():
        outcome = record.outcome
        if profile not in profiles or outcome is None or outcome.measures.exit_code == 0:
            continue
        yield f"compile [{safe_line(profile)}]  {' '.join(quote(part, EXCERPT) for part in outcome.command)}"
        yield from _stderr(outcome.stderr.captured)


def _why(verdict: RunVerdict) -> str:
    return verdict.findings[0].code.value if verdict.findings else "missing"


def _described(captured: Captured) -> str:
    if captured.total_bytes == 0:
        return "empty"
    kept = "" if captured.is_complete else f", {size(len(captured.kept))} kept"
    return f"{size(captured.total_bytes)}{kept}  {quote(captured.kept, EXCERPT)}"


def _numbers(numbers: Sequence[int]) -> str:
    """`runs 1-3, 5`."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    listed = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return f"run{'s' if len(numbers) > 1 else ''} {listed}"


def _milliseconds(nanoseconds: int | None) -> str:
    return "unknown" if nanoseconds is None else f"{nanoseconds / 1e6:,.1f} ms"


def _memory(count: int | None) -> str:
    return "unknown" if count is None else f"{count / 2**20:,.1f} MiB"
