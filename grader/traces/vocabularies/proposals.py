"""Calls that a model asked for, in the shapes in which producers write a model's answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from grader.traces.arguments import NOTHING, json_of
from grader.traces.vocabularies.base import Proposal

UNNAMED = Proposal("", None)
"""A model asked for a call, and which is not recorded."""
_FINISHED_WITH_CALLS = frozenset({"tool_calls", "tool_call", "tool_use", "function_call", "tool-calls"})
_HOSTED_ITEMS = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"),
    *("server_tool_use", "mcp_tool_use", "web_search_tool_result"),
)
"""Kinds of parts of an answer of a model that say that its provider ran a tool."""


def trusted_id(value: object) -> str | None:
    """A call id, None when there is none or a placeholder stands for it."""
    return value if isinstance(value, str) and value and value not in NOTHING else None


def proposal(name: object, call_id: object) -> Iterator[Proposal]:
    """One proposal, none if there is no name."""
    if isinstance(name, str) and name:
        yield Proposal(name, trusted_id(call_id))


def objects_in(value: object) -> Iterator[dict[str, object]]:
    """The objects of a list, or of its JSON text."""
    found = json_of(value)
    for item in cast("list[object]", found) if isinstance(found, list) else []:
        if isinstance(item, dict):
            yield cast("dict[str, object]", item)


def in_parts(value: object) -> Iterator[Proposal]:
    """`[{"role": ..., "parts": [{"type": "tool_call", "id": ..., "name": ...}]}]`, or its JSON text."""
    for part in parts_of(value, "tool_call"):
        yield from proposal(part.get("name"), part.get("id"))


def parts_of(value: object, kind: str) -> Iterator[dict[str, object]]:
    """The parts of one type in such messages."""
    if isinstance(value, str) and f'"{kind}"' not in value:
        return
    for message in objects_in(value):
        yield from (part for part in objects_in(message.get("parts")) if part.get("type") == kind)


def in_tool_calls(value: object) -> Iterator[Proposal]:
    """`tool_calls` as OpenAI Chat writes them: a list, a message that has it, or the JSON text of either."""
    found = json_of(value)
    if isinstance(found, dict):
        found = cast("dict[str, object]", found).get("tool_calls")
    for call in objects_in(found):
        function = call.get("function")
        inner = cast("dict[str, object]", function) if isinstance(function, dict) else call
        yield from proposal(inner.get("name"), call.get("id"))


def in_blocks(value: object) -> Iterator[Proposal]:
    """Content blocks of Bedrock (`{"toolUse": {...}}`) and Anthropic (`{"type": "tool_use", ...}`), or their text."""
    if isinstance(value, str) and "toolUse" not in value and "tool_use" not in value:
        return
    for block in objects_in(value):
        use = block.get("toolUse")
        if isinstance(use, dict):
            found = cast("dict[str, object]", use)
            yield from proposal(found.get("name"), found.get("toolUseId"))
        elif block.get("type") == "tool_use":
            yield from proposal(block.get("name"), block.get("id"))


def in_response(value: object) -> Iterator[Proposal]:
    """A response of OpenAI's Responses API, or its JSON text: items of the kind `function_call` in its `output`."""
    if isinstance(value, str) and '_call"' not in value:
        return
    found = json_of(value)
    for item in objects_in(cast("dict[str, object]", found).get("output") if isinstance(found, dict) else None):
        if item.get("type") in ("function_call", "custom_tool_call"):
            yield from proposal(item.get("name"), item.get("call_id"))


def finished_with_calls(reasons: object) -> bool:
    """Whether the reasons with which a model's answer ended say that it asked for a call."""
    found = json_of(reasons) if isinstance(reasons, str) and reasons.startswith("[") else reasons
    listed: Iterable[object] = cast("list[object]", found) if isinstance(found, list) else [found]
    return any(isinstance(reason, str) and reason.lower() in _FINISHED_WITH_CALLS for reason in listed)


def has_hosted_items(text: object) -> bool:
    """Whether the JSON text of a model's answer has items of tools that its provider ran."""
    return isinstance(text, str) and any(f'"{kind}"' in text for kind in _HOSTED_ITEMS)
