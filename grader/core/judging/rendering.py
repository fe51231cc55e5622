"""What a judge reads: the turns of a conversation, and after the last turn of each request what its trace shows.

Two kinds of lines. *Structure* begins with a tag, which is a digest of all that is rendered, so that no content can
hold it; only these lines name turns (`[M1]`) and steps (`[T1]`). *Content* stands behind a bar (see `judge_text`).
`read_rendering` finds exactly the turns and steps that were rendered, whatever their content.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from grader.core.canonical import sha256_hex
from grader.core.judging.text import BAR, barred, harmless
from grader.core.judging.turns import Turn
from grader.core.quoting import quote_text
from grader.core.traces.content import TraceContent
from grader.core.traces.execution_trace import ExecutionStep, ExecutionTrace

_LONGEST_NAME = 200
_MARK = 120
"""Room for the lines that name a text and say how much of it is shown."""

Limits = dict[tuple[str, int], int]
"""By step and place of the text in it: how many characters of it are shown."""


@dataclass(frozen=True)
class Rendering:
    """`text` is what is sent, `tag` begins its lines of structure, `steps` are the ids of the steps in it."""

    text: str
    tag: str
    steps: tuple[str, ...]
    left_out: int = 0
    """How many steps did not fit, not even as a line."""


@dataclass(frozen=True)
class Found:
    """What a reader of a rendering finds."""

    turns: tuple[tuple[str, str], ...]
    """(id, role)."""
    steps: tuple[tuple[str, str, str], ...]
    """(id, kind, id of the parent or `none`)."""


@dataclass(frozen=True)
class _Field:
    """A text of a step: what it is, and what is kept of it."""

    label: str
    content: TraceContent

    @property
    def size(self) -> int:
        """How many characters it takes as it is shown, bars and escapes among them."""
        return len("\n".join(barred(self.content.text))) if self.content.text is not None else 0


def render(turns: Sequence[Turn], trace: ExecutionTrace | None, coverage: str, budget: int) -> Rendering:
    """The reading. `coverage` says in words how much of the trace was got; `budget` bounds the trace's characters."""
    tag = _tag(turns, trace, coverage)
    steps = trace.steps if trace is not None else ()
    heads = {step.id: _head(tag, step) for step in steps}
    shown, room = _that_fit(steps, heads, budget)
    limits = _shares({(step.id, at): field.size for step in shown for at, field in enumerate(_fields(step))}, room)
    lines = [f"{tag} EXECUTION EVIDENCE", f"{tag} coverage: {_inline(coverage)}"]
    lines.append(f"{tag} steps: {len(shown)}" + (f" shown, {len(steps) - len(shown)} CUT" if shown != steps else ""))
    lines.append(f"{tag} CONVERSATION")
    by_trace = _by_trace(shown)
    done: set[str] = set()
    last = _last_turns(turns)
    for turn in turns:
        lines.extend(_turn(tag, turn))
        trace_id = turn.trace_id
        if trace_id is not None and turn.id == last.get(trace_id) and trace_id in by_trace:
            done.add(trace_id)
            lines.extend(_block(tag, f"EXECUTION TRACE after [{turn.id}]", by_trace[trace_id], heads, limits))
    rest = [step for trace_id, found in by_trace.items() if trace_id not in done for step in found]
    if rest:
        lines.extend(_block(tag, "UNATTRIBUTED EXECUTION TRACE", rest, heads, limits))
    if len(shown) < len(steps):
        lines.append(f"{tag} CUT: {len(steps) - len(shown)} further steps did not fit and are not shown")
    lines.append(f"{tag} END")
    return Rendering("\n".join(lines), tag, tuple(step.id for step in shown), len(steps) - len(shown))


def read_rendering(text: str) -> Found:
    """The turns and steps in a rendering, by its lines of structure alone."""
    lines = text.split("\n")
    tag = re.escape(lines[0].split(" ")[0])
    turn = re.compile(rf"{tag} TURN \[(M[0-9]+)\] ([a-z]+)")
    step = re.compile(rf'{tag} STEP \[(T[0-9]+)\] ([a-z]+) ".*" in (none|\[T[0-9]+\])(?:[ ,].*)?')
    turns = [match for line in lines if (match := turn.fullmatch(line)) is not None]
    steps = [match for line in lines if (match := step.fullmatch(line)) is not None]
    return Found(
        tuple((match[1], match[2]) for match in turns),
        tuple((match[1], match[2], match[3].strip("[]")) for match in steps),
    )


def _tag(turns: Sequence[Turn], trace: ExecutionTrace | None, coverage: str) -> str:
    """A digest of everything below it: a content that held it would change it."""
    plain = trace.model_dump(mode="json", exclude_defaults=True) if trace is not None else None
    # ASCII, so that a name with half a surrogate pair has a digest too.
    whole = json.dumps([[turn.model_dump(mode="json") for turn in turns], plain, coverage], sort_keys=True)
    return "#" + sha256_hex(whole.encode("ascii"))[:16]


def _last_turns(turns: Sequence[Turn]) -> dict[str, str]:
    """For every trace the last turn of its (last) request: a trace is shown once."""
    return {turn.trace_id: turn.id for turn in turns if turn.trace_id is not None}


def _by_trace(steps: Iterable[ExecutionStep]) -> dict[str, list[ExecutionStep]]:
    found: dict[str, list[ExecutionStep]] = {}
    for step in steps:
        found.setdefault(step.trace_id, []).append(step)
    return found


def _turn(tag: str, turn: Turn) -> Iterator[str]:
    yield f"{tag} TURN [{turn.id}] {turn.role.value}"
    yield from _content(tag, turn.content, None)


def _block(
    tag: str, title: str, steps: Sequence[ExecutionStep], heads: dict[str, str], limits: Limits
) -> Iterator[str]:
    yield f"{tag} {title}"
    for step in steps:
        yield heads[step.id]
        for at, field in enumerate(_fields(step)):
            yield f"{tag} {field.label} of [{step.id}]"
            yield from _content(tag, field.content, limits[step.id, at])
    yield f"{tag} END OF {title}"


def _head(tag: str, step: ExecutionStep) -> str:
    parent = f"[{step.parent}]" if step.parent is not None else "none"
    why = f" ({step.why_root.value})" if step.why_root is not None else ""
    name = quote_text(step.name[: _LONGEST_NAME + 1], _LONGEST_NAME).rstrip("…")
    name = harmless(name)
    return (
        f"{tag} STEP [{step.id}] {step.kind.value} {name} in {parent}{why}, status {step.status.value}, {_time(step)}"
    )


def _time(step: ExecutionStep) -> str:
    if step.start_ns is None:
        return "no time"
    if step.end_ns is None:
        return f"from {step.start_ns} ns, not ended"
    return f"from {step.start_ns} ns for {step.end_ns - step.start_ns} ns"


def _fields(step: ExecutionStep) -> Iterator[_Field]:
    if step.status_description is not None:
        yield _Field("status description", step.status_description)
    if step.input is not None:
        yield _Field("input", step.input)
    if step.output is not None:
        yield _Field("output", step.output)
    for event in step.events:
        yield _Field(f"event {harmless(quote_text(event.name, 80).rstrip('…'))}", event.content)


def _content(tag: str, content: TraceContent, limit: int | None) -> Iterator[str]:
    if content.text is None:
        yield f"{tag} not kept: {content.why.text if content.why is not None else ''}"
        return
    shown = barred(content.text)
    whole = "\n".join(shown)
    if limit is not None and len(whole) > limit:
        # What is left of a line must still stand behind its bar.
        yield from (line for line in whole[:limit].split("\n") if line.startswith(BAR))
    else:
        yield from shown
    total = content.total_characters if content.total_characters is not None else len(content.text)
    if content.is_cut or (limit is not None and len(whole) > limit):
        yield f"{tag} CUT: only the beginning of {total} characters is shown"


def _that_fit(
    steps: tuple[ExecutionStep, ...], heads: dict[str, str], budget: int
) -> tuple[tuple[ExecutionStep, ...], int]:
    """The steps whose lines of structure fit, in order, and the room that is left for their content."""
    room = budget
    for number, step in enumerate(steps):
        needed = len(heads[step.id]) + 1 + sum(len(field.label) + _MARK for field in _fields(step))
        if needed > room:
            return steps[:number], room
        room -= needed
    return steps, room


def _shares(sizes: dict[tuple[str, int], int], room: int) -> Limits:
    """How many characters of each content are shown: short ones whole, long ones in equal shares of what is left."""
    limits: Limits = {}
    left = room
    for position, (key, size) in enumerate(sorted(sizes.items(), key=lambda item: (item[1], item[0]))):
        limits[key] = min(size, left // (len(sizes) - position))
        left -= limits[key]
    return limits


def _inline(text: str) -> str:
    """A text of ours that may quote others, on one line."""
    return harmless(" ".join(text.split()))[:2_000]


__all__ = ["BAR", "Found", "Rendering", "read_rendering", "render"]
