"""What a message format is, and what all of them have in common: asking for a call, answering it, refusing it.

To add a format, add one file beside this one with a class that has `name` and `read`, and list it in `conversation.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from grader.core.tools.arguments import (
    NOT_RECORDED,
    ContentRules,
    ToolArguments,
    parse_json,
    recorded_arguments,
    unparsable_arguments,
)
from grader.core.tools.calls import ExclusionReason

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Asked:
    """A model asked for a call. `call_id` is empty when the format or the producer gives none.

    `is_deferred`: it waits for an approval.
    """

    name: str
    call_id: str
    arguments: ToolArguments
    is_deferred: bool = False


@dataclass(frozen=True, slots=True)
class Answered:
    """A call was answered. `refused` says why nothing ran, when the answer is a dispatch error."""

    call_id: str
    name: str = ""
    failed: bool | None = None
    refused: ExclusionReason | None = None
    detail: str = ""


Item = Asked | Answered


class MessageFormat(Protocol):
    """How one API writes messages."""

    @property
    def name(self) -> str:
        """Its name in reports."""
        ...

    def read(self, message: Json, rules: ContentRules) -> Iterator[Item]:
        """The calls and answers in one message, in order; nothing for a message of another format. Never raises."""
        ...


_HEAD = 600
_TOOL = r"(?:tools?|functions?)"
_REFUSALS: tuple[tuple[ExclusionReason, re.Pattern[str]], ...] = (
    (
        ExclusionReason.NOT_FOUND,
        re.compile(
            rf"\b(?:unknown|no such|unrecogni[sz]ed|invalid|non-?existent) {_TOOL}\b"
            r"(?! (?:argument|parameter|input|call))"
            rf"|\bno {_TOOL} (?:named|called|with (?:the )?name)\b"
            rf"|\b{_TOOL}\b[^.\n]{{0,100}}\b(?:not found|does not exist|doesn't exist|not registered|not defined)\b"
            rf"|\bis not a (?:valid|known|registered) {_TOOL}\b"
        ),
    ),
    (
        ExclusionReason.INVALID_ARGUMENTS,
        re.compile(
            r"\binvalid (?:tool )?(?:arguments?|parameters?|inputs?)\b|\binput ?validation ?error\b"
            r"|\b[0-9]+ validation errors?\b|\b(?:argument|schema) validation (?:failed|error)\b"
            r"|\bmissing [0-9]+ required (?:positional |keyword-only )?arguments?\b"
            r"|\b(?:failed to parse|error parsing|could not parse) (?:the )?(?:tool )?(?:arguments|input)\b"
            r"|\binvalid json\b[^.\n]{0,40}\b(?:arguments|input)\b"
            r"|\bmissing required (?:argument|parameter)s?\b|\bunexpected keyword argument\b"
            r"|\bmandatory input parameters? (?:is|are) not present\b"
        ),
    ),
    (
        ExclusionReason.DENIED,
        re.compile(
            r"\b(?:user|human|operator|approver)\b[^.\n]{0,60}\b(?:denied|rejected|declined|refused|doesn't want)\b"
            rf"|\b{_TOOL}(?: (?:call|use|execution))?[^.\n]{{0,60}}\b(?:was|were|has been|is)(?: not)? "
            r"(?:denied|rejected|declined|approved|allowed|permitted)\b"
            r"|\bpermission to use\b[^.\n]{0,60}\bdenied\b|\brequires? approval\b|\brequested permissions? to use\b"
        ),
    ),
)
"""Texts with which frameworks answer a call that they did not run. On doubt a call does not count: messages can then
neither confirm it nor refute anything with it."""


def refusal(text: str) -> ExclusionReason | None:
    """Why nothing ran, when the text of an answer is a dispatch error. Only its beginning is looked at."""
    head = text[:_HEAD].lower()
    for why, pattern in _REFUSALS:
        if pattern.search(head):
            return why
    return None


def answer(call_id: str, content: object, *, name: str = "", is_error: bool | None = None) -> Answered:
    """An answer with this content (a text, or blocks with a text each)."""
    text = text_of(content)
    why = refusal(text) if is_error is not False else None
    return Answered(call_id, name, failed=is_error, refused=why, detail=text[:200] if why is not None else "")


def text_of(content: object) -> str:
    """The text of a content: itself, or its blocks' texts one after the other."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [text_of(item) for item in cast("list[object]", content)[:50]]
        return "\n".join(part for part in parts if part)
    if isinstance(content, dict):
        found = cast("Json", content)
        text = found.get("text", found.get("output", found.get("error")))
        return text if isinstance(text, str) else ""
    return ""


def call_arguments(value: object, rules: ContentRules) -> ToolArguments:
    """The arguments of a call: an object, or its JSON text."""
    if value is None:
        return NOT_RECORDED
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            return unparsable_arguments(value, rules, detail=f"no JSON: {error}"[:200])
    return recorded_arguments(value, rules)


def is_answer(block: Json) -> bool:
    """Whether a block of a message is the answer to a call: then the message is no turn of the user."""
    if string(block.get("type")).endswith("tool_result"):
        return True
    return any(isinstance(block.get(key), dict) for key in ("toolResult", "functionResponse", "function_response"))


def string(value: object) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> Iterator[Json]:
    """The objects in a list; nothing for anything that is no list."""
    if isinstance(value, list):
        yield from (cast("Json", item) for item in cast("list[object]", value) if isinstance(item, dict))


def mapping(value: object) -> Json:
    """The value when it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}
