"""What a chat-completions endpoint answered: the text, the model, the tokens; or why there is no answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from grader.core.judging.judgement import Failure, Tokens
from grader.core.quoting import quote_text
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import parse_json

_OVERFLOW = re.compile(
    r"context_length_exceeded|context[ _-](?:length|window|size|limit)|maximum context|prompt is too long"
    r"|too many (?:input )?tokens|input is too long|exceeds? .{0,40}\b(?:context|token limit)",
    re.IGNORECASE,
)
_NO_STRUCTURE = re.compile(r"response_format|json_schema|structured output|guided", re.IGNORECASE)
_MOST_MODEL_NAME = 200
_LARGEST_COUNT = 2**53


@dataclass(frozen=True)
class Completion:
    """One answer: a text, or why there is none."""

    content: str | None
    failure: Failure | None
    model: str | None = None
    tokens: Tokens = field(default_factory=Tokens)


def read_completion(body: bytes) -> Completion:
    """What the body of an answer with status 200 says. Never raises."""
    try:
        value = parse_json(body.decode("utf-8"))
    except ValueError:
        return _failed("the endpoint's answer is no JSON", None, Tokens())
    if not isinstance(value, dict):
        return _failed("the endpoint's answer is no JSON object", None, Tokens())
    record = cast("Mapping[str, object]", value)
    name = record.get("model")
    model = name[:_MOST_MODEL_NAME] if isinstance(name, str) else None
    tokens = _tokens(record.get("usage"))
    choice = _first(record.get("choices"))
    message = _mapping(choice.get("message"))
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        return _failed(f"the judge refused: {quote_text(refusal, 200)}", model, tokens)
    reason = choice.get("finish_reason")
    if reason == "content_filter":
        return _failed("the judge's answer was withheld by a content filter", model, tokens)
    text = _text(message.get("content"))
    if text is None:
        return _failed("the endpoint's answer has no choices[0].message.content", model, tokens)
    if reason == "length":
        return _failed(f"the judge's answer was cut at its token limit: {quote_text(text)}", model, tokens)
    return Completion(text, None, model, tokens)


def is_overflow(status: int, body: str) -> bool:
    """Whether an error says that the request does not fit the model's context."""
    return status in {400, 413, 422} and (status == 413 or _OVERFLOW.search(body) is not None)


def lacks_structured_output(status: int, body: str) -> bool:
    """Whether an error says that the endpoint does not know structured output."""
    return status in {400, 404, 422, 501} and _NO_STRUCTURE.search(body) is not None


def error_text(body: str) -> str:
    """The message of an error, as far as it has one."""
    try:
        value = parse_json(body)
    except ValueError:
        return quote_text(body, 200) if body.strip() else "without a word"
    record = _mapping(value)
    error = record.get("error", record.get("message", record.get("detail")))
    message = _mapping(cast("object", error)).get("message") if isinstance(error, dict) else error
    return quote_text(message, 200) if isinstance(message, str) and message else quote_text(body, 200)


def _failed(detail: str, model: str | None, tokens: Tokens) -> Completion:
    return Completion(None, Failure(code=ReasonCode.JUDGE_UNPARSABLE, detail=detail), model, tokens)


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = [_mapping(item).get("text") for item in cast("list[object]", value)]
    return "".join(part for part in parts if isinstance(part, str)) if parts else None


def _tokens(value: object) -> Tokens:
    usage = _mapping(value)
    return Tokens(prompt=_count(usage.get("prompt_tokens")), completion=_count(usage.get("completion_tokens")))


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _LARGEST_COUNT else None


def _first(value: object) -> Mapping[str, object]:
    return _mapping(cast("list[object]", value)[0]) if isinstance(value, list) and value else {}


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
