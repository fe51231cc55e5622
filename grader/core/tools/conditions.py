"""Conditions about what an agent did with its tools: which it called, how often, with what, in which order.

Only executed calls count, also those that failed; a call that a model merely asked for never does. Tool names are
exact and case-sensitive. What makes each condition true, false or undetermined is in `grader.scorers`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from grader.core.canonical import digest
from grader.core.conditions import Condition, register_condition
from grader.core.matching import AnyMatcher
from grader.core.reasons import ReasonCode

MOST_CALLS = 1_000_000_000
"""The largest count that a requirement may name."""


def _is_name(value: object) -> object:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {type(value).__name__} ({value!r}); put it in quotes")
    if value == "":
        raise ValueError("a name must not be empty")
    return value


def _is_whole_number(value: object) -> object:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"expected a whole number, not {value!r}")
    return value


Name = Annotated[str, BeforeValidator(_is_name)]
Count = Annotated[int, BeforeValidator(_is_whole_number), Field(ge=0, le=MOST_CALLS)]


class ToolArgumentRequirement(BaseModel):
    """An argument that a call must have, by name, and what its value must be.

    A string value is compared as it is, any other JSON value as its compact JSON text with sorted keys, so that text
    matchers see `"3"` and `3` alike; the `json` matcher tells types apart. `null` is a value; an argument that the
    recorded object does not have is a miss.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    matcher: AnyMatcher


class ToolCallRequirement(BaseModel):
    """Calls of one tool: by name, with arguments that one and the same call must satisfy, and how many of them.

    `at_least` of them must be there (0: the tool is merely allowed); `at_most` bounds every call that matches.
    Arguments that are not named are ignored.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    arguments: tuple[ToolArgumentRequirement, ...] = ()
    at_least: Count = 1
    at_most: Count | None = None

    @model_validator(mode="after")
    def _counts_fit(self) -> ToolCallRequirement:
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError(
                f"{self.name}: at_most {self.at_most} is less than at_least {self.at_least}"
                + ("; for a tool that must not run write at_least: 0 too" if self.at_most == 0 else "")
            )
        if self.at_least == 0 and self.at_most is None and len(self.arguments) > 0:
            raise ValueError(
                f"{self.name}: with at_least: 0 and no at_most its arguments constrain nothing; leave them out"
            )
        return self

    @property
    def constrains(self) -> bool:
        """Whether it asks for anything; an entry with `at_least: 0` alone only allows."""
        return self.at_least > 0 or self.at_most is not None

    def identity(self) -> tuple[str, frozenset[str]]:
        """What makes two requirements the same: the name and the set of arguments."""
        return self.name, frozenset(digest([item.name, item.matcher.to_plain()]) for item in self.arguments)

    def __str__(self) -> str:
        """The name with those of its arguments: `send_email(to)`."""
        return f"{self.name}({', '.join(item.name for item in self.arguments)})" if self.arguments else self.name


class ToolCondition(Condition):
    """Base of the conditions about tool calls.

    `case` names the case of an agent program whose runs are judged; None judges those of every case.
    """

    case: Name | None = None

    @property
    def constrains_arguments(self) -> bool:
        """Whether a call's arguments matter, not only its name."""
        return False


class _NamesCalls(ToolCondition):
    tools: tuple[ToolCallRequirement, ...]

    @property
    def constrains_arguments(self) -> bool:
        """Whether any of its tools has arguments to satisfy."""
        return any(len(tool.arguments) > 0 for tool in self.tools)


@register_condition
class ToolsCalled(_NamesCalls):
    """Each of `tools` was executed as often as it says; with `exhaustive`, no tool of another *name* was executed.

    Requirements that share a name need different calls. With `exhaustive` and no tools: no tool ran at all.
    """

    condition_type: ClassVar[str] = "tools_called"

    tools: tuple[ToolCallRequirement, ...] = ()
    exhaustive: Annotated[bool, Field(strict=True)] = False

    @property
    def code_if_negated(self) -> ReasonCode:
        """A tool ran that must not; if none is demanded here, a tool did not run that must."""
        demands = any(tool.at_least > 0 for tool in self.tools)
        return ReasonCode.TOOL_FORBIDDEN if demands else ReasonCode.TOOL_MISSING

    @model_validator(mode="after")
    def _asks_for_something(self) -> ToolsCalled:
        if not self.exhaustive and len(self.tools) == 0:
            raise ValueError("no tools: name at least one, or write exhaustive: true for 'no tool ran at all'")
        if not self.exhaustive and not any(tool.constrains for tool in self.tools):
            raise ValueError("only at_least: 0 and not exhaustive: this constrains nothing")
        seen: set[tuple[str, frozenset[str]]] = set()
        for tool in self.tools:
            if tool.identity() in seen:
                raise ValueError(f"{tool} stands here twice; write at_least: 2 for two calls")
            seen.add(tool.identity())
        return self


@register_condition
class ToolsCalledInOrder(_NamesCalls):
    """There are calls, one a step, of which each had ended before the next began.

    At least two steps; a tool may come twice, and then needs two calls. Other calls may lie between or before, so
    `[confirm, send]` is true even if another send ran before confirm: for a gate use `ToolPrecededBy`.
    """

    condition_type: ClassVar[str] = "tools_called_in_order"

    tools: tuple[ToolCallRequirement, ...] = Field(min_length=2, max_length=1000)

    @property
    def code_if_negated(self) -> ReasonCode:
        """The tools ran in an order that must not be."""
        return ReasonCode.TOOL_ORDER

    @field_validator("tools")
    @classmethod
    def _steps_have_no_counts(cls, steps: tuple[ToolCallRequirement, ...]) -> tuple[ToolCallRequirement, ...]:
        for step in steps:
            if step.at_least != 1 or step.at_most is not None:
                raise ValueError(f"{step}: a step is one call; repeat the step instead of at_least or at_most")
        return steps


@register_condition
class ToolsNotCalled(ToolCondition):
    """No tool with one of these names was executed. `*` stands for any characters, `?` for one."""

    condition_type: ClassVar[str] = "tools_not_called"

    tools: tuple[Name, ...] = Field(min_length=1)

    @property
    def code_if_negated(self) -> ReasonCode:
        """None of the tools ran, and one of them must."""
        return ReasonCode.TOOL_MISSING

    @field_validator("tools")
    @classmethod
    def _names_are_distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a tool is named twice")
        return names


@register_condition
class ToolPrecededBy(ToolCondition):
    """Every execution of `tool` has its own earlier execution of `by`: the gate in front of an action.

    True when `tool` never ran.
    """

    condition_type: ClassVar[str] = "tool_preceded_by"

    tool: Name
    by: Name

    @property
    def code_if_negated(self) -> ReasonCode:
        """The gate held, and must not."""
        return ReasonCode.TOOL_ORDER

    @model_validator(mode="after")
    def _two_tools(self) -> ToolPrecededBy:
        if self.tool == self.by:
            raise ValueError(f"{self.tool!r} cannot come before its own first execution; name another tool")
        return self
