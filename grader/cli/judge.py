"""`grader judge`: ask a judge about a conversation and what its trace shows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.cli.options import Color, Complete, Format, NoRecord, Outputs, Quiet, RecordFolder, ShowAll, Verbose


def judge(  # noqa: PLR0913, PLR0917 - the options of the command line
    conversation: Annotated[
        Path | None, typer.Argument(metavar="CONVERSATION", help="A file with the messages of one conversation.")
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", metavar="FILE", help="A file or folder with traces of the conversation's requests."),
    ] = None,
    preset: Annotated[
        list[str] | None, typer.Option("--preset", metavar="NAME", help="A set of questions that ships with grader.")
    ] = None,
    objective: Annotated[str | None, typer.Option(metavar="TEXT", help="Ask whether this objective was met.")] = None,
    task: Annotated[
        Path | None, typer.Option(metavar="TASK", help="A task file with judge and tool conditions, or its folder.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="How often each question is asked; instead of the task's.")
    ] = None,
    rule: Annotated[str | None, typer.Option(metavar="RULE", help="majority or unanimous.")] = None,
    require_trace: Annotated[
        str | None, typer.Option(metavar="HOW", help="none, available or complete: else the judge is not asked.")
    ] = None,
    complete: Complete = False,
    no_content: Annotated[
        bool, typer.Option("--no-content", help="Keep and show no content of turns and steps.")
    ] = False,
    reuse: Annotated[
        str | None,
        typer.Option(metavar="RECORD", help="Take the answers of this record where they rest on the same evidence."),
    ] = None,
    list_presets: Annotated[bool, typer.Option("--list-presets", help="List presets and their questions.")] = False,
    record: RecordFolder = None,
    no_record: NoRecord = False,
    report_format: Format = "text",
    output: Outputs = None,
    show_all: ShowAll = False,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Ask a judge about a conversation and what its trace shows."""
    from grader.cli.console import Console
    from grader.cli.judging import JudgeRequest, judge_request, presets_report
    from grader.cli.output import Output
    from grader.cli.record_choice import RecordChoice

    console = Console(color=color, quiet=quiet, verbose=verbose)
    if list_presets:
        console.result(presets_report())
        return 0
    request = JudgeRequest(
        conversation=conversation,
        traces=tuple(trace) if trace else None,
        presets=tuple(preset or ()),
        objective=objective,
        task=task,
        samples=samples,
        rule=rule,
        require_trace=require_trace,
        complete=complete,
        retain_content=not no_content,
        reuse=reuse,
        record=RecordChoice(record, keeps_one=not no_record),
    )
    reports = Output(
        console,
        report_format,
        tuple(output or ()),
        show_all or verbose,
        inputs=(task, conversation),
        evidence=request.traces or (),
    )
    return judge_request(request, console, reports)
