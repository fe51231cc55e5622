"""What is kept of a text that an agent saw or wrote: its beginning, and length and SHA-256 of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.core.canonical import sha256_hex

MOST_CHARACTERS = 4_000
"""How many characters of one text are kept unless told otherwise."""

TextRedactor = Callable[[str, str], str]
"""Gets (what it is, such as `input` or `turn`, and the text) and gives the text to keep."""


class WhyNotKept(StrEnum):
    """Why nothing of a text is kept."""

    NOT_RETAINED = "not_retained"
    REDACTED = "redacted"
    UNREADABLE = "unreadable"
    NO_ROOM = "no_room"

    @property
    def text(self) -> str:
        """The reason in words, to follow "not kept: "."""
        return _WHY_TEXTS[self]


_WHY_TEXTS = {
    WhyNotKept.NOT_RETAINED: "this source keeps no content",
    WhyNotKept.REDACTED: "it was redacted",
    WhyNotKept.UNREADABLE: "the trace has it in a form that cannot be read",
    WhyNotKept.NO_ROOM: "the trace has more content than is kept",
}


class TraceContent(BaseModel):
    """A text. `text` is its kept beginning, None if nothing is kept, and then `why` says why.

    `total_characters` and `sha256` (64 hex digits, of the UTF-8) are those of the whole text after redaction; None
    where the whole was never seen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    total_characters: int | None = Field(default=None, ge=0)
    sha256: str | None = None
    why: WhyNotKept | None = None

    @model_validator(mode="after")
    def _has_text_or_says_why(self) -> TraceContent:
        if (self.text is None) == (self.why is None):
            raise ValueError("a content has a text or says why not")
        return self

    @property
    def is_cut(self) -> bool:
        """Whether only the beginning is kept."""
        return self.text is not None and self.total_characters is not None and len(self.text) < self.total_characters


@dataclass(frozen=True, slots=True)
class TextRules:
    """What is kept of texts: whether at all, how many characters at most, and a redactor run before hashing."""

    retain_content: bool = True
    max_characters: int = MOST_CHARACTERS
    redactor: TextRedactor | None = None


NOT_RETAINED = TraceContent(why=WhyNotKept.NOT_RETAINED)
REDACTED = TraceContent(why=WhyNotKept.REDACTED)
UNREADABLE = TraceContent(why=WhyNotKept.UNREADABLE)


def kept_content(text: str, what: str, rules: TextRules) -> TraceContent:
    """A text by the rules: redacted first, then measured and hashed, then cut."""
    if not rules.retain_content:
        return NOT_RETAINED
    text = storable(text)
    if rules.redactor is not None:
        text = storable(rules.redactor(what, text))
    digest = sha256_hex(text.encode("utf-8"))
    return TraceContent(text=text[: max(0, rules.max_characters)], total_characters=len(text), sha256=digest)


def without_room(content: TraceContent) -> TraceContent:
    """The same content when there is no room for its text: length and digest are kept."""
    if content.text is None:
        return content
    return TraceContent(why=WhyNotKept.NO_ROOM, total_characters=content.total_characters, sha256=content.sha256)


def storable(text: str) -> str:
    """The text with lone surrogates written as escapes, so that it can be stored as UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
