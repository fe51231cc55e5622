"""What a box is asked to run, and what it reports: the words that seats and boxes speak with each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from grader.core.limits import EffectiveLimits
from grader.core.outcomes import RunOutcome
from grader.core.plan import ProfileInForce
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Failed, Port
from grader.sandbox.supervisor.requests import KEEP_STREAM_MAX

Tree = tuple[SubmissionFile, ...]
"""What is in `/submission`: the submission's files, or what its compile command left."""


@dataclass(frozen=True, slots=True)
class BoxKind:
    """What cannot be changed of a box once it is open: boxes of one kind can stand in for each other."""

    image_id: str
    """The profile's image, without the supervisor."""
    memory_bytes: int
    processes: int
    disk_bytes: int
    files: int
    output_bytes: int
    """How much output the box holds, at most."""
    cpus: int = 1
    executable_folders: tuple[str, ...] = ()
    runtime: str | None = None

    @classmethod
    def of(cls, profile: ProfileInForce, limits: EffectiveLimits) -> BoxKind:
        """The kind of box that a run of this profile under these limits needs."""
        body = profile.body
        cpus, folders, runtime = body.get("cpus"), body.get("executable_folders"), body.get("runtime")
        return cls(
            image_id=profile.image_id,
            memory_bytes=limits.memory_bytes,
            processes=limits.processes,
            disk_bytes=limits.disk_bytes,
            files=limits.files,
            output_bytes=output_bytes(limits),
            cpus=cpus if isinstance(cpus, int) else 1,
            executable_folders=tuple(str(folder) for folder in cast("list[object]", folders))
            if isinstance(folders, list | tuple)
            else (),
            runtime=runtime if isinstance(runtime, str) else None,
        )


def output_bytes(limits: EffectiveLimits) -> int:
    """How much output the box holds for a run under these limits, at most."""
    stderr = min(limits.stderr_bytes, limits.stderr_kept_bytes, KEEP_STREAM_MAX)
    return min(limits.stdout_bytes, KEEP_STREAM_MAX) + stderr


@dataclass(frozen=True, slots=True)
class BoxInvocation:
    """An invocation as a box takes it: exactly what its run is given, and what is read back."""

    command: tuple[bytes, ...]
    command_is_submission: bool
    environment: dict[str, bytes]
    stdin: bytes
    files: Tree
    """Put into the work folder before the start."""
    collect: tuple[bytes, ...]
    limits: EffectiveLimits
    keeps_work: bool = False
    """Whether the regular files of the work folder are kept in `/submission`, and reported, if the exit code is 0."""
    port: Port | None = None
    """A port of the box's loopback that the program can connect to."""


@dataclass(frozen=True, slots=True)
class BoxReport:
    """What came of a run in a box."""

    outcome: RunOutcome | Failed
    """`Failed` only if the program could not be started for a cause of ours."""
    kept: Tree | None = None
    """What was kept of the work folder; None unless asked for, and it ended well."""
    box_is_usable: bool = True
    """Whether the box may serve another run of the same submission."""
    box_is_as_new: bool = True
    """Whether nothing out of the ordinary happened, so that the box may serve another submission."""


class NoBoxError(Exception):
    """No box could be opened, or the submission could not be put into it. `failed` is the missing run this makes."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.detail)
        self.failed = failed
