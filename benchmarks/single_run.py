"""One supervised run, end to end from Python, against the same program as a subprocess of the host.

By `subprocess.run`, which blocks; and by asyncio's own subprocesses, which like grader do not.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from pathlib import Path

from benchmarks.boxes import docker_sandbox, invocation, outcome_of, program_for, seated, static_true
from benchmarks.measures import Contest, Measure, take_turns
from grader.sandbox.base import Program, Sandbox

PYTHON = "/usr/bin/python3"
"""The host's interpreter of the same distribution: builds differ more in how fast they start than a sandbox costs."""


async def measure(*, quick: bool) -> list[Measure]:
    rounds = 10 if quick else 40
    async with docker_sandbox() as sandbox:
        content = await static_true(sandbox)
        command = (b"/submission/true",)
        program = await program_for(sandbox, "bash", {"true": content, "main.sh": b""}, command)
        program = _executable(program)
        with tempfile.TemporaryDirectory() as folder:
            host = Path(folder) / "true"
            host.write_bytes(content)
            host.chmod(0o755)
            small = await _contest(sandbox, program, [str(host)], rounds=rounds, runs_a_round=20)
        python = await program_for(sandbox, "python", {"main.py": b""}, (b"python3", b"-c", b"pass"))
        large = await _contest(sandbox, python, [PYTHON, "-c", "pass"], rounds=rounds, runs_a_round=3)
    beside_asyncio = small.ratio("supervised", "host_asyncio")
    return [
        Measure("static true, supervised / host", small.ratio("supervised", "host"), "x", 1.6, small.in_ms()),
        Measure("static true, supervised / host by asyncio", beside_asyncio, "x"),
        Measure("python3 -c pass, supervised / host", large.ratio("supervised", "host"), "x", 1.1, large.in_ms()),
    ]


async def _contest(
    sandbox: Sandbox, program: Program, command: list[str], *, rounds: int, runs_a_round: int
) -> Contest:
    asked = invocation(program.profile)
    environment = {name: value.decode() for name, value in asked.environment.items()}
    async with seated(sandbox, program) as seat:

        async def supervised() -> None:
            await outcome_of(seat, asked)

        async def host() -> None:
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, env=environment)  # noqa: ASYNC221

        async def host_asyncio() -> None:
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                *command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=environment
            )
            await process.communicate()

        ways = {"supervised": supervised, "host": host, "host_asyncio": host_asyncio}
        return await take_turns(ways, rounds=rounds, runs_a_round=runs_a_round)


def _executable(program: Program) -> Program:
    """The program with its files marked executable."""
    from dataclasses import replace

    return replace(program, files=tuple(replace(file, executable=True) for file in program.files))
