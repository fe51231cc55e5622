"""Quoting of hostile text: nothing in it acts, everything in it can be told apart."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.core.quoting import quote, quote_around, quote_text


def test_every_byte_alone_is_shown_by_the_rules():
    for value in range(256):
        shown = quote(bytes([value]))[1:-1]
        if value < 0x20:
            assert shown == chr(0x2400 + value)
        elif value == 0x7F:
            assert shown == "␡"
        elif value >= 0x80:
            assert shown == f"\\x{value:02X}"
        elif value in b'"\\':
            assert shown == "\\" + chr(value)
        else:
            assert shown == chr(value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\u202e", "\\u202e"),  # turns the writing direction
        ("\u2066", "\\u2066"),  # the same, younger than the frozen tables
        ("\u200b", "\\u200b"),  # zero width
        ("\ufeff", "\\ufeff"),  # byte order mark
        ("\u00a0", "\\u00a0"),  # looks like a space
        ("\u2028", "\\u2028"),  # line separator
        ("\u0085", "\\u0085"),  # a control beyond ASCII
        ("\u009b", "\\u009b"),  # begins a terminal sequence in one byte
        ("\ue000", "\\ue000"),  # private use
        ("\u0378", "\\u0378"),  # unassigned
        ("\uffff", "\\uffff"),  # no character
        ("\U000e0041", "\\U000e0041"),  # a tag character
        ("e\u0301", "e\\u0301"),  # an accent that joins to what stands before it
        ("\u20dd", "\\u20dd"),  # encloses what stands before it
        ("\u240a", "\\u240a"),  # the picture of a newline, in the data
        ("\U0001f600", "\U0001f600"),
        ("\U0001f3fd", "\\U0001f3fd"),  # a skin tone joins to the pictograph before it
        ("é漢й", "é漢й"),
        ("…", "…"),
    ],
)
def test_characters(text: str, shown: str):
    assert quote(text.encode()) == f'"{shown}"'
    assert quote_text(text) == f'"{shown}"'


def test_a_surrogate_is_shown_as_what_it_was():
    assert quote(b"\xed\xa0\x80") == '"\\xED\\xA0\\x80"'
    assert quote_text("\ud800") == '"\\ud800"'
    # In bytes U+DC80 is how Python marks an invalid byte; in text it is itself.
    assert quote_text("\udc80") == '"\\udc80"'


def test_a_long_value_is_cut_and_the_ellipsis_stands_outside_the_quotes():
    assert quote(b"a" * 81) == '"' + "a" * 80 + '"…'
    assert quote(b"a" * 80) == '"' + "a" * 80 + '"'
    assert quote_around(b"a" * 50 + b"X" + b"b" * 50, 50, 12) == '…"aaaaXbbbbbbb"…'
    assert quote_around(b"abcdefghX" + b"y" * 20, 8, 12) == '…"efghXyyyyyyy"…'
    assert quote_around("😀".encode() * 13, 0, 12) == '"' + "😀" * 12 + '"…'
    assert quote_around(b"abcX", 3, 12) == '"abcX"'
    assert quote_around(b"abc", 3, 12) == '"abc"'


def test_the_cut_never_goes_through_a_character():
    data = "é".encode() * 100
    for offset in range(0, 200):
        assert "\\x" not in quote_around(data, offset, 20)


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(4, 40))
def test_what_is_shown_is_short_and_harmless(data: bytes, offset: int, limit: int):
    shown = quote_around(data, min(offset, len(data)), limit)
    assert len(shown.strip("…")) <= limit + 2
    assert not any(
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me") for char in shown
    )


@given(st.binary(max_size=30), st.binary(max_size=30))
def test_different_values_are_shown_differently(left: bytes, right: bytes):
    assert (quote(left, 1000) == quote(right, 1000)) == (left == right)


@given(st.text(st.characters(codec=None), max_size=20))
def test_any_text_can_be_shown_and_printed(text: str):
    quote_text(text).encode("utf-8")
