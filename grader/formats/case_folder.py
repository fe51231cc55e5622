"""`cases_from`: cases made from the files of a folder, such as `{stdin: data/*.in, stdout: data/*.ans}`.

It is written like one case, with patterns where a case has bytes: each has one `*`, and what the star stands for pairs
the files and names the case. `stdout: data/*.ans` is short for `stdout: {equals: data/*.ans}`. What has no pattern
(arguments, environment, exit_code, limits) is the same for all cases.
"""

from __future__ import annotations

from typing import cast

from grader.core.cases import ProgramCase
from grader.errors import Problem
from grader.formats.case_reader import FROM_FILE, Reading, read_case
from grader.formats.mistakes import described
from grader.yaml_source import YamlPath

MOST_NAMED = 10
"""How many files without a partner are named one by one."""

_MATCHED = ("stdout", "stderr")


def read_case_folder(reading: Reading, value: object, path: YamlPath) -> list[ProgramCase]:
    """The cases that `cases_from` stands for, sorted by what the star stands for; mistakes are noted."""
    template = reading.mapping(value, path, "cases_from")
    if template is None:
        return []
    if "name" in template:
        reading.refuse((*path, "name"), "cases_from names its cases by what the star stands for", "leave the key out")
        return []
    before = len(reading.problems)
    patterns = _patterns(reading, template, path)
    if len(reading.problems) > before:
        return []
    if not patterns:
        reading.refuse(path, "cases_from has no pattern", "write one such as stdin: data/*.in")
        return []
    found: dict[YamlPath, dict[str, str]] = {}
    for at, pattern in patterns:
        try:
            found[at] = reading.folder.matches(pattern)
        except ValueError as error:
            reading.refuse(at, str(error))
            return []
    if not _paired(reading, dict(patterns), found):
        return []
    cases: list[ProgramCase] = []
    for star in next(iter(found.values())):
        files = {at[len(path) :]: names[star] for at, names in found.items()}
        case = _case(reading, _filled(template, files), star, path)
        if case is not None:
            cases.append(case)
    return cases


def _patterns(reading: Reading, template: dict[str, object], path: YamlPath) -> list[tuple[YamlPath, str]]:
    """Every pattern of the template with its place."""
    found: list[tuple[YamlPath, str]] = []
    places: list[tuple[YamlPath, object]] = []
    if "stdin" in template:
        places.append(((*path, "stdin"), template["stdin"]))
    for key in _MATCHED:
        if key in template:
            places.extend(_matcher_patterns(template[key], (*path, key)))
    for key in ("files", "output_files"):
        entries = template.get(key, {})
        if not isinstance(entries, dict):
            reading.refuse((*path, key), f"in cases_from, {key} is a mapping of patterns, not {described(entries)}")
            continue
        for name, item in cast("dict[str, object]", entries).items():
            at = (*path, key, name)
            places.extend(_matcher_patterns(item, at) if key == "output_files" else [(at, item)])
    for at, value in places:
        if isinstance(value, str):
            found.append((at, value))
        else:
            reading.refuse(at, f"expected a pattern such as data/*.in, not {described(value)}")
    return found


def _matcher_patterns(value: object, path: YamlPath) -> list[tuple[YamlPath, object]]:
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value)
        return [((*path, key), item) for key, item in entries.items() if key in FROM_FILE]
    return [(path, value)]


def _paired(reading: Reading, patterns: dict[YamlPath, str], found: dict[YamlPath, dict[str, str]]) -> bool:
    """Whether every pattern fits files, and each of them for the same stars; what is wrong is noted."""
    before = len(reading.problems)
    for at, names in found.items():
        if not names:
            reading.refuse(at, f"{patterns[at]!r} fits no file", "paths are relative to the task's folder")
    if len(reading.problems) > before:
        return False
    stars = sorted(set[str]().union(*found.values()))
    for at, names in found.items():
        alone = [star for star in stars if star not in names]
        for star in alone[:MOST_NAMED]:
            there = next(others[star] for others in found.values() if star in others)
            reading.refuse(at, f"{there!r} has no partner {patterns[at].replace('*', star)!r}")
        if len(alone) > MOST_NAMED:
            reading.refuse(at, f"and {len(alone) - MOST_NAMED} more files have no partner")
    return len(reading.problems) == before


def _filled(template: dict[str, object], files: dict[YamlPath, str]) -> dict[str, object]:
    """The template with a file reference in the place of each pattern."""
    case: dict[str, object] = {
        key: dict(cast("dict[str, object]", item)) if isinstance(item, dict) else item for key, item in template.items()
    }
    for at, name in files.items():
        reference: dict[str, object] = {"file": name}
        holder = case
        for part in at[:-1]:
            inner = holder[str(part)]
            copied: dict[str, object] = dict(cast("dict[str, object]", inner))
            holder[str(part)] = copied
            holder = copied
        is_value = at[0] in {"stdin", "files"} or (
            at[-1] in FROM_FILE and len(at) == (3 if at[0] == "output_files" else 2)
        )
        holder[str(at[-1])] = reference if is_value else {"equals": reference}
    return case


def _case(reading: Reading, case: dict[str, object], star: str, path: YamlPath) -> ProgramCase | None:
    """One case; a mistake of the template is noted once, not for every case."""
    before = list(reading.problems)
    read = read_case(reading, {**case, "name": star}, path)
    fresh: list[Problem] = [problem for problem in reading.problems[len(before) :] if problem not in before]
    reading.problems[:] = before + fresh
    return read
