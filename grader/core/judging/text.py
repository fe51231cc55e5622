"""Text of others on lines of a judge's reading: never a line of its own making, never the name of a turn or step.

Every line of such text stands behind a bar. Line separators of any kind begin a new such line; what is invisible,
moves a cursor or changes the writing direction is written as an escape; an opening bracket that would begin the name of
a turn, step or fact (`[T1]`, also in look-alike characters) is written as an escape.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

BAR = "    | "
"""What every line of such text begins with."""

_SHOWN_CLASSES = frozenset("LNPS")
_SHOWN_CATEGORIES = frozenset(("Mn", "Mc"))
# Default-ignorable characters that are letters or marks by category: they are invisible.
_INVISIBLE = frozenset(
    (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0)
) | frozenset(range(0xFE00, 0xFE10)) | frozenset(range(0xE0100, 0xE01F0))  # fmt: skip
_LOOKALIKES = {
    **dict.fromkeys("ΤτТтᎢꓔ⊤⟙ᛏтҬҭŦŧƬƭȚțŢţŤťＴｔ𐊗𐊱𐌕", "t"),
    **dict.fromkeys("ΜМмᎷꓟϺᛖⅯⅿϻ𐊰𐌑", "m"),
    **dict.fromkeys("ϜϝғҒꓝꞘꞙſƑƒ𐊇𐊥", "f"),
    **dict.fromkeys("⁅⟦⟬〔【〖〘〚❲⦋⦍⦏⸢⸤⌈⌊｢「『︗﹇﹝［⎡⎢⎣", "["),
    **dict.fromkeys("ιІӀⅠⅰ|∣ǀ", "l"),
    **dict.fromkeys("оОοΟօ", "o"),
}
_NAME = re.compile(r"\[(?=\W{0,8}[tmf]\W{0,8}(?:[0-9]|[oil]+\W))")
"""A bracket that begins a name in folded text; letters that look like digits count when nothing else is there."""


def barred(text: str) -> list[str]:
    """The lines of a text, each behind the bar; an empty text is one empty line."""
    return [BAR + harmless(line) for line in text.splitlines() or [""]]


def harmless(line: str) -> str:
    """One line with everything escaped that could act or pass for a name."""
    names = {match.start() for match in _NAME.finditer(folded(line) + " ")} if _may_name(line) else set[int]()
    if not names and line.isascii() and line.isprintable():
        return line
    return "".join(_escaped(char) if at in names else _shown(char) for at, char in enumerate(line))


def folded(text: str) -> str:
    """The text with every character as the plain one that it looks like; one for one, so that places agree."""
    return "".join(_fold(char) for char in text)


def _may_name(line: str) -> bool:
    return "[" in line or not line.isascii()


@lru_cache(maxsize=8192)
def _fold(char: str) -> str:
    known = _LOOKALIKES.get(char)
    if known is not None:
        return known
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKD", char)
    first = next((part for part in plain if not unicodedata.combining(part)), char)
    return _LOOKALIKES.get(first, first).lower()[0]


@lru_cache(maxsize=8192)
def _shown(char: str) -> str:
    if char in " \t":
        return char
    category = unicodedata.category(char)
    shown = category[0] in _SHOWN_CLASSES or category in _SHOWN_CATEGORIES
    return char if shown and ord(char) not in _INVISIBLE else _escaped(char)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
