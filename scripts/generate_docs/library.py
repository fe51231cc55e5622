"""docs/reference/library.md: the public names of the package, with their signatures."""

from __future__ import annotations

import inspect
import re
from dataclasses import is_dataclass
from enum import Enum

from pydantic import BaseModel

import grader
from grader.sandbox.base import ISOLATIONS
from scripts.generate_docs.source import fields_of, first_paragraph, one_line, table

_GROUPS = {
    "Grading": ("grade", "grade_sync", "Runner", "Graded", "Choice", "Watcher", "replay", "score"),
    "Submissions and tasks": ("Submission", "load_task", "Task", "Expectation"),
    "Conditions": ("Condition", "ProgramBehaves", "ProgramCase", "InputFile", "OutputFile", "Limits", "AllOf", "AnyOf", "Not"),
    "Tool conditions": (
        "ToolsCalled", "ToolsCalledInOrder", "ToolsNotCalled", "ToolPrecededBy", "ToolCallRequirement", "ToolArgumentRequirement",
    ),
    "Verdicts": ("Tri", "Verdict", "ConditionVerdict", "CaseVerdict", "CellVerdict", "RunVerdict", "Finding", "ReasonCode"),
    "Capture": ("LocalTraceCapture", "CapturedRequest"),
    "Observations": ("Observation", "Acquisition"),
    "Errors": (
        "GraderError", "UsageError", "TaskError", "SubmissionError", "RecordError", "PrerequisiteError", "TraceError",
    ),
}  # fmt: skip
"""Names that are in no group stand under Others; names that are not there yet are left out."""


def page() -> str:
    """The page."""
    grouped = {name for names in _GROUPS.values() for name in names}
    rest = tuple(name for name in grader.__all__ if name not in grouped)
    parts = [
        "# Library\n",
        "Every public name, importable from `grader`. How they are used: [use from Python](../how-to/use-from-python.md). "
        "Everything is typed; values are frozen.\n",
        "Where a signature says `TaskLike`, a `Task` or the path of a task may stand; `SubmissionLike` is a `Submission` or the "
        f"path of one; `Isolation` is one of {', '.join(f'`{level!r}`' for level in ISOLATIONS)}.\n",
    ]
    for heading, names in {**_GROUPS, "Others": rest}.items():
        known = [name for name in names if name in grader.__all__]
        if known:
            parts.append(f"## {heading}\n")
            parts.extend(_entry(name) for name in known)
    return "\n".join(parts)


def _entry(name: str) -> str:
    thing: object = getattr(grader, name)
    parts = [f"### {name}\n"]
    if not inspect.isclass(thing):
        if not callable(thing):
            raise TypeError(f"{name} is neither a class nor a function")
        prefix = "async def" if inspect.iscoroutinefunction(thing) else "def"
        parts.append(f"```python signature\n{prefix} {name}{_signature(thing)}\n```\n")
        parts.append(f"{first_paragraph(thing)}\n")
        raises = _raises(thing)
        return "\n".join([*parts, *([f"{raises}\n"] if raises else [])])
    bases = [base.__name__ for base in thing.__mro__[1:] if base.__name__ in grader.__all__]
    parts.append(f"{first_paragraph(thing)}{f' A kind of `{bases[0]}`.' if bases else ''}\n")
    if issubclass(thing, Enum):
        if name == "ReasonCode":
            parts.append("Its members: [reason codes](reasons.md).\n")
        else:
            parts.append(" ".join(f"`{name}.{member}`" for member in thing.__members__) + "\n")
    elif is_dataclass(thing) or issubclass(thing, BaseModel):
        parts.append(_fields(thing))
    elif not issubclass(thing, Exception):
        parts.append(f"```python signature\n{name}{_signature(thing)}\n```\n")
    parts.append(_methods(thing))
    return "\n".join(part for part in parts if part)


def _fields(cls: type) -> str:
    # A base that is not public is part of the class for its users.
    hidden = [
        base for base in cls.__mro__[1:] if base.__name__.startswith("_") and base.__module__.startswith("grader")
    ]
    fields = {name: field for base in (*reversed(hidden), cls) for name, field in fields_of(base).items()}
    rows = [[f"`{field.name}`", f"`{_type(field.annotation)}`", field.meaning] for field in fields.values()]
    return table(["field", "type", "meaning"], rows) if rows else ""


def _methods(cls: type) -> str:
    rows: list[list[str]] = []
    for name, member in vars(cls).items():
        if name.startswith("_") or name.startswith("model_"):
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            rows.append([f"`{name}`", _first(member)])
        elif isinstance(member, classmethod | staticmethod) or inspect.isfunction(member):
            function = getattr(cls, name)
            prefix = (
                "await "
                if inspect.iscoroutinefunction(function)
                else "async for ... in "
                if inspect.isasyncgenfunction(function)
                else ""
            )
            rows.append([f"`{prefix}{name}{_signature(function, bound=True)}`", _first(function)])
    return table(["member", ""], rows) if rows else ""


def _first(thing: object) -> str:
    return first_paragraph(thing)


def _raises(thing: object) -> str:
    paragraphs = (inspect.getdoc(thing) or "").split("\n\n")
    return next((one_line(text) for text in paragraphs[1:] if text.startswith("Raises ")), "")


def _signature(thing: object, *, bound: bool = False) -> str:
    """A signature as it is written. Annotations are texts in the source, so they do not depend on the Python version."""
    if not callable(thing):
        raise TypeError(f"{thing} has no signature")
    signature = inspect.signature(thing)
    parameters = [one for one in signature.parameters.values() if not (bound and one.name in {"self", "cls"})]
    shown: list[str] = []
    for one in parameters:
        if one.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        shown.append(_parameter(one))
    result = signature.return_annotation
    return f"({', '.join(shown)})" + (f" -> {result}" if isinstance(result, str) and result != "None" else "")


def _parameter(one: inspect.Parameter) -> str:
    name = f"*{one.name}" if one.kind is inspect.Parameter.VAR_POSITIONAL else one.name
    text = name if one.annotation is inspect.Parameter.empty else f"{name}: {one.annotation}"
    if one.default is inspect.Parameter.empty:
        return text
    return f"{text} = {_DEFAULTS.get(type(one.default).__name__, repr(one.default))}"


_DEFAULTS = {"Choice": "Choice()"}


def _type(annotation: str) -> str:
    """A type without what only its checks need."""
    found = re.match(r"Annotated\[(.*?), (?:BeforeValidator|PlainSerializer|Field)\(", annotation)
    return found[1] if found is not None else annotation
