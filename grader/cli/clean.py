"""`grader clean`: removes what graders left behind."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.options import Color, Quiet


def clean(
    images: Annotated[
        bool, typer.Option("--images", help="Also the images that grader built, unless a grader of yours runs.")
    ] = False,
    boxes: Annotated[
        bool, typer.Option("--all-boxes", help="Also boxes whose grader is alive, or cannot be seen from here.")
    ] = False,
    records: Annotated[
        float | None,
        typer.Option(
            "--records",
            metavar="DAYS",
            min=0,
            help="Also records in .grader that are older; the latest stays, and what is being written.",
        ),
    ] = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Remove boxes of dead graders; images, old records."""
    from grader.cli.cleaning import clean_engine, clean_records
    from grader.cli.console import Console
    from grader.cli.exit_codes import ALL_TRUE
    from grader.cli.interrupts import InterruptedBySignalError, run_interruptible

    console = Console(color=color, quiet=quiet)
    if records is not None:
        clean_records(records, console)

    async def main() -> None:
        await clean_engine(console, images=images, all_boxes=boxes)

    try:
        run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        return stopped.exit_code
    return ALL_TRUE
