"""What a judge is shown: exactly the turns and steps there are, whatever they contain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.judging.rendering import BAR, read_rendering, render
from grader.core.judging.text import barred, folded, harmless
from grader.core.judging.turns import Turn, TurnRole
from grader.core.traces.execution_trace import ExecutionStep, ExecutionTrace, StepEvent, StepKind
from tests.unit.core.judging.samples import TRACE, content, step, trace, turn

PIECES = (
    "[T1]", "[T2]", "[ t9 ]", "[M1]", "[F1]", "［Ｔ１］", "[Т1]", "[Τ1]", "⟦T1⟧", "[T\u200b1]", "[T\u0301 1]", "【M2】",
    "[Tl]", "\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", "\x1b[2J", "\x1b]8;;x\x07",
    "\u202e", "\u2066", "    | ", "#0123456789abcdef", "#", " STEP ", " TURN ", "EXECUTION TRACE", "EXECUTION EVIDENCE",
    "END", '"', "\\", " in none", '" in [T1]', "status ok", "\ud800", "\x00", "é", "漢", "🙂", " ", "ignore the above",
    "```", "{", "}", "UNATTRIBUTED", ",",
)  # fmt: skip
TEXT = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=12).map("".join)
NAME = re.compile(r"\[\W{0,8}[tmf]\W{0,8}[0-9]")


@st.composite
def traces(draw: st.DrawFn) -> ExecutionTrace:
    steps: list[ExecutionStep] = []
    for number in range(1, draw(st.integers(0, 6)) + 1):
        parent = draw(st.one_of(st.none(), st.integers(1, number - 1))) if number > 1 else None
        made = step(number, draw(TEXT), parent=parent, given=draw(st.one_of(st.none(), TEXT)), got=draw(TEXT))
        events = (StepEvent(name=draw(TEXT), content=content(draw(TEXT))),)
        steps.append(
            made.model_copy(
                update={
                    "kind": draw(st.sampled_from(StepKind)),
                    "status_description": content(draw(TEXT)),
                    "events": events,
                    "trace_id": draw(st.sampled_from((TRACE, "b" * 32))),
                }
            )
        )
    return trace(*steps)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Turn, ...]:
    return tuple(
        turn(n, draw(TEXT), role=draw(st.sampled_from(TurnRole)).value, trace_id=draw(st.sampled_from((None, TRACE))))
        for n in range(1, draw(st.integers(1, 4)) + 1)
    )


@settings(deadline=None, max_examples=60)
@given(conversations(), traces(), TEXT)
def test_a_reader_finds_exactly_the_turns_and_steps(
    turns: tuple[Turn, ...], found: ExecutionTrace, coverage: str
) -> None:
    rendering = render(turns, found, coverage, 60_000)
    read = read_rendering(rendering.text)
    assert read.turns == tuple((item.id, item.role.value) for item in turns)
    wanted = {(item.id, item.kind.value, item.parent or "none") for item in found.steps}
    assert set(read.steps) == wanted
    assert len(read.steps) == len(wanted)
    assert f"{rendering.tag} steps: {len(wanted)}" in rendering.text.split("\n")


@settings(deadline=None, max_examples=60)
@given(conversations(), traces(), TEXT)
def test_no_content_names_a_turn_or_step_in_any_guise(
    turns: tuple[Turn, ...], found: ExecutionTrace, coverage: str
) -> None:
    """A reader without a notion of structure, for whom look-alikes are the same, finds names only where they are."""
    rendering = render(turns, found, coverage, 60_000)
    for line in rendering.text.split("\n"):
        assert line.startswith((rendering.tag + " ", BAR)), line
        assert len(line.splitlines()) <= 1
        if line.startswith(BAR):
            assert NAME.search(folded(line)) is None, line
            assert rendering.tag not in line
            assert not any(ord(char) < 0x20 and char != "\t" for char in line)
        else:
            assert len(NAME.findall(folded(line))) <= 2, line  # its own, and that of its parent


@pytest.mark.parametrize("hostile", PIECES)
def test_every_piece_alone(hostile: str) -> None:
    found = trace(step(1, hostile, given=f"{hostile}\n{hostile}", got=f"x{hostile}"))
    read = read_rendering(render([turn(1, hostile)], found, hostile, 60_000).text)
    assert read.turns == (("M1", "user"),)
    assert read.steps == (("T1", "tool", "none"),)


def test_a_copy_of_a_rendering_inside_is_no_rendering() -> None:
    inner = render([turn(1, "hello")], trace(step(1), step(2, parent=1)), "complete", 60_000)
    outer = render([turn(1, inner.text)], trace(step(1, inner.text, got=inner.text)), "complete", 60_000)
    assert outer.tag != inner.tag
    assert read_rendering(outer.text).steps == (("T1", "tool", "none"),)
    assert read_rendering(outer.text).turns == (("M1", "user"),)


def test_what_is_invisible_or_moves_a_cursor_is_shown() -> None:
    assert harmless("a\x1b[2J\u202eb\u200b") == "a\\u001b[2J\\u202eb\\u200b"
    assert barred("one\u2028two\r\nthree") == [f"{BAR}one", f"{BAR}two", f"{BAR}three"]
    assert barred("") == [BAR]


def test_ordinary_text_stays_readable() -> None:
    for text in (
        '{"cities": ["Paris", "Rome"], "n": [1, 2]}',
        "naïve café 漢字 हिन्दी 🙂",
        "[false, true]",
        "a[i] = T1",
    ):
        assert harmless(text) == text


def test_a_trace_stands_after_the_last_turn_of_its_request_and_once() -> None:
    turns = [turn(1, "a", trace_id=TRACE), turn(2, "b", role="assistant", trace_id=TRACE), turn(3, "c")]
    lines = render(turns, trace(step(1)), "complete", 60_000).text.split("\n")
    titles = [line.split(" ", 1)[1] for line in lines if line.startswith("#")]
    assert titles.index("EXECUTION TRACE after [M2]") == titles.index("TURN [M2] assistant") + 1
    assert titles.index("TURN [M3] user") > titles.index("END OF EXECUTION TRACE after [M2]")
    assert sum("EXECUTION TRACE after" in title for title in titles) == 2


def test_a_trace_without_a_link_is_unattributed() -> None:
    text = render([turn(1, "a")], trace(step(1)), "complete", 60_000).text
    assert "UNATTRIBUTED EXECUTION TRACE\n" in text
    assert "EXECUTION TRACE after" not in text


def test_the_budget_cuts_content_before_steps_and_marks_it() -> None:
    found = trace(*(step(n, got="x" * 3_000 if n == 2 else "short") for n in range(1, 5)))
    rendering = render([turn(1, "a")], found, "complete", 2_000)
    assert rendering.steps == ("T1", "T2", "T3", "T4")
    assert rendering.text.count(f"{BAR}short") == 3
    assert "CUT: only the beginning of 3000 characters is shown" in rendering.text
    assert len(rendering.text) < 3_000


def test_steps_that_do_not_fit_are_not_counted_as_shown() -> None:
    found = trace(*(step(n, got="word") for n in range(1, 200)))
    rendering = render([turn(1, "a")], found, "complete", 5_000)
    read = read_rendering(rendering.text)
    assert 0 < len(read.steps) < 199
    assert len(read.steps) + rendering.left_out == 199
    assert f"steps: {len(read.steps)} shown, {rendering.left_out} CUT" in rendering.text
    assert len(rendering.text) < 6_500


def test_escapes_cannot_break_the_budget() -> None:
    found = trace(*(step(n, given="\u200b" * 4_000, got="\n" * 4_000) for n in range(1, 11)))
    assert len(render([turn(1, "a")], found, "complete", 20_000).text) < 25_000


def test_what_is_cut_in_the_observation_is_marked_too() -> None:
    text = render([turn(1, "a")], trace(step(1, got="y" * 5_000)), "complete", 60_000).text
    assert "CUT: only the beginning of 5000 characters is shown" in text
