"""What the lines of a record hold: facts about the host, submissions with their task, runs, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel, ConfigDict

from grader.core.bytes_field import parse_bytes, plain_bytes
from grader.core.captured import Captured
from grader.core.expectation import Task
from grader.core.observation import CompileRecord, RunRecord
from grader.core.outcomes import FileOutcome, RunOutcome, StreamOutcome
from grader.core.plan import ProfileInForce
from grader.core.submission_files import SubmissionFile, submission_digest
from grader.store.packing import INLINE_BYTES, Put, Unpacker, packed, reference

MOST_PLANNED_RUNS = 10**8
_SUBMISSION_INLINE_BYTES = 2**16


class RecordFacts(BaseModel):
    """What is true of all runs of one session: the machine, and how grading was set up."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grader_version: str
    isolation: str = ""
    host: dict[str, str] = {}
    """Engine, runc, kernel, cgroup version, architecture, CPU count, supervisor digest: equal on machines of one
    class. Unknown values are left out."""
    host_id: str | None = None
    """Tells two machines of one class apart."""
    not_enforced: tuple[str, ...] = ()
    """What the engine cannot enforce, in words."""
    options: dict[str, object] = {}
    """Further settings that took effect, as plain data."""


@dataclass(frozen=True)
class SubmissionHeader:
    """A submission as it is recorded. `files` is None if they were not to be kept."""

    name: str
    digest: str
    language: str | None = None
    entry: str | None = None
    files: tuple[SubmissionFile, ...] | None = None


@dataclass(frozen=True)
class EntryHeader:
    """What is known of one entry (one submission under one task) before its first run."""

    task: Task
    """The task in force: what a selection left out of the written one is not in it."""
    submission: SubmissionHeader | None = None
    """None for evidence that no submission gave, such as a trace."""
    profiles: tuple[ProfileInForce, ...] = ()
    plan_fingerprint: str | None = None
    planned_runs: int = 0
    selection: Mapping[str, object] | None = None
    """How the task in force was selected from the written one, as plain data; None: all of it."""


def plain_entry(header: EntryHeader, put: Put) -> dict[str, object]:
    """The body of an `entry` line. Tasks and profiles are documents of their own: a batch stores each once."""
    task = header.task.model_dump(mode="json", exclude_defaults=True)
    profiles = [profile.model_dump(mode="json", exclude_defaults=True) for profile in header.profiles]
    submission = _plain_submission(header.submission) if header.submission is not None else None
    selection = dict(header.selection) if header.selection is not None else None
    return {
        "task": packed(task, put),
        "selection": packed(selection, put),
        "submission": packed(submission, put, inline_bytes=_SUBMISSION_INLINE_BYTES),
        "profiles": [packed(profile, put) for profile in profiles],
        "plan": header.plan_fingerprint,
        "planned_runs": header.planned_runs,
    }


ENTRY_KEYS = frozenset({"task", "selection", "submission", "profiles", "plan", "planned_runs"})


def parse_submission(value: object, unpacker: Unpacker) -> SubmissionHeader | None:
    """The submission of an `entry` line. Raises ValueError if it is malformed or its digest is another."""
    if value is None:
        return None
    entries = cast("dict[str, object]", unpacker.document(value))
    if set(entries) != {"name", "digest", "language", "entry", "files"}:
        raise ValueError("a submission has other keys than it should")
    name, digest = _text(entries["name"]), _text(entries["digest"])
    language, entry = entries["language"], entries["entry"]
    files = _parse_files(entries["files"])
    if files is not None and submission_digest(files) != digest:
        raise ValueError("the recorded files of the submission do not have its digest")
    return SubmissionHeader(
        name,
        digest,
        None if language is None else _text(language),
        None if entry is None else _text(entry),
        files,
    )


def plain_run(record: RunRecord | CompileRecord, put: Put) -> dict[str, object]:
    """The body of a `run` or `compile` line; what the program wrote is a blob, byte for byte, if it is large."""
    outcome = record.outcome
    large = _large_outputs(outcome) if outcome is not None else {}
    if outcome is None or not large:
        return record.model_dump(mode="json", exclude_defaults=True)
    # Large output goes to its blob as it is: base64 and back would cost more than the run did.
    light = record.model_copy(update={"outcome": _without_output(outcome)})
    plain = light.model_dump(mode="json", exclude_defaults=True)
    plain_outcome = cast("dict[str, dict[str, object]]", plain["outcome"])
    files = cast("list[dict[str, object]]", plain_outcome.get("files", []))
    for key, captured in _outputs(outcome).items():
        if key in _TRACE_PARTS:
            if captured.total_bytes > 0:
                plain_outcome["traces"][cast("str", key)] = _plain_captured(captured, put)
            continue
        place = files[key] if isinstance(key, int) else plain_outcome[key]
        place["captured"] = _plain_captured(captured, put)
    return plain


_TRACE_PARTS = ("messages", "lines")
"""The parts of `RunOutcome.traces` that hold bytes of the program."""


def _large_outputs(outcome: RunOutcome) -> dict[str | int, Captured]:
    return {key: captured for key, captured in _outputs(outcome).items() if len(captured.kept) > INLINE_BYTES}


def _outputs(outcome: RunOutcome) -> dict[str | int, Captured]:
    outputs: dict[str | int, Captured] = {"stdout": outcome.stdout.captured, "stderr": outcome.stderr.captured}
    for number, file in enumerate(outcome.files):
        if file.captured is not None:
            outputs[number] = file.captured
    if outcome.traces is not None:
        outputs |= {"messages": outcome.traces.messages, "lines": outcome.traces.lines}
    return outputs


_NOTHING = Captured.whole(b"")


def _without_output(outcome: RunOutcome) -> RunOutcome:
    def light_stream(stream: StreamOutcome) -> StreamOutcome:
        return stream.model_copy(update={"captured": _NOTHING})

    def light_file(file: FileOutcome) -> FileOutcome:
        return file.model_copy(update={"captured": _NOTHING}) if file.captured is not None else file

    files = tuple(light_file(file) for file in outcome.files)
    traces = outcome.traces
    if traces is not None:
        traces = traces.model_copy(update=dict.fromkeys(_TRACE_PARTS, _NOTHING))
    streams = {"stdout": light_stream(outcome.stdout), "stderr": light_stream(outcome.stderr)}
    changed = {**streams, "files": files, "traces": traces}
    return outcome.model_copy(update=changed)


def _plain_captured(captured: Captured, put: Put) -> dict[str, object]:
    kept = captured.kept
    plain: dict[str, object]
    if len(kept) > INLINE_BYTES:
        plain = {"kept": reference(kept, put, "bytes")}
    else:
        data = plain_bytes(kept)
        plain = {"text": data} if isinstance(data, str) else dict(data)
    if not captured.is_complete:
        plain |= {"total_bytes": captured.total_bytes, "sha256": captured.sha256}
    return plain


def _plain_submission(submission: SubmissionHeader) -> dict[str, object]:
    files = submission.files
    return {
        "name": submission.name,
        "digest": submission.digest,
        "language": submission.language,
        "entry": submission.entry,
        "files": None if files is None else [_plain_file(file) for file in files],
    }


def _plain_file(file: SubmissionFile) -> dict[str, object]:
    return {"path": plain_bytes(file.path), "executable": file.executable, "content": plain_bytes(file.content)}


def _parse_files(value: object) -> tuple[SubmissionFile, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise ValueError("the files of a submission are a list")
    files: list[SubmissionFile] = []
    for item in cast("list[object]", value):
        entries = cast("dict[str, object]", item) if isinstance(item, dict) else {}
        executable = entries.get("executable")
        if set(entries) != {"path", "executable", "content"} or not isinstance(executable, bool):
            raise ValueError("a file of a submission has path, executable, content")
        files.append(SubmissionFile(parse_bytes(entries["path"]), parse_bytes(entries["content"]), executable))
    return tuple(files)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected text, not {type(value).__name__}")
    return value
