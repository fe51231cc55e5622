"""The sandbox that commands run programs in: Docker's. Tests put a sandbox of their own in its place."""

from __future__ import annotations

import os

from grader.sandbox.base import Isolation, Sandbox


def make_sandbox(isolation: Isolation, max_parallel: int | None) -> Sandbox:
    """A sandbox, not open yet. Opening it raises PrerequisiteError if the engine cannot be used."""
    from grader.sandbox.docker.sandbox import DockerSandbox

    return DockerSandbox(isolation=isolation, max_parallel=max_parallel or len(os.sched_getaffinity(0)))
