"""All that grader shows. Results go to standard output; progress, notes and errors to standard error.

Nothing that a program printed, and no name that others chose, reaches a terminal but through `reports.sanitize`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from grader.errors import GraderError, PrerequisiteError, Problem, TaskError, UsageError
from grader.reports.sanitize import safe_line

if TYPE_CHECKING:
    from rich.live import Live

Color = Literal["auto", "always", "never"]

MOST_LIVE_LINES = 4
MOST_ERRORS = 50


@dataclass
class Console:
    """Where a command writes. `quiet`: no progress and no notes; `verbose`: more of them."""

    color: str = "auto"
    quiet: bool = False
    verbose: bool = False
    _live: Live | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Refuse a colour setting that does not exist."""
        if self.color not in {"auto", "always", "never"}:
            raise UsageError(f"--color is auto, always or never, not {self.color!r}")

    def colored(self, stream: TextIO) -> bool:
        """Whether a stream gets colours: never with NO_COLOR set, unless asked for with --color always."""
        if self.color != "auto":
            return self.color == "always"
        return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"

    @property
    def result_colored(self) -> bool:
        """Whether results get colours."""
        return self.colored(sys.stdout)

    @property
    def progress_colored(self) -> bool:
        """Whether progress gets colours."""
        return self.colored(sys.stderr)

    @property
    def is_live(self) -> bool:
        """Whether progress is a region that is drawn anew instead of lines that stay."""
        return not self.quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def result(self, report: str) -> None:
        """Write a finished report to standard output. Its text must have gone through the sanitiser."""
        write(sys.stdout, report)

    def line(self, text: str) -> None:
        """Write a line of progress that stays, to standard error, unless quiet. Its text must be sanitised."""
        if self.quiet:
            return
        if self._live is not None:
            from rich.text import Text

            self._live.console.print(Text.from_ansi(text), soft_wrap=True)
        else:
            write(sys.stderr, text + "\n")

    def note(self, text: str) -> None:
        """A line to standard error, unless quiet."""
        self.line(safe_line(text))

    def say(self, text: str) -> None:
        """A line to standard error, also when quiet."""
        write(sys.stderr, safe_line(text) + "\n")

    def detail(self, text: str) -> None:
        """A line to standard error when verbose."""
        if self.verbose:
            self.note(text)

    def warnings(self, warnings: Sequence[str]) -> None:
        """What one should know before trusting a verdict, to standard error, unless quiet."""
        for warning in warnings:
            self.note(f"warning: {warning}")

    def error(self, error: GraderError) -> None:
        """An error with place, what is wrong and the mend; of a task, every problem."""
        problems = (
            error.problems if isinstance(error, TaskError) else (Problem(error.message, error.where, error.hint),)
        )
        write(sys.stderr, "".join(f"{line}\n" for line in problem_lines(problems)))

    def problems(self, problems: Sequence[Problem], kind: str) -> None:
        """Problems that are no error of the command, each behind `kind`, to standard error, also when quiet."""
        write(sys.stderr, "".join(f"{line}\n" for line in problem_lines(problems, kind)))

    @contextlib.contextmanager
    def live(self, lines: Callable[[], Sequence[str]]) -> Generator[None]:
        """While open, `lines` (at most four are shown) are drawn anew on a terminal; elsewhere nothing happens."""
        if not self.is_live:
            yield
            return
        from rich.console import Console as RichConsole
        from rich.live import Live

        terminal = cast("TextIO", _Forgiving(sys.stderr))
        console = RichConsole(file=terminal, no_color=not self.progress_colored, highlight=False, markup=False)
        with Live(
            get_renderable=lambda: _region(lines()), console=console, refresh_per_second=8, transient=True
        ) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None


def problem_lines(problems: Sequence[Problem], kind: str = "error") -> Iterator[str]:
    """Problems as lines for a terminal."""
    for problem in problems[:MOST_ERRORS]:
        place = f"{problem.where}: " if problem.where is not None else ""
        first, *rest = problem.message.split("\n")
        yield f"{kind}: {safe_line(place + first)}"
        yield from (f"  {safe_line(line)}" for line in rest)
        if problem.hint is not None:
            first, *rest = problem.hint.split("\n")
            yield f"  mend: {safe_line(first)}"
            yield from (f"        {safe_line(line)}" for line in rest)
    if len(problems) > MOST_ERRORS:
        yield f"{kind}: and {len(problems) - MOST_ERRORS} more"


def write(stream: TextIO, text: str) -> None:
    """Write and flush; a reader that has gone away is no error of ours, and must not change the exit code.

    Raises PrerequisiteError if standard output takes nothing more (a full disk). What standard error does not take is
    told to nobody: there is nowhere to tell it.
    """
    try:
        stream.write(text)
        stream.flush()
    except OSError as error:
        # Python would complain again when it flushes at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(error, BrokenPipeError):
            raise PrerequisiteError(
                f"standard output cannot be written: {error.strerror}",
                hint="write the report to a file with -o; of a run that was recorded, grader replay shows it again",
            ) from error


def use_streams() -> None:
    """Give the process its three streams, in an encoding that never fails.

    A stream that was closed before we began is /dev/null from here: nobody reads it, and its number must not become
    that of a record's file. Marks and excerpts are not ASCII; where a terminal cannot show them they are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this one
    closed = cast("Any", sys)  # to the type checker they are never None
    if closed.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    if closed.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            cast("Any", stream).reconfigure(errors="backslashreplace")


class _Forgiving:
    """A terminal for progress that may be gone at any moment: what it does not take is lost, and nothing ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _region(lines: Sequence[str]) -> Any:
    from rich.text import Text

    shown = Text("\n").join(Text.from_ansi(line) for line in lines[:MOST_LIVE_LINES])
    shown.no_wrap = True
    shown.overflow = "ellipsis"
    return shown
