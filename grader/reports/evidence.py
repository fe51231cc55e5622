"""What was read of an agent, in words and as plain data: how complete it is, the calls, and what does not count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from grader.core.conditions import Condition
from grader.core.tools.arguments import ArgumentState, ToolArguments
from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.core.tools.conditions import ToolPrecededBy, ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from grader.core.traces.coverage import Coverage


@dataclass(frozen=True)
class NotCounted:
    """Something that is no execution, or not known to be one: what it is, its names, and why it does not count."""

    kind: str
    names: tuple[str, ...]
    why: str
    where: str


def coverage_in_words(payload: ToolsPayload) -> str:
    """`complete (declared by the caller)`, or `partial: file.cut (...)`; who declared it, and what overrides that."""
    coverage = payload.coverage
    if coverage.is_complete:
        words = f"complete (declared by {coverage.declared_by})"
        return words + (f"; {unlinked_in_words(payload)}" if payload.has_unlinked_requests else "")
    codes = ", ".join(reason.code.value for reason in coverage.why_not_complete())
    words = f"partial: {codes}"
    if is_overridden(coverage):
        words += f" (declared complete by {coverage.declared_by}; these checks override it)"
    return words + (f"; {unlinked_in_words(payload)}" if payload.has_unlinked_requests else "")


def is_overridden(coverage: Coverage) -> bool:
    """Whether somebody declared the evidence complete, and checks found that it is not."""
    return coverage.declared_by is not None and not coverage.is_complete


def unlinked_in_words(payload: ToolsPayload) -> str:
    """How many requests of the conversation are linked to no trace, so that an absence proves nothing."""
    links = payload.conversation
    if links is None or len(links.unlinked) == 0:
        return ""
    verb = "has" if len(links.unlinked) == 1 else "have"
    return f"{len(links.unlinked)} of {_several(links.requests, 'request')} {verb} no trace link"


def size_in_words(payload: ToolsPayload) -> str:
    """How much was read: `12 spans in 1 trace, 3 requests`."""
    parts: list[str] = []
    if len(payload.trace_ids) > 0 or payload.conversation is None:
        spans = sum(source.spans for source in payload.sources)
        parts.append(f"{_several(spans, 'span')} in {_several(len(payload.trace_ids), 'trace')}")
    if payload.conversation is not None:
        parts.append(_several(payload.conversation.requests, "request"))
    return ", ".join(parts)


def not_counted(payload: ToolsPayload) -> tuple[NotCounted, ...]:
    """Everything that looks like an execution and does not count, and calls that were asked for and never ran."""
    found = [
        NotCounted(item.why.value, item.names, item.detail or item.why.text, _first(item.spans, item.messages))
        for item in payload.excluded
    ]
    found.extend(
        NotCounted(item.kind.value, (item.name,), item.detail or _KINDS[item.kind.value], item.where)
        for item in payload.not_executed
    )
    found.extend(NotCounted("possible", (), item.why, f"span {item.span}") for item in payload.possible)
    return tuple(found)


_KINDS = {
    "proposed": "a model asked for it; nothing shows that it ran",
    "deferred": "it waits for an approval, or for someone else to run it",
    "rejected": "it was answered by an error before it ran",
}


def not_counted_in_words(found: Sequence[NotCounted]) -> str:
    """How many of each kind: `2 handoff, 1 proposed`."""
    counts = Counter(item.kind for item in found)
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def find_calls(payload: ToolsPayload, wanted: str) -> list[ToolCall]:
    """The calls that `wanted` names: by name or call id exactly, else as a pattern or a part of a name."""
    tests: tuple[Callable[[ToolCall], bool], ...] = (
        lambda call: wanted in call.names or wanted == call.call_id,
        lambda call: any(fnmatchcase(name, wanted) for name in call.names),
        lambda call: any(wanted.casefold() in name.casefold() for name in call.names),
    )
    for test in tests:
        chosen = [call for call in payload.calls if test(call)]
        if chosen:
            return chosen
    return []


def arguments_in_words(arguments: ToolArguments) -> str:
    """The recorded arguments as their compact JSON text, or why there are none."""
    if arguments.is_recorded:
        kept = arguments.text or ""
        lacking = ", ".join(f"{item.name} {item.why.value}" for item in arguments.not_kept)
        return f"{kept} (not kept: {lacking})" if lacking else kept
    if arguments.state is ArgumentState.UNPARSABLE:
        return f"not readable: {arguments.detail or 'no JSON object'}"
    return f"not recorded: {arguments.why.text}" if arguments.why is not None else "not recorded"


def condition_label(condition: Condition) -> str:
    """What tells a tool condition from others of its type: the tools that it names."""
    if isinstance(condition, ToolPrecededBy):
        return f"{condition.tool} by {condition.by}"
    if isinstance(condition, ToolsNotCalled):
        return ", ".join(condition.tools)
    if isinstance(condition, ToolsCalledInOrder):
        return ", then ".join(str(tool) for tool in condition.tools)
    if isinstance(condition, ToolsCalled):
        named = ", ".join(str(tool) for tool in condition.tools) or "no tool"
        return f"{named}, nothing else" if condition.exhaustive and condition.tools else named
    return ""


def plain_evidence(name: str, payload: ToolsPayload) -> dict[str, object]:
    """The evidence as plain data for JSON. Times are integer nanoseconds since 1970."""
    coverage = payload.coverage
    links = payload.conversation
    return {
        "name": name,
        "complete": coverage.is_complete,
        "declared_by": coverage.declared_by,
        "declaration_overridden": is_overridden(coverage),
        "reasons": [
            {"code": item.code.value, "count": item.count, "detail": item.detail, "text": item.code.text}
            for item in coverage.why_not_complete()
        ],
        "spans": sum(source.spans for source in payload.sources),
        "trace_ids": list(payload.trace_ids),
        "requests": None if links is None else links.requests,
        "unlinked_requests": None if links is None else list(links.unlinked),
        "calls": [_plain_call(call) for call in payload.calls],
        "excluded": [item.model_dump(mode="json") for item in payload.excluded],
        "not_executed": [item.model_dump(mode="json") for item in payload.not_executed],
        "possible": [item.model_dump(mode="json") for item in payload.possible],
        "only_in_messages": list(payload.only_in_messages),
        "sources": [item.model_dump(mode="json") for item in payload.sources],
        "notes": list(payload.notes),
    }


def _plain_call(call: ToolCall) -> dict[str, object]:
    plain = call.model_dump(mode="json", exclude={"attempts"})
    interval = call.attempts[0] if call.attempts else None
    times = (interval.start_ns, interval.end_ns) if interval is not None else (None, None)
    return {**plain, "start_ns": times[0], "end_ns": times[1]}


def _several(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _first(*places: Sequence[str]) -> str:
    return next((place for listed in places for place in listed), "")
