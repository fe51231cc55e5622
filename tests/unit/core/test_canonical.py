"""Canonical JSON: equal values have equal bytes, and the digests never change."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.core.canonical import canonical_json, digest

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_reads_back_as_the_same_value(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=6))
def test_key_order_does_not_matter(value: dict[str, int]) -> None:
    turned = dict(reversed(list(value.items())))
    assert canonical_json(turned) == canonical_json(value)


@pytest.mark.parametrize("same", [2, 2.0, Decimal(2), Decimal("2.00")])
def test_equal_numbers_are_written_alike(same: object) -> None:
    assert canonical_json({"n": same}) == b'{"n":2}'


def test_true_is_not_one() -> None:
    assert canonical_json(True) != canonical_json(1)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN")])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="canonical JSON"):
        canonical_json(value)


def test_a_decimal_is_never_rounded() -> None:
    assert canonical_json(Decimal("0.1")) == b"0.1"
    with pytest.raises(ValueError, match="more digits"):
        canonical_json(Decimal("0.10000000000000000000001"))


@pytest.mark.parametrize("value", [b"bytes", {1: 2}, {1, 2}, object()])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="canonical JSON"):
        canonical_json(value)


def test_pinned_digest() -> None:
    value = {"b": [1, 2.5, None, True], "a": "ä\u2028\n"}
    assert canonical_json(value) == '{"a":"ä\u2028\\n","b":[1,2.5,null,true]}'.encode()
    assert digest(value) == "2d51675a78df0215338a4006fabc4c5b7ca57bd8494d1a52f5e5743303348c92"
