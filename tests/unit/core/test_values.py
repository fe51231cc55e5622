"""A changed copy of a value must not carry what was computed from the old one."""

from __future__ import annotations

from grader.core.cases import ProgramBehaves, ProgramCase
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
