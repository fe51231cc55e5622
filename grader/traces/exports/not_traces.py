"""Well-known JSON that is no trace, so that the message can say what it is and what to do with it."""

from __future__ import annotations

from typing import cast

from grader.traces.exports.base import Json, is_list_of_objects

_CONVERSATION = "it is a conversation, which is given with --conversation"


def why_no_trace(value: object) -> str | None:
    """What a decoded JSON value is instead of a trace, None when that is not known."""
    if isinstance(value, list):
        items = [item for item in cast("list[object]", value)[:1] if not isinstance(item, list)]
        return why_no_trace(items[0]) if items else None
    if not isinstance(value, dict):
        return None
    record = cast("Json", value)
    if "eval_cases" in record and "eval_set_id" in record:
        return "it is an eval set of ADK, which says what calls are expected, not which were made"
    if isinstance(record.get("observations"), list):
        return "its observations are only named; export the trace with its observations"
    if "requests" in record or "messages" in record or ("role" in record and "content" in record):
        return _CONVERSATION
    if "contents" in record or "interactions" in record or "choices" in record or "parts" in record:
        return _CONVERSATION
    if "type" in record and ("item" in record or "call_id" in record):
        return _CONVERSATION
    events = record.get("events")
    if is_list_of_objects(events) and "item" in cast("list[Json]", events)[0]:
        return _CONVERSATION
    if "samples" in record and "eval" in record:
        return "it is a log of Inspect without events; its messages are given with --conversation"
    return None
