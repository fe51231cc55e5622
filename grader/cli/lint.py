"""`grader lint`: what is wrong with tasks, all of it, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Quiet


def lint(
    tasks: Annotated[list[Path], typer.Argument(metavar="TASK...", help="Task files, or folders with a task.yaml.")],
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Say all that is wrong with task files."""
    from grader.cli.console import Console, problem_lines
    from grader.cli.exit_codes import ALL_TRUE, USAGE
    from grader.formats.task_lint import lint as lint_task

    console = Console(color=color, quiet=quiet)
    wrong = 0
    for path in tasks:
        found = lint_task(path)
        wrong += bool(found.problems)
        lines = [*problem_lines(found.problems), *problem_lines(found.warnings, kind="warning")]
        if not quiet and not lines:
            from grader.reports.sanitize import safe_line

            lines = [f"ok: {safe_line(str(path))}"]
        console.result("".join(f"{line}\n" for line in lines))
    return USAGE if wrong else ALL_TRUE
