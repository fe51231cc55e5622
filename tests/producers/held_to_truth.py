"""Holds what grader reads in a recorded export to what the tools themselves wrote down.

`compared` gives one `Reading` per scenario: what was read right, column by column, and what is wrong. Two kinds of
wrong are never allowed, whatever a library writes (`lies`): a call that did not happen, and evidence called complete
in which one that did happen is missing.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.core.tool_arguments import ArgumentState, ContentRules, recorded_arguments
from grader.core.tool_calls import ToolCall, ToolsPayload
from grader.traces.reader import TraceInput, read_traces

RECORDED = Path(__file__).parent / "recorded"
SLACK_NS = 1_000_000
"""What a producer's clock may be off: some write microseconds, some compute in floating point."""


@dataclass(frozen=True)
class Reading:
    """One export beside its truth."""

    scenario: str
    payload: ToolsPayload
    truth: dict[str, Any]

    @property
    def reasons(self) -> list[str]:
        """The reasons why the evidence is not complete."""
        return [reason.code.value for reason in self.payload.coverage.reasons]

    @property
    def excluded(self) -> list[str]:
        """What was told from an execution, and why."""
        return sorted(f"{'/'.join(item.names) or '-'}: {item.why.value}" for item in self.payload.excluded)

    def lies(self) -> list[str]:
        """What would make a verdict wrong."""
        executed = [call["tool"] for call in self.truth["calls"]]
        found: list[str] = []
        for name in {name for call in self.payload.calls for name in call.names} | set(executed):
            read = [call for call in self.payload.calls if call.is_named(name)]
            surely = sum(call.maybe_same_as is None for call in read)
            true = executed.count(name)
            if surely > true:
                found.append(f"{name}: {surely} executions were read, {true} happened")
            if len(read) < true and self.payload.coverage.is_complete and not self.payload.possible:
                found.append(f"{name}: {true} happened, {len(read)} were read, and the evidence is called complete")
        for call in self.payload.calls:
            true_ones = [one for one in self.truth["calls"] if one["tool"] in call.names]
            if call.arguments.state is ArgumentState.RECORDED and not any(
                _same_arguments(call, one) for one in true_ones
            ):
                found.append(f"{call.names}: arguments {call.arguments.text} were never given")
        return found

    def pairs(self) -> list[tuple[dict[str, Any], ToolCall | None]]:
        """Each true execution with the call that was read for it: in order of start, by name."""
        left = list(self.payload.calls)
        found: list[tuple[dict[str, Any], ToolCall | None]] = []
        for one in self.truth["calls"]:
            named = [call for call in left if call.is_named(one["tool"])]
            call = next((call for call in named if _same_arguments(call, one)), named[0] if named else None)
            if call is not None:
                left.remove(call)
            found.append((one, call))
        return found

    def wrong(self, column: str) -> list[str]:
        """What is not read right in a column of the table."""
        if column == "duplicates":
            extra = len(self.payload.calls) - len(self.truth["calls"])
            doubtful = [call.names[0] for call in self.payload.calls if call.maybe_same_as is not None]
            return [f"{extra} too many"] * (extra > 0) + [f"{name} may be one with another" for name in doubtful]
        check = {
            "name": lambda one, call: call is not None,
            "id": lambda one, call: call is None or call.call_id == self._id(one),
            "arguments": lambda one, call: call is None or _same_arguments(call, one),
            "result": lambda one, call: call is None or call.failed is _failed(one),
            "times": lambda one, call: call is None or _has_times(call, one),
        }[column]  # fmt: skip
        return [one["tool"] for one, call in self.pairs() if not check(one, call)]

    def _id(self, one: dict[str, Any]) -> str | None:
        """The id by which the model asked for an execution; None if it did not ask for it by this name."""
        asked = [call for turn in self.truth["turns"] if isinstance(turn, list) for call in turn]
        return next((c["id"] for c in asked if (c["name"], c["arguments"]) == (one["tool"], one["arguments"])), None)


COLUMNS = ("name", "id", "arguments", "result", "times", "duplicates")


def _same_arguments(call: ToolCall, one: dict[str, Any]) -> bool:
    return (
        call.arguments.state is ArgumentState.RECORDED
        and call.arguments.text == recorded_arguments(one["arguments"], ContentRules()).text
    )


def _failed(one: dict[str, Any]) -> bool | None:
    return {"returned": False, "raised": True}.get(one["outcome"])


def _has_times(call: ToolCall, one: dict[str, Any]) -> bool:
    """Whether the tool ran within the interval that was read."""
    if len(call.attempts) != 1 or call.attempts[0].start_ns is None:
        return False
    start_ns, end_ns = call.attempts[0].start_ns, call.attempts[0].end_ns
    if "ended_ns" not in one or end_ns is None:
        return "ended_ns" not in one and end_ns is None and start_ns <= one["started_ns"] + SLACK_NS
    return start_ns <= one["started_ns"] + SLACK_NS and one["ended_ns"] <= end_ns + SLACK_NS


def read(data: bytes, name: str = "trace.jsonl") -> ToolsPayload:
    """What grader reads when the caller says that the export is complete."""
    return read_traces([TraceInput.of_bytes(data, name)]).payload(declared_by="the caller")


def export_of(folder: Path, scenario: str) -> Path:
    """The file with the export of a scenario."""
    return next(
        folder / f"{scenario}.{kind}.gz" for kind in ("jsonl", "pb") if (folder / f"{scenario}.{kind}.gz").is_file()
    )


def compared(folder: Path) -> list[Reading]:
    """All scenarios of a recording."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return [
        Reading(name, read(gzip.decompress(export_of(folder, name).read_bytes())), scenario)
        for name, scenario in truth["scenarios"].items()
    ]


def versions(folder: Path) -> dict[str, str]:
    """The versions that a recording was made with."""
    return json.loads((folder / "truth.json").read_text(encoding="utf-8"))["versions"]


def told(readings: Sequence[Reading]) -> str:
    """All of it in words, for the eye of a person who looks for what is wrong."""
    lines: list[str] = []
    for reading in readings:
        lines.append(f"{reading.scenario}: {reading.truth['ended']}; {', '.join(reading.reasons) or 'complete'}")
        lines += [f"    LIE {lie}" for lie in reading.lies()]
        lines += [f"    {column}: {wrong}" for column in COLUMNS if (wrong := reading.wrong(column))]
        lines += [f"    excluded {item}" for item in reading.excluded]
        lines += [f"    possible {item.why}" for item in reading.payload.possible]
        lines += [f"    not executed {item.kind.value} {item.name}" for item in reading.payload.not_executed]
        lines += [f"    {reason.code.value}: {reason.detail}" for reason in reading.payload.coverage.reasons]
    return "\n".join(lines)
