"""docs/reference/judging.md says what the code does: presets, bounds, and what a judge is shown."""

from __future__ import annotations

import re
from pathlib import Path

from grader.core.judging.conditions import DEFAULT_TRACE_BUDGET
from grader.core.judging.dimensions import Category, Dimension, Grade
from grader.core.judging.rendering import render
from grader.core.traces.content import MOST_CHARACTERS
from grader.core.traces.execution_trace import ExecutionTrace
from grader.judge.http import HttpOptions
from grader.judge.presets import preset_names
from grader.messages.conversation import read_conversation
from grader.messages.turns import MOST_CHARACTERS as MOST_OF_A_TURN
from grader.runner.judging.conversation import JudgedEvidence, acquire
from grader.traces.reader import TraceInput

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "judging.md").read_text("utf-8")
EXAMPLE = ROOT / "examples" / "budget-claim"


def test_presets() -> None:
    table = PAGE[PAGE.index("## Presets") : PAGE.index("## Settings")]
    assert tuple(sorted(re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE))) == preset_names()


def test_fields_of_a_dimension() -> None:
    table = PAGE[PAGE.index("## Dimensions") : PAGE.index("A preset is a YAML file")]
    assert re.findall(r"^\| `([a-z_]+)`", table, re.MULTILINE) == list(Dimension.model_fields)
    assert {*Grade.model_fields, *Category.model_fields} == {"name", "meaning", "bad"}


def test_bounds() -> None:
    options = HttpOptions()
    said = " ".join(PAGE.split())
    assert f"ends after {options.timeout_s:g} s or {options.max_response_bytes >> 20} MiB" in said
    assert (options.retries, options.first_wait_s, options.longest_wait_s, options.max_parallel) == (3, 1, 30, 4)
    assert "tried again three times, with waits of 1, 2 and 4 s" in said
    assert "at most 30 s; nothing else is. Four requests" in said
    assert f"at most {MOST_CHARACTERS:,} characters are kept (of a turn {MOST_OF_A_TURN:,})" in said
    assert f"The trace has {DEFAULT_TRACE_BUDGET:,} characters in all" in said


def test_what_the_judge_is_shown() -> None:
    acquired = acquire(
        JudgedEvidence(
            conversation=read_conversation((EXAMPLE / "conversation.yaml").read_bytes()),
            traces=[TraceInput.of_path(EXAMPLE / "trace.jsonl")],
            complete=True,
        )
    )
    assert acquired.trace is not None
    assert isinstance(acquired.trace.payload, ExecutionTrace)
    rendering = render(acquired.turns, acquired.trace.payload, "complete", DEFAULT_TRACE_BUDGET)
    shown = re.search(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    page = [re.sub(r"^#[0-9a-f]{16}", "#TAG", line) for line in shown[1].splitlines()]
    real = [line.replace(rendering.tag, "#TAG") for line in rendering.text.splitlines()]
    for wanted, line in zip(page, real, strict=False):
        head = wanted.removesuffix("...")
        assert line.startswith(head) if head != wanted else line == wanted
