"""Contents of Google's Gemini API and of ADK: parts with `functionCall` and `functionResponse`, in either spelling."""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import ContentRules
from grader.core.tools.calls import ExclusionReason
from grader.messages.base import Answered, Asked, Item, Json, answer, call_arguments, mapping, objects, string

_REFUSALS = {
    "INVALID_ARGUMENTS": ExclusionReason.INVALID_ARGUMENTS,
    "TOOL_NOT_FOUND": ExclusionReason.NOT_FOUND,
    "FUNCTION_NOT_FOUND": ExclusionReason.NOT_FOUND,
}
"""`error_code` of a response that says that nothing ran; when in doubt a call does not count."""


class Gemini:
    """Parts of a content. Most calls have no id: an answer names the function."""

    name = "gemini"

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers in the parts of one content."""
        for part in objects(message.get("parts")):
            call = mapping(part.get("functionCall", part.get("function_call")))
            if string(call.get("name")):
                given = call_arguments(call.get("args", {}), rules)
                yield Asked(string(call.get("name")), string(call.get("id")), given)
            response = mapping(part.get("functionResponse", part.get("function_response")))
            if string(response.get("name")):
                yield _answer(response)


def _answer(response: Json) -> Answered:
    call_id, name = string(response.get("id")), string(response.get("name"))
    content = mapping(response.get("response"))
    why = _REFUSALS.get(string(content.get("error_code")).upper())
    if why is not None:
        return Answered(call_id, name, failed=True, refused=why, detail=string(content.get("error"))[:200])
    return answer(call_id, content, name=name, is_error=True if content.get("error") is not None else None)
