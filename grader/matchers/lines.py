"""The lines matcher: the same lines, whatever white space ends them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Literal, cast

from pydantic import field_validator

from grader.core.bytes_field import Bytes, parse_bytes
from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, register_matcher
from grader.core.quoting import quote
from grader.matchers.evidence import BLANKS, TRUE, guarded, is_one_of, line_difference, shown, truncated

_NOT_BLANK = re.compile(rb"[^ \t\n\r\x0b\x0c]")


@register_matcher
class Lines(Matcher):
    """The same lines. White space at the end of a line and blank lines at the end of the text are ignored.

    Lines end at LF, so a CR before it is white space; a lone CR ends no line. `order: any` compares the lines as a
    bag: each as often as expected, and blank lines do not count. `case: ignore` takes ASCII letters for the same.
    The expected lines are a list, or one text.
    """

    matcher_name: ClassVar[str] = "lines"
    matcher_argument: ClassVar[str] = "expected"

    expected: Bytes
    order: Literal["exact", "any"] = "exact"
    case: Literal["exact", "ignore"] = "exact"

    @field_validator("expected", mode="before")
    @classmethod
    def _joined(cls, value: object) -> bytes:
        """One text in its simplest form, so that what means the same has one digest."""
        if isinstance(value, list | tuple):
            lines = [parse_bytes(line) for line in cast("Sequence[object]", value)]
            if any(b"\n" in line for line in lines):
                raise ValueError("a line in the list has a newline in it; make it two lines, or give one text")
        else:
            lines = parse_bytes(value).split(b"\n")
        return b"\n".join(line.rstrip(BLANKS) for line in lines).rstrip(BLANKS)

    @guarded
    def match(self, captured: Captured) -> Match:
        """True for the same lines, as far as the options ask."""
        if captured.is_complete:
            if captured.kept == self.expected:
                return TRUE
        elif is_one_of(captured, self._candidates):
            return TRUE
        return self._match_any_order(captured) if self.order == "any" else self._match_in_order(captured)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"lines {quote(self.expected, 40)}"

    @property
    def _candidates(self) -> tuple[bytes, ...]:
        crlf = self.expected.replace(b"\n", b"\r\n")
        return self.expected, self.expected + b"\n", crlf, crlf + b"\r\n"

    @cached_property
    def _expected_lines(self) -> list[bytes]:
        lines = self._folded(self.expected).split(b"\n") if self.expected != b"" else []
        return [line for line in lines if line != b""] if self.order == "any" else lines

    def _folded(self, data: bytes) -> bytes:
        return data.lower() if self.case == "ignore" else data

    def _match_in_order(self, captured: Captured) -> Match:
        expected = self._expected_lines
        # Never more pieces than were expected, whatever the program wrote: the last piece is all the rest.
        pieces = self._folded(captured.kept).split(b"\n", len(expected))
        rest = pieces.pop() if len(pieces) > len(expected) else None
        cut = pieces.pop() if rest is None and not captured.is_complete else None
        for number, (wanted, piece) in enumerate(zip(expected, pieces, strict=False)):
            if piece.rstrip(BLANKS) != wanted:
                return _false(number, wanted, piece.rstrip(BLANKS))
        if cut is not None and not _may_become(cut, expected[len(pieces)]):
            return _false(len(pieces), expected[len(pieces)], cut)
        if rest is not None and rest.strip(BLANKS) != b"":
            at = len(rest) - len(rest.lstrip(BLANKS))
            extra = rest[rest.rfind(b"\n", 0, at) + 1 :].split(b"\n", 1)[0]
            return _false(len(expected) + rest.count(b"\n", 0, at), b"", extra.rstrip(BLANKS))
        if not captured.is_complete:
            return truncated(captured)
        # The last expected line is not blank, so that one that is missing is always found.
        for index in range(len(pieces), len(expected)):
            if expected[index] != b"":
                return _false(index, expected[index], b"")
        return TRUE

    def _match_any_order(self, captured: Captured) -> Match:
        missing = Counter(self._expected_lines)
        text = self._folded(captured.kept)
        start = number = 0
        # Straight to the next byte that is not blank, so that a million blank lines cost nothing.
        while (found := _NOT_BLANK.search(text, start)) is not None:
            line_start = text.rfind(b"\n", start, found.start()) + 1 or start
            number += text.count(b"\n", start, line_start)
            start = line_start
            end = text.find(b"\n", found.end())
            if end < 0 and not captured.is_complete:
                break
            line = (text[start:end] if end >= 0 else text[start:]).rstrip(BLANKS)
            if missing[line] == 0:
                return Match.false(f"line {number + 1}: {shown(line)} is not expected, or not so often")
            missing[line] -= 1
            start = end if end >= 0 else len(text)
        left = [line for line, count in missing.items() if count > 0]
        if captured.is_complete:
            return TRUE if len(left) == 0 else Match.false(f"expected a line {shown(left[0])}, not found")
        # Here `start` is that of a line which was cut off, or blank to its end.
        cut = text[start:]
        if found is not None and not any(_may_become(cut, line) for line in left):
            return Match.false(f"line {number + 1}: {shown(cut)} is the beginning of no line that is expected")
        return truncated(captured)


def _may_become(cut: bytes, line: bytes) -> bool:
    """Whether a line that begins with `cut` can, after its trailing white space is gone, be `line`."""
    return line.startswith(cut) or cut.rstrip(BLANKS) == line


def _false(index: int, expected: bytes, got: bytes) -> Match:
    return Match.false(f"line {index + 1}: {line_difference(expected, got)}")
