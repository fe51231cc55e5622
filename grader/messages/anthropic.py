"""Messages of the Anthropic Messages API: content blocks `tool_use` and `tool_result`, and tools run by the server."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import ContentRules
from grader.messages.base import Answered, Asked, Item, Json, answer, call_arguments, mapping, objects, string

_USES = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})


class Anthropic:
    """Content blocks; an answer names the call in `tool_use_id`."""

    name = "anthropic"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers in the blocks of one message."""
        for block in objects(message.get("content")):
            kind, call_id = string(block.get("type")), string(block.get("tool_use_id"))
            if kind in _USES and string(block.get("name")):
                given = call_arguments(block.get("input"), rules)
                yield Asked(string(block.get("name")), string(block.get("id")), given)
            elif kind in {"tool_result", "mcp_tool_result"}:
                flag = block.get("is_error")
                yield answer(call_id, block.get("content"), is_error=flag if isinstance(flag, bool) else None)
            elif kind.endswith("_tool_result") and call_id:
                error = string(mapping(block.get("content")).get("type")).endswith("_error")
                yield Answered(call_id, failed=error)
