"""The command line in this process, on a scripted sandbox, in an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.cli import sandboxes
from grader.cli.app import run_cli
from grader.sandbox.base import Sandbox
from grader.sandbox.fake import Behaviour, Call, FakeSandbox

RunIt = Callable[..., "Ended"]

TASK = """\
runtime_profiles: [python]
conditions:
  - condition_type: program_behaves
    repetitions: 3
    cases:
      - {name: letters, stdin: "abc\\n", stdout: {equals: "ABC\\n"}}
      - {name: digits, stdin: "12\\n", stdout: {equals: "12\\n"}}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


def behave(call: Call) -> Behaviour:
    """What a submission does is what its file says: good, wrong, flaky or hostile."""
    (file,) = call.program.files
    word = file.content.decode()
    data = call.invocation.stdin
    if word == "wrong" or (word == "flaky" and call.repeat == 1):
        return Behaviour(stdout=data.lower())
    if word == "hostile":
        return Behaviour(stdout=b"\x1b[2J\x1b]0;owned\x07" + data, stderr=b"\x1b[31m\xe2\x80\xae\n")
    return Behaviour(stdout=data.upper())


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    (tmp_path / "task.yaml").write_text(TASK)
    folder = tmp_path / "all"
    folder.mkdir()
    for word in ("good", "wrong", "flaky", "hostile"):
        (folder / f"{word}.py").write_text(word)
    return tmp_path


@pytest.fixture
def grader(workplace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> RunIt:
    del workplace

    def make(isolation: object, max_parallel: object) -> Sandbox:
        del isolation, max_parallel
        return FakeSandbox(behave)

    monkeypatch.setattr(sandboxes, "make_sandbox", make)

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        code = run_cli([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return Ended(code, shown.out, shown.err)

    return run
