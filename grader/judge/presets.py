"""Presets: named sets of dimensions that ship with grader, in `presets/NAME.yaml`; own ones from a file, in Python."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pydantic import ValidationError

from grader.core.judging.dimensions import Preset
from grader.errors import Place, Problem, TaskError
from grader.yaml_source import YamlDocument, load

FOLDER = Path(__file__).parent / "presets"
MOST_BYTES = 1 << 20
_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
_HINT = "see docs/reference/judging.md for the format"


def preset_names() -> tuple[str, ...]:
    """The presets that ship, sorted."""
    return tuple(sorted(file.stem for file in FOLDER.glob("*.yaml")))


@cache
def load_preset(name: str) -> Preset:
    """A preset that ships. Raises TaskError for a name that none has."""
    if _NAME.fullmatch(name) is None or name not in preset_names():
        raise TaskError(f"no preset is named {name[:64]!r}", hint=f"presets are: {', '.join(preset_names())}")
    return load_preset_file(FOLDER / f"{name}.yaml")


def load_preset_file(path: Path | str) -> Preset:
    """A preset from a file of one's own.

    Raises TaskError with the places of all that is wrong. It never shows what stands in the file: the path may name
    something else than a preset.
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise TaskError("there is no preset file", where=Place(str(file)), hint=_HINT)
        with file.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise TaskError(f"cannot be read: {error.strerror}", where=Place(str(file)), hint=_HINT) from None
    if len(data) > MOST_BYTES:
        raise TaskError(f"a preset has at most {MOST_BYTES:,} bytes", where=Place(str(file)), hint=_HINT)
    problems: list[Problem] = []
    try:
        return _read(load(data, str(file)))
    except TaskError as error:
        problems = [Problem("this is not valid YAML", one.where, _HINT) for one in error.problems]
    except _NotAPresetError as error:
        problems = error.problems
    # Outside the handlers: what is behind these errors holds the file's content.
    raise TaskError(problems)


class _NotAPresetError(ValueError):
    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__()


def _read(document: YamlDocument) -> Preset:
    try:
        return Preset.model_validate(document.value)
    except ValidationError as error:
        found = zip(error.errors(include_url=False, include_input=False), document.problems(error), strict=True)
        problems = [Problem(_in_words(str(entry["type"])), problem.where, _HINT) for entry, problem in found]
        raise _NotAPresetError(problems) from None


def _in_words(kind: str) -> str:
    if kind == "missing":
        return "a preset or dimension lacks a key here"
    if kind == "extra_forbidden":
        return "there is a key here that no preset or dimension has"
    return f"the value here is not allowed ({kind})"
