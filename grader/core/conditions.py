"""Conditions: neutral predicates about evidence, and the registry that reads them from plain data.

A condition says what would be true, never whether that is good: polarity is the caller's. Leaves (`ProgramBehaves`,
`ToolsCalled`, ...) register themselves under their `condition_type`; `AllOf`, `AnyOf` and `Not` combine them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, ClassVar, TypeVar, cast

from pydantic import BeforeValidator, Field, PlainSerializer

from grader.core.canonical import digest
from grader.core.reasons import ReasonCode
from grader.core.values import Value


class Condition(Value):
    """Base of all conditions: frozen, comparable, written with its `condition_type` and without defaults."""

    condition_type: ClassVar[str] = ""
    composite: ClassVar[bool] = False

    def to_plain(self) -> dict[str, object]:
        """Plain data that `parse_condition` reads back. Fields that have their default are left out."""
        plain = cast("dict[str, object]", self.model_dump(mode="json", exclude_defaults=True))
        return {"condition_type": self.condition_type, **plain}

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of the canonical plain form: a new field with a default does not change it."""
        return digest(self.to_plain())

    @property
    def code_if_negated(self) -> ReasonCode:
        """Of a leaf: why `Not` of it is false where it is true. A code that makes things false."""
        raise NotImplementedError(f"{type(self).__name__} does not say which reason code a false `not` of it has")

    def parts(self) -> tuple[Condition, ...]:
        """The conditions that this one combines; of a leaf, none."""
        return ()

    def with_parts(self, parts: tuple[Condition, ...]) -> Condition:
        """The same condition over other parts; a leaf is returned as it is."""
        del parts
        return self

    def leaves(self) -> Iterator[Condition]:
        """The conditions at the ends of the tree, from left to right; of a leaf, itself."""
        if not self.composite:
            yield self
        for part in self.parts():
            yield from part.leaves()


C = TypeVar("C", bound=Condition)

_REGISTRY: dict[str, type[Condition]] = {}


def register_condition(cls: type[C]) -> type[C]:
    """Class decorator: make a condition known by its `condition_type`.

    Raises ValueError for a name already taken, TypeError for a leaf without a `code_if_negated` of its own: a verdict
    would find that out only when everything has run.
    """
    if not cls.composite and cls.code_if_negated is Condition.code_if_negated:
        raise TypeError(f"{cls.__name__} does not say which reason code a false `not` of it has (code_if_negated)")
    if cls.condition_type in _REGISTRY:
        raise ValueError(f"two conditions are named {cls.condition_type!r}")
    _REGISTRY[cls.condition_type] = cls
    return cls


def condition_types() -> tuple[str, ...]:
    """The names of all registered condition types, sorted."""
    return tuple(sorted(_REGISTRY))


def condition_class(name: str) -> type[Condition] | None:
    """The class registered under a `condition_type`, or None."""
    return _REGISTRY.get(name)


def parse_condition(value: object) -> Condition:
    """A condition from plain data, or the condition itself. Raises ValueError that says what is wrong."""
    if isinstance(value, Condition):
        return value
    if not isinstance(value, Mapping):
        raise ValueError(f"a condition is a mapping with a condition_type, not {type(value).__name__}")
    entries = cast("Mapping[str, object]", value)
    name = entries.get("condition_type")
    if name is None:
        raise ValueError(f"condition_type is missing; one of {', '.join(condition_types())}")
    cls = _REGISTRY.get(name) if isinstance(name, str) else None
    if cls is None:
        raise ValueError(f"unknown condition_type {name!r}; known: {', '.join(condition_types())}")
    return cls.model_validate({key: item for key, item in entries.items() if key != "condition_type"})


def _plain_condition(condition: Condition) -> dict[str, object]:
    return condition.to_plain()


AnyCondition = Annotated[Condition, BeforeValidator(parse_condition), PlainSerializer(_plain_condition)]
"""A field that holds any registered condition, parsed from and written to its plain form."""


class _Several(Condition):
    composite: ClassVar[bool] = True

    conditions: tuple[AnyCondition, ...] = Field(min_length=1)

    def parts(self) -> tuple[Condition, ...]:
        """The conditions that this one combines."""
        return self.conditions

    def with_parts(self, parts: tuple[Condition, ...]) -> Condition:
        """The same condition over other parts."""
        return self.model_copy(update={"conditions": parts})


@register_condition
class AllOf(_Several):
    """True when every part is (Kleene AND). At least one part."""

    condition_type: ClassVar[str] = "all_of"


@register_condition
class AnyOf(_Several):
    """True when at least one part is (Kleene OR). At least one part."""

    condition_type: ClassVar[str] = "any_of"


@register_condition
class Not(Condition):
    """True when its part is false; undetermined stays undetermined."""

    composite: ClassVar[bool] = True

    condition_type: ClassVar[str] = "not"
    condition: AnyCondition

    def parts(self) -> tuple[Condition, ...]:
        """Its one part."""
        return (self.condition,)

    def with_parts(self, parts: tuple[Condition, ...]) -> Condition:
        """The same over another part."""
        return self.model_copy(update={"condition": parts[0]})
