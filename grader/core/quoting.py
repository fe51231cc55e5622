"""Showing what a program produced so that it can be read, told apart, and never acts on a terminal.

The rules: valid UTF-8 is shown as it is; a control character is shown as its control picture (newline is `␊`); a byte
that is not UTF-8 as `\\xNN`; everything else that is invisible, moves the cursor, changes the writing direction, joins
to what stands before it, or has no agreed meaning as `\\uNNNN`; a quote and a backslash with a backslash. What is shown
stands in double quotes, and an ellipsis *outside* them says that something was left out there.

Character properties come from the frozen Unicode 3.2 tables, which are the same in every Python: a verdict's words
must not change with the interpreter. Pictographs, which are younger, are let through by their range.
"""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import ucd_3_2_0

DEFAULT_LIMIT = 80
"""How many characters a quoted excerpt has at most, without its quotes and ellipses."""

_ELLIPSIS = "…"
# Letters, marks that take up space, numbers, punctuation, symbols. Not: combining marks (Mn, Me), separators other
# than the ASCII space, controls, formats (bidi), surrogates, private use, unassigned.
_SHOWN_CATEGORIES = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mc", "Nd", "Nl", "No"))
_SHOWN_CLASSES = frozenset("PS")
_CONTROL_PICTURES = range(0x2400, 0x2440)
_PICTOGRAPHS = range(0x1F300, 0x1FB00)
# Emoji skin tones join to the pictograph before them.
_SKIN_TONES = range(0x1F3FB, 0x1F400)
# Letters and punctuation in Unicode 3.2, invisible or joining since: soft hyphen, Khmer vowels, Mongolian Baluda.
_INVISIBLE_SINCE = frozenset((0xAD, 0x17B4, 0x17B5, 0x1885, 0x1886))

_ASCII = [chr(0x2400 + code) for code in range(0x20)] + [chr(code) for code in range(0x20, 0x7F)] + ["␡"]
_ASCII[ord('"')] = '\\"'
_ASCII[ord("\\")] = "\\\\"


def quote(data: bytes, limit: int = DEFAULT_LIMIT) -> str:
    """`data` from its beginning in double quotes, cut with an ellipsis after `limit` characters."""
    return quote_around(data, 0, limit)


def quote_text(text: str, limit: int = DEFAULT_LIMIT) -> str:
    """As `quote`, for text; lone surrogates in it are shown as `\\udNNN`."""
    shown, is_whole = _fill((_shown(char) for char in text), limit)
    return f'"{shown}"' + ("" if is_whole else _ELLIPSIS)


def quote_around(data: bytes, offset: int, limit: int = DEFAULT_LIMIT) -> str:
    """The part of `data` around the byte at `offset` in double quotes, with an ellipsis on each side that was cut.

    All of `data` if it fits. Takes time in `limit`, not in the length of `data`.
    """
    if len(data) <= 4 * limit:
        shown, is_whole = _fill((_shown_byte(char) for char in data.decode("utf-8", "surrogateescape")), limit)
        if is_whole:
            return f'"{shown}"'
    before_limit = limit // 3
    # A character has at most four bytes, so one that this start goes through is too far away to be shown.
    start = max(0, offset - 4 * before_limit)
    middle = _character_start(data, offset)
    before = [_shown_byte(char) for char in data[start:middle].decode("utf-8", "surrogateescape")]
    lead, lead_is_whole = _fill(reversed(before), before_limit, prepend=True)
    # More characters than can be shown, so that what lies beyond them is never taken for the end.
    after = data[middle : middle + 4 * limit + 4].decode("utf-8", "surrogateescape")
    rest, rest_is_whole = _fill((_shown_byte(char) for char in after), limit - len(lead))
    is_cut_before = start > 0 or not lead_is_whole
    return f'{_ELLIPSIS if is_cut_before else ""}"{lead}{rest}"{"" if rest_is_whole else _ELLIPSIS}'


def _fill(pieces: Iterator[str], limit: int, *, prepend: bool = False) -> tuple[str, bool]:
    """Pieces joined up to `limit` characters, and whether all of them fitted."""
    taken: list[str] = []
    length = 0
    for piece in pieces:
        length += len(piece)
        if length > limit:
            return "".join(reversed(taken) if prepend else taken), False
        taken.append(piece)
    return "".join(reversed(taken) if prepend else taken), True


def _character_start(data: bytes, offset: int) -> int:
    """The start of the UTF-8 character that the byte at `offset` belongs to (`offset` itself if it belongs to none)."""
    for start in range(offset, max(-1, offset - 4), -1):
        if start >= len(data) or data[start] & 0xC0 != 0x80:
            return start
    return offset


def _shown_byte(char: str) -> str:
    """How one character of `decode("utf-8", "surrogateescape")` is shown."""
    code = ord(char)
    return f"\\x{code - 0xDC00:02X}" if 0xDC80 <= code <= 0xDCFF else _shown(char)


def _shown(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return _ASCII[code]
    category = ucd_3_2_0.category(char)
    is_shown = category in _SHOWN_CATEGORIES or category[0] in _SHOWN_CLASSES or code in _PICTOGRAPHS
    # A control picture in the data must not look like a control character in the data.
    if is_shown and code not in _CONTROL_PICTURES and code not in _SKIN_TONES and code not in _INVISIBLE_SINCE:
        return char
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
