"""A trace and the messages of the same requests together: one call that both show is one call.

Calls are matched by call id (arguments that the two tell differently are in conflict then); a call of the trace that
has no id is matched by name, when the arguments do not differ, in order. What is left over in the messages is an
execution that the trace does not have: it counts, and unless the trace could not have it (its request has no link), an
absence in the evidence proves nothing any more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from grader.core.tools.arguments import combined
from grader.core.tools.calls import OrderEdge, ToolCall, ToolsPayload
from grader.core.tools.names import same_tool
from grader.core.traces.coverage import CoverageCode, CoverageReason

MAX_CANDIDATES = 1_000
"""How many calls of one name and content, or one id, are compared with a call of the messages."""
_BLANK = re.compile(" ")
_ANY, _UNKNOWN = "any", "unknown"
"""Kinds of lists beside those of one content: all calls, and those whose arguments are not recorded."""


def with_messages(trace: ToolsPayload, messages: ToolsPayload) -> ToolsPayload:
    """The evidence of both. `trace` keeps its declaration of completeness, which a conflict overrides."""
    partner = _matches(trace.calls, messages.calls)
    by_key = {call.key: call for call in trace.calls}
    place: dict[str, str] = {}
    alone: list[ToolCall] = []
    for call in messages.calls:
        key = partner.get(call.key)
        if key is None:
            alone.append(call)
            place[call.key] = call.key
        else:
            by_key[key] = _joined(by_key[key], call)
            place[call.key] = key
    unlinked = frozenset(messages.conversation.unlinked if messages.conversation is not None else ())
    in_conflict = [call for call in alone if not _is_unlinked(call, unlinked)]
    conflicting = tuple(call.key for call in in_conflict)
    coverage = trace.coverage
    if conflicting:
        names = sorted({name for call in in_conflict for name in call.names})
        coverage = coverage.with_reasons(
            CoverageReason(code=CoverageCode.MESSAGES_CONFLICT, count=len(conflicting), detail=", ".join(names)[:500])
        )
    edges = {(place[edge.before], place[edge.after]) for edge in messages.order_edges}
    known_ids = {call.call_id for call in (*trace.calls, *trace.excluded) if call.call_id is not None}
    return trace.model_copy(
        update={
            "calls": (*(by_key[call.key] for call in trace.calls), *alone),
            "excluded": (*trace.excluded, *messages.excluded),
            "not_executed": (
                *trace.not_executed,
                *(item for item in messages.not_executed if item.call_id not in known_ids),
            ),
            "order_edges": tuple(
                OrderEdge(before=before, after=after) for before, after in sorted(edges) if before != after
            ),
            "coverage": coverage,
            "conversation": messages.conversation,
            "only_in_messages": conflicting,
            "sources": (*trace.sources, *messages.sources),
            "retain_content": trace.retain_content and messages.retain_content,
            "notes": (*trace.notes, *messages.notes),
        }
    )


@dataclass(slots=True)
class _Waiting:
    """Calls of the trace that have no partner yet: by group (a call id, a name) and arguments, each in their order."""

    taken: set[str]
    may_share_id: bool
    """Whether two calls that both have an id can be one."""
    lists: dict[tuple[str, str], list[ToolCall]] = field(
        default_factory=lambda: defaultdict[tuple[str, str], list[ToolCall]](list)
    )

    def add(self, group: str, call: ToolCall) -> None:
        for kind in (_ANY, _content(call)):
            self.lists[group, kind].append(call)

    def take(self, group: str, call: ToolCall, *, is_strict: bool = True) -> ToolCall | None:
        """The first with equal recorded arguments, else the first whose arguments do not differ.

        Not strict: the first, whatever its arguments.
        """
        content = _content(call)
        for kind in (content, _UNKNOWN) if is_strict and content != _UNKNOWN else (_ANY,):
            found = self._first(self.lists.get((group, kind), []), call)
            if found is not None:
                self.taken.add(found.key)
                return found
        return None

    def _first(self, waiting: list[ToolCall], call: ToolCall) -> ToolCall | None:
        found, gone = None, 0
        for one in waiting[:MAX_CANDIDATES]:
            if one.key in self.taken:
                gone += 1
            elif (self.may_share_id or one.call_id is None or call.call_id is None) and same_tool(
                one.names, call.names
            ):
                found = one
                break
        if gone > MAX_CANDIDATES // 4:
            # Seldom enough that all of it takes no longer than the calls are many.
            waiting[:] = [one for one in waiting if one.key not in self.taken]
            return found if found is not None else self._first(waiting, call)
        return found


def _content(call: ToolCall) -> str:
    return f"sha256:{call.arguments.sha256}" if call.arguments.is_recorded else _UNKNOWN


def _matches(traced: tuple[ToolCall, ...], told: tuple[ToolCall, ...]) -> dict[str, str]:
    """Key of a call of the messages -> key of the same call in the trace."""
    taken: set[str] = set()
    by_id, by_name = _Waiting(taken, may_share_id=True), _Waiting(taken, may_share_id=False)
    for call in traced:
        if call.call_id is not None:
            by_id.add(call.call_id, call)
    partner = _same_ids(by_id, told)
    told_ids = {call.call_id for call in told}
    for call in traced:
        if call.key not in taken and (call.call_id is None or call.call_id not in told_ids):
            for short in {_short(name) for name in call.names}:
                by_name.add(short, call)
    for call in told:
        if call.key not in partner:
            found = by_name.take(_short(call.names[0]), call)
            if found is not None:
                partner[call.key] = found.key
    return partner


def _same_ids(waiting: _Waiting, told: tuple[ToolCall, ...]) -> dict[str, str]:
    partner: dict[str, str] = {}
    # First those whose arguments agree; a call that is left with its id is the same call, with arguments in conflict.
    for is_strict in (True, False):
        for call in told:
            if call.call_id is not None and call.key not in partner:
                found = waiting.take(call.call_id, call, is_strict=is_strict)
                if found is not None:
                    partner[call.key] = found.key
    return partner


def _short(name: str) -> str:
    return name.rsplit("__", 1)[-1].rsplit("/", 1)[-1]


def _joined(traced: ToolCall, told: ToolCall) -> ToolCall:
    return traced.model_copy(
        update={
            "names": tuple(sorted({*traced.names, *told.names})),
            "arguments": combined(traced.arguments, told.arguments),
            "call_id": traced.call_id if traced.call_id is not None else told.call_id,
            "messages": told.messages,
            "sources": tuple(sorted({*traced.sources, *told.sources})),
            "failed": traced.failed if traced.failed is not None else told.failed,
        }
    )


def _is_unlinked(call: ToolCall, unlinked: frozenset[str]) -> bool:
    """Whether the call may belong to a request without a link, whose trace nobody can name.

    What stands before a blank in a place of a call may be the name of a request.
    """
    return any(where[: blank.start()] in unlinked for where in call.messages for blank in _BLANK.finditer(where))
