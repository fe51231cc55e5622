"""`grader score`: judge what an agent did, from its traces and messages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Complete, Format, NoRecord, Outputs, Quiet, RecordFolder, ShowAll, Verbose


def score(  # noqa: PLR0913, PLR0917 - the options of the command line
    evidence: Annotated[
        list[str] | None,
        typer.Argument(metavar="EVIDENCE...", help="Files with traces, folders of them, or - for standard input."),
    ] = None,
    task: Annotated[
        Path | None, typer.Option("--task", metavar="TASK", help="A task file of tool conditions, or its folder.")
    ] = None,
    conversation: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The messages of the same requests; - for standard input."),
    ] = None,
    complete: Complete = False,
    clock_skew_tolerance: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How far clocks may disagree, such as 5ms; instead of the task's."),
    ] = None,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Keep names and times only, no arguments of calls.")
    ] = False,
    record: RecordFolder = None,
    no_record: NoRecord = False,
    report_format: Format = "text",
    output: Outputs = None,
    show_all: ShowAll = False,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Judge what an agent did from its traces, without running."""
    from grader.cli.console import Console
    from grader.cli.output import Output
    from grader.cli.record_choice import RecordChoice
    from grader.cli.scoring import ScoreRequest, score_request

    console = Console(color=color, quiet=quiet, verbose=verbose)
    request = ScoreRequest(
        evidence=tuple(evidence or ()),
        task=task,
        conversation=conversation,
        complete=complete,
        clock_skew_tolerance=clock_skew_tolerance,
        retain_content=not no_content,
        record=RecordChoice(record, keeps_one=not no_record),
    )
    reports = Output(
        console,
        report_format,
        tuple(output or ()),
        show_all or verbose,
        inputs=(task, conversation),
        evidence=request.evidence,
    )
    return score_request(request, console, reports)
