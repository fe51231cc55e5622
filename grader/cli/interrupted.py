"""What `grader run` says when a signal ended it: how much is kept, and how to go on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.reports.text import shell_word


@dataclass
class RunsSoFar:
    """How far grading has come, earlier sessions of a resumed record included."""

    submissions: int = 0
    """Those whose runs are known: they have begun, or are in the record."""
    planned: int = 0
    ended: int = 0
    """Runs that say something of the program; they are not run again."""


def what_is_kept(so_far: RunsSoFar, folder: Path | None, *, submissions: int, is_resumed: bool) -> str:
    """What stays of the runs, in a sentence without its end.

    `folder`: of the record, None if none is kept; `submissions`: how many were to be graded in all.
    """
    if so_far.planned == 0:
        if is_resumed:
            return "interrupted before another run; the record is as it was"
        return "interrupted before the first run; nothing was recorded"
    runs = f"{so_far.ended} of {so_far.planned} run{'s' if so_far.planned > 1 else ''}"
    if submissions > 1:
        runs += f", of {so_far.submissions} of {submissions} submissions,"
    if folder is None:
        return f"interrupted; no record was kept of the {runs} that ended"
    verb = "is" if 1 in {so_far.ended, so_far.planned} else "are"
    look = f" (what they show: grader replay {path_word(folder)})" if so_far.ended > 0 else ""
    return f"interrupted; {runs} {verb} in the record{look}"


def path_word(path: Path) -> str:
    """A path as one word of a shell command, which no command takes for an option."""
    text = str(path)
    return shell_word(f"./{text}" if text.startswith("-") else text)
