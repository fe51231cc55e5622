"""lint: everything at once, and warnings for what is valid but hardly meant."""

from __future__ import annotations

from pathlib import Path

from grader.formats.task_lint import lint

HEAD = "conditions:\n  - condition_type: program_behaves\n"


def warnings(folder: Path, text: str) -> list[str]:
    (folder / "task.yaml").write_text(text)
    found = lint(folder)
    assert found.problems == ()
    return [str(warning).replace(f"{folder}/task.yaml:", "") for warning in found.warnings]


def test_a_clean_task_has_no_warnings(tmp_path: Path) -> None:
    assert warnings(tmp_path, HEAD + '    cases: [{stdin: "\\\\xff \\x7f", stdout: {regex: "^a+$"}}]\n') == []


def test_high_escapes_are_two_bytes(tmp_path: Path) -> None:
    text = HEAD + '    cases:\n      - stdin: "a\\xff"\n        stdout: {equals: "\n\n          \\x80"}\n'
    first, second = warnings(tmp_path, text)
    assert first.startswith("4:16: \\xff is the character U+00FF, which is two bytes, not the byte 0xff")
    assert "mend: write the bytes as {base64: ...}" in first
    assert second.startswith("5:26: \\x80 is")


def test_a_case_without_any_expectation(tmp_path: Path) -> None:
    (said,) = warnings(tmp_path, HEAD + "    cases: [{stdin: a}, {exit_code: 3}]\n")
    assert said.startswith("3:13: the case expects nothing of the output")


def test_cases_with_one_name_also_inside_a_composite(tmp_path: Path) -> None:
    text = """\
conditions:
  - condition_type: not
    condition:
      condition_type: program_behaves
      cases:
        - {name: a, exit_code: any}
        - {name: b, exit_code: any}
        - {name: a, exit_code: any}
"""
    (said,) = warnings(tmp_path, text)
    assert said.startswith("8:18: another case is named 'a'")


def test_a_pattern_that_is_found_in_everything(tmp_path: Path) -> None:
    text = HEAD + "    cases: [{stdout: {regex: 'x*'}}, {stdout: {regex: '.*'}}, {stdout: {regex: '^$'}}]\n"
    assert [said.split(": ")[0] for said in warnings(tmp_path, text)] == ["3:30", "3:55"]


def test_an_unusable_task_has_its_problems_and_raises_nothing(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text(HEAD + '    cases: [{stdin: 5, stdout: {equals: "\\xff"}}]\n    x: 1\n')
    found = lint(tmp_path)
    assert [str(problem.where)[-4:] for problem in found.problems] == ["3:21", ":4:5"]
    assert len(found.warnings) == 1
    assert len(lint(tmp_path / "nowhere").problems) == 1
    (tmp_path / "task.yaml").write_text("a: [")
    assert len(lint(tmp_path).problems) == 1
