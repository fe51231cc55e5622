"""The bases of values: frozen ones, and those that remember what was computed from them, such as their digest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self, cast

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A model that cannot be changed, and takes no field that it does not have."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Value(Frozen):
    """A frozen model whose `cached_property`s are safe: a changed copy does not inherit them."""

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with some fields replaced. What was remembered of the old fields is forgotten."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            remembered = [name for name in vars(copied) if name not in type(self).model_fields]
            for name in remembered:
                cast("dict[str, object]", copied.__dict__).pop(name)
        return copied
