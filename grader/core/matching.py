"""What a matcher is, and the registry that turns `{equals: "..."}` into one.

A matcher looks at one value (an output stream, a file, an argument) and says true, false or undetermined, with the
place of the first difference. It lives a tier below conditions: every condition composes the same matchers. The
matchers themselves are in `grader.matchers`, which registers them here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from grader.core.canonical import canonical_json
from grader.core.captured import Captured
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri


@dataclass(frozen=True, slots=True)
class Match:
    """What a matcher says of one value.

    `detail` says in words why it is not true, with the place ('line 2: expected "b␊", got "b␍␊"'); anything taken
    from the program in it is already quoted. `code` is set when the value is undetermined, and says why.
    """

    value: Tri
    detail: str = ""
    code: ReasonCode | None = None

    @classmethod
    def true(cls) -> Match:
        """The value is as expected."""
        return cls(value=Tri.TRUE)

    @classmethod
    def false(cls, detail: str) -> Match:
        """The value is not as expected, and `detail` says where."""
        return cls(value=Tri.FALSE, detail=detail)

    @classmethod
    def undetermined(cls, detail: str, code: ReasonCode = ReasonCode.EVIDENCE_TRUNCATED) -> Match:
        """The kept evidence cannot settle it."""
        return cls(value=Tri.UNDETERMINED, detail=detail, code=code)


class Matcher(BaseModel):
    """Base of all matchers: frozen, comparable, and written as `{NAME: ARGUMENT, OPTION: VALUE, ...}`.

    A subclass sets `matcher_name` (the key in YAML) and `matcher_argument` (the field that the key's value fills; its
    other fields are options beside it), and implements `match`. Options that have their default are left out when it
    is written, so that a matcher's digest does not change when an option is added.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    matcher_name: ClassVar[str] = ""
    matcher_argument: ClassVar[str] = ""

    @abstractmethod
    def match(self, captured: Captured) -> Match:
        """Judge bytes. Must not raise for any bytes: what it cannot process is undetermined, never false."""

    def match_json(self, value: object) -> Match:
        """Judge a JSON value (an argument of a tool call): a string as it is, anything else as compact JSON text."""
        try:
            data = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else canonical_json(value)
        except (ValueError, TypeError, RecursionError) as error:
            # NaN, a lone surrogate deep inside, nesting without end: no JSON text, so nothing to compare.
            return Match.undetermined(
                f"the value cannot be written as JSON ({type(error).__name__})", ReasonCode.MATCHER_FAILED
            )
        return self.match(Captured.whole(data))

    def describe(self) -> str:
        """What it expects, in a few words, for reports."""
        return f"{self.matcher_name} {getattr(self, self.matcher_argument)!r}"

    def to_plain(self) -> dict[str, object]:
        """The matcher as plain data, the inverse of `parse_matcher`, with default options left out."""
        plain = cast("dict[str, object]", self.model_dump(mode="json", exclude_defaults=True))
        if self.matcher_argument not in plain:  # it is what is left out by default
            plain |= self.model_dump(mode="json", include={self.matcher_argument})
        return {self.matcher_name: plain.pop(self.matcher_argument), **plain}


M = TypeVar("M", bound=Matcher)

_REGISTRY: dict[str, type[Matcher]] = {}


def register_matcher(cls: type[M]) -> type[M]:
    """Class decorator: make a matcher known under its `matcher_name`. Raises ValueError for a name already taken."""
    if cls.matcher_name in _REGISTRY:
        raise ValueError(f"two matchers are named {cls.matcher_name!r}")
    _REGISTRY[cls.matcher_name] = cls
    return cls


def matcher_names() -> tuple[str, ...]:
    """The names of all registered matchers, sorted."""
    return tuple(sorted(_REGISTRY))


def matcher_class(name: str) -> type[Matcher] | None:
    """The class registered under a `matcher_name`, or None."""
    return _REGISTRY.get(name)


def parse_matcher(value: object) -> Matcher:
    """A matcher from plain data such as `{"equals": "a"}`, or the matcher itself.

    Raises ValueError that says what is wrong.
    """
    if isinstance(value, Matcher):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a matcher is a mapping such as {{equals: ...}}, not {type(value).__name__}")
    entries = cast("Mapping[str, Any]", value)
    named = [key for key in entries if key in _REGISTRY]
    if len(named) != 1:
        known = ", ".join(matcher_names())
        found = ", ".join(repr(key) for key in entries) or "nothing"
        raise ValueError(f"expected exactly one matcher of {known}; found {found}")
    cls = _REGISTRY[named[0]]
    options = {key: item for key, item in entries.items() if key != named[0]}
    if cls.matcher_argument in options:
        raise ValueError(f"unknown option {cls.matcher_argument!r} of matcher {cls.matcher_name}")
    return cls.model_validate({cls.matcher_argument: entries[named[0]], **options})


AnyMatcher = Annotated[Matcher, BeforeValidator(parse_matcher), PlainSerializer(lambda matcher: matcher.to_plain())]
"""A field that holds any registered matcher, parsed from and written to its plain form."""
