"""Three-valued truth: true, false, or not settled by the evidence.

The tables are Kleene's strong logic of indeterminacy (S. C. Kleene, Introduction to Metamathematics, 1952, §64).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NoReturn


class Tri(Enum):
    """TRUE, FALSE or UNDETERMINED. `bool()` of it raises: `if verdict:` would hide *undetermined*."""

    TRUE = "true"
    FALSE = "false"
    UNDETERMINED = "undetermined"

    @classmethod
    def of(cls, fact: bool) -> Tri:
        """TRUE or FALSE from a fact that is known."""
        return cls.TRUE if fact else cls.FALSE

    def negated(self) -> Tri:
        """Kleene NOT: undetermined stays undetermined."""
        if self is Tri.TRUE:
            return Tri.FALSE
        if self is Tri.FALSE:
            return Tri.TRUE
        return Tri.UNDETERMINED

    def __bool__(self) -> NoReturn:
        raise TypeError("a Tri has three values: compare it with Tri.TRUE, Tri.FALSE or Tri.UNDETERMINED")

    def __str__(self) -> str:
        return self.value


def all_of(values: Iterable[Tri]) -> Tri:
    """Kleene AND: false if any is false, else undetermined if any is, else true.

    Raises ValueError for no values at all: AND over nothing would be a verdict without evidence.
    """
    return _fold(values, decisive=Tri.FALSE, otherwise=Tri.TRUE)


def any_of(values: Iterable[Tri]) -> Tri:
    """Kleene OR: true if any is true, else undetermined if any is, else false. Raises ValueError for no values."""
    return _fold(values, decisive=Tri.TRUE, otherwise=Tri.FALSE)


def _fold(values: Iterable[Tri], *, decisive: Tri, otherwise: Tri) -> Tri:
    result: Tri | None = None
    for value in values:
        if value is decisive:
            return decisive
        if result is None or value is Tri.UNDETERMINED:
            result = value
    if result is None:
        raise ValueError("nothing to combine: a verdict over no parts does not exist")
    return Tri.UNDETERMINED if result is Tri.UNDETERMINED else otherwise
