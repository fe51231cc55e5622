"""Messages of Amazon Bedrock's Converse API and of Strands: content blocks `toolUse` and `toolResult`."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import ContentRules
from grader.messages.base import Asked, Item, Json, answer, call_arguments, mapping, objects, string


class Bedrock:
    """Content blocks with one key each; an answer names the call in `toolUseId`."""

    name = "bedrock"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers in the blocks of one message."""
        for block in objects(message.get("content")):
            use, result = mapping(block.get("toolUse")), mapping(block.get("toolResult"))
            if string(use.get("name")):
                given = call_arguments(use.get("input"), rules)
                yield Asked(string(use.get("name")), string(use.get("toolUseId")), given)
            if string(result.get("toolUseId")):
                is_error = {"error": True, "success": False}.get(string(result.get("status")))
                yield answer(string(result.get("toolUseId")), result.get("content"), is_error=is_error)
