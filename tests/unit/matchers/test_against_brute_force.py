"""Each rule, written a second time in the plainest way that comes to mind, must give the same verdict."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.captured import Captured
from grader.core.tri import Tri
from grader.matchers import Equals, JsonEquals, Lines, Tokens
from grader.matchers.decimals import Target, Tolerance, parse_tolerance

BLANKS = " \t\n\r\x0b\x0c"

texts = st.lists(st.sampled_from(["a", "b", "A", " ", "\t", "\n", "\r", "\r\n", "\x0c", "é"]), max_size=7).map("".join)


def judged(matcher: Equals | Lines | Tokens | JsonEquals, data: bytes) -> bool:
    found = matcher.match(Captured.whole(data))
    assert found.value is not Tri.UNDETERMINED
    return found.value is Tri.TRUE


# --- equals


def normal(text: str, newlines: str, trailing: str) -> str:
    if newlines == "any":
        text = "\n".join(text.split("\r\n"))
    if trailing == "optional" and text[-1:] == "\n":
        text = text[:-1]
    return text


@settings(max_examples=200)
@given(texts, texts)
def test_equals(expected: str, got: str):
    for newlines, trailing in itertools.product(("exact", "any"), ("exact", "optional")):
        matcher = Equals.model_validate({"expected": expected, "newlines": newlines, "trailing_newline": trailing})
        wanted = normal(expected, newlines, trailing) == normal(got, newlines, trailing)
        assert judged(matcher, got.encode()) == wanted


@settings(max_examples=100)
@given(texts)
def test_equals_takes_every_way_to_write_the_newlines(expected: str):
    matcher = Equals(expected=expected.encode(), newlines="any")
    parts = expected.split("\n")
    for ends in itertools.islice(itertools.product(["\n", "\r\n"], repeat=len(parts) - 1), 16):
        written = "".join(part + end for part, end in zip(parts, (*ends, ""), strict=True))
        wanted = written.replace("\r\n", "\n") == expected.replace("\r\n", "\n")
        assert judged(matcher, written.encode()) == wanted


# --- lines


def plain_lines(text: str, *, is_bag: bool, ignores_case: bool) -> list[str]:
    lines: list[str] = []
    for piece in text.split("\n"):
        line = piece
        while line != "" and line[-1] in BLANKS:
            line = line[:-1]
        if ignores_case:
            line = "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in line)
        lines.append(line)
    if is_bag:
        return sorted(line for line in lines if line != "")
    while lines and lines[-1] == "":
        lines.pop()
    return lines


@settings(max_examples=150)
@given(texts, texts, st.booleans(), st.booleans())
def test_lines(expected: str, got: str, is_bag: bool, ignores_case: bool):
    matcher = Lines(
        expected=expected.encode(), order="any" if is_bag else "exact", case="ignore" if ignores_case else "exact"
    )
    wanted = plain_lines(expected, is_bag=is_bag, ignores_case=ignores_case) == plain_lines(
        got, is_bag=is_bag, ignores_case=ignores_case
    )
    assert judged(matcher, got.encode()) == wanted


@given(st.lists(st.sampled_from(["a", "b", "", " "]), max_size=5), st.randoms())
def test_lines_in_any_order(lines: list[str], random: Random):
    shuffled = list(lines)
    random.shuffle(shuffled)
    matcher = Lines.model_validate({"expected": lines, "order": "any"})
    assert judged(matcher, "\n".join(shuffled).encode())


# --- numbers and tokens


def fraction(text: str) -> Fraction | None:
    """The number that a token is, by hand and without any limit on the exponent's effect (so only for small ones)."""
    body = text[1:] if text[:1] in ("+", "-") else text
    mantissa, has_exponent, exponent = body.replace("E", "e").partition("e")
    digits = exponent[1:] if exponent[:1] in ("+", "-") else exponent
    whole, _, part = mantissa.partition(".")
    if not all(set(piece) <= set("0123456789") for piece in (whole, part, digits)):
        return None
    if whole + part == "" or (has_exponent and digits == ""):
        return None
    value = Fraction(int(whole + part), 10 ** len(part)) * Fraction(10) ** (int(exponent) if has_exponent else 0)
    return -value if text[0] == "-" else value


exponents = st.sampled_from(["", "e3", "E-9", "e00000", "E+0012"])
numbers = st.one_of(
    st.sampled_from(["0", "-0", "+0.0", "1", "-1", "1.5", "1e2", "100", "1.", ".5", "1e-30", "1e30", "0e99", "001"]),
    st.tuples(
        st.sampled_from(["", "-", "+"]), st.integers(0, 10**22), st.integers(0, 10**5), exponents
    ).map(lambda parts: f"{parts[0]}{parts[1]}.{parts[2]}{parts[3]}"),
    st.text("0123456789.e+-", min_size=1, max_size=5).filter(lambda text: len(text.partition("e")[2]) < 4),
)  # fmt: skip
tolerances = st.sampled_from([None, "0", "1e-30", "0.1", "1", "0.333", "1e5"])


def reference(expected: str, got: str, absolute: str | None, relative: str | None, *, nan: bool = True) -> bool:
    if absolute is None and relative is None:
        return expected == got
    if nan and "nan" in (expected.strip("+-").lower(), got.strip("+-").lower()):
        return False
    left, right = fraction(expected), fraction(got)
    if left is None or right is None:
        return expected == got
    gap = abs(left - right)
    is_near = absolute is not None and gap <= Fraction(absolute)
    return is_near or gap == 0 or (relative is not None and gap <= Fraction(relative) * abs(left))


def bound(text: str | None) -> object:
    return None if text is None else parse_tolerance(text)


@settings(max_examples=200, deadline=None)
@given(numbers, numbers, tolerances, tolerances)
def test_two_tokens(expected: str, got: str, absolute: str | None, relative: str | None):
    matcher = Tokens.model_validate({"expected": expected, "float_absolute": absolute, "float_relative": relative})
    assert judged(matcher, got.encode()) == reference(expected, got, absolute, relative)


@settings(max_examples=200, deadline=None)
@given(numbers, numbers, tolerances, tolerances, st.integers(0, 60))
def test_long_numbers_are_compared_as_short_ones_are(
    expected: str, got: str, absolute: str | None, relative: str | None, zeros: int
):
    """The way through mantissa and exponent must agree with the quick one, whatever zeros are written."""
    left, right = fraction(expected), fraction(got)
    if left is None or right is None:
        return
    longer = "0" * 41 + expected.lstrip("+-")
    sign = "-" if expected.startswith("-") else ""
    limits = Tolerance(
        parse_tolerance(absolute) if absolute is not None else None,
        parse_tolerance(relative) if relative is not None else None,
    )
    wanted = reference(expected, got, absolute or "0", relative)
    assert Target((sign + longer).encode(), limits).admits(got.encode()) == wanted
    if "e" not in got.lower():
        padded = f"{got}e{'0' * zeros}0000000000000000"
        assert Target(expected.encode(), limits).admits(padded.encode()) == wanted


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "A", "1", "1.0", "2", "nan", "NaN", "-nan", "inf"]), max_size=4),
    st.lists(st.sampled_from(["a", "A", "1", "1.0", "2", "nan", "NaN", "-nan", "inf"]), max_size=4),
    st.lists(st.text(BLANKS, min_size=1, max_size=2), min_size=6, max_size=6),
    tolerances,
    st.booleans(),
)
def test_tokens(expected: list[str], got: list[str], gaps: list[str], absolute: str | None, is_icpc: bool):
    text = gaps[0] + "".join(token + gap for token, gap in zip(got, gaps[1:], strict=False))
    matcher = Tokens.model_validate(
        {"expected": " ".join(expected), "float_absolute": absolute, "dialect": "icpc" if is_icpc else "default"}
    )
    fold: Callable[[str], str] = str.lower if is_icpc else str
    wanted = len(expected) == len(got) and all(
        reference(fold(left), fold(right), absolute, None, nan=not is_icpc)
        for left, right in zip(expected, got, strict=True)
    )
    assert judged(matcher, text.encode()) == wanted


@settings(max_examples=150)
@given(texts, texts)
def test_tokens_with_exact_spaces_are_the_bytes(expected: str, got: str):
    matcher = Tokens(expected=expected.encode(), spaces="exact")
    assert judged(matcher, got.encode()) == (expected == got)


# --- json


def typed(value: Any) -> object:
    """A value whose Python equality is JSON's: 1 and True told apart, 1 and 1.0 not."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, int | float):
        return ("number", Fraction(value))
    if isinstance(value, str):
        return ("string", value)
    if isinstance(value, list):
        return ("array", tuple(typed(item) for item in cast("list[Any]", value)))
    entries = cast("dict[str, Any]", value)
    return ("object", frozenset((key, typed(item)) for key, item in entries.items()))


def is_subset(expected: Any, got: Any) -> bool:
    if isinstance(expected, dict) and isinstance(got, dict):
        entries = cast("dict[str, Any]", expected)
        return all(key in got and is_subset(item, got[key]) for key, item in entries.items())
    if isinstance(expected, list) and isinstance(got, list):
        left, right = cast("list[Any]", expected), cast("list[Any]", got)
        return len(left) == len(right) and all(map(is_subset, left, right))
    return typed(expected) == typed(got)


json_values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -0.0, 1.0, 1.5, "", "1", "a", "é\ud800"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["a", "b", "", "é"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(json_values, json_values, st.booleans(), st.sampled_from([None, 0, 1, 2]))
def test_json(expected: object, got: object, is_ascii: bool, indent: int | None):
    text = json.dumps(got, ensure_ascii=is_ascii, indent=indent).encode("utf-8", "replace")
    if b"?" in text:  # a lone surrogate cannot be written but as an escape
        text = json.dumps(got).encode()
    for value in (expected, got):
        source = json.dumps(value) if isinstance(value, str) else value
        exact = JsonEquals.model_validate({"expected": source})
        assert judged(exact, text) == (typed(value) == typed(got))
        assert exact.match_json(got).value is Tri.of(typed(value) == typed(got))
        subset = JsonEquals.model_validate({"expected": source, "subset": True})
        assert judged(subset, text) == is_subset(value, got)


@settings(max_examples=150)
@given(st.text('{}[]",:01.e-+ntrueflsa\\u\n ', max_size=12))
def test_what_is_json_and_what_is_not(text: str):
    def refuse(_: str) -> None:
        raise ValueError

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        is_json = False
    else:
        is_json = True
    found = JsonEquals(expected='{"never": 1}').match(Captured.whole(text.encode()))
    assert found.value is not Tri.TRUE
    assert is_json == (found.value is Tri.UNDETERMINED or found.detail.startswith("at $"))
