"""The turns of a stored conversation, as a judge reads them: each message once, with the calls that it asks for.

Every request of an agent replays the history; a request whose messages begin with all that was said before adds only
what is new. What cannot be shown as text is named, never passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from grader.core.judging.turns import Turn, TurnRole
from grader.core.tools.arguments import ContentRules, compact_json
from grader.core.traces.content import TextRules, kept_content
from grader.messages.base import Asked, Json, is_answer, objects, string
from grader.messages.conversation import FORMATS, Conversation

MOST_CHARACTERS = 100_000
"""How many characters of one turn are kept unless told otherwise."""
_ROLES = {
    "system": TurnRole.SYSTEM,
    "developer": TurnRole.SYSTEM,
    "user": TurnRole.USER,
    "assistant": TurnRole.ASSISTANT,
    "model": TurnRole.ASSISTANT,
    "tool": TurnRole.TOOL,
    "function": TurnRole.TOOL,
}
_TEXT_KEYS = (
    *("text", "output", "content", "parts", "refusal", "thinking", "summary", "error"),
    *("toolResult", "functionResponse", "function_response", "aggregated_output"),
)
_DEEPEST = 20


def turns_of(conversation: Conversation, rules: TextRules | None = None) -> tuple[Turn, ...]:
    """The turns, in order. A request without a link has turns without a trace."""
    rules = rules if rules is not None else TextRules(max_characters=MOST_CHARACTERS)
    said: list[tuple[TurnRole, str]] = []
    links: list[str | None] = []
    for request in conversation.requests:
        here = [(_role(message), _text_of(message)) for message in request.messages]
        # What a request repeats of the conversation before it is no new turn.
        repeated = len(said) if not request.continues and said and here[: len(said)] == said else 0
        trace_id = request.link.trace_id if request.link is not None else None
        said.extend(here[repeated:])
        links.extend([trace_id] * (len(here) - repeated))
    return tuple(
        Turn(id=f"M{number}", role=role, content=kept_content(text, "turn", rules), trace_id=trace_id)
        for number, ((role, text), trace_id) in enumerate(zip(said, links, strict=True), start=1)
    )


def _role(message: Json) -> TurnRole:
    kind = string(message.get("type"))
    if kind.endswith(("_call_output", "tool_result")):
        return TurnRole.TOOL
    if kind.endswith("_call") or kind == "reasoning":
        return TurnRole.ASSISTANT
    blocks = list(objects(message.get("content", message.get("parts"))))
    if blocks and all(is_answer(block) for block in blocks):
        return TurnRole.TOOL
    return _ROLES.get(string(message.get("role")), TurnRole.OTHER)


def _text_of(message: Json) -> str:
    parts = [part for key in _TEXT_KEYS for part in _texts(message.get(key), _DEEPEST)]
    for form in FORMATS:
        for item in form.read(message, ContentRules()):
            if isinstance(item, Asked):
                parts.append(f"(asks for the call {item.name} {item.arguments.text or '(arguments not recorded)'})")
    return "\n".join(parts)


def _texts(value: object, depth: int) -> Iterator[str]:
    """The texts in a content: itself, or those of its blocks; a block without any is named by its type."""
    if isinstance(value, str):
        if value:
            yield value
    elif depth == 0:
        yield "(nested deeper than is shown)"
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _texts(item, depth - 1)
    elif isinstance(value, dict):
        block = cast("Json", value)
        if isinstance(block.get("response"), dict) and "name" in block:
            yield compact_json(block["response"])
        found = [text for key in _TEXT_KEYS for text in _texts(block.get(key), depth - 1)]
        yield from found
        kind = string(block.get("type"))
        if not found and kind and not kind.endswith(("_use", "_call")):
            yield f"(a part of type {kind[:60]}, which is not shown)"
