"""The part of a text report, and of `grader show`, that is about evidence of what an agent did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from grader.core.conditions import Condition
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.core.verdict import ConditionVerdict, Finding
from grader.reports.evidence import (
    arguments_in_words,
    condition_label,
    coverage_in_words,
    find_calls,
    not_counted,
    not_counted_in_words,
    size_in_words,
)
from grader.reports.grading import Grading, reasons_of_not
from grader.reports.look import COLORS, MARKS, TextOptions, pad, paint, reason, text_width
from grader.reports.sanitize import safe_line
from grader.scorers.order import duration

MOST_CALLS = 10
"""How many calls are listed unless all are asked for."""
MOST_LISTED = 200
"""How many of everything else are listed even then."""
LONGEST_NAME = 40
LONGEST_ARGUMENTS = 60
_LONGEST_RATIONALE = 1000
_CODE_COLUMNS = 22


def scored_lines(item: Grading, look: TextOptions) -> list[str]:
    """Every condition with its reasons, how complete the evidence is, and the executions that were found."""
    payload = item.tools
    assert payload is not None
    lines: list[str] = []
    for condition, verdict in zip(item.task.conditions, item.verdict.conditions, strict=True):
        lines.extend(_condition(condition, verdict, payload, look))
    lines.extend(evidence_lines(payload, look))
    lines.extend(calls_lines(payload, look))
    lines.extend(_not_counted(payload, look))
    lines.extend(f"note: {safe_line(note, 400)}" for note in payload.notes)
    if look.show_all:
        lines.extend(_sources(payload))
    return lines


def calls_report(payload: ToolsPayload, wanted: str) -> str | None:
    """The calls that `wanted` names in full, and what of that name does not count; None if there is nothing."""
    chosen = find_calls(payload, wanted)
    others = [item for item in not_counted(payload) if wanted in item.names]
    if not chosen and not others:
        return None
    clock = _Clock(payload)
    lines: list[str] = []
    for call in chosen[:MOST_LISTED]:
        lines.extend([*_call_in_full(call, clock), ""])
    if len(chosen) > MOST_LISTED:
        lines.append(f"and {len(chosen) - MOST_LISTED:,} more calls")
    for item in others[:MOST_LISTED]:
        lines.append(f"not counted: {item.kind}  {safe_line(item.why, 400)}  {safe_line(item.where)}".rstrip())
    return "\n".join(lines).rstrip("\n") + "\n"


def _condition(
    condition: Condition, verdict: ConditionVerdict, payload: ToolsPayload, look: TextOptions, indent: str = ""
) -> Iterator[str]:
    mark = paint(MARKS[verdict.value], COLORS[verdict.value], look)
    label = safe_line(condition_label(condition), 200)
    yield f"{indent}{mark} {verdict.condition_type}  {label}".rstrip()
    if verdict.parts:
        yield from (f"{indent}    {reason(one, _LONGEST_RATIONALE, _CODE_COLUMNS)}" for one in reasons_of_not(verdict))
        for part, inner in zip(condition.parts(), verdict.parts, strict=True):
            yield from _condition(part, inner, payload, look, indent + "  ")
    elif verdict.findings:
        findings = _told(verdict.findings, payload)
        yield from (f"{indent}    {reason(one, _LONGEST_RATIONALE, _CODE_COLUMNS)}" for one in findings)
    elif verdict.rationale:
        yield f"{indent}    {safe_line(verdict.rationale, _LONGEST_RATIONALE)}"


def _told(findings: Sequence[Finding], payload: ToolsPayload) -> Sequence[Finding]:
    """The findings without that no conversation was read, where nobody gave one and the trace says more."""
    if payload.conversation is not None:
        return findings
    return [one for one in findings if one.code is not ReasonCode.EVIDENCE_NOT_COLLECTED] or findings


def evidence_lines(payload: ToolsPayload, look: TextOptions) -> Iterator[str]:
    """How complete the evidence is, and how much was read."""
    yield f"evidence: {safe_line(coverage_in_words(payload))}    {size_in_words(payload)}"
    if look.show_all:
        for found in payload.coverage.why_not_complete():
            yield f"    {pad(found.code.value, 18)} {safe_line(str(found), 400)}"
        if payload.conversation is not None:
            for place in payload.conversation.unlinked[:MOST_LISTED]:
                yield f"    {pad('no trace link', 18)} {safe_line(place)}"


def calls_lines(payload: ToolsPayload, look: TextOptions) -> Iterator[str]:
    """The executions, with when they ran and their arguments."""
    if len(payload.calls) == 0:
        yield "executions: none"
        return
    clock = _Clock(payload)
    since = f", times from {clock.zero_in_words}" if clock.zero_in_words else ""
    yield f"executions: {len(payload.calls):,}{since}"
    shown = payload.calls if look.show_all else payload.calls[:MOST_CALLS]
    rows = [(*clock.of(call), _names(call)) for call in shown]
    widths = [max(text_width(row[column]) for row in rows) for column in range(3)]
    for call, row in zip(shown, rows, strict=True):
        columns = "  ".join(pad(cell, columns) for cell, columns in zip(row, widths, strict=True))
        said = [columns, safe_line(arguments_in_words(call.arguments), LONGEST_ARGUMENTS), *_remarks(call, payload)]
        yield "    " + "  ".join(said)
    if len(shown) < len(payload.calls):
        yield f"    and {len(payload.calls) - len(shown):,} more (--all lists them)"


def _not_counted(payload: ToolsPayload, look: TextOptions) -> Iterator[str]:
    found = not_counted(payload)
    if len(found) == 0:
        return
    more = "" if look.show_all else "  (--all lists them)"
    yield f"not counted: {not_counted_in_words(found)}{more}"
    if not look.show_all:
        return
    for item in found[:MOST_LISTED]:
        names = safe_line(", ".join(item.names) or "without a name", LONGEST_NAME)
        yield f"    {pad(item.kind, 18)} {names}  {safe_line(item.why, 400)}  {safe_line(item.where)}".rstrip()
    if len(found) > MOST_LISTED:
        yield f"    and {len(found) - MOST_LISTED:,} more"


def _sources(payload: ToolsPayload) -> Iterator[str]:
    yield "read:"
    for source in payload.sources[:MOST_LISTED]:
        size = f"{source.requests:,} requests" if source.kind.value == "messages" else f"{source.spans:,} spans"
        unknown = f", {source.unknown_fields:,} unknown fields ignored" if source.unknown_fields else ""
        yield f"    {safe_line(source.name)}  {safe_line(source.encoding)}, {size}{unknown}"
        for warning in source.warnings[:MOST_LISTED]:
            yield f"        warning: {safe_line(warning, 400)}"
    if len(payload.sources) > MOST_LISTED:
        yield f"    and {len(payload.sources) - MOST_LISTED:,} more"


def _call_in_full(call: ToolCall, clock: _Clock) -> Iterator[str]:
    yield _names(call, limit=400)
    start, took = clock.of(call)
    if call.attempts:
        yield f"    ran        {start}, {took}"
    yield f"    arguments  {safe_line(arguments_in_words(call.arguments))}"
    if call.arguments.sha256 is not None:
        yield f"               {call.arguments.total_bytes:,} bytes, sha256 {safe_line(call.arguments.sha256)}"
    if call.call_id is not None:
        yield f"    call id    {safe_line(call.call_id, 400)}"
    if call.failed is not None:
        yield f"    ended      {'with an error' if call.failed else 'well'}"
    for span in call.spans[:MOST_LISTED]:
        yield f"    span       {safe_line(span)}"
    for message in call.messages[:MOST_LISTED]:
        yield f"    message    {safe_line(message)}"
    if call.maybe_same_as is not None:
        yield "    maybe another record of a call that is counted already"


def _remarks(call: ToolCall, payload: ToolsPayload) -> Iterator[str]:
    if call.failed:
        yield "failed"
    if call.maybe_same_as is not None:
        yield "maybe counted already"
    if call.key in payload.only_in_messages:
        yield "in the messages only"


def _names(call: ToolCall, limit: int = LONGEST_NAME) -> str:
    return safe_line(" = ".join(call.names), limit)


class _Clock:
    """Times in words, counted from the first known instant of all calls, as rationales count them."""

    def __init__(self, payload: ToolsPayload) -> None:
        known = [
            instant
            for call in payload.calls
            for attempt in call.attempts
            for instant in (attempt.start_ns, attempt.end_ns)
            if instant is not None
        ]
        self._zero = min(known, default=None)

    @property
    def zero_in_words(self) -> str:
        """The first known instant as RFC 3339 in UTC; empty if no time is known."""
        if self._zero is None:
            return ""
        seconds, rest = divmod(self._zero, 10**9)
        try:
            day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        except OverflowError:
            return f"{self._zero} ns"
        fraction = f".{rest:09}".rstrip("0").rstrip(".")
        return f"{day:%Y-%m-%dT%H:%M:%S}{fraction}Z"

    def of(self, call: ToolCall) -> tuple[str, str]:
        """When a call began, and how long it took."""
        if not call.attempts or self._zero is None:
            return "no time", ""
        first = call.attempts[0]
        start = "start unknown" if first.start_ns is None else f"+{duration(first.start_ns - self._zero)}"
        if first.end_ns is None:
            return start, "not ended"
        if first.start_ns is None:
            return start, f"ended +{duration(first.end_ns - self._zero)}"
        return start, f"took {duration(first.end_ns - first.start_ns)}"


def tool_names(payload: ToolsPayload, most: int = 10) -> Sequence[str]:
    """The names of the tools that ran, each once, at most so many."""
    return list(dict.fromkeys(name for call in payload.calls for name in call.names))[:most]
