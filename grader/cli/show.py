"""`grader show`: why a record's verdicts are what they are."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.options import Color, RecordName


def show(
    record: RecordName = "latest",
    case: Annotated[
        str | None, typer.Argument(metavar="CASE", help="A case's name, number, pattern or part; or a tool's.")
    ] = None,
    submission: Annotated[
        str | None,
        typer.Option("-s", "--submission", metavar="NAME", help="Of a record with several: the one with this name."),
    ] = None,
    color: Color = "auto",
) -> int:
    """Show a record, a case's runs side by side, or calls."""
    from grader.cli.console import Console
    from grader.cli.exit_codes import ALL_TRUE
    from grader.cli.showing import record_lines, show_cases

    console = Console(color=color)
    if case is None:
        console.result(record_lines(record, submission, console))
    else:
        console.result(show_cases(record, submission, case, console))
    return ALL_TRUE
