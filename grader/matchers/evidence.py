"""What every matcher shares: the constant for true, the guard against hostile data, and words for a difference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TypeVar, cast

from grader.core.canonical import sha256_hex
from grader.core.captured import Captured
from grader.core.matching import Match
from grader.core.quoting import quote_around
from grader.core.reasons import ReasonCode

BLANKS = b" \t\n\r\x0b\x0c"
"""White space, for every matcher: space, tab, newline, carriage return, vertical tab, form feed. ASCII only."""

TRUE = Match.true()
"""One value for all that is true: a million right outputs need not make a million of them."""

Judge = TypeVar("Judge", bound=Callable[..., Match])

_CHUNK_BYTES = 1 << 16


def guarded(judge: Judge) -> Judge:
    """Method decorator: whatever goes wrong inside (recursion, memory, our own bug) is undetermined, never false."""

    @functools.wraps(judge)
    def match(self: object, value: object) -> Match:
        try:
            return judge(self, value)
        except Exception as error:  # noqa: BLE001 - a failure of ours must never become a fact about the program
            return failed(f"the matcher failed with {type(error).__name__}")

    return cast("Judge", match)


def failed(detail: str) -> Match:
    """Undetermined, because a matcher cannot process the value."""
    return Match.undetermined(detail, ReasonCode.MATCHER_FAILED)


def truncated(captured: Captured) -> Match:
    """Undetermined, because what decides may stand in the part that was not kept."""
    return Match.undetermined(f"only the first {len(captured.kept)} of {captured.total_bytes} bytes were kept")


def is_one_of(captured: Captured, candidates: Iterable[bytes]) -> bool:
    """Whether the whole of a truncated value is, by length and SHA-256, one of `candidates`."""
    return any(
        len(candidate) == captured.total_bytes and sha256_hex(candidate) == captured.sha256 for candidate in candidates
    )


def first_difference(left: bytes, right: bytes) -> int:
    """The offset of the first byte in which they differ; the length of the shorter if one begins with it."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start : start + _CHUNK_BYTES] == right[start : start + _CHUNK_BYTES]:
        start += _CHUNK_BYTES
    low, high = start, min(start + _CHUNK_BYTES, shorter)
    while low < high:
        middle = (low + high + 1) // 2
        if left[start:middle] == right[start:middle]:
            low = middle
        else:
            high = middle - 1
    return min(low, shorter)


def text_difference(expected: bytes, got: bytes) -> str:
    """The first difference in words: `line 2: expected "b␊", got "b␍␊"`. They must differ."""
    offset = first_difference(expected, got)
    line = expected.count(b"\n", 0, offset) + 1
    line_start = expected.rfind(b"\n", 0, offset) + 1
    return f"line {line}: {line_difference(_line(expected, line_start), _line(got, line_start))}"


def line_difference(expected: bytes, got: bytes) -> str:
    """`expected "b", got "c"`, each cut around the first difference; an empty side is called nothing."""
    offset = first_difference(expected, got)
    return f"expected {shown(expected, offset)}, got {shown(got, offset)}"


def shown(data: bytes, offset: int = 0) -> str:
    """A quoted excerpt of `data` around `offset`, or the word nothing."""
    return quote_around(data, offset, 60) if data != b"" else "nothing"


def _line(data: bytes, start: int) -> bytes:
    """The line that begins at `start`, with its newline."""
    end = data.find(b"\n", start)
    return data[start:] if end < 0 else data[start : end + 1]
