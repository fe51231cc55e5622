"""Without the packages of an extra everything else works, and what needs them says which to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BLOCK = "import sys\nfor name in {names!r}: sys.modules[name] = None\n"
ALL_NAMES = "from grader import *\nprint(LocalTraceCapture.__name__, CapturedRequest.__name__)"
CAPTURE = "import grader\ntry: grader.LocalTraceCapture()\nexcept grader.PrerequisiteError as error: print(error)"
RECEIVE = "from grader.cli.app import run_cli\nprint(run_cli(['receive', 'spans', '--port', '0', '--', 'true']))"


@pytest.mark.parametrize(
    ("names", "program", "words"),
    [
        (("opentelemetry", "h11"), ALL_NAMES, "LocalTraceCapture CapturedRequest"),
        (("opentelemetry",), CAPTURE, "opentelemetry-sdk is not installed\n  mend: pip install 'grader[capture]'"),
        (("h11",), RECEIVE, "4\nerror: spans cannot be received over HTTP: the package h11 is not installed"),
        (("opentelemetry",), RECEIVE, "0\n"),
    ],
)
def test_what_is_missing_is_told(tmp_path: Path, names: tuple[str, ...], program: str, words: str) -> None:
    command = [sys.executable, "-W", "error", "-c", BLOCK.format(names=names) + program]
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, env={"PYTHONPATH": root}
    )
    assert done.returncode == 0, done.stderr
    assert words in done.stdout.replace("received 0 spans in 0 requests\n", "") + done.stderr
