"""Holds what grader reads in a recorded export to what the tools themselves wrote down.

Each scenario of a recording is a `Reading`. `cell` says, for a column of the table of producers, whether it was read
right, is not recorded, or is wrong. Two kinds of wrong are never allowed, whatever a library writes (`lies`): a call
that did not happen, and evidence called complete in which one that did happen is missing.

    python -m tests.producers.held_to_truth            # prints what is read, for a person who looks for what is wrong
    python -m tests.producers.held_to_truth --write    # keeps it in read.txt and in the page about producers
"""

from __future__ import annotations

import functools
import gzip
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.core.tools.arguments import ArgumentState, ContentRules, recorded_arguments
from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.core.traces.execution_trace import ExecutionStep
from grader.traces.reader import TraceInput, read_traces
from grader.traces.steps import StepStore

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
READ = HERE / "read.txt"
PAGE = HERE.parents[1] / "docs" / "reference" / "producers.md"
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->"
SLACK_NS = 1_000_000
"""What a producer's clock may be off: some write microseconds, some compute in floating point."""
COLUMNS = ("name", "id", "arguments", "result", "times", "duplicates")
RIGHT, NOT_RECORDED, IN_DOUBT, WRONG = "right", "not recorded", "in doubt", "wrong"


@dataclass(frozen=True)
class Reading:
    """One export beside its truth."""

    scenario: str
    payload: ToolsPayload
    steps: dict[str, ExecutionStep]
    truth: dict[str, Any]

    @property
    def reasons(self) -> list[str]:
        """The reasons why the evidence is not complete."""
        return [reason.code.value for reason in self.payload.coverage.reasons]

    def lies(self) -> list[str]:
        """What would make a verdict wrong."""
        executed = [call["tool"] for call in self.truth["calls"]]
        found: list[str] = []
        for name in sorted({name for call in self.payload.calls for name in call.names} | set(executed)):
            read = [call for call in self.payload.calls if call.is_named(name)]
            surely = sum(call.maybe_same_as is None for call in read)
            true = executed.count(name)
            if surely > true:
                found.append(f"{name}: {surely} executions were read, {true} happened")
            if len(read) < true and self.payload.coverage.is_complete:
                found.append(f"{name}: {true} happened, {len(read)} were read, and the evidence is called complete")
        for call in self.payload.calls:
            true_ones = [one for one in self.truth["calls"] if one["tool"] in call.names]
            is_recorded = call.arguments.state is ArgumentState.RECORDED
            if is_recorded and not any(_same_arguments(call, one) for one in true_ones):
                found.append(f"{'/'.join(call.names)}: arguments {call.arguments.text} were never given")
        return found

    def pairs(self) -> Iterator[tuple[dict[str, Any], ToolCall | None]]:
        """Each true execution with the call that was read for it: by name, then by what else of it is right."""
        left = list(self.payload.calls)
        for one in self.truth["calls"]:
            named = [call for call in left if call.is_named(one["tool"])]
            call = min(named, key=functools.partial(_distance, one), default=None)
            if call is not None:
                left.remove(call)
            yield one, call

    def cells(self, column: str) -> dict[str, list[str]]:
        """The tools whose executions are not read right in a column, by what is the matter with them."""
        found: dict[str, list[str]] = {}
        if column == "duplicates":
            doubtful = [call.names[0] for call in self.payload.calls if call.maybe_same_as is not None]
            ids = [call.call_id for call in self.payload.calls if call.call_id is not None]
            extra = len(self.payload.calls) - len(doubtful) - len(self.truth["calls"])
            if doubtful:
                found[IN_DOUBT] = doubtful
            if extra > 0 or len(ids) != len(set(ids)):
                found[WRONG] = [f"{extra} too many" if extra > 0 else "two executions with one id"]
            return found
        for one, call in self.pairs():
            cell = self._cell(column, one, call)
            if cell != RIGHT:
                found.setdefault(cell, []).append(one["tool"])
        return found

    def _cell(self, column: str, one: dict[str, Any], call: ToolCall | None) -> str:
        if column == "name":
            return RIGHT if call is not None else NOT_RECORDED
        if call is None:
            return RIGHT  # told in the column of names
        if column == "id":
            return NOT_RECORDED if call.call_id is None else _verdict(call.call_id in self._ids(one))
        if column == "arguments":
            is_recorded = call.arguments.state is ArgumentState.RECORDED
            return _verdict(_same_arguments(call, one)) if is_recorded else NOT_RECORDED
        return self._result(one, call) if column == "result" else _times(one, call)

    def _result(self, one: dict[str, Any], call: ToolCall) -> str:
        """Whether it failed, and what it gave: the tool's words must stand in the step's output, status or events."""
        if call.failed is not None and call.failed is not {"returned": False, "raised": True}.get(one["outcome"]):
            return WRONG
        texts: list[str] = []
        for step in (self.steps[span] for span in call.spans if span in self.steps):
            kept = [step.output, step.status_description, *(event.content for event in step.events)]
            texts += [text.text for text in kept if text is not None and text.text is not None]
        result: Any = one.get("result", [])
        wanted: list[str] = [result] if isinstance(result, str) else result
        said = "\n".join(texts)
        is_said = all(any(form in said for form in _forms(word)) for word in wanted)
        return RIGHT if call.failed is not None and is_said else NOT_RECORDED

    def _ids(self, one: dict[str, Any]) -> set[str]:
        """The ids by which the model asked for an execution like this one."""
        turns: list[list[dict[str, Any]]] = [turn for turn in self.truth["turns"] if not isinstance(turn, str)]
        wanted = (one["tool"], one["arguments"])
        return {c["id"] for turn in turns for c in turn if (c["name"], c["arguments"]) == wanted}


def _verdict(is_right: bool) -> str:
    return RIGHT if is_right else WRONG


def _forms(word: str) -> tuple[str, ...]:
    """A text as it is, and as it stands in JSON, once or twice."""
    once = json.dumps(word)[1:-1]
    return word, once, json.dumps(once)[1:-1], json.dumps(word, ensure_ascii=False)[1:-1]


def _same_arguments(call: ToolCall, one: dict[str, Any]) -> bool:
    return (
        call.arguments.state is ArgumentState.RECORDED
        and call.arguments.text == recorded_arguments(one["arguments"], ContentRules()).text
    )


def _distance(one: dict[str, Any], call: ToolCall) -> tuple[bool, bool, bool, int]:
    """How badly a call fits an execution; of equal ones that run at once, the one whose end is nearest is meant."""
    end_ns = call.attempts[0].end_ns if call.attempts else None
    between_ns = abs((end_ns or 0) - one.get("ended_ns", 0))
    return not _same_arguments(call, one), call.maybe_same_as is not None, _times(one, call) == WRONG, between_ns


def _times(one: dict[str, Any], call: ToolCall) -> str:
    """Whether the tool ran within the interval that was read."""
    if len(call.attempts) != 1 or call.attempts[0].start_ns is None:
        return NOT_RECORDED
    start_ns, end_ns = call.attempts[0].start_ns, call.attempts[0].end_ns
    if end_ns is None:
        return _verdict(start_ns <= one["started_ns"] + SLACK_NS) if "ended_ns" not in one else NOT_RECORDED
    ended_ns = one.get("ended_ns", float("inf"))
    return _verdict(start_ns <= one["started_ns"] + SLACK_NS and ended_ns <= end_ns + SLACK_NS)


def export_of(folder: Path, scenario: str) -> Path:
    """The file with the export of a scenario."""
    return next(file for kind in ("jsonl", "pb") if (file := folder / f"{scenario}.{kind}.gz").is_file())


def read(data: bytes) -> tuple[ToolsPayload, dict[str, ExecutionStep]]:
    """What grader reads when the caller says that the export is complete: the calls, and the steps by span."""
    store = StepStore()
    payload = read_traces([TraceInput.of_bytes(data)], also=store.add).payload(declared_by="the caller")
    steps, _ = store.steps(None)
    return payload, {step.span: step for step in steps}


@functools.cache
def compared(folder: Path) -> tuple[Reading, ...]:
    """All scenarios of a recording, in a fixed order."""
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    return tuple(
        Reading(name, *read(gzip.decompress(export_of(folder, name).read_bytes())), scenario)
        for name, scenario in sorted(truth["scenarios"].items())
    )


def versions(folder: Path) -> dict[str, str]:
    """The versions that a recording was made with."""
    return json.loads((folder / "truth.json").read_text(encoding="utf-8"))["versions"]


def told(folder: Path, without: str = "") -> str:
    """What is read of a recording, in words: all that is not read right, not complete, or told from an execution.

    `without` is a scenario to leave out.
    """
    lines = [folder.name]
    for reading in compared(folder):
        if reading.scenario == without:
            continue
        lines.append(f"  {reading.scenario}: {', '.join(reading.reasons) or 'complete'}")
        lines += [f"    LIE {lie}" for lie in reading.lies()]
        for column in COLUMNS:
            lines += [f"    {column} {cell}: {', '.join(sorted(of))}" for cell, of in reading.cells(column).items()]
        payload = reading.payload
        lines += sorted(f"    excluded, {item.why.value}: {'/'.join(item.names)}" for item in payload.excluded)
        lines += sorted(f"    possible: {item.why}" for item in payload.possible)
        lines += sorted(f"    {item.kind.value}, not executed: {item.name}" for item in payload.not_executed)
    return "\n".join(lines) + "\n"


def row(folder: Path) -> str:
    """The row of the table: of the scenarios in which the process ended, the worst cell of each column."""
    readings = [reading for reading in compared(folder) if reading.scenario != "cut_short"]
    cells: list[str] = []
    for column in COLUMNS:
        found = {cell for reading in readings for cell in reading.cells(column)}
        cells.append(next((cell for cell in (WRONG, IN_DOUBT, NOT_RECORDED) if cell in found), "✓"))
    # Of the exporter there is nothing to tell apart.
    named = {name: number for name, number in versions(folder).items() if not name.startswith("opentelemetry-exporter")}
    shown = ", ".join(f"{name} {number}" for name, number in named.items() if name not in {"python", "zod"})
    return f"| `{folder.name}` | {shown} | {' | '.join(cells)} |"


def recordings() -> list[Path]:
    """The folders of all recordings."""
    return sorted(truth.parent for truth in RECORDED.glob("*/truth.json"))


def table() -> str:
    """The table of the page about producers."""
    head = f"| producer | versions | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 2)}\n"
    return head + "".join(f"{row(folder)}\n" for folder in recordings())


def main() -> None:
    text = "\n".join(told(folder) for folder in recordings())
    print(text)
    if sys.argv[1:] == ["--write"]:
        READ.write_text(text, encoding="utf-8")
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
