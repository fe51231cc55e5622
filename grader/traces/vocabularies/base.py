"""What a vocabulary is: one set of attribute names, and what a span that uses them is.

To add a vocabulary, add one file beside this one with a class that has `name`, `scopes`, `marks` and `read`, and list
it in `__init__`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from grader.core.tools.arguments import NOT_RECORDED, ContentRules, ToolArguments
from grader.core.tools.calls import ExclusionReason
from grader.traces.span import Span

MERGED_TOOLS = "(merged tools)"
"""The name that ADK gives to a span that sums up parallel calls."""


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
    """A call that a model asked for. An empty name: it is known that one was asked for, and not which.

    `arguments` is the JSON text that the model gave, kept only where the execution itself may lack a part of it.
    """

    name: str
    call_id: str | None
    arguments: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What one vocabulary makes of one span.

    `call_id` is None when there is none that can be trusted. `is_hosted`: run by the model's provider, its times are
    not those of the run (of a model: it ran tools of its own). `is_transport`: a layer of a call (an MCP client or
    server) that another span may describe too. `end_is_false`: the recorded end is not the end of the work.
    `overrules`: a producer whose habits are known, so that what the general vocabularies make of the span does not
    count. `time_unit_ns`: how exact the producer's times are. `has_returned`: a result is recorded that this producer
    writes only if the call succeeded, although it leaves the status unset.
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
    overrules: bool = False
    has_returned: bool = False
    time_unit_ns: int = 1


class Vocabulary(Protocol):
    """A set of attribute names, or the habits of one producer.

    `read` is asked about spans whose scope has one of `scopes` in its name, about spans with an attribute of `marks`,
    and about spans whose scope is not recorded; a vocabulary with neither is asked about every span.
    """

    @property
    def name(self) -> str:
        """Its name in reports."""
        ...

    @property
    def scopes(self) -> tuple[str, ...]:
        """Parts of the names of the instrumentation scopes that use it, in lower case."""
        ...

    @property
    def marks(self) -> frozenset[str]:
        """Attributes that only it has."""
        ...

    def read(self, span: Span, rules: ContentRules) -> Reading | None:
        """What the span is, None when this vocabulary has nothing to say of it. Must not raise for any span."""
        ...
