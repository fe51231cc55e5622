"""Sources of traces by name: what `trace: {trace_source: NAME}` of a task stands for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol, runtime_checkable

from grader.errors import UsageError
from grader.traces.reader import TraceInput

SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@runtime_checkable
class Captured(Protocol):
    """What holds evidence in this process: a request of a `LocalTraceCapture`, or a whole capture."""

    def evidence(self) -> TraceInput | tuple[TraceInput, ...]:
        """All it holds now."""
        ...


class TraceSource(Protocol):
    """What can be registered by name, such as a `LocalTraceCapture`."""

    def evidence(self) -> tuple[TraceInput, ...]:
        """All it holds now."""
        ...


_sources: dict[str, TraceSource] = {}


def check_source_name(name: str) -> None:
    """Raises UsageError for what cannot be the name of a source (it is part of paths and addresses)."""
    if SOURCE_NAME.match(name) is None:
        raise UsageError(
            f"{name[:80]!r} cannot be the name of a source of traces",
            hint="up to 64 letters, digits, dots, dashes and underscores, the first a letter or digit",
        )


def register(name: str, source: TraceSource) -> None:
    """Make a source known in this process. Raises UsageError for a name that is none, or that is given away."""
    check_source_name(name)
    if _sources.setdefault(name, source) is not source:
        raise UsageError(f"the source {name!r} is registered already", hint="take another name, or close the other")


def forget(name: str) -> None:
    """The name is free again."""
    _sources.pop(name, None)


def held_by(captured: Captured) -> tuple[TraceInput, ...]:
    """The evidence that a capture, or a request of one, holds now."""
    held = captured.evidence()
    return (held,) if isinstance(held, TraceInput) else held


def find(name: str) -> TraceSource:
    """The source of this name. Raises UsageError, with the names there are, if there is none."""
    source = _sources.get(name)
    if source is None:
        known = ", ".join(sorted(_sources)) or "none"
        raise UsageError(
            f"no source of traces is registered as {name!r} (there is {known})", hint=f"capture.register({name!r})"
        )
    return source


def folder_of_source(folder: Path, name: str) -> Path:
    """The folder of a source among what `grader receive` wrote to `folder`. Raises UsageError if it is not there."""
    check_source_name(name)
    found = folder / name
    if not found.is_dir():
        raise UsageError(
            f"the task takes its traces from the source {name!r}, and {folder} has no folder of that name",
            hint="name the folder that `grader receive --source` wrote to, or leave trace_source out of the task",
        )
    return found
