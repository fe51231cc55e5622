"""The only way from an observation, or any text that others wrote, to a terminal, XML or Markdown.

Whatever a program prints, or a task names, becomes characters that take up space and do nothing: no escape sequence,
no change of the writing direction, no invisible character, no broken encoding. See `grader.core.quoting` for the rules.
"""

from __future__ import annotations

from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

from grader.core.quoting import quote_text

LONGEST_LINE = 2000
_TAB_WIDTH = 8
_PLAIN = '"\\'
_PICTURES = range(0x2400, 0x2440)
"""Control pictures: what is already quoted shows control characters by them."""


def safe_line(text: str, limit: int = LONGEST_LINE) -> str:
    """`text` on one line, harmless everywhere; cut with an ellipsis after `limit` characters."""
    if len(text) > limit:
        return safe_line(text[:limit], limit) + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join(_safe(char) for char in text)


def safe_lines(data: bytes | str, limit: int = LONGEST_LINE) -> list[str]:
    """The lines of what a program wrote, each harmless. Tabs become spaces; a final newline makes no empty line."""
    if isinstance(data, bytes):
        data = data.decode("utf-8", "surrogateescape")
    lines = data.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [_safe_with_tabs(line, limit) for line in lines]


def xml_text(text: str) -> str:
    """`text` as the content of an XML 1.0 element; newlines are kept, everything else that is not plain is shown."""
    return escape("\n".join(safe_line(line) for line in text.split("\n")))


def xml_attribute(text: str) -> str:
    """`text` as an attribute value of XML 1.0, with its quotes, on one line."""
    return quoteattr(safe_line(text))


def markdown_text(text: str) -> str:
    """`text` inside a Markdown table cell or sentence: nothing in it is markup."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]()<>#+-.!|~&$@:" else char for char in safe_line(text))


def _safe_with_tabs(line: str, limit: int) -> str:
    """Tabs are expanded by the width of what is shown, which is not that of what stands there."""
    shown = ""
    for index, part in enumerate(line.split("\t")):
        if index > 0:
            shown += " " * (_TAB_WIDTH - len(shown) % _TAB_WIDTH)
        shown += safe_line(part, limit)
        if len(shown) > limit:
            return shown[:limit] + "…"
    return shown


@lru_cache(maxsize=4096)
def _safe(char: str) -> str:
    code = ord(char)
    if char in _PLAIN or code in _PICTURES:
        return char
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as surrogateescape reads it
        return f"\\x{code - 0xDC00:02X}"
    return quote_text(char, limit=12)[1:-1]
