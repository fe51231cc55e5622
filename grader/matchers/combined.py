"""Matchers over matchers, by Kleene's three-valued logic: all_of, any_of, not."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from pydantic import Field

from grader.core import tri
from grader.core.captured import Captured
from grader.core.matching import AnyMatcher, Match, Matcher, register_matcher
from grader.core.tri import Tri
from grader.matchers.evidence import TRUE, guarded


class _Combined(Matcher):
    """What the three share: a value is judged by every part, bytes as bytes and JSON as JSON."""

    @guarded
    def match(self, captured: Captured) -> Match:
        """Judge bytes by every part."""
        return self._combine(lambda part: part.match(captured))

    @guarded
    def match_json(self, value: object) -> Match:
        """Judge a JSON value by every part, typed where the part is typed."""
        return self._combine(lambda part: part.match_json(value))

    def _combine(self, judge: Callable[[Matcher], Match]) -> Match:
        raise NotImplementedError


@register_matcher
class MatchesAll(_Combined):
    """False if any part is false, else undetermined if any is, else true. At least one part."""

    matcher_name: ClassVar[str] = "all_of"
    matcher_argument: ClassVar[str] = "matchers"

    matchers: tuple[AnyMatcher, ...] = Field(min_length=1)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return "all of: " + "; ".join(part.describe() for part in self.matchers)

    def _combine(self, judge: Callable[[Matcher], Match]) -> Match:
        found = [judge(part) for part in self.matchers]
        value = tri.all_of(match.value for match in found)
        return TRUE if value is Tri.TRUE else _joined(value, [match for match in found if match.value is value])


@register_matcher
class MatchesAny(_Combined):
    """True if any part is true, else undetermined if any is, else false. At least one part."""

    matcher_name: ClassVar[str] = "any_of"
    matcher_argument: ClassVar[str] = "matchers"

    matchers: tuple[AnyMatcher, ...] = Field(min_length=1)

    def describe(self) -> str:
        """What it expects, in a few words."""
        return "any of: " + "; ".join(part.describe() for part in self.matchers)

    def _combine(self, judge: Callable[[Matcher], Match]) -> Match:
        found = [judge(part) for part in self.matchers]
        value = tri.any_of(match.value for match in found)
        return TRUE if value is Tri.TRUE else _joined(value, [match for match in found if match.value is value])


@register_matcher
class MatchesNot(_Combined):
    """True if the part is false, false if it is true; undetermined stays undetermined."""

    matcher_name: ClassVar[str] = "not"
    matcher_argument: ClassVar[str] = "matcher"

    matcher: AnyMatcher

    def describe(self) -> str:
        """What it expects, in a few words."""
        return f"not: {self.matcher.describe()}"

    def _combine(self, judge: Callable[[Matcher], Match]) -> Match:
        found = judge(self.matcher)
        if found.value is Tri.UNDETERMINED:
            return found
        return TRUE if found.value is Tri.FALSE else Match.false(f"it must not match: {self.matcher.describe()}")


def _joined(value: Tri, parts: list[Match]) -> Match:
    """A verdict with the words of the parts that brought it about, and the first one's code."""
    return Match(value, "; ".join(dict.fromkeys(part.detail for part in parts)), parts[0].code)
