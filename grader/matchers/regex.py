"""The regex matcher: RE2 only, so that no output of a program can make a pattern take more than linear time."""

from __future__ import annotations

import functools
import re
from typing import ClassVar, Literal, Protocol, cast

import re2  # pyright: ignore[reportMissingTypeStubs]
from pydantic import field_validator, model_validator

from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, register_matcher
from grader.core.quoting import quote_text
from grader.matchers.evidence import TRUE, failed, guarded, shown, truncated

PATTERN_MEMORY_BYTES = 8 << 20
"""What one compiled pattern and its caches may use."""

MAX_INSTRUCTIONS = 10_000
"""How large a compiled pattern may be."""

MAX_WORK = 1_000_000_000
"""Instructions times bytes: RE2's worst case, which a hostile text can bring about for a large pattern (seconds)."""

# Assertions that look at what follows: a match that ends where the kept part ends may rest on there being no more.
_LOOKS_AHEAD = re.compile(r"\$|\\[zbB]")


class _Span(Protocol):
    def end(self) -> int: ...


class _Pattern(Protocol):
    programsize: int

    def search(self, text: bytes) -> _Span | None: ...


class _Encoding(Protocol):
    LATIN1: object


class _Options(Protocol):
    log_errors: bool
    never_capture: bool
    max_mem: int
    encoding: object
    Encoding: _Encoding


class _Re2(Protocol):
    """What is used of google-re2, which has no types of its own."""

    error: type[Exception]

    def Options(self) -> _Options: ...  # noqa: N802 - the library's name
    def compile(self, pattern: bytes, options: _Options) -> _Pattern: ...


_RE2 = cast("_Re2", re2)


@register_matcher
class Regex(Matcher):
    """An RE2 pattern matches somewhere in the value.

    `^` and `$` are the beginning and the very end of the whole value; `(?m)` makes them those of lines, `(?s)` lets `.`
    match a newline, `(?i)` ignores case. With `encoding: utf-8` (the default) `.` is one character, and bytes that are
    not UTF-8 match nothing but do no harm beside a match (to RE2 a lone surrogate is a character); with `latin-1` every
    byte is one character, so that `\\xff` is the byte FF. Look-around and back-references are not in RE2. Syntax: https://github.com/google/re2/wiki/Syntax
    """

    matcher_name: ClassVar[str] = "regex"
    matcher_argument: ClassVar[str] = "pattern"

    pattern: str
    encoding: Literal["utf-8", "latin-1"] = "utf-8"

    @field_validator("pattern", mode="before")
    @classmethod
    def _text(cls, value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"a pattern is text, not {type(value).__name__} ({value!r}); put it in quotes")
        if value == "":
            raise ValueError("the empty pattern matches every value; say what must be found")
        return value

    @model_validator(mode="after")
    def _compiles(self) -> Regex:
        _compile(self.pattern, self.encoding)
        return self

    @guarded
    def match(self, captured: Captured) -> Match:
        """True if the pattern matches somewhere."""
        pattern = _compile(self.pattern, self.encoding)
        searched = captured.kept[: MAX_WORK // pattern.programsize]
        found = pattern.search(searched)
        if len(searched) == captured.total_bytes:
            if found is not None:
                return TRUE
            return Match.false(f"no match for {quote_text(self.pattern, 60)} in {shown(captured.kept)}")
        if found is not None and (found.end() < len(searched) or _LOOKS_AHEAD.search(self.pattern) is None):
            return TRUE
        if len(searched) < len(captured.kept):
            return failed(
                f"the pattern is too large for a text of {captured.total_bytes} bytes; no match in the first "
                f"{len(searched)}"
            )
        return truncated(captured)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"regex {quote_text(self.pattern, 40)}"


@functools.lru_cache(maxsize=256)
def _compile(pattern: str, encoding: str) -> _Pattern:
    """Raises ValueError, saying why, for a pattern that RE2 does not take."""
    options = _RE2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY_BYTES
    if encoding == "latin-1":
        options.encoding = options.Encoding.LATIN1
    try:
        compiled = _RE2.compile(pattern.encode(encoding), options)
    except UnicodeEncodeError as error:
        raise ValueError(f"the pattern cannot be written in {encoding}: {quote_text(pattern)}") from error
    except _RE2.error as error:
        reason: object = error.args[0]
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"not a pattern that RE2 takes: {quote_text(text)} (it has no look-around and no back-references; "
            "repetitions go up to 1000)"
        ) from error
    if compiled.programsize > MAX_INSTRUCTIONS:
        raise ValueError(
            f"the pattern is too large ({compiled.programsize} instructions, at most {MAX_INSTRUCTIONS}); "
            "use fewer or smaller repetitions"
        )
    return compiled
