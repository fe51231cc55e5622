"""A signal that comes when everything is cleaned up, or while Python ends, still gives the first signal's exit code."""

import subprocess
import sys

import pytest

SCRIPT = """
import os, signal, sys
import anyio
from grader.cli.interrupts import InterruptedBySignalError, run_interruptible

async def main():
    os.kill(os.getpid(), signal.SIGTERM)
    await anyio.sleep(30)

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)

try:
    run_interruptible(main)
except InterruptedBySignalError as stopped:
    if sys.argv[1] == "reporting":
        os.kill(os.getpid(), signal.SIGINT)
        print("still here", flush=True)
    last = sys.modules["a module that ends late"] = Last()
    sys.exit(stopped.exit_code)
"""


@pytest.mark.parametrize("when", ["reporting", "ending"])
def test_one_more_signal_at_the_very_end_changes_no_exit_code(when: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, when], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, "KeyboardInterrupt" in done.stderr) == (143, "", False), done.stderr
