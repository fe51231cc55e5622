"""Matchers that compare bytes as they are: equals, contains, digest."""

from __future__ import annotations

import string
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import field_validator

from grader.core.bytes_field import Bytes
from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, register_matcher
from grader.core.quoting import quote
from grader.matchers.evidence import TRUE, guarded, is_one_of, shown, text_difference, truncated


@register_matcher
class Equals(Matcher):
    """The same bytes.

    `newlines: any` takes CRLF and LF for the same; `trailing_newline: optional` lets one final newline be absent or
    present. A truncated value is decided by its length and SHA-256, or by a difference in the part that was kept.
    """

    matcher_name: ClassVar[str] = "equals"
    matcher_argument: ClassVar[str] = "expected"

    expected: Bytes
    newlines: Literal["exact", "any"] = "exact"
    trailing_newline: Literal["exact", "optional"] = "exact"

    @guarded
    def match(self, captured: Captured) -> Match:
        """True for the same bytes, as far as the options ask."""
        kept = captured.kept
        if len(kept) == captured.total_bytes:
            if kept == self.expected:
                return TRUE
            return self._match_complete(kept)
        return self._match_truncated(captured)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"equals {quote(self.expected, 40)}"

    def _match_complete(self, kept: bytes) -> Match:
        if self.newlines == "exact" and self.trailing_newline == "exact":
            return Match.false(text_difference(self.expected, kept))
        got = self._normal(kept)
        expected = self._normal(self.expected)
        if got == expected:
            return TRUE
        return Match.false(text_difference(expected, got))

    def _match_truncated(self, captured: Captured) -> Match:
        if is_one_of(captured, self._candidates):
            return TRUE
        kept = captured.kept
        if self.newlines == "any":
            # A carriage return at the cut may be half of a newline.
            kept = _one_newline(kept.removesuffix(b"\r"))
        longest = self._equals[-1]
        if not longest.startswith(kept):
            return Match.false(text_difference(longest, kept))
        low, high = self._lengths
        if not low <= captured.total_bytes <= high:
            wanted = str(low) if low == high else f"{low} to {high}"
            return Match.false(f"expected {wanted} bytes, got {captured.total_bytes}")
        if self.newlines == "any":
            # Some newlines may be CRLF and some LF: too many combinations to try the digest of each.
            return truncated(captured)
        return Match.false(
            f"the first {len(kept)} bytes are as expected, but the SHA-256 of all {captured.total_bytes} differs: "
            "the difference stands in the part that was not kept"
        )

    @cached_property
    def _equals(self) -> tuple[bytes, ...]:
        """All texts that are equal, after `newlines: any` was applied to them; the longest last."""
        text = _one_newline(self.expected) if self.newlines == "any" else self.expected
        if self.trailing_newline == "exact":
            return (text,)
        body = text.removesuffix(b"\n")
        # A text that ends in a newline would lose that one, too: only with one more newline is it equal.
        return (body + b"\n",) if body.endswith(b"\n") else (body, body + b"\n")

    @property
    def _candidates(self) -> tuple[bytes, ...]:
        """Byte strings that are equal: with `newlines: exact` all of them, else the likely ones."""
        if self.newlines == "exact":
            return self._equals
        few = (text.replace(b"\r\n", b"\r\r\n") for text in self._equals)
        return (self.expected, *few, *(text.replace(b"\n", b"\r\n") for text in self._equals))

    @property
    def _lengths(self) -> tuple[int, int]:
        """The least and the largest length of a byte string that is equal."""
        low = min(len(text) for text in self._equals)
        high = len(self._equals[-1])
        if self.newlines == "any":
            low += self._equals[0].count(b"\r\n")
            high += self._equals[-1].count(b"\n")
        return low, high

    def _normal(self, data: bytes) -> bytes:
        if self.newlines == "any":
            data = _one_newline(data)
        return data.removesuffix(b"\n") if self.trailing_newline == "optional" else data


@register_matcher
class Contains(Matcher):
    """These bytes stand somewhere in the value. Found in the kept part of a truncated value is found."""

    matcher_name: ClassVar[str] = "contains"
    matcher_argument: ClassVar[str] = "expected"

    expected: Bytes

    @field_validator("expected")
    @classmethod
    def _not_empty(cls, expected: bytes) -> bytes:
        if expected == b"":
            raise ValueError("every value contains the empty text; say what must be found")
        return expected

    @guarded
    def match(self, captured: Captured) -> Match:
        """True if the bytes are found."""
        if self.expected in captured.kept:
            return TRUE
        if captured.is_complete:
            return Match.false(f"{quote(self.expected, 60)} not found in {shown(captured.kept)}")
        if len(self.expected) > captured.total_bytes:
            return Match.false(f"expected to find {len(self.expected)} bytes in only {captured.total_bytes}")
        return truncated(captured)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"contains {quote(self.expected, 40)}"


@register_matcher
class Digest(Matcher):
    """The SHA-256 of the whole value, in hex. Decides truncated values too: the digest is always of all bytes."""

    matcher_name: ClassVar[str] = "digest"
    matcher_argument: ClassVar[str] = "sha256"

    sha256: str

    @field_validator("sha256", mode="before")
    @classmethod
    def _hex(cls, value: object) -> object:
        if not isinstance(value, str) or len(value) != 64 or not set(value) <= set(string.hexdigits):
            raise ValueError("a digest is a SHA-256 written as 64 hex digits, in quotes")
        return value.lower()

    @guarded
    def match(self, captured: Captured) -> Match:
        """True if the SHA-256 is the expected one."""
        if captured.sha256 == self.sha256:
            return TRUE
        return Match.false(f"expected SHA-256 {self.sha256}, got {captured.sha256} ({captured.total_bytes} bytes)")

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"SHA-256 {self.sha256[:12]}…"


def _one_newline(data: bytes) -> bytes:
    """CRLF written as LF."""
    return data.replace(b"\r\n", b"\n")
