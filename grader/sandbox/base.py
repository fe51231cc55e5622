"""What a sandbox is: it executes one invocation at a time and reports what happened, or says why it could not.

The order of use is fixed. A `Sandbox` is opened once (an async context manager). `prepare` takes a submission under a
profile to the point where it can run, compiling it if the profile says so, and gives a `Seat`; `Seat.run` executes
invocations one after the other. A seat belongs to one caller at a time; different seats run side by side.

Two families of trouble are never mixed. What the program does, including everything it can do wrong, is in the
`RunOutcome`. What the sandbox failed at is `Failed`, with a reason code of kind M. Neither `prepare` nor `run` raises
for such trouble: they raise only when they are cancelled, or for a bug of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Protocol

from grader.core.observation import CompileRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import Invocation, ProfileInForce
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile

Isolation = Literal["run", "submission", "shared"]
"""`run`: a fresh box for every run. `submission`: for every submission and profile. `shared`: boxes serve many."""

ISOLATIONS: tuple[Isolation, ...] = ("run", "submission", "shared")


@dataclass(frozen=True, slots=True)
class ImageSource:
    """Where a profile's image comes from: a folder with a Dockerfile, or an image named by its digest."""

    folder: Path | None = None
    reference: str | None = None
    debian_packages: tuple[str, ...] = ()
    pypi_packages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """A submission as a sandbox needs it: its files, the entry point among them, and the profile it runs under."""

    submission_digest: str
    files: tuple[SubmissionFile, ...]
    entry: bytes
    """Path of the entry point inside the submission."""
    profile: ProfileInForce
    compile_command: tuple[bytes, ...] | None
    """argv of the compile command, or None. It runs in the work folder, where the submission's files are."""
    run_command: tuple[bytes, ...]
    """argv to which a case's arguments are added."""
    command_is_submission: bool
    """Whether `run_command[0]` is a file of the submission or compiled from it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The sandbox could not do it. `retryable`: another attempt gives a program no second throw of the dice."""

    code: ReasonCode
    detail: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What the record keeps of the host and the engine. Unknown values are left out."""

    host: Mapping[str, str] = field(default_factory=dict[str, str])
    """engine, runc, kernel, cgroup version, architecture, CPU count, supervisor digest."""
    not_enforced: tuple[str, ...] = ()
    """What this engine cannot enforce, in words."""


@dataclass(frozen=True, slots=True)
class Port:
    """A port on a program's own loopback, on which the sandbox listens for it, and its bounds."""

    number: int
    connections_at_once: int = 32
    """Who comes later waits until one is closed."""
    connections_in_all: int = 5_000
    most_bytes: int = 64 * 2**20
    """That the program can send, over all connections."""


@dataclass(frozen=True, slots=True)
class PortSeen:
    """What came to a port in all. `refused`: connections beyond the bound. `is_full`: more bytes than were taken."""

    connections: int
    refused: int = 0
    received_bytes: int = 0
    is_full: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a program gets back on a connection, and whether the connection is closed after it."""

    data: bytes = b""
    closes: bool = False
    ends_port: bool = False
    """Whether nothing more is heard of this run: every connection is closed, and nobody can connect any more."""


class Ear(Protocol):
    """Hears what a program sends to its port in one run. The bytes are hostile; nothing here may raise or wait."""

    @property
    def port(self) -> Port:
        """Where to listen, from before the start of the run."""
        ...

    def hear(self, connection: int, data: bytes) -> Reply:
        """The next bytes of a connection, or `b""` for its end. Connections are numbered from 1."""
        ...

    def finish(self, seen: PortSeen) -> None:
        """Every process of the run is dead: nothing more comes. Not called if the box was lost."""
        ...


class Seat(Protocol):
    """A submission ready to run under one profile."""

    @property
    def compiled(self) -> CompileRecord | None:
        """The compile run; None if the profile does not compile."""
        ...

    async def run(self, invocation: Invocation, ear: Ear | None = None) -> RunOutcome | Failed:
        """Execute one invocation. With an `ear`, the program can connect to its port.

        Bounded: it returns within the invocation's wall limit and a fixed grace.

        When cancelled, the box is removed before the cancellation goes on.
        """
        ...


class Sandbox(Protocol):
    """Executes programs; see the module's text for the order of use."""

    @property
    def facts(self) -> Facts:
        """What is known of the host and the engine, once the sandbox is open."""
        ...

    async def image(self, source: ImageSource, progress: Callable[[str], None]) -> str:
        """The id of the image of a profile, built now if it is not there; `progress` gets a line for each step.

        Raises PrerequisiteError if it cannot be had (exit 4).
        """
        ...

    def prepare(self, program: Program) -> AbstractAsyncContextManager[Seat | Failed]:
        """Bring a submission to where it can run, compiling it once. Leaving the context gives its boxes back.

        A compile command that fails is not `Failed`: it is in `Seat.compiled`, and such a seat is not asked to run.
        """
        ...

    async def __aenter__(self) -> Sandbox:
        """Open it. Raises PrerequisiteError if the engine or an image is missing (exit 4)."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Remove every box, also when cancelled."""
        ...
