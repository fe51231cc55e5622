"""The tokens matcher: the same words and numbers, whatever white space stands between them."""

from __future__ import annotations

import re
from functools import cached_property
from typing import ClassVar, Literal

from grader.core.bytes_field import Bytes
from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, register_matcher
from grader.core.quoting import quote
from grader.matchers.decimals import Target, Tolerance, ToleranceValue, is_decimal
from grader.matchers.evidence import BLANKS, TRUE, guarded, is_one_of, line_difference, truncated

_NAN = re.compile(rb"[+-]?nan", re.IGNORECASE)
_BEGINNING_OF_DECIMAL = re.compile(rb"[+-]?[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]*)?")
_BLANK_RUN = re.compile(rb"([ \t\n\r\x0b\x0c]+)")


@register_matcher
class Tokens(Matcher):
    """The same tokens. A token is what stands between white space (space, tab, LF, CR, VT, FF; nothing beyond ASCII).

    With `float_absolute` or `float_relative` two tokens that are both decimal numbers are compared as exact decimals:
    `|got - expected| <= absolute` or `<= relative * |expected|`, either will do. NaN then equals nothing, itself
    included; infinities are compared as text. `case: ignore` takes ASCII letters for the same; `spaces: exact` compares
    the white space, too.

    `dialect: icpc` follows the default output validator of the ICPC problem package format (2025-09): case is ignored
    unless `case: exact`, and NaN is compared as text.
    """

    matcher_name: ClassVar[str] = "tokens"
    matcher_argument: ClassVar[str] = "expected"

    expected: Bytes
    float_absolute: ToleranceValue | None = None
    float_relative: ToleranceValue | None = None
    case: Literal["exact", "ignore"] | None = None
    spaces: Literal["any", "exact"] = "any"
    dialect: Literal["default", "icpc"] = "default"

    @guarded
    def match(self, captured: Captured) -> Match:
        """True for the same tokens, as far as the options ask."""
        if not self._expects_nan:
            if captured.is_complete:
                if captured.kept == self.expected:
                    return TRUE
            elif is_one_of(captured, self._candidates):
                return TRUE
        return self._match_exact_spaces(captured) if self.spaces == "exact" else self._match_tokens(captured)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"tokens {quote(self.expected, 40)}"

    @property
    def _candidates(self) -> tuple[bytes, ...]:
        return (self.expected,) if self.spaces == "exact" else (self.expected, self.expected + b"\n")

    @cached_property
    def _tolerance(self) -> Tolerance | None:
        if self.float_absolute is None and self.float_relative is None:
            return None
        return Tolerance(self.float_absolute, self.float_relative)

    @cached_property
    def _ignores_case(self) -> bool:
        return self.case == "ignore" or (self.case is None and self.dialect == "icpc")

    @cached_property
    def _expected_tokens(self) -> list[bytes]:
        return self._folded(self.expected).split()

    @cached_property
    def _targets(self) -> dict[bytes, Target | None]:
        """What was worked out about expected tokens: they come back in every run."""
        return {}

    @cached_property
    def _expects_nan(self) -> bool:
        return any(self._is_nan(token) for token in self._expected_tokens)

    def _folded(self, data: bytes) -> bytes:
        return data.lower() if self._ignores_case else data

    def _is_nan(self, token: bytes) -> bool:
        """Whether a token is a NaN that equals nothing."""
        return self._tolerance is not None and self.dialect == "default" and _NAN.fullmatch(token) is not None

    def _match_tokens(self, captured: Captured) -> Match:
        expected = self._expected_tokens
        # Never more pieces than were expected and one, whatever the program wrote: the last piece is all the rest.
        pieces = self._folded(captured.kept).split(None, len(expected))
        has_extra = len(pieces) > len(expected)
        ends_in_token = captured.kept[-1:].strip() != b""
        cut = pieces.pop() if ends_in_token and not captured.is_complete and not has_extra else None
        if not self._expects_nan and pieces == expected:
            return TRUE if captured.is_complete else truncated(captured)
        for index, (wanted, piece) in enumerate(zip(expected, pieces, strict=False)):
            if not self._are_equal(wanted, piece):
                return self._false(captured, index, wanted, piece)
        if has_extra:
            return self._false(captured, len(expected), b"", pieces[-1].split(None, 1)[0])
        if cut is not None and not self._may_become(cut, expected[len(pieces)]):
            return self._false(captured, len(pieces), expected[len(pieces)], cut)
        if not captured.is_complete:
            return truncated(captured)
        if len(pieces) < len(expected):
            return self._false(captured, len(pieces), expected[len(pieces)], b"")
        return TRUE

    def _match_exact_spaces(self, captured: Captured) -> Match:
        # Tokens stand at even indexes, runs of white space at odd ones; the ends may be empty tokens.
        expected = _BLANK_RUN.split(self._folded(self.expected))
        pieces = _BLANK_RUN.split(self._folded(captured.kept), len(expected) // 2 + 1)
        cut = None
        if not captured.is_complete and len(pieces) <= len(expected):
            cut = pieces.pop()
            if cut == b"" and len(pieces) > 0:
                cut = pieces.pop()
        for index, (wanted, piece) in enumerate(zip(expected, pieces, strict=False)):
            if not self._are_equal(wanted, piece):
                return Match.false(f"token {index // 2 + 1}: {line_difference(wanted, piece)}")
        if cut is not None:
            wanted = expected[len(pieces)]
            if not (self._may_become(cut, wanted) if len(pieces) % 2 == 0 else wanted.startswith(cut)):
                return Match.false(f"token {len(pieces) // 2 + 1}: {line_difference(wanted, cut)}")
            return truncated(captured)
        if len(pieces) != len(expected):
            shorter = min(len(pieces), len(expected))
            wanted = b"".join(expected[shorter : shorter + 2])
            return Match.false(f"token {shorter // 2 + 1}: {line_difference(wanted, b''.join(pieces[shorter:]))}")
        return TRUE

    def _are_equal(self, expected: bytes, got: bytes) -> bool:
        if expected == got:
            return not self._is_nan(expected)
        target = self._target(expected)
        return target is not None and target.admits(got)

    def _target(self, token: bytes) -> Target | None:
        """The number that an expected token is, or None for one that is compared as text."""
        if self._tolerance is None:
            return None
        if token not in self._targets:
            self._targets[token] = Target(token, self._tolerance) if is_decimal(token) else None
        return self._targets[token]

    def _may_become(self, cut: bytes, token: bytes) -> bool:
        """Whether a token that begins with `cut` can be equal to the expected `token`."""
        if token.startswith(cut):
            return True
        return self._target(token) is not None and _BEGINNING_OF_DECIMAL.fullmatch(cut) is not None

    def _false(self, captured: Captured, index: int, expected: bytes, got: bytes) -> Match:
        line = _line_of_token(captured.kept, index)
        return Match.false(f"line {line}, token {index + 1}: {self._difference(expected, got)}")

    def _difference(self, expected: bytes, got: bytes) -> str:
        if self._is_nan(expected):
            return f"expected {quote(expected, 20)}, which equals nothing"
        return line_difference(expected, got)


def _line_of_token(data: bytes, index: int) -> int:
    """The line, from 1, of the token with this index; the last line if there are fewer tokens."""
    rest = data.split(None, index)[index:]
    end = len(data) - len(rest[0]) if len(rest) > 0 else len(data.rstrip(BLANKS))
    return data.count(b"\n", 0, end) + 1
