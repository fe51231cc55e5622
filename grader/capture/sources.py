"""Sources of traces by name: what `trace: {trace_source: NAME}` of a task stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from grader.errors import Place, UsageError
from grader.traces.files import trace_inputs
from grader.traces.reader import TraceInput

SOURCE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


@runtime_checkable
class Captured(Protocol):
    """What holds evidence in this process: a request of a `LocalTraceCapture`, or a whole capture."""

    def evidence(self) -> TraceInput | tuple[TraceInput, ...]:
        """All it holds now."""
        ...


EvidenceLike = TraceInput | Captured | Path | str | bytes
"""What can be given as a trace: a source, a captured request, a file or folder, or the bytes of a trace."""


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


def traces_of(given: EvidenceLike | Sequence[EvidenceLike], source: str | None) -> tuple[TraceInput, ...]:
    """What was given; with a `source`, the folder of it in each folder, or with nothing given the source itself.

    Raises UsageError if there is no such source or folder, or if both a source and something that is no folder are
    given; and what `trace_inputs` does.
    """
    several = [given] if isinstance(given, TraceInput | Captured | Path | str | bytes) else list(given)
    if source is None:
        return tuple(found for one in several for found in _inputs(one))
    if len(several) == 0:
        return find(source).evidence()
    if not all(isinstance(one, Path | str) for one in several):
        raise UsageError(
            f"the traces are given twice: the task takes them from the source {source!r}",
            hint="give no evidence, or leave trace_source out of the task",
        )
    return trace_inputs(folder_of_source(Path(one), source) for one in several if isinstance(one, Path | str))


def needs_folder(source: str, where: Place, how: str) -> UsageError:
    """The error of a command whose task names a source, and that was given no folder. `how`: how one is given."""
    return UsageError(
        f"the task takes its traces from the source {source!r}, which is known in a Python program only",
        where=where,
        hint=f"{how}, with the folder that `grader receive --source` wrote to; or leave trace_source out of the task",
    )


def _inputs(evidence: EvidenceLike) -> tuple[TraceInput, ...]:
    if isinstance(evidence, TraceInput):
        return (evidence,)
    if isinstance(evidence, Captured):
        return held_by(evidence)
    return (TraceInput.of_bytes(evidence),) if isinstance(evidence, bytes) else trace_inputs([Path(evidence)])
