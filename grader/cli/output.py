"""Which reports a command writes, in which format, and where."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.cli import exit_codes
from grader.cli.console import Console
from grader.cli.items import Item
from grader.errors import Place, PrerequisiteError, UsageError
from grader.reports.grading import Grading
from grader.reports.json import json_report, jsonl_report
from grader.reports.junit import junit_report
from grader.reports.markdown import markdown_report
from grader.reports.text import TextOptions, text_report
from grader.store.folder import HEADER, JOURNAL


@dataclass(frozen=True)
class Ending:
    """How a command ends: its exit code, and how long it took."""

    code: int
    wall_time_s: float | None


Writer = Callable[[Sequence[Item], Ending, TextOptions], str]

FORMATS: dict[str, Writer] = {
    "text": lambda items, end, look: text_report(items, exit_code=end.code, wall_time_s=end.wall_time_s, options=look),
    "json": lambda items, end, _: json_report(items, exit_code=end.code),
    "jsonl": lambda items, _, __: jsonl_report(items),
    "junit": lambda items, _, __: junit_report(items),
    "markdown": lambda items, end, _: markdown_report(items, exit_code=end.code),
}
EXTENSIONS = {".txt": "text", ".json": "json", ".jsonl": "jsonl", ".xml": "junit", ".md": "markdown"}


@dataclass(frozen=True)
class Output:
    """Where the reports of one command go. Making one raises UsageError for what cannot be written, before any run."""

    console: Console
    format: str = "text"
    files: tuple[Path, ...] = ()
    show_all: bool = False
    inputs: tuple[Path | str | None, ...] = ()
    """What the command reads, as it was named: no report may take its place."""
    evidence: tuple[Path | str, ...] = ()
    """Inputs of which, if they are folders, every file is read: no report may stand in them either."""

    def __post_init__(self) -> None:
        """Check formats and files."""
        if self.format not in FORMATS:
            raise UsageError(f"--format is one of {', '.join(FORMATS)}, not {self.format!r}")
        for file in self.files:
            if file.suffix not in EXTENSIONS:
                known = " ".join(EXTENSIONS)
                raise UsageError(
                    f"no kind of report ends in {file.suffix!r}", where=Place(str(file)), hint=f"use {known}"
                )
            if not file.parent.is_dir():
                raise UsageError("there is no such folder", where=Place(str(file.parent)), hint="make it first")
            _check_apart(file, (*self.inputs, *self.evidence))
            _check_outside(file, self.evidence)

    def write(self, items: Sequence[Item], *, also: Sequence[int] = (), wall_time_s: float | None = None) -> int:
        """Write all reports; the exit code that follows from the items and from `also`.

        Raises PrerequisiteError for the first that could not be written, after all were tried.
        """
        code = exit_code(items, also)
        look = TextOptions(
            color=self.console.result_colored and self.format == "text",
            show_all=self.show_all,
            quiet=self.console.quiet,
        )
        ending = Ending(code, wall_time_s)
        plain = TextOptions(show_all=self.show_all)
        failed: list[PrerequisiteError] = []
        for file in (None, *self.files):
            try:
                if file is None:
                    self.console.result(FORMATS[self.format](items, ending, look))
                else:
                    _write_file(file, FORMATS[EXTENSIONS[file.suffix]](items, ending, plain))
            except PrerequisiteError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return code


def exit_code(items: Sequence[Item], also: Sequence[int] = ()) -> int:
    """The exit code for what was graded and refused."""
    codes = [
        exit_codes.of_verdict(item.verdict.value) if isinstance(item, Grading) else exit_codes.USAGE for item in items
    ]
    return exit_codes.strongest([*codes, *also])


def _check_apart(file: Path, inputs: Sequence[Path | str | None]) -> None:
    """Raises UsageError for a report that would take the place of an input, or of a part of a record."""
    place = file.parent.resolve() / file.name
    for named in inputs:
        given = Path(named) if named is not None else None
        if given is not None and place in (given.parent.resolve() / given.name, given.resolve()):
            raise UsageError("the report would replace what is read", where=Place(str(file)), hint="name another file")


def _check_outside(file: Path, evidence: Sequence[Path | str]) -> None:
    """Raises UsageError for a report inside a record, or inside a folder whose files are all read as evidence."""
    place = file.parent.resolve() / file.name
    for named in evidence:
        if Path(named).is_dir() and place.is_relative_to(Path(named).resolve()):
            raise UsageError(
                "the report would stand among the evidence, and be read as such the next time",
                where=Place(str(file)),
                hint="name a file outside of it",
            )
    for folder in (place.parent, place.parent.parent):
        if (folder / HEADER).is_file() and (folder / JOURNAL).is_file():
            raise UsageError(
                "the report would be written into a record, which is never changed",
                where=Place(str(file)),
                hint="name a file outside of it",
            )


def _write_file(file: Path, report: str) -> None:
    """A regular file is there wholly or not at all; a FIFO or device is written to as it is."""
    try:
        if file.exists() and not stat.S_ISREG(file.stat().st_mode):
            file.write_text(report, encoding="utf-8", errors="backslashreplace")
            return
        beside = file.with_name(f".{file.name}.{os.getpid()}")
        beside.write_text(report, encoding="utf-8", errors="backslashreplace")
        os.replace(beside, file)
    except OSError as error:
        raise PrerequisiteError(f"cannot be written: {error.strerror}", where=Place(str(file))) from error
