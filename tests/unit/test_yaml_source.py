"""Strict YAML: what is refused, with which place, and what the plain values are."""

from __future__ import annotations

import json
import math
import time
from decimal import Decimal
from typing import Annotated, Literal, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from grader.errors import Place, Problem, TaskError
from grader.yaml_source import load


def problems_of(text: str | bytes) -> list[str]:
    with pytest.raises(TaskError) as caught:
        load(text, "t.yaml")
    return [f"{problem.where}: {problem.message}" for problem in caught.value.problems]


def test_plain_values() -> None:
    text = (
        'a: 1\nb: -2.5\nc: 1e-6\nd: true\ne: ~\nf: "no"\ng: [x, "010", null]\nh: {}\ni: |\n  line\nj: .inf\nk: .nan\n'
    )
    value = load(text, "t.yaml").value
    assert isinstance(value, dict)
    nan = value.pop("k")
    assert isinstance(nan, float)
    assert math.isnan(nan)
    assert value == {
        "a": 1, "b": -2.5, "c": 1e-6, "d": True, "e": None, "f": "no",
        "g": ["x", "010", None], "h": {}, "i": "line\n", "j": math.inf,
    }  # fmt: skip


@pytest.mark.parametrize(
    "scalar",
    [
        "no",
        "Yes",
        "on",
        "OFF",
        "010",
        "08",
        "0x1F",
        "0o17",
        "0b1",
        "1_000",
        "12:30:45",
        "2024-01-31",
        "2024-1-1 10:00:00",
    ],
)
def test_scalars_that_yaml_versions_read_differently_are_refused_unless_quoted(scalar: str) -> None:
    assert problems_of(f"stdin:\n  - {scalar}\n") == [
        f"t.yaml:2:5: {scalar} is read differently by different versions of YAML"
    ]
    assert load(f"stdin: '{scalar}'\n", "t.yaml").value == {"stdin": scalar}


@given(st.text(alphabet="0123456789_.:-+exo TZn", min_size=1, max_size=12))
def test_an_unquoted_scalar_is_never_read_otherwise_than_yaml_1_1_reads_it(scalar: str) -> None:
    """Whatever both read as a value, they agree on, except the numbers that only 1.2 knows."""
    try:
        mine = load(f"[{scalar!s}]", "t.yaml").value
        theirs = yaml.safe_load(f"[{scalar!s}]")
    except (TaskError, yaml.YAMLError, ValueError):
        return
    for one, other in zip(mine, theirs, strict=True):  # pyright: ignore
        if isinstance(other, str):
            assert one == other or isinstance(one, int | float | Decimal)
        elif isinstance(one, Decimal):
            assert float(one) == other
        else:
            assert one == other or (one != one and other != other)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("0.1", 0.1),
        ("1.50", 1.5),
        ("1e22", 1e22),
        ("0.12345678901234567890", Decimal("0.12345678901234567890")),
        ("123456789012345678901234567890.5", Decimal("123456789012345678901234567890.5")),
        ("1e400", Decimal("1e400")),
        ("-1e-400", Decimal("-1e-400")),
        ("1e23", 1e23),
    ],
)
def test_a_number_is_what_was_written_and_never_a_rounded_one(written: str, value: object) -> None:
    (found,) = cast("list[object]", load(f"[{written}]", "t.yaml").value)
    assert (found, type(found)) == (value, type(value))


def test_an_exponent_beyond_all_bounds_is_refused() -> None:
    assert problems_of("a: 1e99999999999999999999\n") == [
        "t.yaml:1:4: the exponent of 1e99999999999999999999 is beyond all bounds"
    ]


def test_a_doubled_key_is_named_with_line_and_column() -> None:
    assert problems_of("a:\n  x: 1\n  y: 2\n  x: 3\n") == [
        "t.yaml:4:3: the key 'x' stands here for the second time (first in line 2)"
    ]


def test_all_problems_are_reported_at_once() -> None:
    assert len(problems_of("a: no\nb: 010\na: 1\n2: x\nc: !!python/object:os.system x\n")) == 5


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: [1, 2\nb: 3\n", "t.yaml:2", "not valid YAML"),
        ("a: 1\n--- \nb: 2\n", "t.yaml:2:1", "second document"),
        ("a: &x [*x]\n", "t.yaml:1:8", "inside what it names"),
        ("a: *nowhere\n", "t.yaml:1:4", "alias"),
        ("a: {<<: {b: 1}}\n", "t.yaml:1:5", "merge keys"),
        ("[a, b]: c\n", "t.yaml:1:1", "a key must be text"),
        ("null: c\n", "t.yaml:1:1", "a key must be text"),
        ("a: !!binary aGk=\n", "t.yaml:1:4", "tags"),
        ("a: !thing [1]\n", "t.yaml:1:4", "tags"),
        ("", "t.yaml:1:1", "empty"),
        ("a: '\x01'\n", "t.yaml", "not valid YAML"),
        (b"a: ok\nb: \xff\n", "t.yaml:2", "not UTF-8"),
        (b"a: \x00\n", "t.yaml", "not valid YAML"),
    ],
)
def test_refused_with_its_place(text: str | bytes, place: str, words: str) -> None:
    [problem] = problems_of(text)
    assert problem.startswith(place)
    assert words in problem


def test_a_line_that_is_indented_with_a_tab_is_told_the_mend() -> None:
    with pytest.raises(TaskError) as tab:
        load("a:\n  \t- b\n", "t.yaml")
    assert [problem.hint for problem in tab.value.problems] == ["indent with spaces, not tabs"]
    with pytest.raises(TaskError) as other:
        load("a:\t[\n", "t.yaml")
    assert [problem.hint for problem in other.value.problems] == [None]


def test_an_alias_bomb_is_refused_quickly() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
    )
    started = time.monotonic()
    [problem] = problems_of(bomb)
    assert "more than 20 aliases" in problem
    assert time.monotonic() - started < 1


def test_a_few_aliases_are_fine_but_not_what_they_blow_up() -> None:
    assert load("a: &a [1]\nb: *a\n", "t.yaml").value == {"a": [1], "b": [1]}
    wide = "a: &a [" + ", ".join(["x"] * 12_000) + "]\nb: [" + ", ".join(["*a"] * 10) + "]\n"
    [problem] = problems_of(wide)
    assert "far larger than it is written" in problem


def test_deep_nesting_is_refused_not_a_crash() -> None:
    [problem] = problems_of("[" * 60 + "]" * 60)
    assert problem == "t.yaml:1:51: nested deeper than 50 levels"
    [problem] = problems_of("[" * 100_000)
    assert "nest" in problem


def test_the_list_of_problems_is_bounded() -> None:
    assert len(problems_of("".join(f"k{n}: no\n" for n in range(1000)))) == 50


def test_an_endless_number_is_text_not_a_slow_parse() -> None:
    assert load("a: " + "9" * 5000, "t.yaml").value == {"a": "9" * 5000}


def test_places() -> None:
    document = load("cases:\n  - name: one\n    stdin: 'x'\n  - name: two\n    code: 1.50\n", "t.yaml")
    assert document.place(("cases", 1, "name")) == Place("t.yaml", 4, 11)
    assert document.key_place(("cases", 1, "name")) == Place("t.yaml", 4, 5)
    assert document.place(("cases", 0, "absent")) == Place("t.yaml", 2, 5)
    assert document.plain_text(("cases", 1, "code")) == "1.50"
    assert document.plain_text(("cases", 0, "stdin")) is None


class _Circle(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["circle"]
    radius: int


class _Square(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["square"]
    side: int


class _Drawing(BaseModel):
    model_config = ConfigDict(extra="forbid")
    shapes: list[Annotated[_Circle | _Square, Field(discriminator="kind")]]


def test_problems_of_a_model_are_placed_through_unions() -> None:
    text = (
        "shapes:\n  - {kind: circle, radius: big}\n  - kind: square\n  - kind: circle\n    radius: 1\n    colour: red\n"
    )
    document = load(text, "t")
    with pytest.raises(ValidationError) as caught:
        _Drawing.model_validate(document.value)
    said = [str(problem) for problem in document.problems(caught.value)]
    assert said[0].startswith("t:2:28: shapes.0.circle.radius: ")
    assert said[1:] == ["t:3:5: 'shapes.1.square.side' is missing", "t:6:5: unknown key 'shapes.2.circle.colour'"]


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    problems: tuple[Problem, ...] = ()
    try:
        load(text, "t.yaml")
    except TaskError as error:
        problems = error.problems
    assert all(problem.where is not None for problem in problems)


# JSON writes other characters as two surrogates, which no YAML is allowed to hold.
_BASIC_TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _BASIC_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_BASIC_TEXT, inner, max_size=4),
    max_leaves=10,
)


@given(_JSON)
def test_json_is_read_as_json_reads_it(value: object) -> None:
    assert load(json.dumps({"v": value}), "t.yaml").value == {"v": value}
