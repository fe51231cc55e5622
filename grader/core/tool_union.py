"""A trace and the messages of the same requests together: one call that both show is one call.

Calls are matched by call id (arguments that the two tell differently are in conflict then); a call of the trace that
has no id is matched by name, when the arguments do not differ, in order. What is left over in the messages is an
execution that the trace does not have: it counts, and unless the trace could not have it (its request has no link), an
absence in the evidence proves nothing any more.
"""

from __future__ import annotations

from collections import defaultdict

from grader.core.coverage import CoverageCode, CoverageReason
from grader.core.tool_arguments import combined, differ
from grader.core.tool_calls import OrderEdge, ToolCall, ToolsPayload
from grader.core.tool_names import same_tool

MAX_CANDIDATES = 1_000
"""How many calls of one name are compared with a call of the messages that has no partner by id."""


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
    conflicting = tuple(call.key for call in alone if not _is_unlinked(call, messages))
    coverage = trace.coverage
    if conflicting:
        names = sorted({name for call in alone for name in call.names if call.key in conflicting})
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


def _matches(traced: tuple[ToolCall, ...], told: tuple[ToolCall, ...]) -> dict[str, str]:
    """Key of a call of the messages -> key of the same call in the trace."""
    by_id: dict[str, list[ToolCall]] = defaultdict(list)
    for call in traced:
        if call.call_id is not None:
            by_id[call.call_id].append(call)
    partner: dict[str, str] = {}
    # First those whose arguments agree; a call that is left with its id is the same call, with arguments in conflict.
    for is_strict in (True, False):
        for call in told:
            waiting = by_id.get(call.call_id, []) if call.call_id is not None and call.key not in partner else []
            at = _first_fitting(call, waiting) if is_strict else _first_of_tool(call, waiting)
            if at is not None:
                partner[call.key] = waiting.pop(at).key
    taken = set(partner.values())
    told_ids = {call.call_id for call in told}
    free: dict[str, list[ToolCall]] = defaultdict(list)
    for call in traced:
        if call.key not in taken and (call.call_id is None or call.call_id not in told_ids):
            for name in call.names:
                free[_short(name)].append(call)
    for call in told:
        if call.key in partner:
            continue
        waiting = free[_short(call.names[0])]
        waiting[:] = [one for one in waiting[:MAX_CANDIDATES] if one.key not in taken] + waiting[MAX_CANDIDATES:]
        candidates = [one for one in waiting[:MAX_CANDIDATES] if one.call_id is None or call.call_id is None]
        at = _first_fitting(call, candidates)
        if at is not None:
            partner[call.key] = candidates[at].key
            taken.add(candidates[at].key)
    return partner


def _short(name: str) -> str:
    return name.rsplit("__", 1)[-1].rsplit("/", 1)[-1]


def _first_of_tool(call: ToolCall, candidates: list[ToolCall]) -> int | None:
    return next((at for at, one in enumerate(candidates) if same_tool(one.names, call.names)), None)


def _first_fitting(call: ToolCall, candidates: list[ToolCall]) -> int | None:
    """The first with equal recorded arguments, else the first whose arguments do not differ."""
    fitting = [at for at, one in enumerate(candidates) if same_tool(one.names, call.names)]
    recorded = [
        at
        for at in fitting
        if candidates[at].arguments.is_recorded and not differ(candidates[at].arguments, call.arguments)
    ]
    if recorded and call.arguments.is_recorded:
        return recorded[0]
    possible = [at for at in fitting if not differ(candidates[at].arguments, call.arguments)]
    return possible[0] if possible else None


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


def _is_unlinked(call: ToolCall, messages: ToolsPayload) -> bool:
    """Whether the call may belong to a request without a link, whose trace nobody can name."""
    unlinked = messages.conversation.unlinked if messages.conversation is not None else ()
    return any(where.startswith(f"{request} ") for where in call.messages for request in unlinked)
