"""What is expected: an objective in words, and conditions that all must hold; and the task around it."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from grader.core.canonical import digest
from grader.core.cases import ProgramBehaves
from grader.core.conditions import AnyCondition, Condition
from grader.core.durations import parse_duration_ns
from grader.core.judging.conditions import JudgeSettings
from grader.core.limits import Limits
from grader.core.values import Value


class Expectation(Value):
    """Conditions joined by AND (at least one), and what they are for in words."""

    objective: str | None = None
    conditions: tuple[AnyCondition, ...] = Field(min_length=1)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the conditions' fingerprints, in order; the objective is not part of it."""
        return digest([condition.fingerprint for condition in self.conditions])

    def leaves(self) -> tuple[Condition, ...]:
        """All leaf conditions, from left to right."""
        return self._leaves

    def programs(self) -> tuple[ProgramBehaves, ...]:
        """The `ProgramBehaves` leaves, in the order of the plan; equal ones once: they share runs."""
        return self._programs

    @cached_property
    def _leaves(self) -> tuple[Condition, ...]:
        return tuple(leaf for condition in self.conditions for leaf in condition.leaves())

    @cached_property
    def _programs(self) -> tuple[ProgramBehaves, ...]:
        programs = (leaf for leaf in self._leaves if isinstance(leaf, ProgramBehaves))
        return tuple({program.fingerprint: program for program in programs}.values())


class TraceSettings(BaseModel):
    """How traces are read for the task's tool conditions: settings of the scorer, not of a condition."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    clock_skew_tolerance_ns: Annotated[int, BeforeValidator(parse_duration_ns)] = Field(
        default=0, validation_alias="clock_skew_tolerance"
    )
    """How far two clocks may disagree: `5ms` (ns, us, ms, s, min), or a whole number of nanoseconds."""
    trace_source: str | None = None


class Task(Expectation):
    """An expectation, the runtime profiles it may run under, and limits for all its cases."""

    runtime_profiles: tuple[str, ...] | None = None
    """Names of profiles, all of which run; None: every default profile whose language fits the submission."""
    limits: Limits = Limits()
    """Hold for every case that says nothing else."""
    trace: TraceSettings = TraceSettings()
    judge: JudgeSettings = JudgeSettings()

    @field_validator("runtime_profiles")
    @classmethod
    def _some_distinct_profiles(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and len(value) == 0:
            raise ValueError("an empty list of profiles runs nothing; leave it out for every profile that fits")
        if value is not None and len(set(value)) != len(value):
            raise ValueError("a profile is named twice")
        return value
