"""`grader runtimes list | build | test`: the runtime profiles, their images, their self tests."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.cli.options import Color, Quiet, Runtimes, Verbose

app = typer.Typer(help="List, build and test the runtime profiles.", no_args_is_help=True)

Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME...]", help="Names of profiles; default: all.")]


@app.command(name="list")
def list_profiles(runtimes: Runtimes = None, color: Color = "auto") -> int:
    """List the profiles, with language, image and file, and where they are looked for."""
    from grader.cli.console import Console
    from grader.cli.exit_codes import ALL_TRUE
    from grader.cli.profiles import profile_lines

    Console(color=color).result("".join(f"{line}\n" for line in profile_lines(runtimes)))
    return ALL_TRUE


@app.command()
def build(
    names: Names = None,
    runtimes: Runtimes = None,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Build the images of profiles that are not there yet."""
    from grader.cli.console import Console
    from grader.cli.profiles import build_images

    return build_images(tuple(names or ()), runtimes, Console(color=color, quiet=quiet, verbose=verbose))


@app.command(name="test")
def self_test(
    names: Names = None,
    runtimes: Runtimes = None,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Run the self tests of profiles: programs with the verdict and reason that each must get."""
    from grader.cli.console import Console
    from grader.cli.profiles import run_self_tests

    return run_self_tests(tuple(names or ()), runtimes, Console(color=color, quiet=quiet, verbose=verbose))
