"""The arguments of a tool call as evidence: recorded, not recorded (and why), or recorded and not parsable."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.core.canonical import sha256_hex

MAX_DEPTH = 100
MAX_DIGITS = 4300


class ArgumentState(StrEnum):
    """What is known of a call's arguments."""

    RECORDED = "recorded"
    NOT_RECORDED = "not_recorded"
    UNPARSABLE = "unparsable"


class WhyNotRecorded(StrEnum):
    """Why arguments are not recorded."""

    ABSENT = "absent"
    REDACTED = "redacted"
    TRUNCATED = "truncated"
    CONFLICTING = "conflicting"
    NOT_RETAINED = "not_retained"

    @property
    def text(self) -> str:
        """The reason in words, to follow "its arguments were not recorded: "."""
        return _WHY_TEXTS[self]


_WHY_TEXTS = {
    WhyNotRecorded.ABSENT: "the trace has none for this call",
    WhyNotRecorded.REDACTED: "they were redacted",
    WhyNotRecorded.TRUNCATED: "they were too long and were cut",
    WhyNotRecorded.CONFLICTING: "the records of this call disagree about them",
    WhyNotRecorded.NOT_RETAINED: "this trace source keeps no arguments",
}


class NotKept(BaseModel):
    """One argument of a recorded object whose value was not kept; length (UTF-8) and SHA-256 are of its JSON text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    why: WhyNotRecorded
    total_bytes: int = Field(ge=0)
    sha256: str


@dataclass(frozen=True, slots=True)
class Argument:
    """What is known of one argument by name.

    `state` recorded: `value` is its JSON value, or `is_absent` says that the recorded object has no such argument
    (a miss; `null` is a value). Not recorded: `why`. Unparsable: nothing is known.
    """

    state: ArgumentState
    value: object = None
    is_absent: bool = False
    why: WhyNotRecorded | None = None


class ToolArguments(BaseModel):
    """The arguments of one call.

    `text` is, when recorded, the compact JSON text of the object with sorted keys and numbers as they were written,
    without the arguments listed in `not_kept`; when unparsable, the text that was found, maybe cut; when truncated as
    a whole, its kept beginning. `total_bytes` (UTF-8) and `sha256` (64 hex digits) are those of the whole text, after
    redaction and before cutting. `lenient` is true when the text was no JSON and was read as a Python literal.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: ArgumentState
    why: WhyNotRecorded | None = None
    text: str | None = None
    total_bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = None
    not_kept: tuple[NotKept, ...] = ()
    lenient: bool = False
    detail: str = ""

    @model_validator(mode="after")
    def _fields_fit_the_state(self) -> ToolArguments:
        if (self.why is not None) != (self.state is ArgumentState.NOT_RECORDED):
            raise ValueError("`why` is given exactly when arguments are not recorded")
        if self.state is ArgumentState.RECORDED and not isinstance(_parse_or_none(self.text), dict):
            raise ValueError("recorded arguments must be the text of a JSON object")
        return self

    @property
    def is_recorded(self) -> bool:
        """Whether the object is there; only then can an argument match or miss (but see `not_kept`)."""
        return self.state is ArgumentState.RECORDED

    def as_object(self) -> dict[str, object]:
        """The recorded object; numbers with a point or exponent are `Decimal`, exact as written.

        Raises ValueError when the arguments are not recorded.
        """
        value = _parse_or_none(self.text) if self.is_recorded else None
        if not isinstance(value, dict):
            raise ValueError("the arguments are not recorded")
        return cast("dict[str, object]", value)

    def argument(self, name: str) -> Argument:
        """What is known of the argument `name`."""
        if not self.is_recorded:
            return Argument(self.state, why=self.why)
        for item in self.not_kept:
            if item.name == name:
                return Argument(ArgumentState.NOT_RECORDED, why=item.why)
        value = self.as_object()
        return Argument(ArgumentState.RECORDED, value=value.get(name), is_absent=name not in value)


NOT_RECORDED = ToolArguments(state=ArgumentState.NOT_RECORDED, why=WhyNotRecorded.ABSENT)
NOT_RETAINED = ToolArguments(state=ArgumentState.NOT_RECORDED, why=WhyNotRecorded.NOT_RETAINED)
REDACTED = ToolArguments(state=ArgumentState.NOT_RECORDED, why=WhyNotRecorded.REDACTED)
CONFLICTING = ToolArguments(state=ArgumentState.NOT_RECORDED, why=WhyNotRecorded.CONFLICTING)

Redactor = Callable[[str, object], object]
"""Gets (argument name, value) and gives the value to keep, or `REMOVED`: then the arguments count as redacted."""

REMOVED: Literal["__REDACTED__"] = "__REDACTED__"
"""What a redactor returns for a value it takes out; also what OpenInference writes for hidden content."""


@dataclass(frozen=True, slots=True)
class ContentRules:
    """What of a call's content is kept: whether at all, how many bytes at most, and a redactor run before hashing."""

    retain_content: bool = True
    max_argument_bytes: int = 64 * 1024
    redactor: Redactor | None = None


_RECORDED_FIELDS = {"state", "text", "total_bytes", "sha256", "not_kept", "lenient"}
"""Shared by all recorded arguments: a set for each would be the larger part of them."""


def recorded_arguments(value: object, rules: ContentRules, *, lenient: bool = False) -> ToolArguments:
    """Arguments from a JSON object that was found: redacted first, then hashed, then cut (largest arguments first).

    Anything that is not an object, is nested deeper than 100 or is no JSON value is unparsable.
    """
    if not rules.retain_content:
        return NOT_RETAINED
    if not isinstance(value, dict):
        return unparsable_arguments(str(value), rules, detail=f"not an object but {_json_type(value)}")
    try:
        entries, redacted = _redact(cast("dict[str, object]", value), rules.redactor)
        text = compact_json(entries)
        whole = text.encode("utf-8")
        not_kept: list[NotKept] = []
        if redacted or len(whole) > rules.max_argument_bytes:
            entries, not_kept = _bound(entries, redacted, rules.max_argument_bytes)
            text = compact_json(entries)
    except ValueError as error:
        return ToolArguments(state=ArgumentState.UNPARSABLE, detail=str(error))
    total, sha256 = len(whole), sha256_hex(whole)
    if len(not_kept) > 0 and len(text) + sum(len(item.name) for item in not_kept) > rules.max_argument_bytes:
        kept = whole[: max(0, rules.max_argument_bytes)].decode("utf-8", "ignore")
        why = WhyNotRecorded.TRUNCATED
        return ToolArguments(state=ArgumentState.NOT_RECORDED, why=why, text=kept, total_bytes=total, sha256=sha256)
    # What was just written need not be parsed again: a trace may hold a hundred thousand calls.
    return ToolArguments.model_construct(
        _RECORDED_FIELDS,
        state=ArgumentState.RECORDED,
        text=text,
        total_bytes=total,
        sha256=sha256,
        not_kept=tuple(sorted(not_kept, key=lambda item: item.name)),
        lenient=lenient,
    )


def without_text(arguments: ToolArguments) -> ToolArguments:
    """The same arguments when there is no room for their text: truncated, with length and digest."""
    if arguments.text is None:
        return arguments
    return ToolArguments(
        state=ArgumentState.NOT_RECORDED,
        why=WhyNotRecorded.TRUNCATED,
        total_bytes=arguments.total_bytes,
        sha256=arguments.sha256,
    )


def unparsable_arguments(text: str, rules: ContentRules, *, detail: str) -> ToolArguments:
    """Arguments that are there and cannot be read as an object. With a redactor their text is not kept."""
    if not rules.retain_content:
        return NOT_RETAINED
    data = text.encode("utf-8", "replace")
    kept = None if rules.redactor is not None else data[: max(0, rules.max_argument_bytes)].decode("utf-8", "ignore")
    return ToolArguments(
        state=ArgumentState.UNPARSABLE, text=kept, total_bytes=len(data), sha256=sha256_hex(data), detail=detail
    )


def _redact(value: dict[str, object], redactor: Redactor | None) -> tuple[dict[str, object], set[str]]:
    if redactor is not None:
        value = {name: redactor(name, item) for name, item in value.items()}
    return value, {name for name, item in value.items() if isinstance(item, str) and item == REMOVED}


def _bound(entries: dict[str, object], redacted: set[str], limit: int) -> tuple[dict[str, object], list[NotKept]]:
    """The arguments that are kept, and those that are not: redacted ones, then the largest until the rest fits."""
    texts = {name: compact_json(item).encode("utf-8") for name, item in entries.items()}
    size = sum(len(name.encode("utf-8", "replace")) + len(text) + 4 for name, text in texts.items()) + 2
    not_kept: list[NotKept] = []
    for name in sorted(texts, key=lambda name: (name not in redacted, -len(texts[name]), name)):
        if name not in redacted and size <= limit:
            break
        why = WhyNotRecorded.REDACTED if name in redacted else WhyNotRecorded.TRUNCATED
        not_kept.append(NotKept(name=name, why=why, total_bytes=len(texts[name]), sha256=sha256_hex(texts[name])))
        size -= len(texts[name])
    gone = {item.name for item in not_kept}
    return {name: item for name, item in entries.items() if name not in gone}, not_kept


def combined(first: ToolArguments, second: ToolArguments) -> ToolArguments:
    """What two records of one call say together; symmetric. Recorded wins over not recorded; two that differ conflict.

    A record that says they cannot be parsed, or disagree, is never outvoted by one that merely has none.
    """
    ranked = sorted((first, second), key=lambda item: (_rank(item), item.text or "", item.model_dump_json()))
    best, other = ranked
    if best.is_recorded and other.is_recorded and best.sha256 != other.sha256:
        return CONFLICTING
    if WhyNotRecorded.CONFLICTING in {best.why, other.why}:
        return CONFLICTING
    return best


def differ(first: ToolArguments, second: ToolArguments) -> bool:
    """Whether both are recorded and not the same."""
    return first.is_recorded and second.is_recorded and first.sha256 != second.sha256


def _rank(item: ToolArguments) -> int:
    if item.is_recorded:
        return 1 if item.lenient else 0
    if item.state is ArgumentState.UNPARSABLE:
        return 3
    return {WhyNotRecorded.TRUNCATED: 2, WhyNotRecorded.ABSENT: 5}.get(item.why or WhyNotRecorded.ABSENT, 4)


def parse_json(text: str) -> object:
    """The value of a JSON text, exactly: integers of any size up to 4,300 digits, other numbers as `Decimal`.

    Raises ValueError for what is no JSON, NaN, infinities, doubled keys, and nesting or numbers beyond the limits.
    """
    try:
        return json.loads(
            text,
            parse_float=_exact_number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_without_doubled_keys,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def compact_json(value: object) -> str:
    """The compact JSON text of a value, keys sorted by code point, numbers as they are written, never via float.

    Raises ValueError for values that JSON does not have, and for nesting deeper than 100.
    """
    return _write(value, MAX_DEPTH)


def _write(value: object, depth: int) -> str:
    if depth < 0:
        raise ValueError(f"nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        entries = cast("dict[object, object]", value)
        if not all(isinstance(key, str) for key in entries):
            raise ValueError("a key that is not a string")
        named = cast("dict[str, object]", value)
        return "{" + ",".join(f"{_text(key)}:{_write(named[key], depth - 1)}" for key in sorted(named)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_write(item, depth - 1) for item in cast("list[object]", value)) + "]"
    return _write_scalar(value)


def _write_scalar(value: object) -> str:
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal) and Decimal(value).is_finite():
        return str(value)
    raise ValueError(f"{_json_type(value)} is no JSON value")


def _text(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return json.dumps(value, ensure_ascii=False)


def _parse_or_none(text: str | None) -> object:
    try:
        return None if text is None else parse_json(text)
    except ValueError:
        return None


def _exact_number(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        # An exponent beyond what a Decimal can have, which is no ValueError in Python.
        raise ValueError("a number with too many digits") from None
    if number.is_finite() and abs(number.adjusted()) <= MAX_DIGITS and len(text) <= MAX_DIGITS:
        return number
    raise ValueError("a number with too many digits")


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON value")


def _without_doubled_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a doubled key")
    return value


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "a boolean"), (str, "a string"), (dict, "an object"), (list, "a list")):
        if isinstance(value, kind):
            return name
    return "a number" if isinstance(value, int | float | Decimal) else type(value).__name__
