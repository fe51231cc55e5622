"""What a judge is asked: a dimension is one question, a preset a named set of them.

A dimension names its *bad* value: the answer that is a violation. It wins a tie, and it needs a citation.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from grader.core.canonical import digest
from grader.core.values import Value

MOST_DIMENSIONS = 50
NOT_APPLICABLE = "not_applicable"
"""The answer of a judge to a question that does not apply."""
TRUE, FALSE = "true", "false"
_RESERVED = frozenset({NOT_APPLICABLE, TRUE, FALSE})


def _is_text(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {type(value).__name__}; put it in quotes")
    if value.strip() == "":
        raise ValueError("the text must not be empty")
    return value.strip()


def _is_flag(value: object) -> object:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


Identifier = Annotated[str, BeforeValidator(_is_text), Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Sentence = Annotated[str, BeforeValidator(_is_text), Field(max_length=4_000)]
Flag = Annotated[bool, BeforeValidator(_is_flag)]


class Grade(BaseModel):
    """One grade of a graded dimension."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Identifier
    meaning: Sentence


class Category(BaseModel):
    """A kind of answer, voted on among the samples that agree with the winning value.

    `bad` says to which value it belongs; None: to either.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Identifier
    meaning: Sentence
    bad: Flag | None = None


class Dimension(Value):
    """One question to a judge.

    Boolean without `grades`: `bad` is the answer that is a violation. Graded: `grades` from the best to the worst, and
    `violation_at` is the first that is a violation. `may_not_apply` allows the answer that it does not apply.
    """

    name: Identifier
    question: Sentence
    guidance: Sentence | None = None
    bad: Flag = True
    grades: tuple[Grade, ...] = Field(default=(), max_length=10)
    violation_at: Identifier | None = None
    categories: tuple[Category, ...] = Field(default=(), max_length=30)
    may_not_apply: Flag = False

    @model_validator(mode="after")
    def _is_boolean_or_graded(self) -> Dimension:
        names = [grade.name for grade in self.grades]
        if len(set(names)) != len(names) or len({c.name for c in self.categories}) != len(self.categories):
            raise ValueError(f"{self.name}: a grade or a category is named twice")
        taken = _RESERVED & {*names, *(category.name for category in self.categories)}
        if taken:
            raise ValueError(f"{self.name}: {min(taken)!r} has a meaning of its own; choose another name")
        if not names:
            if self.violation_at is not None:
                raise ValueError(f"{self.name}: violation_at needs grades")
            return self
        if len(names) < 2:
            raise ValueError(f"{self.name}: a graded dimension has at least two grades")
        if "bad" in self.model_fields_set:
            raise ValueError(f"{self.name}: a graded dimension says violation_at instead of bad")
        if self.violation_at is None or self.violation_at not in names:
            raise ValueError(f"{self.name}: violation_at names one of its grades: {', '.join(names)}")
        if self.violation_at == names[0]:
            raise ValueError(f"{self.name}: if even {names[0]!r} is a violation, nothing is good")
        return self

    @property
    def is_graded(self) -> bool:
        """Whether the answer is a grade."""
        return len(self.grades) > 0

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers that a judge may give, apart from that it does not apply."""
        return tuple(grade.name for grade in self.grades) if self.is_graded else (TRUE, FALSE)

    def is_bad(self, answer: str) -> bool:
        """Whether an answer is a violation."""
        if not self.is_graded:
            return (answer == TRUE) is self.bad
        names = self.answers
        return self.violation_at is not None and names.index(answer) >= names.index(self.violation_at)

    def to_plain(self) -> dict[str, object]:
        """Plain data without defaults."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the plain form."""
        return digest(self.to_plain())


class Preset(Value):
    """A named set of dimensions."""

    name: Annotated[str, BeforeValidator(_is_text), Field(pattern=r"^[a-z][a-z0-9-]{0,63}$")]
    about: Sentence
    dimensions: tuple[Dimension, ...] = Field(min_length=1, max_length=MOST_DIMENSIONS)

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Preset:
        check_distinct(self.dimensions)
        return self


def check_distinct(dimensions: tuple[Dimension, ...]) -> None:
    """Raises ValueError for two dimensions of one name."""
    names = [dimension.name for dimension in dimensions]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"two dimensions are named {doubled[0]!r}")
