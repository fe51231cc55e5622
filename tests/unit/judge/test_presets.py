"""The presets that ship, and files of one's own: what is wrong is told by its place, never by its content."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.core.judging.dimensions import NOT_APPLICABLE
from grader.core.judging.prompt import answer_schema
from grader.errors import TaskError
from grader.judge.presets import load_preset, load_preset_file, preset_names

SHIPPED = (
    "alignment", "communication", "grounding", "instruction-following", "multi-turn", "operational",
    "policy-adherence", "robustness", "safety-core", "safety-extended", "tool-use",
)  # fmt: skip


def test_the_eleven_ship() -> None:
    assert preset_names() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_each_asks_what_can_be_answered_and_has_a_bad_value(name: str) -> None:
    preset = load_preset(name)
    assert preset.name == name
    assert len(preset.dimensions) >= 3
    for dimension in preset.dimensions:
        assert dimension.question.endswith("?")
        bad = [answer for answer in dimension.answers if dimension.is_bad(answer)]
        assert 0 < len(bad) < len(dimension.answers)
        if dimension.categories:
            assert {category.bad for category in dimension.categories} == {True, False}
        assert NOT_APPLICABLE not in dimension.answers
    assert answer_schema(preset.dimensions, ())["required"] == ["dimensions"]


def test_no_dimension_is_named_in_two_presets() -> None:
    names = [dimension.name for name in SHIPPED for dimension in load_preset(name).dimensions]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["", "nope", "../presets/grounding", "grounding.yaml", "/etc/passwd", "x" * 999])
def test_presets_are_chosen_by_name_only(name: str) -> None:
    with pytest.raises(TaskError, match="no preset is named") as caught:
        load_preset(name)
    assert caught.value.hint is not None
    assert "tool-use" in caught.value.hint


GOOD = "name: mine\nabout: My own.\ndimensions:\n  - name: kind\n    question: Is it unkind?\n"


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert load_preset_file(file).dimensions[0].question == "Is it unkind?"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("hunter2", 1, "not allowed"),
        ("password: hunter2\n" + GOOD, 1, "a key here that no preset"),
        (GOOD + "    hunter2: hunter2\n", 6, "a key here that no preset"),
        (GOOD + "    bad: hunter2\n", 6, "not allowed"),
        (GOOD + "    violation_at: hunter2\n", 4, "not allowed"),
        (GOOD.replace("mine", "hunter2 hunter2"), 1, "not allowed"),
        ("name: mine\nabout: x\n", 1, "lacks a key"),
        ("hunter2: [", 2, "not valid YAML"),
        ("a: hunter2\na: hunter2\n", 2, "not valid YAML"),
        ("a: !hunter2 x\n", 1, "not valid YAML"),
    ],
)
def test_an_error_names_the_place_and_shows_nothing(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(TaskError, match=said) as caught:
        load_preset_file(file)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or "hunter2" not in str(caught.value.__context__)
    assert line in [problem.where.line for problem in caught.value.problems if problem.where is not None]


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="no preset file"):
        load_preset_file(tmp_path)
    big = tmp_path / "big.yaml"
    big.write_bytes(b"#" * (1 << 20) + b"##")
    with pytest.raises(TaskError, match="at most"):
        load_preset_file(big)
