"""Ids and integers of OTLP, exactly: never through float.

Source: opentelemetry-proto, docs/specification.md, "JSON Protobuf Encoding": ids are hex strings (case-insensitive),
64-bit integers are decimal strings, and numbers are accepted on input; an id of all zeros is invalid.
"""

from __future__ import annotations

import base64
import binascii
import re
from decimal import Decimal

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8
MAX_UINT64 = 2**64 - 1
_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}\Z", re.ASCII)
_HEX = {TRACE_ID_BYTES: re.compile(r"[0-9a-fA-F]{32}\Z"), SPAN_ID_BYTES: re.compile(r"[0-9a-fA-F]{16}\Z")}


def hex_id(value: object, size: int) -> tuple[str | None, str | None]:
    """An id as lower-case hex and a warning, or (None, None) for an absent, empty or all-zero id.

    Accepts hex of any case, `0x` before it, and base64 of the right length (both with a warning).
    Raises ValueError for anything else.
    """
    if value is None or value == "":
        return None, None
    if not isinstance(value, str):
        raise ValueError(f"an id that is not a string but {type(value).__name__}")
    text, warning = value, None
    if text[:2] in {"0x", "0X"}:
        text, warning = text[2:], "ids are written with 0x before them"
    if not _HEX[size].match(text):
        text, warning = _from_base64(text, size), "ids are written in base64, not hex"
    text = text.lower()
    return (None if text.strip("0") == "" else text), warning


def id_of_bytes(data: bytes, size: int) -> str | None:
    """An id from its bytes, None when empty or all zero. Raises ValueError for another length."""
    if len(data) not in {0, size}:
        raise ValueError(f"an id of {len(data)} bytes, not {size}")
    return data.hex() if any(data) else None


def _from_base64(text: str, size: int) -> str:
    expected = (size + 2) // 3 * 4
    if len(text) != expected:
        raise ValueError(f"an id of {len(text)} characters, not {2 * size} hex digits")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("an id that is neither hex nor base64") from None
    if len(data) != size:
        raise ValueError(f"an id of {len(data)} bytes, not {size}")
    return data.hex()


def exact_int(value: object) -> int:
    """A 64-bit integer from a number or a decimal string. Raises ValueError for anything else, fractions included."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError(f"not a 64-bit integer: {value!r:.40}")
    if isinstance(value, str) and not _DECIMAL.match(value):
        raise ValueError(f"not a 64-bit integer: {value!r:.40}")
    if isinstance(value, Decimal) and not (value.is_finite() and value.adjusted() < 20 and value == int(value)):
        raise ValueError(f"not a 64-bit integer: {value!r:.40}")
    number = int(value)
    if not -(2**63) <= number <= MAX_UINT64:
        raise ValueError("an integer that does not fit 64 bits")
    return number


def time_ns(value: object) -> int | None:
    """A time in Unix nanoseconds; None when missing or 0. Raises ValueError for anything that is no time."""
    if value is None or value == "":
        return None
    number = exact_int(value)
    if number < 0:
        raise ValueError("a negative time")
    return number or None
