"""A changed copy of a value must not carry what was computed from the old one."""

from __future__ import annotations

from typing import ClassVar

import pytest

from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.conditions import Condition, condition_class, register_condition
from grader.core.expectation import Task


def test_a_changed_copy_has_its_own_fingerprint() -> None:
    one = ProgramBehaves(cases=(ProgramCase(),))
    task = Task(conditions=(one,))
    before, whole = one.fingerprint, task.fingerprint
    two = one.model_copy(update={"repetitions": 2})
    assert two.fingerprint == ProgramBehaves(cases=(ProgramCase(),), repetitions=2).fingerprint != before
    assert task.model_copy(update={"conditions": (two,)}).fingerprint != whole
    assert one.model_copy().fingerprint == before


def test_remembering_does_not_change_equality() -> None:
    one, other = ProgramBehaves(cases=(ProgramCase(),)), ProgramBehaves(cases=(ProgramCase(),))
    assert one.fingerprint
    assert one == other


def test_a_leaf_that_cannot_say_why_a_not_of_it_is_false_is_refused_before_anything_runs() -> None:
    class Mute(Condition):
        condition_type: ClassVar[str] = "mute"

    with pytest.raises(TypeError, match="Mute does not say"):
        register_condition(Mute)
    assert condition_class("mute") is None
