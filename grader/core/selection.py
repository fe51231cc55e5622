"""Running part of a task: an *effective* task that asks for less, and how much less that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import cast

from pydantic import BaseModel, ConfigDict

from grader.core.cases import MOST_REPETITIONS, ProgramBehaves, ProgramCase
from grader.core.conditions import Condition
from grader.core.expectation import Task
from grader.core.judging.conditions import JudgeCondition
from grader.core.tools.conditions import ToolCondition
from grader.core.traces.content import storable


class NothingSelectedError(ValueError):
    """No case of the task is among those asked for."""


class Selection(BaseModel):
    """What was chosen of a task. A verdict under a selection says nothing about the whole task unless it is whole."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cases_selected: int
    cases_total: int
    cases: str | None = None
    """The pattern that chose cases."""
    repetitions: int | None = None
    """Instead of the task's."""
    runtime_profiles: tuple[str, ...] | None = None
    """Instead of the task's."""

    @property
    def is_whole(self) -> bool:
        """Whether the task ran as it stands."""
        return self.cases_selected == self.cases_total and self.repetitions is None and self.runtime_profiles is None

    def __str__(self) -> str:
        parts: list[str] = []
        if self.cases is not None or self.cases_selected != self.cases_total:
            parts.append(f"{self.cases_selected} of {self.cases_total} cases selected")
        if self.repetitions is not None:
            parts.append(f"repetitions set to {self.repetitions}")
        if self.runtime_profiles is not None:
            parts.append(f"profiles set to {', '.join(self.runtime_profiles)}")
        return ", ".join(parts)


def select(
    task: Task, *, cases: str | None = None, repetitions: int | None = None, profiles: Sequence[str] | None = None
) -> tuple[Task, Selection]:
    """The effective task, and what was selected of the task. Conditions about traces stay as far as their cases do.

    `cases`: a part of the case's name (any case of letters), a pattern with `*` and `?`, or the case's number; several
    are separated by commas. Raises NothingSelectedError if no case is selected, ValueError for repetitions or profiles
    that no task can have, and if a condition other than the outermost AND would lose cases (NOT or OR over fewer cases
    means something else).
    """
    _check(repetitions, profiles)
    total = sum(len(program.cases) for program in task.programs())
    chosen = task
    if cases is not None:
        kept = _keep_cases(task, cases)
        if not kept:
            raise NothingSelectedError(f"no case matches {cases!r}")
        chosen = task.model_copy(update={"conditions": kept})
    if repetitions is not None:
        chosen = _with_programs(chosen, lambda program: program.model_copy(update={"repetitions": repetitions}))
    if profiles is not None:
        chosen = chosen.model_copy(update={"runtime_profiles": tuple(profiles)})
    selected = sum(len(program.cases) for program in chosen.programs())
    chosen = Task.model_validate(chosen.model_dump(exclude_defaults=True))
    return chosen, Selection(
        cases_selected=selected,
        cases_total=total,
        cases=None if cases is None else storable(cases),
        repetitions=repetitions,
        runtime_profiles=tuple(profiles) if profiles is not None else None,
    )


def _check(repetitions: object, profiles: object) -> None:
    """Raises ValueError, in words, for what the task's own validation would refuse in those of its library."""
    if repetitions is not None and (
        not isinstance(repetitions, int) or isinstance(repetitions, bool) or not 1 <= repetitions <= MOST_REPETITIONS
    ):
        raise ValueError(f"repetitions is a whole number from 1 to {MOST_REPETITIONS:,}, not {repetitions!r}")
    if profiles is None:
        return
    if isinstance(profiles, str):
        raise ValueError(f"profiles is a sequence of names, such as ({profiles!r},), not the text {profiles!r}")
    names = list(cast("Sequence[str]", profiles))
    if not names:
        raise ValueError("an empty list of profiles runs nothing; leave it out for the task's own")
    twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if twice is not None:
        raise ValueError(f"the profile {twice!r} is named twice")


def _keep_cases(task: Task, pattern: str) -> tuple[Condition, ...]:
    kept: list[Condition] = []
    names = {
        case.name for program in task.programs() for i, case in enumerate(program.cases) if _matches(case, i, pattern)
    }
    for condition in task.conditions:
        if not isinstance(condition, ProgramBehaves):
            if any(isinstance(leaf, ProgramBehaves) for leaf in condition.leaves()):
                raise _means_something_else(condition)
            if len(names) > 0 and _is_about(condition, names):
                kept.append(condition)
            continue
        cases = tuple(case for index, case in enumerate(condition.cases) if _matches(case, index, pattern))
        if cases:
            kept.append(condition.model_copy(update={"cases": cases}))
    return tuple(kept)


def _is_about(condition: Condition, names: set[str | None]) -> bool:
    """Whether a condition about what runs did keeps its meaning over the cases with these names, or has none left.

    Raises ValueError if it would mean something else: NOT or OR over some of the cases it is about.
    """
    leaves = tuple(condition.leaves())
    cases = [leaf.case for leaf in leaves if isinstance(leaf, ToolCondition | JudgeCondition)]
    if len(cases) < len(leaves):
        return False
    if not condition.composite:
        return cases[0] is None or cases[0] in names
    is_kept = {case is not None and case in names for case in cases}
    if len(is_kept) > 1 or None in cases:
        raise _means_something_else(condition)
    return is_kept.pop()


def _means_something_else(condition: Condition) -> ValueError:
    return ValueError(f"cases cannot be selected inside {condition.condition_type}: it means something else over fewer")


def _matches(case: ProgramCase, index: int, pattern: str) -> bool:
    name = (case.name if case.name is not None else f"case {index}").casefold()
    wanted = [part.strip().casefold() for part in pattern.split(",") if part.strip()]
    return any(part in name or fnmatchcase(name, part) or part == str(index) for part in wanted)


def _with_programs(task: Task, change: Callable[[ProgramBehaves], ProgramBehaves]) -> Task:
    return task.model_copy(update={"conditions": tuple(_changed(condition, change) for condition in task.conditions)})


def _changed(condition: Condition, change: Callable[[ProgramBehaves], ProgramBehaves]) -> Condition:
    if isinstance(condition, ProgramBehaves):
        return change(condition)
    return condition.with_parts(tuple(_changed(part, change) for part in condition.parts()))
