"""Between core and supervisor: an invocation as the supervisor's request, its result as an outcome. Pure."""

from __future__ import annotations

import errno
from typing import Literal, cast

from grader.core.captured import Captured
from grader.core.endings import E2BIG
from grader.core.outcomes import BoxSeen, FileOutcome, Measures, RunOutcome, StopCause, StreamOutcome
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile
from grader.sandbox.base import Failed
from grader.sandbox.docker.box_runs import BoxInvocation, BoxReport
from grader.sandbox.supervisor.requests import (
    CONTENT_TOTAL_MAX,
    KEEP_FILES_MAX,
    KEEP_STREAM_MAX,
    STRINGS_MAX,
    RunRequest,
)
from grader.sandbox.supervisor.results import CollectedFile, Kept, RunResult, StreamResult

_SCRUB_NOT_CLEAN = 2
_Source = Literal["rusage", "sampled", "cgroup"]
UNKNOWN_SHA256 = "0" * 64
"""Stands where the digest of a stream is unknown because its bytes were lost with the box."""


def request_of(asked: BoxInvocation) -> RunRequest:
    """The supervisor's request for a run."""
    limits = asked.limits
    return RunRequest(
        argv=asked.command,
        environment=tuple((name.encode(), value) for name, value in asked.environment.items()),
        collect=asked.collect,
        cpu_time_ns=limits.cpu_time_ns,
        wall_time_ns=limits.wall_time_ns,
        stdout_kill_bytes=limits.stdout_bytes,
        stdout_keep_bytes=min(limits.stdout_bytes, KEEP_STREAM_MAX),
        stderr_kill_bytes=limits.stderr_bytes,
        stderr_keep_bytes=min(limits.stderr_bytes, limits.stderr_kept_bytes, KEEP_STREAM_MAX),
        file_size_bytes=limits.file_size_bytes,
        stack_bytes=limits.stack_bytes,
        open_files=max(3, limits.open_files),
        processes=limits.processes,
        collect_file_bytes=limits.output_files_bytes,
        collect_total_bytes=min(CONTENT_TOTAL_MAX, limits.output_files_bytes * len(asked.collect)),
        keep_files=KEEP_FILES_MAX if asked.keeps_work else 0,
        keep_bytes=min(CONTENT_TOTAL_MAX, limits.disk_bytes) if asked.keeps_work else 0,
        send_kept=asked.keeps_work,
        port=asked.port,
    )


def too_long_to_send(asked: BoxInvocation) -> BoxReport | None:
    """The report on a run whose arguments and environment no kernel would take (nor the protocol); None otherwise."""
    size = sum(map(len, asked.command)) + len(asked.command)
    # A character has at most four bytes: names are only encoded where that bound does not settle it.
    size += sum(map(len, asked.environment.values())) + 2 * len(asked.environment)
    size += sum(map(len, asked.collect)) + len(asked.collect)
    if size + 4 * sum(map(len, asked.environment)) <= STRINGS_MAX:
        return None
    if size + sum(len(name.encode()) for name in asked.environment) <= STRINGS_MAX:
        return None
    nothing = StreamOutcome(captured=Captured.whole(b""))
    measures = Measures(start_error=E2BIG, wall_time_ns=0)
    return BoxReport(_outcome(asked, measures, nothing, nothing))


def report_of(asked: BoxInvocation, result: RunResult, box: BoxSeen | None = None) -> BoxReport:
    """What came of a run in a box, from what the supervisor says of the run."""
    is_usable = result.box_usable and result.numbers["scrub"] != _SCRUB_NOT_CLEAN
    as_new = is_usable and not result.numbers["oom_kills"] and not result.numbers["survivors"]
    outcome = _not_run(result)
    if outcome is not None:
        return BoxReport(outcome, box_is_usable=False, box_is_as_new=False)
    kept, is_whole = _kept(result.kept)
    measures = measures_of(result)
    if asked.keeps_work and not is_whole:
        # More than a compile may leave: the same to the program as a file over its limit.
        measures = measures.model_copy(update={"stopped_for": measures.stopped_for or "file_size"})
    files = tuple(found for file in result.files if (found := file_outcome(file)) is not None)
    outcome = _outcome(asked, measures, _stream(result.stdout), _stream(result.stderr), files, box)
    return BoxReport(outcome, kept if asked.keeps_work else None, is_usable, as_new)


def out_of_memory_outcome(
    asked: BoxInvocation, hits: int, wall_time_ns: int, seen: tuple[int, int], box: BoxSeen | None = None
) -> RunOutcome:
    """The outcome of a run whose supervisor was killed for memory at the box's own limit; `seen`: bytes of each stream.

    What it had written is lost with the box; that does not matter, as the breached limit alone makes it false.
    """
    measures = Measures(wall_time_ns=wall_time_ns, oom_kills=1, memory_limit_hits=hits)
    stdout, stderr = (Captured(b"", total, UNKNOWN_SHA256) if total else Captured.whole(b"") for total in seen)
    return _outcome(asked, measures, StreamOutcome(captured=stdout), StreamOutcome(captured=stderr), box=box)


def measures_of(result: RunResult) -> Measures:
    """The raw counters of a run that took place."""
    n = result.numbers
    peak, source = peak_memory(n)
    return Measures(
        stopped_for=None if result.killed_for == "none" else cast("StopCause", result.killed_for),
        start_error=result.start_errno if result.start_step == "exec" else None,
        exit_code=result.exit_code,
        signal=result.signal,
        wall_time_ns=result.wall_ns,
        cpu_time_ns=result.cpu_ns,
        user_time_ns=n["user_ns"],
        system_time_ns=n["system_ns"],
        peak_memory_bytes=peak,
        peak_memory_source=source,
        oom_kills=n["oom_kills"],
        memory_limit_hits=n["memory_limit_hits"],
        voluntary_switches=n["voluntary_switches"],
        involuntary_switches=n["involuntary_switches"],
        run_queue_delay_ns=n["run_queue_delay_ns"],
        canary_lateness_ns=n["lateness_ns"],
        contended_ns=n["contended_ns"],
        throttled_ns=n["throttled_ns"],
        steal_ns=n["steal_ns"],
        stdin_starved_ns=n["stdin_starved_ns"],
        start_offset_ns=n["start_offset_ns"],
        survivors=n["survivors"],
    )


def peak_memory(numbers: dict[str, int | None]) -> tuple[int | None, _Source | None]:
    """The largest of what is known of a run's peak memory, and where it is from.

    What is counted for the whole box is taken less what the box had before; the box's own peak counts only if the run
    raised it.
    """
    before = numbers["memory_before_bytes"] or 0
    known: list[tuple[int, _Source]] = []
    rusage, sampled = numbers["max_rss_bytes"], numbers["sampled_peak_bytes"]
    cgroup, cgroup_before = numbers["cgroup_peak_bytes"], numbers["cgroup_peak_before_bytes"]
    if rusage is not None:
        known.append((rusage, "rusage"))
    if sampled is not None:
        known.append((max(0, sampled - before), "sampled"))
    if cgroup is not None and cgroup_before is not None and cgroup > cgroup_before:
        known.append((max(0, cgroup - before), "cgroup"))
    return max(known) if known else (None, None)


def _not_run(result: RunResult) -> Failed | None:
    if result.start_step not in {"", "exec"}:
        detail = f"the program could not be started: step '{result.start_step}', errno {result.start_errno}"
        return Failed(ReasonCode.BOX_LOST, detail, retryable=True)
    if result.killed_for == "cancelled":
        return Failed(ReasonCode.INTERRUPTED, "the run was cancelled", retryable=True)
    return None


def _outcome(
    asked: BoxInvocation,
    measures: Measures,
    stdout: StreamOutcome,
    stderr: StreamOutcome,
    files: tuple[FileOutcome, ...] = (),
    box: BoxSeen | None = None,
) -> RunOutcome:
    return RunOutcome(
        command=asked.command,
        command_is_submission=asked.command_is_submission,
        measures=measures,
        stdout=stdout,
        stderr=stderr,
        files=files,
        box=box,
    )


_SILENT = StreamOutcome(captured=Captured.whole(b""), wrote_after_main_bytes=0)


def _stream(stream: StreamResult) -> StreamOutcome:
    if stream.captured.total_bytes == 0 and stream.after_main_bytes == 0:  # most have one such stream at least
        return _SILENT
    return StreamOutcome(captured=stream.captured, wrote_after_main_bytes=stream.after_main_bytes)


_MADE_UNREADABLE = {
    errno.EACCES: "not readable: the program took the permission away",
    errno.EPERM: "not readable: the program took the permission away",
    errno.ELOOP: "behind a link",
    errno.ENOTDIR: "below something that is no directory",
    errno.EXDEV: "on another file system",
}
"""Why a file could not be read back where that is the program's doing; any other error is ours."""


def file_outcome(file: CollectedFile) -> FileOutcome | None:
    """What was read back of a file; None if we failed to: the verdict then knows that it was not collected."""
    if file.status == "regular":
        return FileOutcome(name=file.path, status="regular", captured=Captured.whole(file.content or b""))
    if file.status == "refused" and file.errno:
        detail = _MADE_UNREADABLE.get(file.errno)
        return None if detail is None else FileOutcome(name=file.path, status="refused", detail=detail)
    if file.status == "refused":  # within its own limit, but all files together are over the protocol's
        return FileOutcome(name=file.path, status="too_large", detail=f"{file.size_bytes} bytes, after larger ones")
    kind = file.kind if file.status == "not_regular" else None
    detail = f"{file.size_bytes} bytes" if file.status == "too_large" else None
    return FileOutcome(name=file.path, status=file.status, kind=kind, detail=detail)


def _kept(kept: Kept | None) -> tuple[tuple[SubmissionFile, ...] | None, bool]:
    if kept is None:
        return None, True
    files = tuple(SubmissionFile(file.path, file.content or b"", file.executable) for file in kept.files)
    return files, kept.complete
