"""What is known of the machine: without it the numbers mean nothing."""

from __future__ import annotations

import datetime
import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

from benchmarks.boxes import docker_sandbox


async def facts() -> dict[str, object]:
    async with docker_sandbox() as sandbox:
        engine = dict(sandbox.facts.host)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "grader": version("grader"),
        "python": platform.python_version(),
        "cpu": _cpu(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load": load(),
        **engine,
    }


def load() -> list[float]:
    """Of the last 1, 5 and 15 minutes: what else the machine does."""
    return [round(value, 1) for value in os.getloadavg()]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
