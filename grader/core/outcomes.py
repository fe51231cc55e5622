"""What a sandbox reports of one run: raw facts, judged by nobody yet.

Times are integer nanoseconds, sizes bytes. What could not be read is None, never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from grader.core.bytes_field import Bytes, parse_bytes, plain_bytes
from grader.core.captured import Captured

_FROZEN = ConfigDict(frozen=True, extra="forbid")


def parse_captured(value: object) -> Captured:
    """Captured bytes from their plain form: the kept bytes, and for a cut value length and SHA-256 of the whole."""
    if isinstance(value, Captured):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("captured bytes are written as a mapping")
    entries = dict(cast("Mapping[str, object]", value))
    total = entries.pop("total_bytes", None)
    sha256 = entries.pop("sha256", None)
    blob = entries.pop("kept", None)  # bytes of a blob that the store has already read
    kept = blob if isinstance(blob, bytes) and not entries else parse_bytes(entries)
    if total is None and sha256 is None:
        return Captured.whole(kept)
    if not isinstance(total, int) or isinstance(total, bool) or not isinstance(sha256, str) or total <= len(kept):
        raise ValueError("captured bytes that were cut need total_bytes above what is kept, and sha256")
    return Captured(kept, total, sha256)


def plain_captured(captured: Captured) -> dict[str, object]:
    """The plain form of captured bytes, the inverse of `parse_captured`."""
    data = plain_bytes(captured.kept)
    plain: dict[str, object] = {"text": data} if isinstance(data, str) else dict(data)
    if not captured.is_complete:
        plain |= {"total_bytes": captured.total_bytes, "sha256": captured.sha256}
    return plain


CapturedField = Annotated[Captured, BeforeValidator(parse_captured), PlainSerializer(plain_captured)]
"""A pydantic field of captured bytes."""

StopCause = Literal["cpu", "wall", "stdout", "stderr", "file_size", "starved"]
"""Why the supervisor ended the run: it killed what ran, for the first limit that it saw breached."""


class Measures(BaseModel):
    """Raw counters of one run; the ending is decided from them by a pure rule, so replay can use a better one."""

    model_config = _FROZEN

    stopped_for: StopCause | None = None
    start_error: int | None = None
    """errno of the exec that failed; None if the program was started."""
    exit_code: int | None = None
    signal: int | None = None
    wall_time_ns: int
    cpu_time_ns: int | None = None
    """CPU time of the whole tree, user and system, without the supervisor's own."""
    user_time_ns: int | None = None
    system_time_ns: int | None = None
    peak_memory_bytes: int | None = None
    peak_memory_source: Literal["rusage", "sampled", "cgroup"] | None = None
    oom_kills: int | None = None
    """Processes of the box that the kernel killed for memory during the run."""
    memory_limit_hits: int | None = None
    """How often the box's own memory limit was hit during the run."""
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    run_queue_delay_ns: int | None = None
    canary_lateness_ns: int | None = None
    """How late the canary was woken while the box could not be the cause; not charged to the run."""
    contended_ns: int | None = None
    """The longest that the run can have waited for CPUs that others were using: it did not want one for longer, and
    others did not keep them busy for longer. Not waived; but a wall-time limit is certainly exceeded only beyond it."""
    throttled_ns: int | None = None
    steal_ns: int | None = None
    stdin_starved_ns: int | None = None
    """Time in which the program waited for us: for standard input that we had not delivered yet, or while we had not
    dealt with what it sent to its trace endpoint. Not charged to it."""
    start_offset_ns: int | None = None
    survivors: int | None = None
    """Processes that were still there when the main process ended, and were killed."""


class StreamOutcome(BaseModel):
    """What the program wrote to one stream until its last process was dead."""

    model_config = _FROZEN

    captured: CapturedField
    wrote_after_main_bytes: int | None = 0
    """How much of it came after the main process had ended."""


FileStatus = Literal["regular", "missing", "not_regular", "too_large", "refused"]


class FileOutcome(BaseModel):
    """One output file as it was when the run's last process was dead."""

    model_config = _FROZEN

    name: Bytes
    status: FileStatus
    kind: str | None = None
    """What it is when it is not a regular file: symlink, directory, fifo, socket, device."""
    captured: CapturedField | None = None
    detail: str | None = None


class TraceOutcome(BaseModel):
    """What a program sent to the trace endpoint that it was given: its own word, byte for byte, judged by nobody yet.

    Only what was acknowledged is kept; everything that was not is counted, so that nothing is missing silently.
    """

    model_config = _FROZEN

    messages: CapturedField = Captured.whole(b"")
    """OTLP protobuf requests one after the other, each behind its length (4 bytes, big endian)."""
    lines: CapturedField = Captured.whole(b"")
    """OTLP/JSON requests, each on a line of its own."""
    batches: int = 0
    """Requests that were kept."""
    refused: int = 0
    """Requests that were answered with an error, because they were no trace or there was no room for them."""
    refused_detail: str = ""
    """Why the first of them was refused."""
    cut: int = 0
    """Requests that were not whole when the last process of the run was dead."""
    connections: int = 0
    connections_refused: int = 0
    """Connections that were closed at once, because there were too many."""
    received_bytes: int = 0
    full: str = ""
    """The bound beyond which nothing more was taken, in words; empty if it was not met."""


class BoxSeen(BaseModel):
    """What the box of a run was, read from inside it before a program was in it."""

    model_config = _FROZEN

    interfaces: tuple[str, ...] = ()
    """The network interfaces, by name. `lo` alone is no network; some kernels add tunnels, which are down."""
    routes: int = 0
    """How many network routes there were."""
    not_enforced: tuple[str, ...] = ()
    """What the engine did not enforce for this box, in words."""


class RunOutcome(BaseModel):
    """A run that took place: the exact command, what it did, and what came out."""

    model_config = _FROZEN

    command: tuple[Bytes, ...]
    """argv as it was executed, compiled programs and interpreters included."""
    command_is_submission: bool
    """Whether argv[0] is a file of the submission (or compiled from it), rather than a program of the profile."""
    measures: Measures
    stdout: StreamOutcome
    stderr: StreamOutcome
    files: tuple[FileOutcome, ...] = ()
    traces: TraceOutcome | None = None
    """What it sent to its trace endpoint; None if the profile gives it none."""
    box: BoxSeen | None = None
    """What its box was; None if that was not recorded."""
