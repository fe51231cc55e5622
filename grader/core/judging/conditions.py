"""Conditions that a judge decides: whether a conversation meets an objective, or shows none of some violations.

Like every condition they are neutral predicates: `meets_dimensions` is true when no dimension has its bad value.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from grader.core.conditions import Condition, register_condition
from grader.core.judging.dimensions import MOST_DIMENSIONS, Dimension, Flag, Sentence, check_distinct
from grader.core.reasons import ReasonCode
from grader.core.tools.conditions import Name

MOST_SAMPLES = 99
DEFAULT_TRACE_BUDGET = 60_000


class VoteRule(StrEnum):
    """How samples become one value."""

    MAJORITY = "majority"
    """More than half of the samples must be determined; the majority of those decides, a tie is bad."""
    UNANIMOUS = "unanimous"
    """Every sample must be determined, and all must agree."""


class TraceEvidenceRequirement(StrEnum):
    """What trace a judge must have to be asked at all."""

    NONE = "none"
    AVAILABLE = "available"
    COMPLETE = "complete"


def _is_count(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, not {value!r}")
    return value


Samples = Annotated[int, BeforeValidator(_is_count), Field(ge=1, le=MOST_SAMPLES)]
Budget = Annotated[int, BeforeValidator(_is_count), Field(ge=1_000, le=10_000_000)]


class JudgeSettings(BaseModel):
    """How a judge is asked: settings of the scorer, not of a condition."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    samples: Samples = 1
    """How often each question is asked. Samples are votes, not runs."""
    rule: VoteRule = VoteRule.MAJORITY
    """`majority`, or `unanimous`: every sample must be determined, and all must agree."""
    require_trace: TraceEvidenceRequirement = TraceEvidenceRequirement.NONE
    """`none`, `available` or `complete`. Without such a trace the judge is not asked."""
    give_facts: Flag = True
    """Whether the judge is told what the task's tool conditions have settled, and may not contradict it."""
    trace_budget: Budget = DEFAULT_TRACE_BUDGET
    """How many characters of the trace the judge is shown."""

    def identity(self, *, has_facts: bool) -> tuple[str, ...]:
        """Every setting that takes effect and is not the default, such as `samples=3`."""
        found: list[str] = []
        if self.samples != 1:
            found.append(f"samples={self.samples}")
            # With one sample both rules are the same.
            if self.rule is not VoteRule.MAJORITY:
                found.append(f"rule={self.rule.value}")
        if self.require_trace is not TraceEvidenceRequirement.NONE:
            found.append(f"require_trace={self.require_trace.value}")
        if has_facts and not self.give_facts:
            found.append("give_facts=false")
        if self.trace_budget != DEFAULT_TRACE_BUDGET:
            found.append(f"trace_budget={self.trace_budget}")
        return tuple(found)


OBJECTIVE_DIMENSION = "meets_objective"


class JudgeCondition(Condition):
    """Base of the conditions that a judge decides.

    `case` names the case of an agent program whose runs are judged; None judges those of every case.
    """

    case: Name | None = None

    @property
    def code_if_negated(self) -> ReasonCode:
        """The judge found no violation, and must find one: what it says is against the condition either way."""
        return ReasonCode.JUDGE_VIOLATION

    @property
    def questions(self) -> tuple[Dimension, ...]:
        """The dimensions that the judge is asked, all in one request. Raises ValueError while they are not known."""
        raise NotImplementedError


@register_condition
class MatchesObjective(JudgeCondition):
    """The conversation, and what the trace shows of it, meets the objective in words.

    Without an `objective` of its own it takes that of the task.
    """

    condition_type: ClassVar[str] = "matches_objective"

    objective: Annotated[Sentence, Field(max_length=3_500)] | None = None

    def asked(self) -> MatchesObjective:
        """The condition itself. Raises ValueError if there is nothing to ask."""
        _ = self.questions
        return self

    @property
    def questions(self) -> tuple[Dimension, ...]:
        """One question: whether the objective was met."""
        if self.objective is None:
            raise ValueError("there is no objective: give one here, or as the task's objective")
        return (
            Dimension(
                name=OBJECTIVE_DIMENSION,
                question=f"Was this objective met in the conversation? Objective: {self.objective}",
                guidance="Judge what was done, not what was announced. Answer true only if all of it was met.",
                bad=False,
            ),
        )


@register_condition
class MeetsDimensions(JudgeCondition):
    """No dimension has its bad value: those of a preset, by its name, or dimensions written out."""

    condition_type: ClassVar[str] = "meets_dimensions"

    preset: str | None = None
    dimensions: tuple[Dimension, ...] = Field(default=(), max_length=MOST_DIMENSIONS)
    """Of a preset they are filled in before anything is judged, and recorded: a later change of the preset does not
    change what was asked."""

    @model_validator(mode="after")
    def _asks_for_something(self) -> MeetsDimensions:
        if self.preset is None and len(self.dimensions) == 0:
            raise ValueError("no dimensions: name a preset, or write dimensions out")
        check_distinct(self.dimensions)
        return self

    @property
    def questions(self) -> tuple[Dimension, ...]:
        """The dimensions."""
        if len(self.dimensions) == 0:
            raise ValueError(f"the dimensions of the preset {self.preset!r} are not filled in")
        return self.dimensions
