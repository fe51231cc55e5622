"""Which calls of a conversation were executed: calls paired with their answers, each counted once.

An answer belongs to the *latest unanswered* request of its id that stands before it; without an id, to the first of its
name in the latest message that asked for such. Every request of an agent replays the history; so the n-th call with one
id, name and arguments in a request is the n-th such call of the conversation; and a call that had no id when the model
asked for it may have one in the history, made up by the client. (When ids are used again with the same arguments this
counts too few calls, never too many.)
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

from grader.core.tools.calls import (
    EvidenceSource,
    Excluded,
    NotExecuted,
    NotExecutedKind,
    OrderEdge,
    ToolCall,
    ToolsPayload,
)
from grader.core.traces.content import storable
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason
from grader.messages.base import Answered, Asked, Item
from grader.messages.open_calls import ConversationCall, OpenCalls

MAX_EDGES = 100_000
MAX_PARALLEL = 1_000


@dataclass(slots=True)
class _Request:
    """What is known inside one request while it is read.

    `answered` are the executed calls whose results stand before what is read next, without those that are before
    another one of them; `before` has that set as it was when a call was asked for. `passed` says how many of the calls
    that are alike cannot be the same as one that is asked for later in this request.
    """

    seen: dict[tuple[str, str, str], int] = field(default_factory=lambda: defaultdict[tuple[str, str, str], int](int))
    met: set[int] = field(default_factory=set[int])
    open: OpenCalls = field(default_factory=OpenCalls)
    passed: dict[tuple[str, str, bool], int] = field(default_factory=dict[tuple[str, str, bool], int])
    answered: dict[int, None] = field(default_factory=dict[int, None])
    before: dict[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]])


@dataclass(slots=True)
class Transcript:
    """Takes the requests of a conversation one after the other, each as (place, item) in order."""

    calls: list[ConversationCall] = field(default_factory=list[ConversationCall])
    edges: dict[tuple[int, int], None] = field(default_factory=dict[tuple[int, int], None])
    unpaired: int = 0
    left_out_edges: bool = False
    _known: dict[tuple[str, str, str, int], ConversationCall] = field(
        default_factory=dict[tuple[str, str, str, int], ConversationCall]
    )
    _open: OpenCalls = field(default_factory=lambda: OpenCalls(skips_answered=True))
    _alike: dict[tuple[str, str], list[ConversationCall]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], list[ConversationCall]](list)
    )
    _request: _Request = field(default_factory=_Request)

    def add_request(self, items: list[tuple[str, Item]], *, continues: bool = False) -> None:
        """The items of one request: its replayed history, new messages, and the model's answer if it is there.

        `continues`: the items follow on those of the request before, in one list of messages.
        """
        if not continues:
            self._request = _Request()
        for where, item in items:
            # Names and ids as they can be stored, before anything is compared: JSON may have halves of characters.
            named = replace(item, name=storable(item.name), call_id=storable(item.call_id))
            if isinstance(named, Asked):
                self._ask(named, where, self._request)
            else:
                self._answer(named, where, self._request)

    def _ask(self, item: Asked, where: str, request: _Request) -> None:
        content = (item.call_id, item.name, item.arguments.sha256 or "")
        request.seen[content] += 1
        key = (*content, request.seen[content])
        call = self._known.get(key)
        if call is None:
            call = self._known[key] = self._without_id(item, request) or self._new(item, where)
        request.met.add(call.number)
        request.open.add(item.call_id, call)
        if len(self.edges) + len(request.answered) > MAX_EDGES or len(request.answered) > MAX_PARALLEL:
            self.left_out_edges = True
            return
        request.before[call.number] = tuple(request.answered)
        for earlier in request.answered:
            self.edges[(earlier, call.number)] = None

    def _new(self, item: Asked, where: str) -> ConversationCall:
        call = ConversationCall(len(self.calls), item, where)
        self.calls.append(call)
        self._open.add(item.call_id, call)
        alike = self._alike[(item.name, item.arguments.sha256 or "")]
        if len(alike) < MAX_PARALLEL:
            alike.append(call)
        return call

    def _without_id(self, item: Asked, request: _Request) -> ConversationCall | None:
        """The same call as an earlier request has it, when one of the two has no id."""
        name, arguments = item.name, item.arguments.sha256 or ""
        alike, has_id = self._alike[(name, arguments)], item.call_id != ""
        # One that was met, or has another id, stays so: the next of its kind in this request need not look there again.
        at = request.passed.get((name, arguments, has_id), 0)
        while at < len(alike) and (alike[at].number in request.met or (has_id and alike[at].asked.call_id)):
            at += 1
        request.passed[(name, arguments, has_id)] = at
        if at == len(alike):
            return None
        call = alike[at]
        call.asked = call.asked if call.asked.call_id else item
        return call

    def _answer(self, item: Answered, where: str, request: _Request) -> None:
        call = request.open.take(item)
        if call is None:
            # A request that has new messages only: the call stands in an earlier one.
            call = self._open.take(item)
        if call is None:
            self.unpaired += 1
            return
        if call.answer is None:
            call.answer, call.answered_where = item, where
        if call.was_executed:
            for earlier in request.before.get(call.number, ()):
                request.answered.pop(earlier, None)
            request.answered[call.number] = None

    def payload(self, *, retain_content: bool) -> ToolsPayload:
        """The evidence: partial, because messages never show everything that ran."""
        executed = [call for call in self.calls if call.was_executed]
        numbers = {call.number for call in executed}
        answered_ids = {(call.asked.call_id, call.asked.name) for call in self.calls if call.answer is not None}
        notes: list[str] = []
        if self.unpaired:
            notes.append(f"{self.unpaired} answers belong to no call that was recorded before them")
        if self.left_out_edges:
            notes.append(f"more than {MAX_EDGES} pairs of calls are known to be ordered; the rest was left out")
        return ToolsPayload(
            calls=tuple(_executed(call) for call in executed),
            excluded=tuple(_refused(call) for call in self.calls if call.answer and call.answer.refused),
            not_executed=tuple(
                _not_executed(call)
                for call in self.calls
                if not call.was_executed
                and (call.answer is not None or (call.asked.call_id, call.asked.name) not in answered_ids)
            ),
            order_edges=tuple(
                OrderEdge(before=f"messages/{first}", after=f"messages/{second}")
                for first, second in sorted(self.edges)
                if first in numbers and second in numbers
            ),
            coverage=Coverage(reasons=(CoverageReason(code=CoverageCode.MESSAGES_ONLY),)),
            retain_content=retain_content,
            notes=tuple(notes),
        )


def _executed(call: ConversationCall) -> ToolCall:
    return ToolCall(
        key=call.key,
        names=(call.asked.name,),
        arguments=call.asked.arguments,
        call_id=call.asked.call_id or None,
        messages=tuple(dict.fromkeys((call.where, call.answered_where))),
        sources=(EvidenceSource.MESSAGES,),
        failed=call.answer.failed if call.answer is not None else None,
    )


def _refused(call: ConversationCall) -> Excluded:
    assert call.answer is not None
    assert call.answer.refused is not None
    return Excluded(
        why=call.answer.refused,
        names=(call.asked.name,),
        call_id=call.asked.call_id or None,
        messages=tuple(dict.fromkeys((call.where, call.answered_where))),
        detail=storable(call.answer.detail),
    )


def _not_executed(call: ConversationCall) -> NotExecuted:
    kind = NotExecutedKind.DEFERRED if call.asked.is_deferred else NotExecutedKind.PROPOSED
    if call.answer is not None:
        kind = NotExecutedKind.REJECTED
    return NotExecuted(
        kind=kind,
        name=call.asked.name,
        call_id=call.asked.call_id or None,
        where=call.where,
        detail=call.answer.refused.text if call.answer is not None and call.answer.refused is not None else "",
    )
