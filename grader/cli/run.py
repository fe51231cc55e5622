"""`grader run`: execute, record, judge."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Format, NoRecord, Outputs, Quiet, RecordFolder, Runtimes, ShowAll, Verbose


def run(  # noqa: PLR0913, PLR0917 - the options of the command line
    task: Annotated[
        Path | None, typer.Argument(metavar="TASK", help="A task file, or a folder with task.yaml.")
    ] = None,
    submissions: Annotated[
        list[Path] | None, typer.Argument(metavar="SUBMISSION...", help="A file, a folder or an archive each.")
    ] = None,
    each: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Grade every entry of this folder as a submission.")
    ] = None,
    cases: Annotated[
        str | None,
        typer.Option(
            "-k", "--cases", metavar="WHICH", help="Only cases with this in their name; patterns, numbers, commas."
        ),
    ] = None,
    stop: Annotated[bool, typer.Option("-x", "--stop", help="Stop at the first cell that is false.")] = False,
    repetitions: Annotated[
        int | None, typer.Option("-n", "--repetitions", metavar="N", min=1, max=10_000, help="Instead of the task's.")
    ] = None,
    profiles: Annotated[
        list[str] | None,
        typer.Option("-p", "--profile", metavar="NAME", help="Run under this profile instead of the task's."),
    ] = None,
    parallel: Annotated[
        int | None,
        typer.Option("-j", "--parallel", metavar="N", min=1, max=1024, help="Runs at the same time; default: CPUs."),
    ] = None,
    isolation: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", help="run, submission (default) or shared: how much two runs may share."),
    ] = None,
    resume: Annotated[str | None, typer.Option(metavar="RECORD", help="Go on with an interrupted record.")] = None,
    record: RecordFolder = None,
    no_record: NoRecord = False,
    report_format: Format = "text",
    output: Outputs = None,
    show_all: ShowAll = False,
    runtimes: Runtimes = None,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Run submissions in Docker, record and judge."""
    from grader.cli.console import Console
    from grader.cli.output import Output
    from grader.cli.record_choice import RecordChoice
    from grader.cli.running import RunRequest, run_request
    from grader.runner.runner import Choice

    console = Console(color=color, quiet=quiet, verbose=verbose)
    request = RunRequest(
        task=task,
        submissions=tuple(submissions or ()),
        each=each,
        choice=Choice(cases=cases, repetitions=repetitions, profiles=tuple(profiles) if profiles else None),
        stop_at_first_false=stop,
        max_parallel=parallel,
        isolation=isolation,
        resume=resume,
        record=RecordChoice(record, keeps_one=not no_record),
        runtimes=runtimes,
    )
    files = tuple(output or ())
    inputs = (task, each, *request.submissions)
    return run_request(request, console, Output(console, report_format, files, show_all, inputs=inputs))
