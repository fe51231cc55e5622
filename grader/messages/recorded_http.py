"""Requests to a model's API and its answers as VCR and its relatives record them, one file for a whole run.

A body is decoded already (`parsed_body`) or JSON text (`body`, or `string` in it). What is no JSON, as answers in
pieces are, is passed over: what the model answered stands in the history of the next request.
"""

from __future__ import annotations

from collections.abc import Iterator

from grader.core.tools.arguments import parse_json
from grader.messages.base import Json, mapping, objects


def messages_of_interaction(interaction: Json) -> Iterator[Json]:
    """The messages of one request and of its answer; nothing for a request to something else."""
    request, response = (_body(mapping(interaction.get(key))) for key in ("request", "response"))
    for key in ("messages", "input", "contents"):
        yield from objects(request.get(key))
    yield from _answer(response)


def _answer(response: Json) -> Iterator[Json]:
    for choice in list(objects(response.get("choices")))[:1]:
        yield from objects([choice.get("message")])
    for candidate in list(objects(response.get("candidates")))[:1]:
        yield from objects([candidate.get("content")])
    yield from objects(response.get("output"))
    yield from objects([mapping(response.get("output")).get("message")])
    if isinstance(response.get("content"), list):
        yield {"role": response.get("role", "assistant"), "content": response["content"]}


def _body(side: Json) -> Json:
    for key in ("parsed_body", "body", "json_body"):
        found = side.get(key)
        found = mapping(found).get("string", found)
        if isinstance(found, str):
            try:
                found = parse_json(found)
            except ValueError:
                continue
        if mapping(found):
            return mapping(found)
    return {}
