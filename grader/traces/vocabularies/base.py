"""What a vocabulary is: one set of attribute names, and what a span that uses them is.

To add a vocabulary, add one file beside this one with a class that has `name` and `read`, and list it in `__init__`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from grader.core.tool_arguments import NOT_RECORDED, ContentRules, ToolArguments
from grader.core.tool_calls import ExclusionReason
from grader.traces.span import Span


class Role(Enum):
    """What a span is."""

    TOOL = "tool"
    """An execution of a tool whose name is recorded."""
    EXCLUDED = "excluded"
    """It looks like an execution and is none."""
    POSSIBLE_TOOL = "possible_tool"
    """It may be an execution, of any tool."""
    MODEL = "model"
    AGENT = "agent"
    OTHER = "other"
    """Understood, and none of the above."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A call that a model asked for."""

    name: str
    call_id: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one vocabulary makes of one span.

    `call_id` is None when there is none that can be trusted. `is_hosted`: run by the model's provider, its times are
    not those of the run. `is_transport`: a layer of a call (an MCP client or server) that another span may describe
    too. `end_is_false`: the recorded end is not the end of the work.
    """

    role: Role
    vocabulary: str
    name: str | None = None
    call_id: str | None = None
    arguments: ToolArguments = NOT_RECORDED
    why_excluded: ExclusionReason | None = None
    detail: str = ""
    proposals: tuple[Proposal, ...] = ()
    is_hosted: bool = False
    is_transport: bool = False
    end_is_false: bool = False


class Vocabulary(Protocol):
    """A set of attribute names."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        ...

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is, None when it does not use this vocabulary. Must not raise for any span."""
        ...
