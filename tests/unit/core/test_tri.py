"""Kleene logic: the whole of its tables, against an independent definition by numbers."""

from __future__ import annotations

from itertools import product

import pytest

from grader.core.tri import Tri, all_of, any_of

NUMBER = {Tri.FALSE: 0.0, Tri.UNDETERMINED: 0.5, Tri.TRUE: 1.0}
BACK = {number: value for value, number in NUMBER.items()}


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_and_is_the_minimum_and_or_the_maximum(length: int) -> None:
    for values in product(Tri, repeat=length):
        assert all_of(values) is BACK[min(NUMBER[value] for value in values)]
        assert any_of(values) is BACK[max(NUMBER[value] for value in values)]


def test_not_keeps_undetermined() -> None:
    assert [value.negated() for value in (Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED)] == [
        Tri.FALSE,
        Tri.TRUE,
        Tri.UNDETERMINED,
    ]


def test_de_morgan() -> None:
    for values in product(Tri, repeat=3):
        assert all_of(values).negated() is any_of(value.negated() for value in values)


@pytest.mark.parametrize("fold", [all_of, any_of])
def test_nothing_cannot_be_combined(fold: object) -> None:
    with pytest.raises(ValueError, match="nothing to combine"):
        all_of([]) if fold is all_of else any_of([])


@pytest.mark.parametrize("value", list(Tri))
def test_a_tri_has_no_truth(value: Tri) -> None:
    with pytest.raises(TypeError, match="three values"):
        bool(value)


def test_of_a_fact() -> None:
    assert Tri.of(True) is Tri.TRUE
    assert Tri.of(False) is Tri.FALSE
