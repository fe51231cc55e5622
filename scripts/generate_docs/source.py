"""Reads classes as they are written: the fields with their types as text, and the sentence that stands below each."""

from __future__ import annotations

import ast
import inspect
import json
from dataclasses import dataclass
from enum import Enum
from textwrap import dedent
from types import ModuleType
from typing import cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class FieldText:
    """A field of a class: its name, its type as it is written, its default as it is written, and what it means."""

    name: str
    annotation: str
    meaning: str
    default: str | None


def fields_of(cls: type) -> dict[str, FieldText]:
    """The fields that a class declares itself, in order."""
    tree = ast.parse(dedent(inspect.getsource(cls))).body[0]
    if not isinstance(tree, ast.ClassDef):
        raise TypeError(f"{cls} is not a class with source")
    found: dict[str, FieldText] = {}
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        annotation = ast.unparse(node.annotation)
        if annotation.startswith("ClassVar") or node.target.id.startswith("_"):
            continue
        default = None if node.value is None else ast.unparse(node.value)
        found[node.target.id] = FieldText(node.target.id, annotation, _docstring(following), default)
    return found


def _docstring(node: ast.stmt | None) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return one_line(node.value.value)
    return ""


def one_line(text: str) -> str:
    """Text with its line breaks taken out."""
    return " ".join(text.split())


def first_paragraph(thing: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return one_line((inspect.getdoc(thing) or "").split("\n\n")[0])


def default_of(field: FieldInfo) -> str:
    """The default of a pydantic field, as it would be written in YAML; `required` if there is none."""
    if field.is_required():
        return "required"
    value = plain(field.get_default(call_default_factory=True))
    if value in (None, "", [], {}):
        return ""
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


def plain(value: object) -> object:
    """A value as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("list[object]", value)]
    return value


def cell(text: str) -> str:
    """Text inside a table's cell."""
    return text.replace("|", "\\|")


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell(text) for text in line)} |".replace("|  |", "| |") for line in lines) + "\n"


def fields_of_module(module: ModuleType) -> dict[str, str]:
    """The constants of a module that have a sentence below them."""
    found: dict[str, str] = {}
    body = ast.parse(inspect.getsource(module)).body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _docstring(following):
            found[node.targets[0].id] = _docstring(following)
    return found
