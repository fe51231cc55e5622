"""Where a sandbox is tried: runs of the probe (probe.py) through it, and what each of them must come to."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from grader.core.canonical import digest, sha256_hex
from grader.core.endings import Ending, EndingKind, decide_ending
from grader.core.limits import EffectiveLimits, Limits
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, ProfileInForce
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Failed, Program, Sandbox, Seat
from grader.sandbox.probe import PROBE, PROBE_NAME

EXIT_0 = Ending(EndingKind.EXITED, 0)
_PROBE_FILE = SubmissionFile(PROBE_NAME, PROBE)


class ContractBrokenError(Exception):
    """A sandbox does not do what every sandbox must do; the message says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where the checks run: an open sandbox, and a profile whose image has a POSIX shell and coreutils."""

    sandbox: Sandbox
    profile: ProfileInForce

    def limits(self, **asked: float) -> EffectiveLimits:
        """Limits that suit short checks, with those asked for laid over them."""
        small = Limits.model_validate({"cpu_time_s": 2, "wall_time_s": 6, "memory_bytes": 64 * 2**20, "processes": 32})
        wanted = Limits.model_validate(asked).over(small)
        return self.profile.limits.model_copy(update={"maximum": _ANYTHING}).effective(wanted)

    def invocation(self, *arguments: bytes, **asked: object) -> Invocation:
        """What the probe is given. `limits`, `stdin`, `environment`, `files`, `collect` as in `Invocation`."""
        fields: dict[str, object] = {
            "profile": self.profile.name,
            "arguments": arguments,
            "stdin": b"",
            "environment": {"PATH": b"/usr/local/bin:/usr/bin:/bin"},
            "files": (),
            "collect": (),
            "limits": self.limits(),
        }
        return Invocation.model_validate({**fields, **asked})

    @asynccontextmanager
    async def seat(self, program: Program | None = None) -> AsyncGenerator[Seat]:
        """A seat for the probe. Raises ContractBrokenError if the sandbox cannot prepare one."""
        async with self.sandbox.prepare(program if program is not None else self.probe()) as seat:
            if isinstance(seat, Failed):
                raise ContractBrokenError(f"no seat: {seat.code}: {seat.detail}")
            yield seat

    def probe(self, *files: SubmissionFile, **changed: object) -> Program:
        """The probe as a submission, started by the image's shell."""
        every = (_PROBE_FILE, *files)
        fields: dict[str, object] = {
            "submission_digest": digest([[sha256_hex(f.path), f.executable, sha256_hex(f.content)] for f in every]),
            "files": every,
            "entry": PROBE_NAME,
            "profile": self.profile,
            "compile_command": None,
            "run_command": (b"/bin/sh", b"/submission/" + PROBE_NAME),
            "command_is_submission": False,
        }
        return Program(**{**fields, **changed})  # pyright: ignore[reportArgumentType]


_ANYTHING = Limits(
    cpu_time_s=60,
    wall_time_s=120,
    memory_bytes=2**31,
    processes=512,
    stdout_bytes=2**26,
    stderr_kept_bytes=2**24,
)


async def outcome_of(seat: Seat, invocation: Invocation) -> RunOutcome:
    """One run that must take place. Raises ContractBrokenError if it did not."""
    outcome = await seat.run(invocation)
    if isinstance(outcome, Failed):
        raise ContractBrokenError(f"{asked(invocation)} did not run: {outcome.code}: {outcome.detail}")
    return outcome


async def ended(seat: Seat, invocation: Invocation, *expected: Ending) -> RunOutcome:
    """One run that must end in one of these ways. Raises ContractBrokenError."""
    outcome = await outcome_of(seat, invocation)
    ending = decide_ending(outcome, invocation.limits)
    if ending not in expected:
        wanted = " or ".join(str(one) for one in expected)
        raise ContractBrokenError(f"{asked(invocation)} ended with {ending}, not {wanted}: {outcome.measures!r}")
    return outcome


async def printed(seat: Seat, invocation: Invocation, expected: bytes) -> RunOutcome:
    """One run that must exit with 0 and have written exactly this to standard output. Raises ContractBrokenError."""
    outcome = await ended(seat, invocation, EXIT_0)
    same(f"standard output of {asked(invocation)}", outcome.stdout.captured.kept, expected)
    same(f"length of it of {asked(invocation)}", outcome.stdout.captured.total_bytes, len(expected))
    return outcome


def asked(invocation: Invocation) -> str:
    """What the probe was asked to do, for messages."""
    shown = b" ".join(invocation.arguments)[:60]
    return f"`probe {shown.decode('utf-8', 'backslashreplace')}`"


def same(what: str, got: object, expected: object) -> None:
    """Raises ContractBrokenError unless both are equal."""
    if got != expected:
        raise ContractBrokenError(f"{what}: expected {_short(expected)}, got {_short(got)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."
