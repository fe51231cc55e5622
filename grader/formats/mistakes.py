"""Mistakes in a task file, in words: what stands there, what should, and the key that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, cast

from pydantic import ValidationError

from grader.errors import Problem
from grader.yaml_source import YamlDocument, YamlPath

LONGEST_SHOWN = 60

_EXPECTED = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "decimal_type": "a number",
    "decimal_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def validation_problems(
    error: ValidationError,
    document: YamlDocument,
    at: YamlPath,
    known: Collection[str] = (),
    renamed: Mapping[str, str] | None = None,
) -> Iterator[Problem]:
    """The problems of a model made from the part of `document` at `at`, each with its place, in human words.

    `known` are the keys that the model at `at` has, for the key that was probably meant; `renamed` says under which
    key a field of it stands in the file.
    """
    for entry in cast("Sequence[Mapping[str, Any]]", error.errors(include_url=False)):
        first, *rest = entry["loc"] or ("",)
        loc = ((renamed or {}).get(first, first), *rest) if entry["loc"] else ()
        path, is_exact = _in_document(document, (*at, *loc))
        kind = str(entry["type"])
        names = [part for part in (loc if is_exact or kind == "missing" else path) if isinstance(part, str)]
        name = names[-1] if names else ""
        if kind == "extra_forbidden":
            yield unknown_key(document, path, known if len(loc) == 1 else ())
        elif kind == "missing":
            yield Problem(f"{name!r} is missing", document.place(path))
        else:
            is_key = not is_exact and loc[-1:] == ("name",)
            place = document.key_place(path) if is_key else document.place(path)
            said = _words(kind, entry, name)
            yield Problem(said if name == "" or said.startswith(name) else f"{name}: {said}", place, _hint(kind, entry))


def unknown_key(document: YamlDocument, path: YamlPath, known: Collection[str]) -> Problem:
    """The problem of a key that nobody knows, with the one that was probably meant."""
    key = str(path[-1])
    close = difflib.get_close_matches(key, sorted(known), n=1, cutoff=0.6)
    hint = f"did you mean {close[0]}?" if close else (f"known here: {', '.join(sorted(known))}" if known else None)
    return Problem(f"unknown key {_short(repr(key))}", document.key_place(path), hint)


def described(value: object) -> str:
    """What a YAML value is, in a few words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float | Decimal):
        return f"the number {_short(str(value))}"
    if isinstance(value, str):
        return f"the text {_short(repr(value))}"
    if isinstance(value, list | tuple):
        return "a list"
    return "a mapping" if isinstance(value, Mapping) else type(value).__name__


def _words(kind: str, entry: Mapping[str, Any], name: str) -> str:
    value: object = entry["input"]
    context = cast("Mapping[str, Any]", entry.get("ctx", {}))
    if name == "exit_code" and kind in _EXPECTED:
        return f"expected a number from 0 to 255, a list of them, or any; not {described(value)}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, not {described(value)}"
    if kind in {"literal_error", "enum"}:
        return f"expected {context['expected']}, not {described(value)}"
    bounds = {
        "greater_than_equal": ("at least", "ge"),
        "greater_than": ("more than", "gt"),
        "less_than_equal": ("at most", "le"),
        "less_than": ("less than", "lt"),
    }
    if kind in bounds:
        word, key = bounds[kind]
        return f"must be {word} {context[key]}, not {described(value).removeprefix('the number ')}"
    if kind in {"too_short", "string_too_short"}:
        return f"must have at least {context['min_length']}, and has {context.get('actual_length', 'fewer')}"
    said = str(entry["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"expected text in quotes, not {described(value)}" if said.startswith("expected text, not") else said


def _hint(kind: str, entry: Mapping[str, Any]) -> str | None:
    value: object = entry["input"]
    if kind == "string_type" and isinstance(value, bool | int | float | Decimal):
        return "put it in quotes"
    if kind == "tuple_type" and isinstance(value, str) and "exit_code" not in entry["loc"]:
        return f"write [{value}]" if len(value) <= LONGEST_SHOWN and value.isprintable() else None
    return None


def _in_document(document: YamlDocument, path: YamlPath) -> tuple[YamlPath, bool]:
    """The parts of a validator's path that the document has, and whether those are all of it.

    A model may hold as a list what the file has as a mapping (`files`): a number then counts its keys.
    """
    node: object = document.value
    kept: list[str | int] = []
    is_exact = True
    for part in path:
        if isinstance(node, dict) and isinstance(part, int):
            keys = list(cast("dict[str, object]", node))
            part = keys[part] if part < len(keys) else part  # noqa: PLW2901
        if isinstance(node, dict) and part in node:
            node = cast("dict[str | int, object]", node)[part]
        elif isinstance(node, list) and isinstance(part, int) and part < len(cast("list[object]", node)):
            node = cast("list[object]", node)[part]
        else:
            is_exact = False
            continue
        kept.append(part)
    return tuple(kept), is_exact


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
