"""Building parts of the supervisor's C sources for the tests, with the host's compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from grader.sandbox import supervisor

SOURCES = Path(supervisor.__file__).parent / "src"
HERE = Path(__file__).parent
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def build(target: Path, harness: str, sources: tuple[str, ...], *flags: str) -> Path:
    """Compile a harness of this folder with some of the supervisor's sources; skip, saying so, without a compiler."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on this machine: the C parts of the supervisor are not tested here")
    command = [gcc, "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, "-I", str(SOURCES), "-o", str(target)]
    command += [str(HERE / harness), *(str(SOURCES / name) for name in sources)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return target
