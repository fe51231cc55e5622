"""What is shown while runs go on: a line a cell, or on a terminal a region of at most four lines."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence

from grader.cli.console import MOST_LIVE_LINES, Console
from grader.cli.interrupted import RunsSoFar
from grader.core.expectation import Task
from grader.core.observation import RunRecord
from grader.core.plan import Plan, PlannedRun
from grader.core.tri import Tri
from grader.core.verdict import CellVerdict
from grader.reports.sanitize import safe_line
from grader.reports.text import COLORS, MARKS, TextOptions, cell_line
from grader.runner.grading import Watcher, is_missing


class Progress(Watcher):
    """Told by the runner what goes on; shows it on the console.

    `task` is the effective one; None if there are several, and cases then have numbers instead of names. `began` is
    called once, when the record has begun.
    """

    def __init__(
        self, console: Console, submissions: int, task: Task | None, began: Callable[[], None] = lambda: None
    ) -> None:
        self.so_far = RunsSoFar()
        self._to_resume = 0
        self._console = console
        self._task = task
        self._submissions = submissions
        self._began = began
        self._look = TextOptions(color=console.progress_colored)
        self._start = time.monotonic()
        self._step = ""
        self._cells: Counter[Tri] = Counter()
        self._planned_cells = 0
        self._planned_runs = 0
        self._runs = 0
        self._notable: deque[str] = deque(maxlen=MOST_LIVE_LINES - 1)
        self._is_first = True

    def image_step(self, line: str) -> None:
        """A step of building an image."""
        self._step = line
        if not self._console.is_live or self._console.verbose:
            self._console.note(line)

    def resumed(self, submissions: int, runs: int, ended: int) -> None:
        """What the record has that is gone on with."""
        self.so_far = RunsSoFar(submissions, runs, ended)
        self._to_resume = submissions

    def planned(self, submission: str, plan: Plan) -> None:
        """The cost, before the first run."""
        if self._to_resume > 0:
            self._to_resume -= 1  # it is counted: the submissions of the record come first
        else:
            self.so_far.submissions += 1
            self.so_far.planned += len(plan.runs)
        self._step = ""
        self._planned_cells += len(plan.cells)
        self._planned_runs += len(plan.runs)
        if self._is_first:
            self._is_first = False
            several = f"{self._submissions} submissions, each " if self._submissions > 1 else ""
            self._console.note(several + plan.size_in_words())
            self._began()
        elif self._console.verbose:
            self._console.note(f"{submission}: {plan.size_in_words()}")

    def run_ended(self, submission: str, planned: PlannedRun, record: RunRecord) -> None:
        """An attempt at a run has ended; what went wrong on our side is told when verbose."""
        self._runs += 1
        self.so_far.ended += not is_missing(record, planned)
        if record.missing is not None:
            where = f"{submission}, case {planned.case}, {planned.profile}, repetition {planned.repetition}"
            self._console.detail(
                f"missing: {where}, attempt {record.attempt}: {record.missing.code.value}: {record.missing.detail}"
            )

    def cell_ended(self, submission: str, planned: PlannedRun, cell: CellVerdict) -> None:
        """All runs of a cell are settled."""
        self._cells[cell.value] += 1
        label = self._label(planned)
        label = f"{submission}: {label}" if self._submissions > 1 else label
        line = cell_line(label, cell, self._look)
        if cell.value is not Tri.TRUE:
            self._notable.append(line)
        if not self._console.is_live or self._console.verbose:
            self._console.line(line)

    def _label(self, planned: PlannedRun) -> str:
        """The case's name as reports write it."""
        if self._task is None:
            return f"{planned.program + 1}/case {planned.case}" if planned.program > 0 else f"case {planned.case}"
        programs = self._task.programs()
        name = programs[planned.program].cases[planned.case].name
        label = name if name is not None else f"case {planned.case}"
        return f"{planned.program + 1}/{label}" if len(programs) > 1 else label

    def lines(self) -> Sequence[str]:
        """The region, at most four lines."""
        if self._planned_runs == 0 or self._step:
            return [safe_line(f"preparing  {self._step}".rstrip(), 200)]
        marks = "  ".join(
            f"\x1b[{COLORS[v]}m{MARKS[v]} {self._cells[v]}\x1b[0m" for v in MARKS if self._cells[v]
        )  # fmt: skip
        ended = sum(self._cells.values())
        seconds = round(time.monotonic() - self._start)
        head = f"{ended} of {self._planned_cells} cells  {marks}  {self._runs} of {self._planned_runs} runs"
        return [f"{head}  {seconds // 60}:{seconds % 60:02}", *self._notable]
