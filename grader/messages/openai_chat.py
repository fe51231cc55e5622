"""Messages of the OpenAI Chat Completions API: `tool_calls`, and answers with the role `tool`."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.messages.base import Answered, Asked, Item, Json, answer, call_arguments, mapping, objects, string

_DISPATCH_ERROR_TYPES = {"parsing": ExclusionReason.INVALID_ARGUMENTS, "approval": ExclusionReason.DENIED}
"""`error.type` of stored tool messages that means that nothing ran; time-outs and other errors did run."""


class OpenAIChat:
    """Role `assistant` with `tool_calls` (or the old `function_call`), role `tool` (or the old `function`)."""

    name = "openai_chat"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers of one message."""
        role = string(message.get("role"))
        if role == "assistant":
            for call in objects(message.get("tool_calls")):
                kind = "custom" if isinstance(call.get("custom"), dict) else "function"
                function = mapping(call.get(kind))
                name = string(function.get("name"))
                given = function.get("input" if kind == "custom" else "arguments")
                if name:
                    yield Asked(name, string(call.get("id")), call_arguments(given, rules))
            old = mapping(message.get("function_call"))
            if string(old.get("name")):
                yield Asked(string(old.get("name")), "", call_arguments(old.get("arguments"), rules))
        elif role in {"tool", "function"} and ("tool_call_id" in message or role == "function"):
            yield _answer(message)


def _answer(message: Json) -> Answered:
    call_id, name = string(message.get("tool_call_id")), string(message.get("name", message.get("function")))
    error = mapping(message.get("error"))
    why = _DISPATCH_ERROR_TYPES.get(string(error.get("type")))
    if why is not None:
        return Answered(call_id, name, failed=True, refused=why, detail=string(error.get("message"))[:200])
    if error:
        return Answered(call_id, name, failed=True)
    return answer(call_id, message.get("content"), name=name)
