"""Podman behind its Docker-compatible socket: the whole contract of a box holds, and what it cannot do is named."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Grader

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def podman() -> Iterator[str]:
    """The address of a podman of the test's own."""
    program = shutil.which("podman")
    if program is None or os.geteuid() != 0:
        pytest.skip("no podman on this machine, or not root")
    folder = Path(tempfile.mkdtemp(dir="/tmp"))  # podman takes no longer path than 50 characters
    own = [program, "--root", str(folder / "root"), "--runroot", str(folder / "run")]
    socket = folder / "podman.sock"
    with subprocess.Popen(
        [*own, "system", "service", "--time=0", f"unix://{socket}"], stderr=subprocess.DEVNULL, cwd=folder
    ) as at:
        try:
            end_s = time.monotonic() + 30
            while not socket.exists() and time.monotonic() < end_s:
                time.sleep(0.1)
            yield f"unix://{socket}"
        finally:
            at.terminate()
            at.wait(timeout=30)
            subprocess.run([*own, "system", "reset", "--force"], capture_output=True, check=False, timeout=120)
            shutil.rmtree(folder, ignore_errors=True)


def test_podman_passes_the_doctor(grader: Grader, podman: str) -> None:
    done = grader("doctor", DOCKER_HOST=podman)
    assert done.code == 0, done.out
    assert "Podman Engine" in done.out
    assert "FAIL" not in done.out
    assert "this engine does not enforce: the number of files in /work is not limited" in done.out
    assert done.out.count("ok       box:") > 20
