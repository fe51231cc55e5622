"""`grader receive`: take in spans of agents that run elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Quiet, Verbose


def receive(  # noqa: PLR0913, PLR0917 - the options of the command line
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the spans are kept, for `grader score`.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- COMMAND...]", help="Run this with its exporter set up, and stop when it ends."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME", help="Keep spans of this name apart; can be given several times."),
    ] = None,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="On 127.0.0.1; 0 is any that is free.")
    ] = 4318,
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="SIZE", help="Write no more than this, such as 500MiB.")
    ] = "16GiB",
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Receive spans over OTLP/HTTP for `grader score`."""
    from grader.cli.console import Console
    from grader.cli.receiving import ReceiveRequest, receive_request

    console = Console(color=color, quiet=quiet, verbose=verbose)
    request = ReceiveRequest(
        folder=folder, sources=tuple(source or ()), port=port, max_size=max_size, command=tuple(command or ())
    )
    return receive_request(request, console)
