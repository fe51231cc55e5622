"""Reading JSON strictly (RFC 8259), with bounds, and so that what is decided about a prefix holds for the whole.

Three answers: a value; text that is *not* JSON, whatever may follow; text that cannot be judged (nested too deeply, a
number too long, a key twice, too many values, cut off). Python's own reader does the work; around it stand the bounds
that it lacks. Which of the three it is never depends on the interpreter's stack or version.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, islice
from typing import NoReturn, cast

from grader.core.quoting import quote, quote_text
from grader.matchers.decimals import plain_decimal

MAX_DEPTH = 100
"""How deeply arrays and objects may be nested."""

MAX_NUMBER_CHARACTERS = 4300
"""How long a number may be written."""

MAX_SEPARATORS = 2_000_000
"""How many commas and opening brackets a text may have: a bound on the number of values, and so on memory."""

_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_STRING_OR_BRACKET = re.compile(_STRING.pattern + rb"|[\[\]{}]", re.DOTALL)
_SEPARATOR = re.compile(rb"[\[{,]")
_NUMBER_CHARACTERS = b"0123456789.eE+-"
_AS_DIGITS = bytes(0x30 if code in _NUMBER_CHARACTERS else 0x20 for code in range(256))
_LONG_NUMBER = b"0" * (MAX_NUMBER_CHARACTERS + 1)
_BRACKETS = b"[]{}"
_NO_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
# An opening bracket is one step down, a closing one (255 is -1 as a signed byte) one step up.
_STEP_OF = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SURROGATE = re.compile("[\ud800-\udfff]")
# An error this far from the end of a prefix is no accident of the cut: no lexeme but a string looks further ahead.
_LOOKAHEAD = 8


class Number(str):
    """A JSON number as it was written. Numbers are compared as decimals, never through a float."""

    __slots__ = ()


JsonValue = None | bool | Number | str | list["JsonValue"] | dict[str, "JsonValue"]
"""A parsed value. A `Number` is a `str`, so test for it first."""


@dataclass(frozen=True, slots=True)
class NotJson:
    """The text is not JSON, and `detail` says why."""

    detail: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """It cannot be judged, and `detail` says why."""

    detail: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """The value that the text stands for."""

    value: JsonValue


class _RefusedError(ValueError):
    """Python's reader takes NaN and infinities; JSON does not."""


class _Reading:
    """One reading of a text: what its hooks noticed that makes the value unusable."""

    def __init__(self, *, may_have_long_numbers: bool) -> None:
        self.trouble: str | None = None
        self.number: Callable[[str], Number] = self._checked_number if may_have_long_numbers else Number

    def _checked_number(self, text: str) -> Number:
        if len(text) > MAX_NUMBER_CHARACTERS:
            self.trouble = f"a number of {len(text)} characters (at most {MAX_NUMBER_CHARACTERS} are read)"
        return Number(text)

    def entries(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        value = dict(pairs)
        if len(value) < len(pairs) and self.trouble is None:
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))
            self.trouble = f"the key {quote_text(twice, 40)} stands in one object more than once"
        return value

    def constant(self, text: str) -> NoReturn:
        raise _RefusedError(f"{text} is not in JSON")


def parse_json(data: bytes) -> Parsed | NotJson | Unreadable:
    """What a whole text stands for."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return NotJson(f"not UTF-8 at byte {error.start}")
    end, why = _readable(data)
    if why is not None:
        return _error_in_prefix(data[:end].decode("utf-8")) or Unreadable(why)
    reading = _Reading(may_have_long_numbers=_LONG_NUMBER in data.translate(_AS_DIGITS))
    try:
        value = _load(text, reading)
    except json.JSONDecodeError as error:
        return NotJson(_error(error))
    except _RefusedError as error:
        return NotJson(str(error))
    return Parsed(value) if reading.trouble is None else Unreadable(reading.trouble)


def error_in_prefix(kept: bytes) -> NotJson | None:
    """Why no JSON text begins with `kept`, or None if one may (or it cannot be told)."""
    try:
        kept.decode("utf-8")
    except UnicodeDecodeError as error:
        # "unexpected end of data" is a character that the cut went through.
        if error.reason != "unexpected end of data":
            return NotJson(f"not UTF-8 at byte {error.start}")
        kept = kept[: error.start]
    end, _ = _readable(kept)
    return _error_in_prefix(kept[:end].decode("utf-8"))


def from_python(value: object, depth: int = 0) -> JsonValue:
    """A JSON value from Python's (None, bool, int, float, Decimal, str, lists, string-keyed maps).

    Raises ValueError for anything else, for NaN and infinities, and beyond the bounds of this module.
    """
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        wrong = [key for key in entries if not isinstance(key, str)]
        if wrong:
            raise ValueError(f"the keys of a JSON object are text; put {wrong[0]!r} in quotes")
        return {cast("str", key): from_python(item, depth + 1) for key, item in entries.items()}
    if isinstance(value, list | tuple):
        return [from_python(item, depth + 1) for item in cast("list[object]", value)]
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | Decimal):
        text = str(value)
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"{text} is not in JSON")
        return Number(text)
    raise ValueError(f"{type(value).__name__} ({value!r}) is not a JSON value; put it in quotes")


def written(value: JsonValue) -> str:
    """The one compact text that stands for a value: sorted keys, numbers in one form.

    Raises ValueError for a number whose exponent is out of all range.
    """
    if isinstance(value, Number):
        return plain_decimal(value)
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{written(key)}:{written(value[key])}" for key in sorted(value)) + "}"
    text = json.dumps(value, ensure_ascii=False)
    # A lone surrogate can only be written as an escape.
    return text if not _SURROGATE.search(text) else json.dumps(value)


def _load(text: str, reading: _Reading) -> JsonValue:
    value = json.loads(
        text,
        parse_int=reading.number,
        parse_float=reading.number,
        parse_constant=reading.constant,
        object_pairs_hook=reading.entries,
    )
    return cast("JsonValue", value)


def _readable(data: bytes) -> tuple[int, str | None]:
    """How many bytes of the text are within the bounds of size and depth, and which bound ends it, if one does."""
    end, why = len(data), None
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_SEPARATORS:
        separators = _SEPARATOR.finditer(data)
        end, why = next(islice(separators, MAX_SEPARATORS, None)).start(), f"more than {MAX_SEPARATORS} values"
    if data.count(b"[", 0, end) + data.count(b"{", 0, end) > MAX_DEPTH and _deepest(data[:end]) > MAX_DEPTH:
        depth = 0
        for lexeme in _STRING_OR_BRACKET.finditer(data, 0, end):
            depth += _STEP_OF.get(lexeme.group(), 0)
            if depth > MAX_DEPTH:
                return lexeme.start(), f"nested more than {MAX_DEPTH} levels deep"
    return end, why


def _deepest(data: bytes) -> int:
    """How deeply brackets outside of strings are nested."""
    brackets = (_STRING.sub(b"", data) if b'"' in data else data).translate(None, _NO_BRACKETS)
    return max(accumulate(array("b", brackets.translate(_STEPS))), default=0)


def _error_in_prefix(text: str) -> NotJson | None:
    try:
        _load(text, _Reading(may_have_long_numbers=False))
    except json.JSONDecodeError as error:
        is_cut = error.msg.startswith("Unterminated string") or len(text) - error.pos < _LOOKAHEAD
        return None if is_cut else NotJson(_error(error))
    except _RefusedError as error:
        return NotJson(str(error))
    return None


def _error(error: json.JSONDecodeError) -> str:
    if error.doc.strip(" \t\n\r") == "":
        return "not JSON: nothing but white space" if error.doc != "" else "not JSON: nothing"
    found = quote(error.doc[error.pos : error.pos + 40].encode("utf-8", "surrogatepass"), 30)
    return f"not JSON at line {error.lineno}, column {error.colno}: {found}"
