"""Tasks about agent programs: conditions on what a program says and does, beside those on what it prints.

Such a condition is about the runs of the task's cases. It names one with `case`, or is about all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from grader.core.conditions import Condition
from grader.core.expectation import Expectation
from grader.core.judging.conditions import JudgeCondition
from grader.core.tools.conditions import ToolCondition


@dataclass(frozen=True, slots=True)
class CaseOfTask:
    """A case, by the number of its `program_behaves` condition and its own."""

    program: int
    case: int
    name: str | None


def cases_of(expectation: Expectation, case: str | None) -> tuple[CaseOfTask, ...]:
    """The cases named `case`, or all; in the order of the plan."""
    return tuple(found for found in _cases(expectation) if case is None or found.name == case)


def conditions_of(expectation: Expectation, case: str | None) -> tuple[Condition, ...]:
    """The leaves about traces, and those for a judge, that are about the case of this name."""
    about = (leaf for leaf in expectation.leaves() if isinstance(leaf, ToolCondition | JudgeCondition))
    return tuple(leaf for leaf in about if leaf.case is None or leaf.case == case)


def asks_a_judge(expectation: Expectation) -> bool:
    """Whether any of its conditions is for a judge."""
    return any(isinstance(leaf, JudgeCondition) for leaf in expectation.leaves())


def asks_for_traces(expectation: Expectation) -> bool:
    """Whether any of its conditions is about traces."""
    return any(isinstance(leaf, ToolCondition) for leaf in expectation.leaves())


@dataclass(frozen=True, slots=True)
class CaseProblem:
    """What is wrong with the case that a condition is about; `leaf` is the condition's place among the leaves."""

    leaf: int
    message: str
    hint: str


def case_problems(expectation: Expectation) -> tuple[CaseProblem, ...]:
    """Every condition about traces, or for a judge, that is about no run: no program condition, or no case so named."""
    names = list(dict.fromkeys(found.name for found in _cases(expectation) if found.name is not None))
    problems: list[CaseProblem] = []
    for number, leaf in enumerate(expectation.leaves()):
        if not isinstance(leaf, ToolCondition | JudgeCondition):
            continue
        if len(expectation.programs()) == 0:
            message = f"{leaf.condition_type} is about the runs of an agent program, and the task has none"
            other = "`grader score` with a trace"
            if isinstance(leaf, JudgeCondition):
                other = "`grader judge` with a conversation"
            problems.append(CaseProblem(number, message, f"add program_behaves with cases, or use {other}"))
        elif leaf.case is not None and leaf.case not in names:
            known = ", ".join(names[:10]) or "none has a name"
            problems.append(CaseProblem(number, f"no case is named {leaf.case!r}", f"cases are: {known}"))
    return tuple(problems)


def _cases(expectation: Expectation) -> Iterator[CaseOfTask]:
    for number, program in enumerate(expectation.programs()):
        for index, case in enumerate(program.cases):
            yield CaseOfTask(number, index, case.name)
