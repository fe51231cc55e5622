"""docs/reference/cli.md: every command with its arguments and options, read from the command line itself."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer
from typer.models import ArgumentInfo, OptionInfo

from grader.cli import exit_codes
from grader.cli.app import app
from scripts.generate_docs.source import fields_of_module, first_paragraph, table

Command = Callable[..., object]

_ENVIRONMENT = [
    ["`DOCKER_HOST`", "The engine's address, `unix:///var/run/docker.sock` by default."],
    ["`NO_COLOR`", "Set to anything: no color where `--color auto` would use it."],
    ["`XDG_CONFIG_HOME`", "`$XDG_CONFIG_HOME/grader/runtimes` (by default `~/.config/grader/runtimes`) is searched for runtime profiles."],
    ["`GRADER_RUNTIME_DIR`", "Where the locks of the CPU slots are; by default a folder of the user's in `XDG_RUNTIME_DIR` or `/tmp`."],
]  # fmt: skip


def page() -> str:
    """The page."""
    parts = [
        "# Command line\n",
        first_sentence(app.info.help) + " `grader --version` prints the version.\n",
        "Reports go to standard output; progress, notes and errors go to standard error. On a terminal progress is a "
        "region of at most four lines that vanishes; elsewhere it is one line a cell.\n",
        table(["command", ""], [[f"[`grader {name}`](#grader-{name.replace(' ', '-')})", help_of(command)] for name, command in commands()]),
    ]  # fmt: skip
    parts.extend(_section(name, command) for name, command in commands())
    parts.append("## Exit codes\n")
    parts.append(table(["code", "when"], _exit_codes()))
    parts.append(
        "If several apply, the strongest wins: 70, then 130 or 143, then 4, 2, 1, 3, 5, 0. "
        "An image that is missing before the first run is 4; one that vanishes later is a missing run.\n"
    )
    parts.append("## Environment variables\n")
    parts.append(table(["variable", "meaning"], _ENVIRONMENT))
    return "\n".join(parts)


def commands() -> Iterator[tuple[str, Command]]:
    """Every command with the words that call it, those of groups too."""
    yield from _commands_of(app, "")


def help_of(command: Command) -> str:
    """What a command does, in a sentence."""
    return first_paragraph(command)


def first_sentence(text: object) -> str:
    """Help text as it is given to typer."""
    return text if isinstance(text, str) else ""


def _commands_of(group: typer.Typer, prefix: str) -> Iterator[tuple[str, Command]]:
    for info in group.registered_commands:
        if info.callback is None:
            raise TypeError("a command without a function")
        yield f"{prefix}{info.name or info.callback.__name__.replace('_', '-')}", info.callback
    for sub in group.registered_groups:
        if sub.typer_instance is None:
            raise TypeError("a group without commands")
        yield from _commands_of(sub.typer_instance, f"{prefix}{sub.name} ")


def _section(name: str, command: Command) -> str:
    parameters = list(_parameters(command))
    arguments = [parameter for parameter in parameters if isinstance(parameter[1], ArgumentInfo)]
    options = [parameter for parameter in parameters if isinstance(parameter[1], OptionInfo)]
    words = " ".join([f"grader {name}", *(["[OPTIONS]"] if options else []), *(_usage(*one) for one in arguments)])
    parts = [f"## grader {name}\n", f"{help_of(command)}\n", f"```text\n{words}\n```\n"]
    if arguments:
        rows = [[f"`{_metavar(*one)}`", _meaning(one[1]), _default(one[2])] for one in arguments]
        parts.append(table(["argument", "meaning", "default"], rows))
    if options:
        rows = [[_option_names(*one), _meaning(one[1]), _default(one[2])] for one in options]
        parts.append(table(["option", "meaning", "default"], rows))
    return "\n".join(parts)


def _parameters(command: Command) -> Iterator[tuple[str, ArgumentInfo | OptionInfo, object]]:
    hints = typing.get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        found = [
            item for item in getattr(hints[name], "__metadata__", ()) if isinstance(item, ArgumentInfo | OptionInfo)
        ]
        if len(found) != 1:
            raise TypeError(f"the parameter {name} of {command} is neither an argument nor an option")
        yield name, found[0], parameter.default


def _metavar(name: str, info: ArgumentInfo | OptionInfo, _default: object) -> str:
    return (info.metavar or name.upper()).strip("[]")


def _usage(name: str, info: ArgumentInfo | OptionInfo, default: object) -> str:
    shown = _metavar(name, info, default)
    return shown if default is inspect.Parameter.empty else f"[{shown}]"


def _option_names(name: str, info: ArgumentInfo | OptionInfo, default: object) -> str:
    # Inside Annotated, the first name that is given to typer.Option stands in the place of its default.
    given = [str(one) for one in (info.default, *(info.param_decls or ())) if isinstance(one, str)]
    names = given or [f"--{name.replace('_', '-')}"]
    value = "" if isinstance(default, bool) else f" {info.metavar or name.upper()}"
    return ", ".join(f"`{one}`" for one in names[:-1]) + (", " if len(names) > 1 else "") + f"`{names[-1]}{value}`"


def _meaning(info: ArgumentInfo | OptionInfo) -> str:
    bounds = [str(bound) for bound in (info.min, info.max) if bound is not None]
    said = (info.help or "").strip()
    if info.min is not None and info.max is not None:
        return f"{said} From {info.min:,} to {info.max:,}."
    return f"{said} At least {bounds[0]}." if bounds else said


def _default(default: object) -> str:
    if default is inspect.Parameter.empty:
        return "required"
    if default is None or default is False:
        return ""
    return f"`{default.as_posix() if isinstance(default, Path) else default}`"


def _exit_codes() -> list[list[str]]:
    rows: list[list[str]] = []
    for name, meaning in fields_of_module(exit_codes).items():
        value: Any = getattr(exit_codes, name)
        shown = "130, 143" if name == "INTERRUPTED_BY" else str(value)
        rows.append([shown, meaning])
    return rows
