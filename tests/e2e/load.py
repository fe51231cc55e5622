"""Load of a test's own: processes that keep every CPU busy, as other users of the machine would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

_HOG = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile os.getppid() == int(sys.argv[2]): pass\n"


@contextmanager
def busy_cpus(hogs_each: int) -> Generator[None]:
    """Keep every CPU busy with so many processes. They end with the test, however it ends."""
    # A session each: the scheduler shares the CPU out between sessions first, so each counts as much as a box does.
    hogs = [
        subprocess.Popen([sys.executable, "-S", "-c", _HOG, str(cpu), str(os.getpid())], start_new_session=True)
        for cpu in sorted(os.sched_getaffinity(0))
        for _ in range(hogs_each)
    ]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
        for hog in hogs:
            hog.wait(30)
