"""Items of the OpenAI Responses API: `function_call` and `function_call_output`, and tools that the provider runs."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import NOT_RECORDED, ContentRules
from grader.messages.base import Answered, Asked, Item, Json, answer, call_arguments, mapping, refusal, string

_CALLS = frozenset({"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call"})
_OUTPUTS = frozenset(f"{kind}_output" for kind in _CALLS)
_HOSTED = {
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
}
"""Run by the provider: one item is the call and its end."""


class OpenAIResponses:
    """Items with a `type`; a call and its output share `call_id` (`id` is the item's own)."""

    name = "openai_responses"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers of one item."""
        kind = string(message.get("type"))
        call_id = string(message.get("call_id")) or string(message.get("id"))
        if kind in _CALLS:
            yield _asked(kind, call_id, message, rules)
        elif kind in _OUTPUTS:
            yield answer(call_id, message.get("output"))
        elif kind in _HOSTED:
            yield Asked(_HOSTED[kind], call_id, NOT_RECORDED)
            if string(message.get("status")) in {"completed", "failed"}:
                yield Answered(call_id, failed=message.get("status") == "failed")
        elif kind == "mcp_call":
            yield Asked(string(message.get("name")) or kind, call_id, call_arguments(message.get("arguments"), rules))
            yield from _mcp_answer(call_id, message)
        elif kind == "mcp_approval_request":
            given = call_arguments(message.get("arguments"), rules)
            yield Asked(string(message.get("name")) or kind, call_id, given, is_deferred=True)


def _asked(kind: str, call_id: str, item: Json, rules: ContentRules) -> Asked:
    if kind in {"function_call", "custom_tool_call"}:
        given = item.get("arguments" if kind == "function_call" else "input")
        return Asked(string(item.get("name")) or kind, call_id, call_arguments(given, rules))
    action = item.get("action")
    return Asked(kind.removesuffix("_call"), call_id, call_arguments(action, rules) if action else NOT_RECORDED)


def _mcp_answer(call_id: str, item: Json) -> Iterator[Item]:
    error = item.get("error")
    if error is not None:
        text = error if isinstance(error, str) else string(mapping(error).get("message"))
        yield Answered(call_id, failed=True, refused=refusal(text), detail=text[:200])
    elif item.get("output") is not None:
        yield Answered(call_id, failed=False)
