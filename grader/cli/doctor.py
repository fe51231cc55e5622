"""`grader doctor`: what this machine lacks, and the line that mends each."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.options import Color, Runtimes, Verbose


def doctor(
    quick: Annotated[bool, typer.Option("--quick", help="Do not try the limits of a real box.")] = False,
    runtimes: Runtimes = None,
    color: Color = "auto",
    verbose: Verbose = False,
) -> int:
    """Say what is missing on this machine, and the mend."""
    from grader.cli.checkup import Level, check_up
    from grader.cli.console import Console
    from grader.cli.exit_codes import ALL_TRUE, PREREQUISITE
    from grader.cli.interrupts import InterruptedBySignalError, run_interruptible
    from grader.reports.sanitize import safe_line

    console = Console(color=color, verbose=verbose)
    colors = {Level.OK: "32", Level.CAUTION: "33", Level.FAIL: "31"}
    found: list[Level] = []

    async def main() -> None:
        async for finding in check_up(runtimes, quick=quick, progress=console.detail):
            found.append(finding.level)
            word = f"{finding.level.word:<7}"
            if console.result_colored:
                word = f"\x1b[{colors[finding.level]}m{word}\x1b[0m"
            console.result(f"{word}  {safe_line(finding.what, 1000)}\n")
            if finding.mend is not None:
                console.result(f"         mend: {safe_line(finding.mend, 1000)}\n")

    try:
        run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        return stopped.exit_code
    return PREREQUISITE if Level.FAIL in found else ALL_TRUE
