"""The real command line as a process of its own, in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
COMMAND = (sys.executable, "-c", "from grader.cli.app import main; main()")
WITHIN_S = 240


@dataclass(frozen=True)
class Ended:
    """How the process ended, and what it wrote."""

    code: int
    out: str
    err: str


Grader = Callable[..., Ended]


def environment(folder: Path, **changes: str) -> dict[str, str]:
    """An environment without anything of the person who runs the tests that could matter."""
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "TERM"}}
    return {**kept, "XDG_CONFIG_HOME": str(folder / "config"), "PYTHONPATH": str(ROOT), **changes}


@pytest.fixture
def grader(tmp_path: Path) -> Grader:
    def run(*arguments: str | Path, stdin: bytes = b"", **changes: str) -> Ended:
        done = subprocess.run(
            [*COMMAND, *(str(argument) for argument in arguments)],
            cwd=tmp_path,
            env=environment(tmp_path, **changes),
            input=stdin,
            capture_output=True,
            timeout=WITHIN_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run
