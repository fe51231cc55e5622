"""show, lint, runtimes list, help, and how exit codes win over each other."""

from __future__ import annotations

import io
import itertools
import os
import sys
from pathlib import Path

import pytest

from grader.cli.console import write
from grader.cli.exit_codes import strongest
from tests.unit.cli.conftest import RunIt


def test_show_a_record_and_a_case(grader: RunIt) -> None:
    grader("run", ".", "all/flaky.py")
    whole = grader("show")
    assert whole.code == 0
    assert "submission  flaky.py" in whole.out
    assert "profile     python  fake:python" in whole.out
    case = grader("show", "latest", "letters")
    assert "group 1: runs 0, 2   ✓ true   exited(0)" in case.out
    assert "group 2: run 1   ✗ false   exited(0)" in case.out
    assert 'first difference of group 1 and group 2: stdout, byte 0 (line 1): "ABC␊" and "abc␊"' in case.out
    assert 'stdin     4 bytes  "abc␊"' in case.out


def test_show_names_what_there_is_when_nothing_fits(grader: RunIt) -> None:
    grader("run", ".", "--each", "all")
    ended = grader("show", "latest", "nothing")
    assert ended.code == 2
    assert "mend: cases are: letters, digits" in ended.err
    ended = grader("show", "latest", "-s", "nobody")
    assert ended.code == 2
    assert "good.py" in ended.err
    assert grader("show", "latest", "letters", "-s", "good.py").out.count("✓ letters") == 1


def test_lint(grader: RunIt, workplace: Path) -> None:
    ended = grader("lint", "task.yaml")
    assert (ended.code, ended.out) == (0, "ok: task.yaml\n")
    (workplace / "bad.yaml").write_text('x: "\\x1b[2J"\nconditions: [{condition_type: program_behaves, cases: [{}]}]\n')
    ended = grader("lint", "task.yaml", "bad.yaml", "nowhere")
    assert ended.code == 2
    assert "error: bad.yaml:1:1: unknown key 'x'" in ended.out
    assert "error: nowhere: no task here" in ended.out
    (workplace / "bad.yaml").write_text("conditions: [{condition_type: program_behaves, cases: [{}]}]\n")
    ended = grader("lint", "bad.yaml")
    assert ended.code == 0
    assert ended.out.startswith("warning: bad.yaml:1:56: the case expects nothing of the output")


def test_runtimes_list(grader: RunIt) -> None:
    ended = grader("runtimes", "list")
    assert ended.code == 0
    assert any(line.split()[:2] == ["python", "python"] for line in ended.out.splitlines())
    assert "looked for in " in ended.out


def test_runtimes_build_and_self_tests_that_fail(grader: RunIt) -> None:
    ended = grader("runtimes", "build", "python")
    assert (ended.code, ended.out) == (0, "ok    python  fake:python\n")
    ended = grader("runtimes", "test", "bash")  # the scripted sandbox does not do what the profile promises
    assert ended.code == 4
    assert "FAIL" in ended.out
    assert grader("runtimes", "test", "nosuch").code == 2


def test_help_and_version(grader: RunIt) -> None:
    assert "Exit codes" in grader("--help").out
    assert grader("--version").out.startswith("grader ")
    assert grader("nosuch").code == 2


def test_precedence_of_exit_codes() -> None:
    order = [70, 130, 143, 4, 2, 1, 3, 5, 0]
    for stronger, weaker in itertools.combinations(order, 2):
        assert strongest([weaker, stronger]) == stronger
    assert strongest([]) == 5


def test_a_reader_that_went_away_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        write(stream, "x" * 100_000)
        write(stream, "more")


def test_marks_are_escaped_where_they_cannot_be_shown(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    assert grader("run", ".", "all/wrong.py").code == 1
    assert b"\\u2717 letters" in raw.getvalue()
