"""`grader replay`: judge a record again, without Docker and without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Format, Outputs, Quiet, RecordName, ShowAll, Verbose


def replay(  # noqa: PLR0913, PLR0917 - the options of the command line
    record: RecordName = "latest",
    task: Annotated[
        Path | None,
        typer.Option("--task", metavar="TASK", help="Judge the same runs under the expectation of this task."),
    ] = None,
    report_format: Format = "text",
    output: Outputs = None,
    show_all: ShowAll = False,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Judge recorded runs again, without running."""
    from grader.cli.console import Console
    from grader.cli.items import Item, as_item
    from grader.cli.output import Output
    from grader.runner.replay import replay as replay_record
    from grader.store import find_record, open_record

    console = Console(color=color, quiet=quiet, verbose=verbose)
    reports = Output(console, report_format, tuple(output or ()), show_all, inputs=(task,))
    recorded = open_record(find_record(record))
    if not recorded.is_sealed:
        # Of a batch, submissions that were never begun are not in it: that all here is true says nothing of them.
        console.warnings(
            [
                f"{record} was interrupted, or is still being written: submissions that were not begun are not in it; "
                "grader run with the same arguments and --resume goes on with it"
            ]
        )
    items: list[Item] = []
    for graded in replay_record(recorded, task):
        console.warnings(graded.warnings)
        items.append(as_item(graded, record, is_replay=True))
    return reports.write(items)
