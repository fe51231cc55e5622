"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Format = Annotated[
    str, typer.Option("--format", metavar="FORMAT", help="text, json, jsonl, junit or markdown, to standard output.")
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Also write a report to FILE; its kind by .txt .json .jsonl .xml .md."
    ),
]
ShowAll = Annotated[bool, typer.Option("--all", help="List the cases that are true, too.")]
Color = Annotated[str, typer.Option("--color", metavar="WHEN", help="auto, always or never. NO_COLOR is heeded.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="The summary alone; no progress.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="More progress; the trace of a bug.")]
Runtimes = Annotated[
    Path | None, typer.Option("--runtimes", metavar="FOLDER", help="A folder with further runtime profiles.")
]
RecordName = Annotated[str, typer.Argument(metavar="RECORD", help="latest, a record's folder or its name.")]
RecordFolder = Annotated[
    Path | None, typer.Option("--record", metavar="FOLDER", help="Folder of the record; default: a new one in .grader.")
]
NoRecord = Annotated[bool, typer.Option("--no-record", help="Keep no record.")]
Complete = Annotated[
    bool, typer.Option("--complete", help="Declare that nothing is missing; failed checks still count.")
]
