"""Standard streams that are closed, full or gone: the exit code is that of the verdicts, or says what is wrong."""

from __future__ import annotations

import errno
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from grader.cli.app import run_cli
from grader.cli.console import Console
from grader.cli.exit_codes import BUG
from grader.errors import PrerequisiteError
from grader.formats import task_lint

TRACE = {
    "resourceSpans": [
        {"scopeSpans": [{"spans": [{"traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "00000000000000aa"}]}]}
    ]
}
UNDETERMINED = 3


@pytest.fixture
def scored(tmp_path: Path) -> str:
    """A shell command whose verdict is undetermined."""
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    (tmp_path / "task.yaml").write_text("conditions: [{condition_type: tools_not_called, tools: [send]}]\n")
    command = f"{sys.executable} -c 'from grader.cli.app import main; main()' score trace.json --task task.yaml"
    return f"cd {tmp_path} && {command}"


def shell(command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing(scored: str, closed: str) -> None:
    ended = shell(f"{scored} {closed}")
    assert ended.returncode == UNDETERMINED
    assert "bug" not in ended.stdout + ended.stderr


def test_a_full_disk_under_standard_output_is_told_and_the_other_reports_are_written(
    scored: str, tmp_path: Path
) -> None:
    ended = shell(f"{scored} -o report.json > /dev/full")
    assert ended.returncode == 4
    assert ended.stderr.startswith("error: standard output cannot be written: No space left on device\n")
    assert json.loads((tmp_path / "report.json").read_text())["submissions"]
    assert shell(f"{scored} 2> /dev/full").returncode == UNDETERMINED


@pytest.mark.parametrize("command", ["--help", "run --help"])
def test_help_that_cannot_be_written_is_told_and_help_that_nobody_reads_is_no_error(command: str) -> None:
    grader = f"{sys.executable} -c 'from grader.cli.app import main; main()' {command}"
    full = shell(f"{grader} > /dev/full")
    assert (full.returncode, full.stderr) == (4, "error: standard output cannot be written: No space left on device\n")
    gone = shell(f"{grader} | true; echo ${{PIPESTATUS[0]}}")
    assert (gone.stdout, gone.stderr) == ("0\n", "")


@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, errno.EIO])
def test_what_breaks_inside_a_command_is_never_taken_for_its_verdict(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def breaks(*_: object, **__: object) -> int:
        raise OSError(number, "the engine's pipe")

    monkeypatch.setattr(task_lint, "lint", breaks)
    assert run_cli(["lint", "task.yaml"]) == BUG
    assert "the engine's pipe" in capsys.readouterr().err


class _Gone(io.StringIO):
    """A terminal that was closed."""

    def isatty(self) -> bool:
        return True

    def write(self, s: str, /) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_is_gone_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", _Gone())
    console = Console(color="never")
    assert console.is_live
    with console.live(lambda: ["running"]):
        console.line("a line")
    console.say("another")


def test_standard_output_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", _Gone())
    with pytest.raises(PrerequisiteError, match="Input/output error"):
        Console().result("report")
    assert cast("_Gone", sys.stdout).isatty()
