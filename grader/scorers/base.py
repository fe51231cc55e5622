"""What a leaf scorer is: it reads one type of condition and judges it on an observation."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from grader.core.conditions import Condition
from grader.core.observation import Observation
from grader.core.verdict import ConditionVerdict


@runtime_checkable
class Scorer(Protocol):
    """Judges the one type of condition that it declares. Pure: the same condition and observation, the same verdict."""

    @property
    def reads(self) -> type[Condition]:
        """The condition type that it judges."""
        ...

    @property
    def payload_kind(self) -> str:
        """The kind of observation that it looks at, such as `tools` or `program_runs`."""
        ...

    @property
    def identity(self) -> str:
        """Name, version, and every setting that takes effect and is not the default: `OtelToolCallScorer/1`."""
        ...

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The verdict on a condition of type `reads`. Must not raise for any evidence."""
        ...

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """What the user should know before trusting a verdict, such as a condition the source can never settle."""
        ...
