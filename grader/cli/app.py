"""The entry point `grader`: commands, and how each of them ends.

The commands import what they need when they run, so that `grader --help` is quick.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from collections.abc import Sequence
from typing import cast

import typer

from grader.cli import clean, doctor, judge, lint, receive, replay, run, runtimes, score, show
from grader.cli.console import Console, use_streams, write
from grader.cli.exit_codes import BUG, INTERRUPTED_BY, USAGE, of_error
from grader.errors import GraderError, PrerequisiteError, UsageError
from grader.reports.sanitize import safe_line

app = typer.Typer(
    name="grader",
    help="Executes submitted programs in Docker and says whether they behave: true, false, or undetermined.",
    epilog="Exit codes: 0 all true, 1 some false, 2 usage, 3 undetermined, 4 prerequisite missing, 5 nothing selected.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run.run)
app.command()(score.score)
app.command()(receive.receive)
app.command()(judge.judge)
app.command()(replay.replay)
app.command()(show.show)
app.command()(lint.lint)
app.add_typer(runtimes.app, name="runtimes")
app.command()(doctor.doctor)
app.command()(clean.clean)

_ParserError = cast("type[Exception]", typer.BadParameter.__mro__[2])
"""Base of all errors of the command-line parser, whichever parser this version of typer brings."""


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and end.")) -> None:
    if version:
        from importlib.metadata import version as version_of

        write(sys.stdout, f"grader {version_of('grader')}\n")
        raise typer.Exit


def main() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(run_cli(sys.argv[1:]))


def run_cli(arguments: Sequence[str]) -> int:
    """Run the command line with these arguments; its exit code. Every way in which a command can end is here."""
    use_streams()
    shown_in_full = "-v" in arguments or "--verbose" in arguments
    try:
        code: object = app(args=list(arguments), prog_name="grader", standalone_mode=False)
    except GraderError as error:
        Console().error(error)
        return of_error(error)
    except _ParserError as error:
        return _usage(error)
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED_BY + 2
    except SystemExit as ended:
        # The parser's own end on a broken pipe. Of its help: nobody reads it any more. Of a command it is no verdict.
        cause = ended.__context__
        if _asks_for_help(arguments):
            return 0
        return _bug(cause if isinstance(cause, Exception) else RuntimeError(repr(ended)), shown_in_full=shown_in_full)
    except OSError as error:
        if error.errno == errno.ENOSPC and _asks_for_help(arguments):
            return _help_not_written(error)
        if _working_folder_is_gone():
            gone = UsageError("the current folder is gone", hint="change to a folder that is there, and run this again")
            Console().error(gone)
            return of_error(gone)
        return _bug(error, shown_in_full=shown_in_full)
    except Exception as error:  # noqa: BLE001 - the last door: a bug must end with 70 and say what it is
        return _bug(error, shown_in_full=shown_in_full)
    return code if isinstance(code, int) else 0


def _asks_for_help(arguments: Sequence[str]) -> bool:
    """Whether the parser shows help, and so runs no command."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--help" in options or len(arguments) == 0


def _working_folder_is_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _help_not_written(error: OSError) -> int:
    """The parser writes its help by itself; what commands write goes through `console.write`, which tells."""
    told = PrerequisiteError(f"standard output cannot be written: {error.strerror}")
    Console().error(told)
    with contextlib.suppress(GraderError):
        write(sys.stdout, "")  # else Python would complain again when it flushes at exit
    return of_error(told)


def _usage(error: BaseException) -> int:
    message = getattr(error, "format_message", lambda: str(error))()
    context = getattr(error, "ctx", None)
    write(sys.stderr, "".join(f"{safe_line(line)}\n" for line in f"error: {message}".splitlines()))
    if context is not None:
        write(sys.stderr, f"  mend: {safe_line(context.command_path)} --help\n")
    return USAGE


def _bug(error: Exception, *, shown_in_full: bool) -> int:
    if shown_in_full:
        trace = "".join(traceback.format_exception(error))
        write(sys.stderr, "".join(f"{safe_line(line)}\n" for line in trace.splitlines()))
    said = safe_line(f"{type(error).__name__}: {error}", 300)
    write(sys.stderr, f"bug: {said}\n  this is a mistake in grader itself; with -v the same command says where\n")
    return BUG
