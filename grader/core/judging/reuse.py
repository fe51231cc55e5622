"""When a stored judgement stands in for a new one: on the same evidence, or when only worse evidence can be got now.

A judgement that rests on a trace is never replaced by one that has seen less of it.
"""

from __future__ import annotations

from grader.core.observation import Acquisition, Observation
from grader.core.traces.execution_trace import ExecutionTrace

_RANK = {Acquisition.ERROR: 0, Acquisition.UNAVAILABLE: 0, Acquisition.PARTIAL: 1, Acquisition.COMPLETE: 2}


def why_reusable(stored: Observation | None, now: Observation | None, scope_now: tuple[str, ...] = ()) -> str | None:
    """Why a judgement on `stored` may be reused, in words; None if the judge must be asked again.

    Both are `execution_trace` observations, None without a source of traces; `scope_now` are the traces that would be
    asked for then.
    """
    if stored is None:
        return "the evidence is the same: no trace" if now is None else None
    then = stored.payload
    if not isinstance(then, ExecutionTrace):
        return None
    if now is None:
        has_seen_more = _RANK[stored.acquisition] > 0 and then.scope_ids == scope_now
        return "no trace can be got now" if has_seen_more else None
    current = now.payload
    if not isinstance(current, ExecutionTrace):
        return None
    if stored.acquisition is now.acquisition and _same(then, current):
        return "the evidence is the same"
    if then.scope_ids != current.scope_ids:
        return None
    before, after = _RANK[stored.acquisition], _RANK[now.acquisition]
    if after < before:
        return f"the trace is {now.acquisition.value} now, and was {stored.acquisition.value}"
    if after == before and current.spans < then.spans:
        gone = len(then.spans) - len(current.spans)
        return f"{gone} of {len(then.spans)} steps are gone now"
    return None


def _same(then: ExecutionTrace, current: ExecutionTrace) -> bool:
    """Whether they hold the same, wherever it was read from."""
    return (then.steps, then.coverage, then.scope_ids) == (current.steps, current.coverage, current.scope_ids)
