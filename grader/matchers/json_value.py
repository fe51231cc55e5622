"""The json matcher: the same JSON value, however it is written."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from pydantic import field_validator

from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, register_matcher
from grader.core.quoting import quote_text
from grader.matchers.decimals import EXACTLY, Target, Tolerance, ToleranceValue
from grader.matchers.evidence import TRUE, failed, guarded, is_one_of, truncated
from grader.matchers.json_text import (
    JsonValue,
    NotJson,
    Number,
    Parsed,
    error_in_prefix,
    from_python,
    parse_json,
    written,
)

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


@register_matcher
class JsonEquals(Matcher):
    """The same JSON value.

    `1` equals `1.0`, `true` does not equal `1`, `"1"` does not equal `1`; the order of keys is ignored. Numbers are
    compared as exact decimals; with `float_absolute` or `float_relative` as `tokens` does. With `subset: true` objects
    may have more keys than expected, at any depth; arrays always have the same length.

    Text that is not JSON is false. A key twice in one object, more than 100 levels, a number longer than 4,300
    characters and more than two million values are undetermined.

    The expected value is a mapping, a list, a number, true, false or null as it is, or *JSON text*: a string is
    always JSON text, so the expected string `yes` is written `'"yes"'`.
    """

    matcher_name: ClassVar[str] = "json"
    matcher_argument: ClassVar[str] = "expected"

    expected: str
    subset: bool = False
    float_absolute: ToleranceValue | None = None
    float_relative: ToleranceValue | None = None

    @field_validator("expected", mode="before")
    @classmethod
    def _canonical(cls, value: object) -> str:
        """JSON text in one form, so that equal values have one digest."""
        if isinstance(value, str | bytes):
            data = value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass")
            found = parse_json(data)
            if not isinstance(found, Parsed):
                raise ValueError(f"a string here is JSON text. {found.detail}{_hint(value)}")
            return written(found.value)
        return written(from_python(value))

    @guarded
    def match(self, captured: Captured) -> Match:
        """True for JSON text of the same value."""
        if not captured.is_complete:
            if is_one_of(captured, (self.expected.encode(), self.expected.encode() + b"\n")):
                return TRUE
            error = error_in_prefix(captured.kept)
            return truncated(captured) if error is None else Match.false(error.detail)
        found = parse_json(captured.kept)
        if isinstance(found, Parsed):
            return self._compare(found.value)
        return Match.false(found.detail) if isinstance(found, NotJson) else failed(found.detail)

    @guarded
    def match_json(self, value: object) -> Match:
        """True for the same value, by type: the string "3" is not the number 3."""
        return self._compare(from_python(value))

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"JSON {quote_text(self.expected, 40)}"

    @cached_property
    def _value(self) -> JsonValue:
        found = parse_json(self.expected.encode())
        if isinstance(found, Parsed):
            return found.value
        raise ValueError(found.detail)

    @cached_property
    def _targets(self) -> dict[Number, Target]:
        """What was worked out about expected numbers: they come back in every run."""
        return {}

    @cached_property
    def _tolerance(self) -> Tolerance:
        if self.float_absolute is None and self.float_relative is None:
            return EXACTLY
        return Tolerance(self.float_absolute, self.float_relative)

    def _compare(self, got: JsonValue) -> Match:
        difference = self._difference(self._value, got)
        if difference is None:
            return TRUE
        path = "".join(reversed(difference.path))
        return Match.false(f"at ${path}: {difference.words}")

    def _difference(self, expected: JsonValue, got: JsonValue) -> _Difference | None:
        """The first difference in the order of the expected value. Recursion is bounded: both are at most 100 deep."""
        if isinstance(expected, Number):
            if isinstance(got, Number) and (expected == got or self._are_close(expected, got)):
                return None
            return _Difference(f"expected {_shown(expected)}, got {_shown(got)}")
        if type(expected) is not type(got):
            return _Difference(f"expected {_shown(expected)}, got {_shown(got)}")
        if isinstance(expected, dict) and isinstance(got, dict):
            return self._object_difference(expected, got)
        if isinstance(expected, list) and isinstance(got, list):
            return self._array_difference(expected, got)
        return None if expected == got else _Difference(f"expected {_shown(expected)}, got {_shown(got)}")

    def _object_difference(self, expected: dict[str, JsonValue], got: dict[str, JsonValue]) -> _Difference | None:
        for key, wanted in expected.items():
            if key not in got:
                return _Difference(f"the key {quote_text(key, 40)} is missing")
            difference = self._difference(wanted, got[key])
            if difference is not None:
                difference.path.append(f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{quote_text(key, 40)}]")
                return difference
        if not self.subset and len(got) > len(expected):
            extra = next(key for key in got if key not in expected)
            return _Difference(f"the key {quote_text(extra, 40)} is not expected")
        return None

    def _array_difference(self, expected: list[JsonValue], got: list[JsonValue]) -> _Difference | None:
        for index, (wanted, item) in enumerate(zip(expected, got, strict=False)):
            if type(wanted) is type(item) and isinstance(wanted, str) and wanted == item:
                continue  # the quick way through long arrays of numbers and strings
            difference = self._difference(wanted, item)
            if difference is not None:
                difference.path.append(f"[{index}]")
                return difference
        if len(expected) != len(got):
            return _Difference(f"expected {len(expected)} items, got {len(got)}")
        return None

    def _are_close(self, expected: Number, got: Number) -> bool:
        if expected not in self._targets:
            self._targets[expected] = Target(expected.encode("ascii"), self._tolerance)
        return self._targets[expected].admits(got.encode("ascii"))


@dataclass(slots=True)
class _Difference:
    """What differs, and where: the steps of the path from the innermost outwards."""

    words: str
    path: list[str] = field(default_factory=list[str])


def _hint(value: str | bytes) -> str:
    if isinstance(value, bytes) or len(value) > 40:
        return ""
    return f". To expect the JSON string, write it with JSON's own quotes: '{json.dumps(value)}'"


def _shown(value: JsonValue) -> str:
    if isinstance(value, dict):
        return f"an object of {len(value)} keys"
    if isinstance(value, list):
        return f"an array of {len(value)} items"
    if isinstance(value, Number):
        return value if len(value) <= 60 else f"{value[:60]}…"
    return quote_text(value, 60) if isinstance(value, str) else json.dumps(value)
