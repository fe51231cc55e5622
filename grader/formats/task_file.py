"""Task files: `task.yaml` and the files beside it become a `Task`; every mistake is named with its line and column."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import grader.core.tools.conditions  # pyright: ignore[reportUnusedImport] - registers its conditions
import grader.matchers  # noqa: F401  # pyright: ignore[reportUnusedImport] - registers the matchers
from grader.core.agent_tasks import case_problems
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.conditions import Condition, condition_class, condition_types
from grader.core.expectation import Task, TraceSettings
from grader.core.judging.conditions import JudgeSettings
from grader.errors import Place, Problem, TaskError
from grader.formats.case_folder import read_case_folder
from grader.formats.case_reader import Reading, read_case, read_limits
from grader.formats.mistakes import described, unknown_key
from grader.formats.task_folder import TaskFolder, read_regular_file
from grader.yaml_source import LARGEST_BYTES, YamlDocument, YamlPath, load

FILE_NAME = "task.yaml"


def load_task(path: str | Path) -> Task:
    """The task in a file, or in the `task.yaml` of a folder, with every file that it names.

    Raises TaskError with all problems, each with file:line:column and what would mend it.
    """
    task, reading = read_task(path)
    if task is None or reading.problems:
        raise TaskError(in_order(reading.problems))
    return task


def in_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems in the order in which they stand in the file, each once."""
    return tuple(sorted(dict.fromkeys(problems), key=_position))


def _position(problem: Problem) -> tuple[int, int]:
    where = problem.where
    return (where.line or 0, where.column or 0) if where is not None else (0, 0)


def read_task(path: str | Path) -> tuple[Task | None, Reading]:
    """The task, or None, and what was found while reading it. Raises TaskError if the file is no YAML at all."""
    file = task_file(path)
    document = _document(file)
    reading = Reading(document, TaskFolder(file.parent))
    task = _read(reading)
    if task is not None and len(task.programs()) > 0:
        _check_cases(task, reading)
    return task, reading


def _check_cases(task: Task, reading: Reading) -> None:
    """Note the conditions that name a case which the task does not have."""
    problems = {problem.leaf: problem for problem in case_problems(task)}
    for number, path in enumerate(_leaves(reading.document.value, ())):
        if number in problems:
            reading.refuse((*path, "case"), problems[number].message, problems[number].hint)


def task_file(path: str | Path) -> Path:
    """The file of a task: the path itself, or `task.yaml` in a folder. Raises TaskError if there is none."""
    given = Path(path)
    try:
        file = given / FILE_NAME if stat.S_ISDIR(given.stat().st_mode) else given
        file.stat()
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        hint = f"name a task file, or a folder with a {FILE_NAME} in it"
        raise TaskError(f"no task here: {said}", where=Place(str(path)), hint=hint) from error
    return file


def leaf_places(path: str | Path) -> tuple[Place, ...]:
    """Where the leaf conditions of a task file stand, in the order of `Task.leaves()`. Raises what `load_task` does."""
    document = _document(task_file(path))
    return tuple(document.place(at) for at in _leaves(document.value, ()))


def trace_source_place(path: str | Path) -> Place:
    """Where a task file names its source of traces. Raises what `load_task` does."""
    return _document(task_file(path)).place(("trace", "trace_source"))


def _leaves(value: object, path: YamlPath) -> Iterator[YamlPath]:
    """The paths of the conditions that have no conditions inside."""
    entries = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    if "conditions" in entries:
        for index, item in enumerate(cast("list[object]", entries["conditions"])):
            yield from _leaves(item, (*path, "conditions", index))
    elif "condition" in entries:
        yield from _leaves(entries["condition"], (*path, "condition"))
    else:
        yield path


def _document(file: Path) -> YamlDocument:
    try:
        text = read_regular_file(file, LARGEST_BYTES, str(file))
    except ValueError as error:
        raise TaskError(str(error), where=Place(str(file))) from error
    return load(text, str(file))


def _read(reading: Reading) -> Task | None:
    entries = reading.mapping(reading.document.value, (), "a task")
    if entries is None:
        return None
    unknown = [key for key in entries if key not in Task.model_fields]
    reading.problems.extend(unknown_key(reading.document, (key,), Task.model_fields) for key in unknown)
    data: dict[str, object] = {key: item for key, item in entries.items() if key not in unknown}
    if "limits" in data:
        data["limits"] = read_limits(reading, data["limits"], ("limits",))
    if "trace" in data:
        trace = reading.mapping(data["trace"], ("trace",), "trace")
        data["trace"] = None if trace is None else reading.build(TraceSettings, trace, ("trace",))
    if "judge" in data:
        judge = reading.mapping(data["judge"], ("judge",), "judge")
        data["judge"] = None if judge is None else reading.build(JudgeSettings, judge, ("judge",))
    if "conditions" in entries:
        data["conditions"] = _conditions(reading, entries["conditions"], ("conditions",))
    if any(item is None for item in data.values()):
        # What is wrong there is noted; the rest is looked at even so.
        data = {key: item for key, item in data.items() if item is not None}
        data.setdefault("conditions", (ProgramBehaves(cases=(ProgramCase(),)),))
        reading.build(Task, data, ())
        return None
    return reading.build(Task, data, ())


def _conditions(reading: Reading, value: object, path: YamlPath) -> tuple[Condition, ...] | None:
    if not isinstance(value, list):
        reading.refuse(path, f"conditions are a list, not {described(value)}", "write - condition_type: ...")
        return None
    items = cast("list[object]", value)
    if not items:
        reading.refuse(path, "the list of conditions is empty: a verdict over nothing does not exist")
        return None
    read = [read_condition(reading, item, (*path, index)) for index, item in enumerate(items)]
    found = tuple(condition for condition in read if condition is not None)
    return found if len(found) == len(read) else None


def read_condition(reading: Reading, value: object, path: YamlPath) -> Condition | None:
    """A condition of any registered type; None after noting its problems."""
    entries = reading.mapping(value, path, "a condition")
    if entries is None:
        return None
    name = entries.pop("condition_type", None)
    if name is None:
        if not _has_empty_type(value):
            reading.refuse(path, "'condition_type' is missing", f"one of {', '.join(condition_types())}")
        return None
    cls = condition_class(name) if isinstance(name, str) else None
    if cls is None:
        problem = unknown_key(reading.document, (*path, "condition_type", str(name)), condition_types())
        reading.refuse((*path, "condition_type"), f"unknown condition_type {name!r}", problem.hint)
        return None
    readers: dict[str, Callable[[Reading, object, YamlPath], object]] = {
        "conditions": _conditions,
        "condition": read_condition,
    }
    if cls is ProgramBehaves:
        return _read_program(reading, entries, path)
    before = len(reading.problems)
    if cls.composite:
        entries = {
            key: readers[key](reading, item, (*path, key)) if key in readers else item for key, item in entries.items()
        }
    if len(reading.problems) > before:
        return None
    return reading.build(cls, entries, path)


def _has_empty_type(value: object) -> bool:
    return isinstance(value, dict) and "condition_type" in value


def _read_program(reading: Reading, entries: dict[str, object], path: YamlPath) -> ProgramBehaves | None:
    before = len(reading.problems)
    known = {*ProgramBehaves.model_fields, "cases_from", "condition_type"}
    unknown = [key for key in entries if key not in known]
    reading.problems.extend(unknown_key(reading.document, (*path, key), known) for key in unknown)
    cases: list[ProgramCase] = []
    written = entries.get("cases", [])
    if not isinstance(written, list):
        reading.refuse((*path, "cases"), f"cases are a list, not {described(written)}", "write - stdin: ...")
    else:
        for index, item in enumerate(cast("list[object]", written)):
            case = read_case(reading, item, (*path, "cases", index))
            if case is not None:
                cases.append(case)
    if "cases_from" in entries:
        cases.extend(read_case_folder(reading, entries["cases_from"], (*path, "cases_from")))
    if not cases and len(reading.problems) == before:
        at = (*path, "cases") if "cases" in entries else path
        reading.refuse(at, "no cases: a verdict over nothing does not exist", "give cases or cases_from")
    data: dict[str, object] = {"cases": tuple(cases) or (ProgramCase(),)}
    if "repetitions" in entries:
        data["repetitions"] = entries["repetitions"]
    program = reading.build(ProgramBehaves, data, path)
    return program if len(reading.problems) == before else None
