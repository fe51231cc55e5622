"""Notes that a receiver writes between the requests it kept: what was sent and is not in the file.

One JSON object a line, `{"graderReceived": {...}}` with any of:
- `reasons`: coverage reasons, such as `{"code": "capture.failed", "count": 1, "detail": "..."}`;
- `sendAgain`: SHA-256 of bodies whose sender was told to send them again later; `cameAgain`: those that then came.

A note can only speak against completeness, so a file that others wrote can do no harm with one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

from pydantic import ValidationError

from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.traces.span import ReadNotes

KEY = "graderReceived"
_MOST_CHARACTERS = 300


def is_note(value: object) -> bool:
    """Whether a decoded line is such a note."""
    return isinstance(value, dict) and KEY in value


def read_note(value: object, notes: ReadNotes) -> None:
    """Take in a note; one that cannot be read is counted as a damaged record."""
    content = cast("dict[str, object]", value)[KEY]
    if not isinstance(content, dict):
        notes.bad_record("a note of a receiver that is no object")
        return
    entries = cast("dict[str, object]", content)
    try:
        for item in _list(entries.get("reasons")):
            reason = CoverageReason.model_validate(item)
            notes.report(reason.code, reason.detail[:_MOST_CHARACTERS], reason.count)
        notes.awaited.update(str(digest) for digest in _list(entries.get("sendAgain")))
        notes.awaited.difference_update(str(digest) for digest in _list(entries.get("cameAgain")))
    except ValidationError:
        notes.bad_record("a note of a receiver that is not understood")


def check_awaited(notes: ReadNotes) -> None:
    """At the end of a source: what was to be sent again and never came is missing."""
    if notes.awaited:
        detail = "told to send spans again later, a sender did not"
        notes.report(CoverageCode.CAPTURE_FAILED, detail, len(notes.awaited))


def note_line(
    reasons: Iterable[CoverageReason] = (), send_again: Iterable[str] = (), came_again: Iterable[str] = ()
) -> bytes:
    """A note as a line of a file of JSON lines."""
    content: dict[str, object] = {}
    listed = [reason.model_dump(mode="json") for reason in reasons]
    for name, items in (("reasons", listed), ("sendAgain", list(send_again)), ("cameAgain", list(came_again))):
        if items:
            content[name] = items
    return json.dumps({KEY: content}, separators=(",", ":")).encode() + b"\n"


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
