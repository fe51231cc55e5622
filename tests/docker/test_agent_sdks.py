"""The OpenTelemetry SDKs of Python and Node, and an agent library: unmodified, on the box's own loopback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader import Runner, Submission, Task, Tri
from grader.core.observation import ProgramRuns

pytestmark = [pytest.mark.anyio, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]
HERE = Path(__file__).parent / "agents"
NODE_PACKAGES = (
    "@opentelemetry/api@1",
    "@opentelemetry/sdk-trace-node@2",
    "@opentelemetry/exporter-trace-otlp-proto",
    "esbuild",
)
NODE_PROFILE = """
language: node
suffixes: [.js]
image: {dockerfile: node}
run: [node, "{entry}"]
traces: otlp
limits:
  defaults: {cpu_time_s: 20, memory_bytes: 512 MiB, processes: 64}
"""


def python_agent(folder: Path) -> tuple[str, Submission]:
    del folder
    return "python-agent", Submission.from_path(HERE / "pydantic_agent.py")


def node_agent(folder: Path) -> tuple[str, Submission]:
    """The program with the packages it needs in one file, for a profile has no packages of npm."""
    shutil.copy(HERE / "node_agent.js", folder)
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", *NODE_PACKAGES]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    esbuild = [str(folder / "node_modules" / ".bin" / "esbuild"), "node_agent.js", "--bundle", "--log-level=warning"]
    subprocess.run([*esbuild, "--platform=node", "--outfile=main.js"], cwd=folder, check=True, timeout=60)
    return "node-agent", Submission.from_path(folder / "main.js")


AGENTS: list[Callable[[Path], tuple[str, Submission]]] = [python_agent]
if shutil.which("npm") is not None:  # else there is nothing to test it with: no skip, which CI would call a failure
    AGENTS.append(node_agent)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.__name__)
async def test_spans_of_an_unmodified_sdk_arrive(
    agent: Callable[[Path], tuple[str, Submission]], tmp_path: Path
) -> None:
    (tmp_path / "node-agent.yaml").write_text(NODE_PROFILE)
    profile, submission = agent(tmp_path)
    booked = {"name": "book_flight", "arguments": [{"name": "city", "matcher": {"equals": "Oslo"}}]}
    conditions: list[dict[str, Any]] = [
        {
            "condition_type": "program_behaves",
            "repetitions": 2,
            "cases": [{"stdout": {"equals": "You fly to Oslo.\n"}, "stderr": {"equals": ""}}],
        },
        {"condition_type": "tools_called", "tools": [{"name": "confirm"}, booked]},
        {"condition_type": "tools_called_in_order", "tools": [{"name": "confirm"}, booked]},
    ]
    task = Task.model_validate({"runtime_profiles": [profile], "conditions": conditions})
    async with Runner(runtimes=tmp_path) as runner:
        graded = await runner.grade(task, submission)
    assert graded.verdict is not None
    assert graded.verdict.value is Tri.TRUE, graded.verdict.rationale
    assert graded.observation is not None
    assert isinstance(graded.observation.payload, ProgramRuns)
    for run in graded.observation.payload.runs:
        assert run.outcome is not None
        traces = run.outcome.traces
        assert traces is not None
        assert (traces.refused, traces.cut, traces.full) == (0, 0, "")
        assert traces.messages.total_bytes > 0, "protobuf is what the variables ask for"
        assert traces.lines.total_bytes == 0
