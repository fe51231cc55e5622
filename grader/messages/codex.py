"""Items of `codex exec --json`: commands, calls over MCP, changes of files, searches; each with its state.

An item comes several times as its state changes; `latest_items` keeps what is known of each at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from grader.core.tools.arguments import NOT_RECORDED, ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.messages.base import Answered, Asked, Item, Json, call_arguments, string

KINDS = frozenset({"command_execution", "file_change", "mcp_tool_call", "web_search"})
_ARGUMENTS = {"command_execution": "command", "file_change": "changes", "web_search": "query"}
_ENDED = frozenset({"completed", "failed"})


class Codex:
    """Items by their type; one item is the call and, when it ended, its answer."""

    name = "codex"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The call in one item, and its end."""
        kind, call_id = string(message.get("type")), string(message.get("id"))
        if kind not in KINDS:
            return
        name = kind
        if kind == "mcp_tool_call":
            name = string(message.get("tool")) or kind
            given = call_arguments(message.get("arguments"), rules)
        else:
            key = _ARGUMENTS[kind]
            given = call_arguments({key: message[key]}, rules) if message.get(key) is not None else NOT_RECORDED
        yield Asked(name, call_id, given)
        # A search has no state: it is told when it is over.
        status = string(message.get("status")) or ("completed" if kind == "web_search" else "")
        if status == "declined":
            yield Answered(call_id, name, failed=True, refused=ExclusionReason.DENIED, detail="declined")
        elif status in _ENDED:
            yield Answered(call_id, name, failed=status == "failed" or message.get("exit_code") not in (None, 0))


def is_events(value: object) -> bool:
    """Whether a list has events of `codex exec --json`: objects whose type begins with `item.`, `turn.` or `thread.`"""
    if not isinstance(value, list):
        return False
    kinds = [
        string(cast("Json", event).get("type")) for event in cast("list[object]", value) if isinstance(event, dict)
    ]
    return any(kind.startswith("item.") for kind in kinds) and all(
        kind.startswith(("item.", "turn.", "thread.", "error")) for kind in kinds
    )


def latest_items(events: Iterable[Json]) -> tuple[Json, ...]:
    """Each item once, in order of its first event, as its last event shows it."""
    items: dict[str, Json] = {}
    for number, event in enumerate(events):
        item = event.get("item")
        if isinstance(item, dict):
            found = cast("Json", item)
            items[string(found.get("id")) or f"event {number}"] = found
    return tuple(items.values())
