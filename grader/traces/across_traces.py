"""Calls in different traces that may be one: two instrumentations of one agent can begin a trace each.

Marked (`maybe_same_as`, "between 1 and 2") are pairs, one to one in order of time, of the same tool, of different
traces and different instrumentation scopes, that overlap in time, without two different call ids or arguments. An agent
that serves several requests at once has one scope in all of its traces, so its calls are not marked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from grader.core.tools.arguments import differ
from grader.core.tools.calls import ToolCall
from grader.core.tools.names import same_tool

_FREE_LOOKS = 20_000
_LOOKS_PER_CALL = 32


def marked_across(calls: Sequence[ToolCall], scopes: Mapping[str, str]) -> tuple[ToolCall, ...]:
    """The calls, in the order that is given (of start), with those marked that may be one with an earlier one.

    `scopes` has the instrumentation scope of each span (`TRACE_ID/SPAN_ID`).
    """
    if len({_trace(call) for call in calls}) < 2:
        return tuple(calls)
    looks_left = _FREE_LOOKS + _LOOKS_PER_CALL * len(calls)
    waiting: dict[str, list[ToolCall]] = defaultdict(list)
    found: list[ToolCall] = []
    for call in calls:
        start_ns = call.attempts[0].start_ns if call.attempts else None
        if start_ns is None:
            found.append(call)
            continue
        bucket = min(name.rsplit("__", 1)[-1].rsplit("/", 1)[-1] for name in call.names)
        # Where too many calls are open at once, only the latest is looked at.
        candidates = waiting[bucket] if looks_left > 0 else waiting[bucket][-1:]
        looks_left -= len(candidates)
        candidates = [one for one in candidates if _ends_after(one, start_ns)]
        twin = next((one for one in candidates if _may_be_same(one, call, scopes)), None)
        if twin is None:
            candidates.append(call)
        else:
            candidates.remove(twin)
        waiting[bucket] = candidates
        if twin is not None and call.maybe_same_as is None:
            found.append(call.model_copy(update={"maybe_same_as": twin.key}))
        else:
            found.append(call)
    return tuple(found)


def _may_be_same(one: ToolCall, other: ToolCall, scopes: Mapping[str, str]) -> bool:
    if _trace(one) == _trace(other) or len({one.call_id, other.call_id} - {None}) == 2:
        return False
    if not {scopes.get(span) for span in one.spans}.isdisjoint(scopes.get(span) for span in other.spans):
        return False
    return same_tool(one.names, other.names) and not differ(one.arguments, other.arguments)


def _trace(call: ToolCall) -> str:
    return call.key.partition("/")[0]


def _ends_after(call: ToolCall, moment_ns: int) -> bool:
    end_ns = call.attempts[0].end_ns
    return end_ns is None or end_ns >= moment_ns
