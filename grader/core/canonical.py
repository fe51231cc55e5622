"""Canonical JSON and digests: the same value gives the same bytes on every machine.

Keys are sorted by code point, no white space, UTF-8 without escapes beyond those JSON demands. Numbers that are equal
are written alike: 2.0 is written 2, so a limit of `2` and of `2.0` have one digest. NaN and infinities are refused.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import cast


def canonical_json(value: object) -> bytes:
    """The one byte string that stands for `value` (None, bool, int, float, Decimal, str, lists, string-keyed maps).

    Raises TypeError for any other type, ValueError for NaN, infinities, and strings that are not valid Unicode.
    """
    text = json.dumps(_normal(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8")


def sha256_hex(data: bytes) -> str:
    """The SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def digest(value: object) -> str:
    """The SHA-256 (hex) of the canonical JSON of `value`."""
    return sha256_hex(canonical_json(value))


class Normal(dict[str, object]):
    """A map whose values are in their canonical form already: for what stands in many digests."""


def normal(value: Mapping[str, object]) -> Normal:
    """The map in canonical form, to be part of further ones. Raises what `canonical_json` raises."""
    return Normal(cast("dict[str, object]", _normal(value)))


_AS_THEY_ARE = frozenset({str, int, bool, type(None), Normal})


def _normal(value: object) -> object:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict or isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        for key in entries:
            if not isinstance(key, str):
                raise TypeError("a map with keys other than strings cannot be written as canonical JSON")
        return {key: _normal(item) for key, item in entries.items()}
    if isinstance(value, list | tuple):
        return [_normal(item) for item in cast("Sequence[object]", value)]
    if isinstance(value, float | Decimal):
        return _number(value)
    if isinstance(value, str | int):  # subclasses, such as enumerations of strings
        return value
    raise TypeError(f"{kind.__name__} cannot be written as canonical JSON")


def _number(value: float | Decimal) -> int | float:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be written as canonical JSON")
    whole = int(value)
    if value == whole:
        return whole
    number = float(value)
    if isinstance(value, Decimal) and Decimal(repr(number)) != value:
        raise ValueError(f"{value} has more digits than canonical JSON can carry")
    return number
