"""How text reports look: marks, colours, columns."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from grader.core.tri import Tri
from grader.core.verdict import Finding, RunVerdict
from grader.reports.sanitize import safe_line

MARKS = {Tri.TRUE: "✓", Tri.FALSE: "✗", Tri.UNDETERMINED: "?"}
COLORS = {Tri.TRUE: "32", Tri.FALSE: "31", Tri.UNDETERMINED: "33"}
BOLD = "1"
MOST_MARKS = 8
"""Above this many repetitions, marks are counted instead of written one by one."""


@dataclass(frozen=True)
class TextOptions:
    """How the text report looks."""

    color: bool = False
    show_all: bool = False
    """List the cases that are true, too."""
    quiet: bool = False
    """The summary lines only."""


def paint(text: str, color: str, look: TextOptions) -> str:
    """`text` in a colour, if there are colours."""
    return f"\x1b[{color}m{text}\x1b[0m" if look.color else text


def pad(text: str, columns: int, look: TextOptions | None = None) -> str:
    """`text` (painted, if `look` says so) with spaces up to a width."""
    painted = 0 if look is None or not look.color else len(text) - len(_unpainted(text))
    return text + " " * max(0, columns - text_width(text) + painted)


def text_width(text: str) -> int:
    """How many columns a text takes on a terminal: wide characters take two."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def reason(finding: Finding, limit: int = 400, columns: int = 15) -> str:
    """A finding on one line: the code, in so many columns, and its detail."""
    detail = finding.detail or finding.code.meaning
    return f"{pad(finding.code.value, columns)} {safe_line(detail, limit)}"


def run_marks(runs: Sequence[RunVerdict], options: TextOptions) -> str:
    """A mark a repetition, or their counts when there are many."""
    if len(runs) <= MOST_MARKS:
        return "".join(paint(MARKS[run.value], COLORS[run.value], options) for run in runs)
    found = Counter(run.value for run in runs)
    return " ".join(paint(f"{MARKS[v]}{found[v]}", COLORS[v], options) for v in MARKS if found[v])


def _unpainted(text: str) -> str:
    kept: list[str] = []
    for part in text.split("\x1b["):
        kept.append(part if not kept else part.partition("m")[2])
    return "".join(kept)
