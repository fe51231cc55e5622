"""Seats and invocations for benchmarks, made from the shipped profiles as the runner makes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from grader.core.cases import OutputFile, ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, ProfileInForce, make_plan
from grader.matchers import Contains
from grader.runner.programs import image_of, make_program
from grader.runtimes import find_profile
from grader.sandbox.base import Failed, Isolation, Program, Sandbox, Seat
from grader.sandbox.docker.sandbox import DockerSandbox
from grader.submission import Submission

STATIC_TRUE = "int main(void) { return 0; }\n"


class BenchmarkError(Exception):
    """What was to be measured did not happen; a number would mean nothing."""


@asynccontextmanager
async def docker_sandbox(isolation: Isolation = "submission", boxes: int | None = None) -> AsyncGenerator[Sandbox]:
    async with DockerSandbox(isolation=isolation, max_parallel=boxes) as sandbox:
        yield sandbox


async def program_for(
    sandbox: Sandbox, profile: str, files: dict[str, bytes], command: tuple[bytes, ...] | None = None
) -> Program:
    """A submission under a shipped profile; `command`: run this instead, without compiling."""
    loaded = find_profile(profile, None)
    force = await image_of(loaded, sandbox, lambda line: print(line, flush=True))
    program = make_program(loaded, force, Submission.from_files(files, name="benchmark"))
    if command is None:
        return program
    return replace(program, run_command=command, compile_command=None, command_is_submission=False)


@asynccontextmanager
async def seated(sandbox: Sandbox, program: Program) -> AsyncGenerator[Seat]:
    async with sandbox.prepare(program) as seat:
        if isinstance(seat, Failed):
            raise BenchmarkError(f"no seat: {seat.code}: {seat.detail}")
        yield seat


def invocation(profile: ProfileInForce, case: ProgramCase | None = None) -> Invocation:
    """What a case is given under a profile."""
    task = Task(conditions=(ProgramBehaves(cases=(case if case is not None else ProgramCase(),)),))
    return make_plan(task, [profile]).runs[0].invocation


async def outcome_of(seat: Seat, asked: Invocation) -> RunOutcome:
    """One run that ends well. Raises BenchmarkError for any other."""
    outcome = await seat.run(asked)
    if isinstance(outcome, Failed) or outcome.measures.exit_code != 0:
        raise BenchmarkError(f"a run did not end well: {outcome}")
    return outcome


async def static_true(sandbox: Sandbox) -> bytes:
    """A static program that ends at once, compiled in a box."""
    files = {"main.c": STATIC_TRUE.encode()}
    command = (b"gcc", b"-O2", b"-static", b"-s", b"-o", b"true", b"/submission/main.c")
    program = await program_for(sandbox, "c", files, command)
    case = ProgramCase(output_files=(OutputFile(name=b"true", expected=Contains(expected=b"ELF")),))
    async with seated(sandbox, program) as seat:
        outcome = await outcome_of(seat, invocation(program.profile, case))
    captured = outcome.files[0].captured
    if captured is None:
        raise BenchmarkError("the compiler left no program")
    return captured.kept
