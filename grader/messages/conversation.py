"""A stored conversation: requests to an agent, each maybe linked to the trace that it left.

Read from JSON, JSON lines or YAML, detected by content:
- a list of messages or items, or an object with `messages`, `input`, `output`, `contents`, `choices`, `candidates` or
  `content`;
- an object with `requests`, a list of such objects; each may have `trace_id` (32 hex digits) or `traceparent` (W3C);
- one such object a line, or one message or item a line, as agents keep their sessions;
- recorded HTTP: an object with `interactions`, each with `request` and `response` (VCR);
- events of `codex exec --json`; a log of Inspect with one sample.
In a list of messages a request begins at every message of the user that is no answer of a tool; it may carry the link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from grader.core.tools.arguments import ContentRules, parse_json
from grader.core.tools.calls import ConversationLinks, EvidenceSource, SourceRead, ToolsPayload
from grader.core.traces.content import storable
from grader.errors import Place, TaskError, TraceError
from grader.messages.anthropic import Anthropic
from grader.messages.base import Item, Json, MessageFormat, is_answer, mapping, objects, string
from grader.messages.bedrock import Bedrock
from grader.messages.codex import KINDS, Codex, is_events, latest_items
from grader.messages.gemini import Gemini
from grader.messages.openai_chat import OpenAIChat
from grader.messages.openai_responses import OpenAIResponses
from grader.messages.recorded_http import messages_of_interaction
from grader.messages.transcript import Transcript
from grader.yaml_source import load

FORMATS: tuple[MessageFormat, ...] = (OpenAIChat(), OpenAIResponses(), Anthropic(), Gemini(), Bedrock(), Codex())
MAX_BYTES = 256 << 20
_LIST_KEYS = ("messages", "input", "contents", "output")
_RECORD_KEYS = frozenset({*_LIST_KEYS, "choices", "candidates", "response", "request", "content"})
_BINARY = frozenset({"tag:yaml.org,2002:binary"})
"""Headers of recorded HTTP are written so; they are not looked at."""
_PLAIN_ITEMS = (
    "message",
    "reasoning",
    "item_reference",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    *("agent_message", "todo_list", "error", *KINDS),
)
_ENVELOPES = ("message", "payload", "item")
_TRACE_ID = re.compile(r"[0-9a-fA-F]{32}\Z")
_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?\Z")
_HINT = (
    "give JSON or YAML with messages of OpenAI Chat, OpenAI Responses, Anthropic, Gemini or Bedrock, or `requests:` "
    "that have such"
)


@dataclass(frozen=True, slots=True)
class Link:
    """The trace that a request left: its id, and the span of the caller when the link was a whole `traceparent`."""

    trace_id: str
    parent_span_id: str | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its messages, and its link if it has one. `continues`: its list goes on from the request before."""

    place: str
    messages: tuple[Json, ...]
    link: Link | None = None
    continues: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """Requests in order, and the name of the source for reports."""

    name: str
    requests: tuple[Request, ...]

    def until(self, requests: int) -> Conversation:
        """The first `requests` requests: evidence for a message is what was done up to it, never what came later."""
        return Conversation(self.name, self.requests[:requests])

    @property
    def trace_ids(self) -> tuple[str, ...]:
        """The traces that the requests are linked to, sorted, each once."""
        return tuple(sorted({request.link.trace_id for request in self.requests if request.link is not None}))

    @property
    def parent_span_ids(self) -> tuple[str, ...]:
        """The caller's spans named in the links: a span under one of them is the root of its trace."""
        found = {request.link.parent_span_id for request in self.requests if request.link is not None}
        return tuple(sorted(span for span in found if span is not None))

    def payload(self, rules: ContentRules | None = None) -> ToolsPayload:
        """The evidence of tool calls in the messages alone."""
        rules = rules if rules is not None else ContentRules()
        transcript, names = Transcript(), set[str]()
        for request in self.requests:
            items = [
                (f"{request.place} message {number}", item)
                for number, message in enumerate(request.messages)
                for item in _items(message, rules, names)
            ]
            transcript.add_request(items, continues=request.continues)
        links = ConversationLinks(
            requests=len(self.requests),
            trace_ids=self.trace_ids,
            unlinked=tuple(request.place for request in self.requests if request.link is None),
        )
        source = SourceRead(
            name=storable(self.name),
            kind=EvidenceSource.MESSAGES,
            encoding=", ".join(sorted(names)) or "messages without calls",
            requests=len(self.requests),
        )
        payload = transcript.payload(retain_content=rules.retain_content)
        strange = sum(_is_strange(message) for request in self.requests for message in request.messages)
        notes = (f"{strange} entries are no messages of a known format",) if strange else ()
        update = {"conversation": links, "sources": (source,), "notes": (*payload.notes, *notes)}
        return payload.model_copy(update=update)


def _is_strange(message: Json) -> bool:
    """Whether an entry is neither a message with a role nor an item of a kind that is known."""
    kind = string(message.get("type"))
    return (
        "role" not in message and "parts" not in message and not kind.endswith(("_call", "_call_output", *_PLAIN_ITEMS))
    )


def _items(message: Json, rules: ContentRules, names: set[str]) -> Iterator[Item]:
    for form in FORMATS:
        for item in form.read(message, rules):
            names.add(form.name)
            yield item


def read_conversation(data: bytes, name: str = "<conversation>") -> Conversation:
    """A conversation from JSON, JSON lines or YAML.

    Raises TraceError, with the place and the mend, for anything that is no conversation, and for a link that is wrong.
    """
    if len(data) > MAX_BYTES:
        raise TraceError(f"larger than {MAX_BYTES >> 20} MiB", where=Place(name), hint="split the conversation")
    requests = tuple(_requests(_decoded(data, name), name))
    if len(requests) == 0:
        raise TraceError("this conversation has no message", where=Place(name), hint=_HINT)
    return Conversation(name, requests)


def _decoded(data: bytes, name: str) -> object:
    text = data.decode("utf-8-sig", "replace") if data[:3] == b"\xef\xbb\xbf" else data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        raise TraceError("this conversation is not UTF-8", where=Place(name), hint="save it as UTF-8")
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return parse_json(text)
        except ValueError as error:
            lines = _json_lines(text)
            if lines is not None:
                return lines if any(_is_message(line) for line in lines) else {"requests": lines}
            where = Place(name, error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else Place(name)
            raise TraceError(f"this conversation is no JSON: {str(error)[:200]}", where=where, hint=_HINT) from None
    try:
        return load(data, name, _BINARY).value
    except TaskError as error:
        first = error.problems[0]
        raise TraceError(
            f"this conversation cannot be read: {first.message}", where=first.where or Place(name), hint=_HINT
        ) from None


def _json_lines(text: str) -> list[object] | None:
    try:
        found = [parse_json(line) for line in text.split("\n") if line.strip()]
    except ValueError:
        return None
    return found if len(found) > 1 else None


def _is_message(line: object) -> bool:
    """Whether a line of a file is a message or an event of an agent's session, and not a whole request."""
    if not isinstance(line, dict):
        return False
    found = cast("Json", line)
    return "role" in found or ("type" in found and any(isinstance(found.get(key), dict) for key in _ENVELOPES))


def _requests(document: object, name: str) -> Iterator[Request]:
    if isinstance(document, dict):
        document = _of_tool(cast("Json", document), name)
    if is_events(document):
        document = list(latest_items(objects(document)))
    if isinstance(document, list):
        entries = cast("list[object]", document)
        if any(_is_record(entry) for entry in entries):
            document = {"requests": entries}
        else:
            yield from _turns(_unwrapped(objects(cast("object", document))), name, None)
            return
    if not isinstance(document, dict):
        raise TraceError("this is no conversation", where=Place(name), hint=_HINT)
    record = cast("Json", document)
    if "interactions" in record:
        yield from _of_recorded_http(record["interactions"])
    elif "requests" in record:
        yield from _listed(record["requests"], name)
    else:
        yield from _turns(tuple(_messages(record, name)), name, _link(record, Place(name), "the conversation"))


def _of_recorded_http(interactions: object) -> Iterator[Request]:
    for number, interaction in enumerate(objects(interactions), start=1):
        messages = _unwrapped(messages_of_interaction(interaction))
        if messages:
            yield Request(f"interaction {number}", messages)


def _listed(entries: object, name: str) -> Iterator[Request]:
    if not isinstance(entries, list):
        raise TraceError("`requests` is no list", where=Place(name), hint=_HINT)
    for number, entry in enumerate(cast("list[object]", entries), start=1):
        place = f"request {number}"
        if isinstance(entry, list):
            yield Request(place, _unwrapped(objects(cast("object", entry))))
        elif isinstance(entry, dict):
            found = cast("Json", entry)
            yield Request(place, tuple(_messages(found, name)), _link(found, Place(name), place))
        else:
            raise TraceError(f"{place} is no object", where=Place(name), hint=_HINT)


def _of_tool(record: Json, name: str) -> object:
    """What is inside the file of a tool that keeps more than messages. Raises TraceError for what is no evidence."""
    if "eval_cases" in record and "eval_set_id" in record:
        raise TraceError(
            "this is an eval set of ADK: it says which calls are expected, not which were made",
            where=Place(name),
            hint="write the expected calls as tool conditions of a task, and give the trace of a run",
        )
    samples = record.get("samples")
    if isinstance(samples, list) and "eval" in record:
        if len(cast("list[object]", samples)) != 1:
            raise TraceError(
                f"this log of Inspect has {len(cast('list[object]', samples))} samples",
                where=Place(name),
                hint="give the messages of one sample",
            )
        return mapping(cast("list[object]", samples)[0])
    named = [key for key, value in record.items() if mapping(value).keys() & _RECORD_KEYS]
    if len(named) == len(record) > 1 and not record.keys() & _RECORD_KEYS:
        raise TraceError(
            f"this file holds {len(named)} conversations: {', '.join(named[:10])[:200]}",
            where=Place(name),
            hint="give one of them",
        )
    if is_events(record.get("events")) and not any(key in record for key in _RECORD_KEYS):
        return record["events"]
    return record


def _is_record(entry: object) -> bool:
    """Whether an entry of a list is a request and not a message: it has messages of its own."""
    if not isinstance(entry, dict):
        return isinstance(entry, list)
    record = cast("Json", entry)
    plain = "role" not in record and "type" not in record
    return plain and any(key in record for key in _RECORD_KEYS - {"output"})


def _messages(record: Json, name: str) -> Iterator[Json]:
    """The messages of a request and, after them, of its response."""
    if not any(key in record for key in _RECORD_KEYS):
        raise TraceError("a request without `messages` or `input`", where=Place(name), hint=_HINT)
    if isinstance(record.get("request"), dict):
        yield from _messages(cast("Json", record["request"]), name)
    for key in _LIST_KEYS:
        if key == "output" and not isinstance(record.get(key), list):
            continue
        yield from _unwrapped(objects(record.get(key)))
    for choice in list(objects(record.get("choices")))[:1]:
        yield from _unwrapped(objects([choice.get("message")]))
    for candidate in list(objects(record.get("candidates")))[:1]:
        yield from objects([candidate.get("content")])
    yield from objects([mapping(record.get("output")).get("message")])
    if isinstance(record.get("content"), list):
        yield {"role": record.get("role", "assistant"), "content": record["content"]}
    if isinstance(record.get("response"), dict):
        yield from _messages(cast("Json", record["response"]), name)


def _unwrapped(messages: Iterable[Json]) -> tuple[Json, ...]:
    """Messages out of the envelope (`{type, message}`, `{type, payload}`) that agents put around them."""
    found: list[Json] = []
    for message in messages:
        inner = next((message[key] for key in _ENVELOPES if isinstance(message.get(key), dict)), None)
        found.append(cast("Json", inner) if inner is not None and "role" not in message else message)
    return tuple(found)


def _turns(messages: tuple[Json, ...], name: str, link: Link | None) -> Iterator[Request]:
    """One list of messages as requests: one begins at each message of the user that answers no call."""
    if len(messages) == 0:
        return
    begins = [at for at, message in enumerate(messages) if at > 0 and _is_turn(message, messages[at - 1])]
    for number, (begin, end) in enumerate(zip([0, *begins], [*begins, len(messages)], strict=True), start=1):
        part, place = messages[begin:end], f"request {number}"
        own = [found for message in part if (found := _link(message, Place(name), place)) is not None]
        if len(set(own)) > 1:
            raise TraceError(f"{place} has two different links", where=Place(name), hint="give one link per request")
        yield Request(place, part, own[0] if own else link, continues=number > 1)


def _is_turn(message: Json, before: Json) -> bool:
    """Messages of the user right after each other are one turn, unless the later one has a link of its own."""
    if not _is_of_user(message):
        return False
    follows = _is_of_user(before) or string(before.get("role")) in {"system", "developer"}
    return not follows or _has_link(message)


def _is_of_user(message: Json) -> bool:
    if message.get("role") != "user":
        return False
    blocks = list(objects(message.get("content", message.get("parts"))))
    return len(blocks) == 0 or not all(is_answer(block) for block in blocks)


def _has_link(record: Json) -> bool:
    return record.get("trace_id") is not None or record.get("traceparent") is not None


def _link(record: Json, where: Place, place: str) -> Link | None:
    trace_id, traceparent = record.get("trace_id"), record.get("traceparent")
    found: Link | None = None
    if traceparent is not None:
        match = _TRACEPARENT.match(traceparent.strip().lower()) if isinstance(traceparent, str) else None
        if match is None or match[1] == "ff" or not match[2].strip("0") or not match[3].strip("0"):
            raise TraceError(
                f"{place} has a traceparent that is none", where=where, hint="00-<32 hex digits>-<16 hex digits>-01"
            )
        found = Link(match[2], match[3])
    if trace_id is not None:
        if not isinstance(trace_id, str) or not _TRACE_ID.match(trace_id) or not trace_id.strip("0"):
            raise TraceError(
                f"{place} has a trace_id that is none", where=where, hint="32 hex digits, in quotes, not all zero"
            )
        if found is not None and found.trace_id != trace_id.lower():
            raise TraceError(f"{place} has a trace_id and a traceparent that differ", where=where, hint="give one")
        found = found if found is not None else Link(trace_id.lower())
    return found
