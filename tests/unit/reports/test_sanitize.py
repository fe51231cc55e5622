"""Hostile text: whatever goes in, what comes out takes up space and does nothing."""

from __future__ import annotations

import unicodedata
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from grader.reports.sanitize import markdown_text, safe_line, safe_lines, xml_attribute, xml_text

ANY_TEXT = st.text(st.characters(codec=None), max_size=60) | st.sampled_from(
    [
        "\x1b[31m",
        "\x9b31m",
        "\u202e\u2066",
        "\r\n\x00\x7f",
        "\ud800\udfff",
        "\ufffe\uffff",
        "a\u0301",
        "e\u200b\ufeff",
        "]]>",
    ]
)
HARMLESS = {"L", "M", "N", "P", "S"}


def is_harmless(text: str) -> bool:
    """Pictographs that are younger than this Python's tables are let through."""
    kinds = {unicodedata.category(char) for char in text if char != " " and not 0x1F300 <= ord(char) < 0x1FB00}
    return all(kind[0] in HARMLESS and kind not in {"Mn", "Me"} for kind in kinds)


@given(ANY_TEXT)
def test_a_line_has_only_characters_that_take_up_space(text: str) -> None:
    shown = safe_line(text)
    assert is_harmless(shown)
    shown.encode("utf-8")
    assert safe_line(shown) == shown


@given(st.binary(max_size=200))
def test_any_bytes_become_harmless_lines(data: bytes) -> None:
    lines = safe_lines(data)
    assert all(is_harmless(line) for line in lines)
    assert len(lines) == len(data.removesuffix(b"\n").split(b"\n")) or data in {b"", b"\n"}


@given(ANY_TEXT, ANY_TEXT)
def test_xml_parses_and_gives_back_what_was_shown(content: str, attribute: str) -> None:
    element = ET.fromstring(f"<a b={xml_attribute(attribute)}>{xml_text(content)}</a>")
    assert element.get("b") == safe_line(attribute)
    assert (element.text or "") == "\n".join(safe_line(line) for line in content.split("\n"))


def test_what_is_seen_is_told_apart() -> None:
    assert safe_line('\x1b[2Ja\u202eb\\ "q" ␊') == '␛[2Ja\\u202eb\\ "q" ␊'
    assert safe_lines(b"a\tb\r\n\xff\x00c\n") == ["a       b␍", "\\xFF␀c"]
    assert safe_lines(b"no newline") == ["no newline"]
    assert safe_lines(b"") == []
    assert safe_lines("a\n\nb\n") == ["a", "", "b"]


def test_a_tab_is_as_wide_as_what_is_shown_before_it() -> None:
    assert safe_lines(b"\xff\tx") == ["\\xFF    x"]


def test_long_lines_are_cut() -> None:
    assert safe_line("x" * 50, 10) == "x" * 10 + "…"
    assert len(safe_lines(b"\x00" * 10_000_000 + b"\t" * 100)[0]) <= 2001


def test_markdown_has_no_markup_left() -> None:
    assert markdown_text("a|b `c` [d](e) <f>\n# g") == "a\\|b \\`c\\` \\[d\\]\\(e\\) \\<f\\>␊\\# g"
