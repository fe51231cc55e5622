"""Durations as people write them, such as `5ms`, kept as integer nanoseconds."""

from __future__ import annotations

import re
from decimal import Decimal

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}
_WRITTEN = re.compile(r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(ns|us|µs|μs|ms|s|min)?\s*")
_LONGEST_NS = 2**63 - 1
_EXAMPLE = "a duration such as '5ms', '250 us' or '1.5s'"


def parse_duration_ns(value: object) -> int:
    """Nanoseconds from text with a unit (ns, us, ms, s, min), or from a whole number, which is nanoseconds already.

    Exact: never through float. Raises ValueError for a text without a unit (but `0`), for a part of a nanosecond, and
    for negative or absurd durations.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected {_EXAMPLE}, not {value!r}")
    if isinstance(value, str):
        found = _WRITTEN.fullmatch(value)
        if found is None:
            raise ValueError(f"expected {_EXAMPLE}, not {value[:60]!r}")
        number, unit = Decimal(found[1]), found[2]
        if unit is None and number != 0:
            raise ValueError(f"{value[:60]!r} has no unit; write {_EXAMPLE}")
        exact = number * _UNITS[unit] if unit is not None else number
        if exact != exact.to_integral_value():
            raise ValueError(f"{value[:60]!r} is not a whole number of nanoseconds")
        value = int(exact)
    if value < 0:
        raise ValueError("a duration must not be negative")
    if value > _LONGEST_NS:
        raise ValueError("a duration of more than 292 years")
    return value
