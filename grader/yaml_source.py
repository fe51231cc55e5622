"""Strict YAML: plain values, and the place (line and column) of each.

Tasks and runtime profiles are written by people, so every mistake is named with its place, all of them at once. A
mapping with a doubled key, a scalar that YAML versions read differently (`no`, `010`, a date), a tag, a merge key and
an alias bomb are refused; numbers are those of YAML 1.2 (`1e-6` is a number), exactly as they are written: one that a
float would round is a `Decimal`. Nothing is ever constructed but `None`, `bool`, `int`, `float`, `Decimal`, `str`,
lists and dictionaries with text keys. Reading is iterative, so that depth is no danger.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias, cast

import yaml
from pydantic import ValidationError

from grader.errors import Place, Problem, TaskError

YamlValue: TypeAlias = "bool | int | float | Decimal | str | list[YamlValue] | dict[str, YamlValue] | None"
YamlPath: TypeAlias = "tuple[str | int, ...]"

LARGEST_BYTES = 64 * 2**20
DEEPEST = 50
MOST_ALIASES = 20
MOST_NODES_WITH_ALIASES = 100_000
MOST_PROBLEMS = 50
LONGEST_NUMBER = 300

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT = re.compile(r"(?P<sign>[-+]?)\.(?P<what>inf|Inf|INF|nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0o?[0-9]+")
_RESOLVERS_1_1: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
"""How YAML 1.1 types a scalar, by its first character."""


@dataclass(slots=True)
class _Node:
    """A value with its place. `key_line` and `key_column` are those of its key, when it stands in a mapping."""

    line: int
    column: int
    kind: str
    value: YamlValue = None
    plain_text: str | None = None
    entries: dict[str, _Node] = field(default_factory=lambda: {})
    items: list[_Node] = field(default_factory=lambda: [])
    key_places: dict[str, tuple[int, int]] = field(default_factory=lambda: {})
    open: bool = True
    size: int = 1


class YamlDocument:
    """A YAML document: its plain `value`, and where each part of it stands."""

    def __init__(self, file: str, root: _Node) -> None:
        self.file = file
        self._root = root
        self.value: YamlValue = root.value

    def place(self, path: YamlPath = ()) -> Place:
        """Where the value at a path of keys and indexes stands; for a path that is not there, what would hold it."""
        node, _ = self._walk(path)
        return Place(self.file, node.line, node.column)

    def key_place(self, path: YamlPath) -> Place:
        """Where the key of the value at a path stands; the value itself where it stands in a list."""
        node, holder = self._walk(path)
        if holder is not None and path and isinstance(path[-1], str) and path[-1] in holder.key_places:
            return Place(self.file, *holder.key_places[path[-1]])
        return Place(self.file, node.line, node.column)

    def plain_text(self, path: YamlPath) -> str | None:
        """What was written, when the value is a scalar without quotes (`1.50`, `true`, `abc`); else None."""
        node, _ = self._walk(path)
        return node.plain_text

    def problems(self, error: ValidationError, at: YamlPath = ()) -> tuple[Problem, ...]:
        """The problems of a pydantic model made from this document (from the value at `at`), with their places."""
        return tuple(self._problem(at, entry) for entry in error.errors(include_url=False, include_context=False))

    def _problem(self, at: YamlPath, entry: Any) -> Problem:
        path = self._existing((*at, *entry["loc"]))
        named = ".".join(str(part) for part in entry["loc"])
        message = str(entry["msg"]).removeprefix("Value error, ")
        if entry["type"] == "extra_forbidden":
            return Problem(f"unknown key {named!r}", self.key_place(path))
        if entry["type"] == "missing":
            return Problem(f"{named!r} is missing", self.place(path))
        return Problem(f"{named}: {message}" if named else message, self.place(path))

    def _existing(self, path: YamlPath) -> YamlPath:
        """The parts of a validator's path that are in the document: it also names the models that it tried."""
        kept: list[str | int] = []
        node = self._root
        for part in path:
            child = _child(node, part)
            if child is not None:
                kept.append(part)
                node = child
        return tuple(kept)

    def _walk(self, path: YamlPath) -> tuple[_Node, _Node | None]:
        node, holder = self._root, None
        for part in path:
            child = _child(node, part)
            if child is None:
                return node, None
            node, holder = child, node
        return node, holder


def load(text: str | bytes, file: str, text_tags: frozenset[str] = frozenset()) -> YamlDocument:
    """Reads one YAML document. `file` is the name that places carry; scalars with one of `text_tags` are taken as text.

    Raises TaskError with all problems found (at most 50), each with its line and column.
    """
    if len(text) > LARGEST_BYTES:
        raise TaskError(f"larger than {LARGEST_BYTES >> 20} MiB; put large data into files", where=Place(file))
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = text.count(b"\n", 0, error.start) + 1
            raise TaskError(
                f"not UTF-8: byte 0x{text[error.start]:02x}", where=Place(file, line), hint="save the file as UTF-8"
            ) from error
    builder = _Builder(file, text_tags)
    try:
        for event in _events(text):
            builder.take(event)
    except _StopReadingError:
        pass
    except yaml.YAMLError as error:
        builder.problems.append(_syntax_problem(error, file, text))
    if builder.problems:
        raise TaskError(builder.problems)
    if builder.root is None:
        raise TaskError("the file is empty", where=Place(file, 1, 1))
    return YamlDocument(file, builder.root)


class _StopReadingError(Exception):
    """Nothing after this place can be read with sense; the problem is already noted."""


class _Builder:
    """Builds nodes from events, with a stack of the collections that are still open."""

    def __init__(self, file: str, text_tags: frozenset[str]) -> None:
        self.file = file
        self._text_tags = text_tags
        self.problems: list[Problem] = []
        self.root: _Node | None = None
        self._stack: list[_Node] = []
        self._keys: list[str | None] = []
        self._expects_key: list[bool] = []
        self._anchors: dict[str, _Node] = {}
        self._aliases = 0
        self._nodes = 0
        self._documents = 0

    def take(self, event: yaml.Event) -> None:
        """Takes the next event of the parser."""
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._begin(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._refuse(event, "a second document; only one is expected", stop=True)

    def _begin(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        node = _Node(*_at(event), kind="mapping" if mapping else "list")
        node.value = {} if mapping else []
        if event.tag not in (None, "!", "tag:yaml.org,2002:map" if mapping else "tag:yaml.org,2002:seq"):
            self._refuse(event, f"tags such as {event.tag!r} are not allowed")
        if len(self._stack) >= DEEPEST:
            self._refuse(event, f"nested deeper than {DEEPEST} levels", stop=True)
        if self._stack and self._stack[-1].kind == "mapping" and self._expects_key[-1]:
            self._refuse(event, "a key must be text", stop=True)
        self._remember(event, node)
        self._stack.append(node)
        self._keys.append(None)
        self._expects_key.append(mapping)

    def _end(self) -> None:
        node = self._stack.pop()
        self._keys.pop()
        self._expects_key.pop()
        node.open = False
        self._place(node)

    def _scalar(self, event: Any) -> None:
        node = _Node(*_at(event), kind="scalar", open=False)
        plain = event.style in (None, "") and event.implicit[0]
        if event.tag not in (None, "!", "tag:yaml.org,2002:str") and event.tag not in self._text_tags:
            self._refuse(event, f"tags such as {event.tag!r} are not allowed")
        is_key = bool(self._stack) and self._stack[-1].kind == "mapping" and self._expects_key[-1]
        text = cast("str", event.value)
        node.value = text
        if plain:
            node.plain_text = text
            node.value = self._resolve(event, text)
        self._remember(event, node)
        if is_key:
            self._key(event, node)
        else:
            self._place(node)

    def _resolve(self, event: Any, text: str) -> YamlValue:
        if text in _NULL:
            return None
        if text in _BOOLEAN:
            return _BOOLEAN[text]
        if len(text) > LONGEST_NUMBER:
            return text
        if _INTEGER.fullmatch(text) is not None:
            return int(text)
        special = _SPECIAL_FLOAT.fullmatch(text)
        if special is not None:
            sign = -1.0 if special["sign"] == "-" else 1.0
            return math.nan if special["what"].lower() == "nan" else sign * math.inf
        if _is_read_differently(text):
            meant = " (or true / false, if that is meant)" if text.isalpha() else ""
            self._refuse(event, f"{text} is read differently by different versions of YAML", f"write '{text}'{meant}")
            return text
        return self._decimal(event, text) if _FLOAT.fullmatch(text) is not None else text

    def _decimal(self, event: Any, text: str) -> YamlValue:
        """The number as a float if its shortest decimal is what was written, else exactly."""
        try:
            exact = Decimal(text)
        except InvalidOperation:
            self._refuse(event, f"the exponent of {text} is beyond all bounds")
            return text
        number = float(text)
        return number if math.isfinite(number) and Decimal(repr(number)) == exact else exact

    def _key(self, event: Any, node: _Node) -> None:
        mapping = self._stack[-1]
        self._expects_key[-1] = False
        if not isinstance(node.value, str):
            self._refuse(event, f"a key must be text, not {node.plain_text or 'nothing'}", "write it in quotes")
        key = node.value if isinstance(node.value, str) else str(node.plain_text)
        if key == "<<" and node.plain_text is not None:
            self._refuse(event, "merge keys (<<) are not allowed", "write the keys out")
        if key in mapping.key_places:
            first = mapping.key_places[key][0]
            self._refuse(event, f"the key {key!r} stands here for the second time (first in line {first})")
        else:
            mapping.key_places[key] = (node.line, node.column)
        self._keys[-1] = key

    def _alias(self, event: Any) -> None:
        self._aliases += 1
        if self._aliases > MOST_ALIASES:
            self._refuse(event, f"more than {MOST_ALIASES} aliases", "write the values out", stop=True)
        node = self._anchors.get(event.anchor)
        if node is None or node.open:
            problem = "is not defined above" if node is None else "stands inside what it names"
            self._refuse(event, f"the alias *{event.anchor} {problem}", stop=True)
        elif self._stack and self._stack[-1].kind == "mapping" and self._expects_key[-1]:
            self._refuse(event, "an alias cannot be a key", stop=True)
        else:
            self._nodes += node.size
            if self._nodes > MOST_NODES_WITH_ALIASES:
                self._refuse(event, "its aliases make this document far larger than it is written", stop=True)
            self._place(node)

    def _place(self, node: _Node) -> None:
        """Puts a finished value where it belongs."""
        if not self._stack:
            self.root = node
            return
        holder = self._stack[-1]
        holder.size += node.size
        if holder.kind == "list":
            holder.items.append(node)
            cast("list[YamlValue]", holder.value).append(node.value)
            return
        key = self._keys[-1]
        self._expects_key[-1] = True
        if key is not None and key not in holder.entries:
            holder.entries[key] = node
            cast("dict[str, YamlValue]", holder.value)[key] = node.value

    def _remember(self, event: Any, node: _Node) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node

    def _refuse(self, event: Any, message: str, hint: str | None = None, *, stop: bool = False) -> None:
        self.problems.append(Problem(message, Place(self.file, *_at(event)), hint))
        if stop or len(self.problems) >= MOST_PROBLEMS:
            raise _StopReadingError


def _events(text: str) -> Iterator[yaml.Event]:
    """The events of the parser, libyaml's if it is there."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return iter(cast("Iterable[yaml.Event]", yaml.parse(text, Loader=loader)))


def _is_read_differently(text: str) -> bool:
    """Whether YAML 1.1 reads a scalar as a value that YAML 1.2 reads as text or as another value."""
    for tag, pattern in _RESOLVERS_1_1.get(text[0], []):
        if pattern.match(text) is not None:
            kind = tag.rpartition(":")[2]
            return kind in ("bool", "int", "timestamp") or (kind == "float" and _FLOAT.fullmatch(text) is None)
    return _LEADING_ZERO.fullmatch(text) is not None


def _at(event: Any) -> tuple[int, int]:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _child(node: _Node, part: str | int) -> _Node | None:
    if isinstance(part, int):
        return node.items[part] if 0 <= part < len(node.items) else None
    return node.entries.get(part)


def _syntax_problem(error: yaml.YAMLError, file: str, text: str) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark: Any = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        place = Place(file, mark.line + 1, mark.column + 1) if mark is not None else Place(file)
        indented_by_tab = mark is not None and _indent(text, mark.line).count("\t") > 0
        return Problem(f"not valid YAML: {said}", place, "indent with spaces, not tabs" if indented_by_tab else None)
    position = getattr(error, "position", None)
    said = getattr(error, "reason", None) or str(error).splitlines()[0]
    return Problem(
        f"not valid YAML: {said}" + (f" (character {position})" if position is not None else ""), Place(file)
    )


def _indent(text: str, line: int) -> str:
    """What a line, counted from 0, begins with: spaces and tabs."""
    whole = next(iter(text.splitlines()[line : line + 1]), "")
    return whole[: len(whole) - len(whole.lstrip(" \t"))]
