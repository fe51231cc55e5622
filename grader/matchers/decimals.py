"""Decimal numbers compared exactly, as decimals, in time and memory that is linear in how they are written.

A binary double cannot tell 50000000000000000 from 50000000000000001, and 0.1 in it is not 0.1. Here `1e999999999` is
its two parts, mantissa and exponent, and is never written out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer

DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""What counts as a decimal number: ASCII digits; no white space, underscores, hexadecimal, infinity or NaN."""

_PARTS = re.compile(r"([+-]?)([0-9]*)\.?([0-9]*)(?:[eE]([+-]?[0-9]+))?")
# Sums of these are at most some thousand digits long: quicker as they are than taken apart.
_SHORT = re.compile(rb"[+-]?[0-9]{0,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?")
# These fit into a Decimal, which compares (but does not add) them without writing out their exponent.
_COMPARABLE = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,15})?")
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
_ZERO = Decimal(0)
_MAX_TOLERANCE_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may be from the expected one: `absolute`, or `relative` times the expected; either will do."""

    absolute: Decimal | None
    relative: Decimal | None


EXACTLY = Tolerance(None, None)
"""The numbers must be equal."""


def is_decimal(text: bytes) -> bool:
    """Whether the whole of `text` is a decimal number."""
    return DECIMAL.fullmatch(text) is not None


class Target:
    """An expected decimal number and how far another one may be from it (the bound included)."""

    __slots__ = ("_bounds", "_expected", "_tolerance")

    def __init__(self, expected: bytes, tolerance: Tolerance) -> None:
        """`expected` is a decimal number (see `is_decimal`)."""
        self._expected = expected
        self._tolerance = tolerance
        self._bounds = _bounds(expected, tolerance) if _SHORT.fullmatch(expected) is not None else None

    def admits(self, got: bytes) -> bool:
        """Whether `got` is a decimal number that is near enough."""
        if self._bounds is not None and _COMPARABLE.fullmatch(got) is not None:
            low, high = self._bounds
            return low <= Decimal(got.decode("ascii")) <= high
        return is_decimal(got) and _are_close(_parsed(self._expected), _parsed(got), self._tolerance)


def _bounds(expected: bytes, tolerance: Tolerance) -> tuple[Decimal, Decimal]:
    """The least and the largest number that is near enough to a short expected one."""
    value = Decimal(expected.decode("ascii"))
    reach = tolerance.absolute if tolerance.absolute is not None else _ZERO
    if tolerance.relative is not None:
        reach = max(reach, _EXACT.multiply(tolerance.relative, _EXACT.abs(value)))
    return _EXACT.subtract(value, reach), _EXACT.add(value, reach)


@dataclass(frozen=True, slots=True)
class _Number:
    """`mantissa` x 10^`exponent`, both integers. The exponent is a Decimal: it, too, may have a million digits."""

    mantissa: Decimal
    exponent: Decimal

    def negated(self) -> _Number:
        return _Number(self.mantissa.copy_negate(), self.exponent)

    @property
    def top(self) -> Decimal:
        """The exponent of a power of ten that is larger than the number without its sign."""
        return _EXACT.add(self.exponent, Decimal(self.mantissa.adjusted() + 1))


def _parsed(text: bytes) -> _Number:
    parts = _PARTS.fullmatch(text.decode("ascii"))
    if parts is None:
        raise ValueError("not a decimal number")
    sign, whole, fraction, exponent = parts.groups()
    mantissa = Decimal(sign + whole + fraction)
    return _Number(mantissa, _EXACT.subtract(Decimal(exponent or 0), Decimal(len(fraction))))


def _are_close(expected: _Number, got: _Number, tolerance: Tolerance) -> bool:
    sign = _sign_of_sum([got, expected.negated()])
    if sign == 0:
        return True
    gap = [got, expected.negated()] if sign > 0 else [got.negated(), expected]
    if tolerance.absolute is not None and _sign_of_sum([*gap, _whole(tolerance.absolute).negated()]) <= 0:
        return True
    if tolerance.relative is None:
        return False
    relative = _whole(tolerance.relative)
    bound = _Number(
        _EXACT.multiply(relative.mantissa, expected.mantissa.copy_abs()),
        _EXACT.add(relative.exponent, expected.exponent),
    )
    return _sign_of_sum([*gap, bound.negated()]) <= 0


def _whole(value: Decimal) -> _Number:
    sign, digits, exponent = value.as_tuple()
    return _Number(Decimal((sign, digits, 0)), Decimal(exponent))


def _sign_of_sum(terms: list[_Number]) -> int:
    """-1, 0 or 1. Terms are added only where their digits overlap; a gap decides without being written out."""
    rest = sorted(terms, key=lambda term: term.top, reverse=True)
    while len(rest) > 0:
        first = rest.pop(0)
        total, low = first.mantissa, first.exponent
        # What is left is at most 3 x 10^top in all, so it cannot reach a digit two places above its top.
        while len(rest) > 0 and _EXACT.add(rest[0].top, Decimal(2)) > low:
            term = rest.pop(0)
            lower = min(low, term.exponent)
            total = _EXACT.add(_shifted(total, low, lower), _shifted(term.mantissa, term.exponent, lower))
            low = lower
        if total != _ZERO:
            return 1 if total > _ZERO else -1
    return 0


def _shifted(mantissa: Decimal, exponent: Decimal, to: Decimal) -> Decimal:
    """The mantissa for the lower exponent `to`."""
    return _EXACT.scaleb(mantissa, _EXACT.subtract(exponent, to))


def plain_decimal(text: str) -> str:
    """One way to write a decimal number: no zeros or signs that mean nothing, an exponent only where it is shorter.

    Raises ValueError for an exponent of more than 15 digits.
    """
    try:
        value = Decimal(text).normalize(_EXACT)
    except InvalidOperation as error:
        raise ValueError(f"the exponent of {text[:40]} is out of range") from error
    if value == _ZERO:
        return "0"
    if abs(value.adjusted()) > 10**15:
        raise ValueError(f"the exponent of {text[:40]} is out of range")
    exponent = value.as_tuple().exponent
    is_plain = isinstance(exponent, int) and exponent <= 20 and value.adjusted() >= -7
    return format(value, "f") if is_plain else str(value)


def parse_tolerance(value: object) -> Decimal:
    """A tolerance from a number or from its decimal text (YAML reads `1e-6` as text).

    A float stands for its shortest decimal: 0.1 is 0.1. Raises ValueError for anything negative, not finite, not a
    number, or of more than 100 digits.
    """
    text = repr(value) if isinstance(value, float) else str(value)
    is_number = isinstance(value, int | float | str | Decimal)
    if not is_number or not text.isascii() or len(text) > 1000 or not is_decimal(text.encode("ascii")):
        raise ValueError(f"a tolerance is a decimal number such as 1e-6, not {value!r}")
    try:
        tolerance = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"a tolerance of {text} is out of range") from error
    _, digits, exponent = tolerance.as_tuple()
    if len(digits) > _MAX_TOLERANCE_DIGITS or abs(int(exponent)) > 10_000:
        raise ValueError(f"a tolerance of {text[:40]} has too many digits")
    if tolerance < _ZERO:
        raise ValueError(f"a tolerance cannot be negative: {text}")
    return tolerance.normalize(_EXACT) if tolerance != _ZERO else _ZERO


def plain_tolerance(value: Decimal) -> int | float | str:
    """The plain form: a number where that is exact, else text."""
    if value == value.to_integral_value() and value.adjusted() < 15:
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


ToleranceValue = Annotated[Decimal, BeforeValidator(parse_tolerance), PlainSerializer(plain_tolerance)]
"""A pydantic field that holds a tolerance: not negative, exact."""
