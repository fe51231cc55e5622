"""`lint`: all that is wrong with a task file, and what is valid but probably not meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from grader.core.captured import Captured
from grader.core.matching import Matcher, parse_matcher
from grader.core.tri import Tri
from grader.errors import Problem, TaskError
from grader.formats.case_reader import Reading
from grader.formats.task_file import in_order, read_task, task_file
from grader.formats.task_folder import read_regular_file
from grader.yaml_source import LARGEST_BYTES, YamlDocument, YamlPath

_HIGH_ESCAPE = re.compile(r"\\x([89a-fA-F][0-9a-fA-F])")


@dataclass(frozen=True)
class Lint:
    """What is wrong with a task (it cannot be used), and what looks wrong (it can)."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def lint(path: str | Path) -> Lint:
    """All problems and warnings of the task at `path`; raises nothing for a task that is wrong."""
    try:
        task, reading = read_task(path)
        source = read_regular_file(task_file(path), LARGEST_BYTES, str(path)).decode("utf-8-sig")
    except TaskError as error:
        return Lint(error.problems)
    if task is None or reading.problems:
        return Lint(in_order(reading.problems), in_order(_escapes(reading.document, source)))
    return Lint((), in_order((*_escapes(reading.document, source), *_cases(reading))))


def _escapes(document: YamlDocument, source: str) -> Iterator[Problem]:
    """Texts such as "\\xff": in YAML that is the character U+00FF, so two bytes, not the byte FF."""
    lines = source.splitlines(keepends=True)
    for path in _texts(document.value, ()):
        place = document.place(path)
        if place.line is None or place.column is None or place.line > len(lines):
            continue
        found = _HIGH_ESCAPE.search(_quoted_text(lines, place.line - 1, place.column - 1))
        if found is not None:
            code = found[1].lower()
            said = f"\\x{code} is the character U+00{code.upper()}, which is two bytes, not the byte 0x{code}"
            yield Problem(said, place, "write the bytes as {base64: ...}")


def _texts(value: object, path: YamlPath) -> Iterator[YamlPath]:
    if isinstance(value, str):
        yield path
    elif isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _texts(item, (*path, index))


def _quoted_text(lines: list[str], line: int, column: int) -> str:
    """The source of the double-quoted text that begins there, escaped backslashes taken out; empty if none does."""
    if lines[line][column : column + 1] != '"':
        return ""
    taken: list[str] = []
    position = column + 1
    while line < len(lines):
        text = lines[line]
        while position < len(text):
            char = text[position]
            if char == '"':
                return "".join(taken)
            pair = text[position : position + 2] if char == "\\" else char
            taken.append(pair if pair != "\\\\" else " ")
            position += len(pair)
        line, position = line + 1, 0
    return "".join(taken)


def _cases(reading: Reading) -> Iterator[Problem]:
    """Cases that expect nothing, share their name, or match whatever the program prints."""
    document = reading.document
    for path in _programs(document.value, ()):
        cases = cast("list[dict[str, object]]", _at(document.value, (*path, "cases")) or [])
        names = Counter(case.get("name") for case in cases)
        seen: set[object] = set()
        for index, case in enumerate(cases):
            at = (*path, "cases", index)
            name = case.get("name")
            if name is not None and names[name] > 1:
                if name in seen:
                    yield Problem(
                        f"another case is named {name!r}", document.place((*at, "name")), "-k selects by name"
                    )
                seen.add(name)
            if not {"stdout", "stderr", "output_files", "exit_code"} & set(case):
                said = "the case expects nothing of the output: any program that exits with 0 makes it true"
                yield Problem(said, document.place(at), "give stdout, stderr, output_files or exit_code")
            yield from _loose(document, case, at)
        if "cases_from" in cast("dict[str, object]", _at(document.value, path)):
            template = cast("dict[str, object]", _at(document.value, (*path, "cases_from")))
            if not {"stdout", "stderr", "output_files", "exit_code"} & set(template):
                at = document.place((*path, "cases_from"))
                yield Problem("these cases expect nothing of the output", at, "give stdout: a pattern for the answers")


def _loose(document: YamlDocument, case: dict[str, object], at: YamlPath) -> Iterator[Problem]:
    """Patterns that are found in every output."""
    for key in ("stdout", "stderr"):
        value = case.get(key)
        if isinstance(value, dict) and "regex" in value:
            matcher = parse_matcher(cast("dict[str, object]", value))
            if _matches_anything(matcher):
                said = "this pattern is found in every output, also an empty one"
                yield Problem(
                    said, document.place((*at, key, "regex")), "anchor it with ^ and $, or use + instead of *"
                )


def _matches_anything(matcher: Matcher) -> bool:
    probes = (b"", b"\n", b"grader probe 1\n\x00\xff")
    return all(matcher.match(Captured.whole(probe)).value is Tri.TRUE for probe in probes)


def _programs(value: object, path: YamlPath) -> Iterator[YamlPath]:
    """The places of all `program_behaves` conditions, those inside composites too."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        if entries.get("condition_type") == "program_behaves":
            yield path
        for key in ("conditions", "condition"):
            if key in entries:
                yield from _programs(entries[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from _programs(item, (*path, index))


def _at(value: object, path: YamlPath) -> object:
    for part in path:
        if isinstance(value, dict):
            value = cast("dict[str | int, object]", value).get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = cast("list[object]", value)[part]
        else:
            return None
    return value
