"""Where the runs of a runner are recorded: one record, begun with the first submission that is graded."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

from grader.core.canonical import sha256_hex
from grader.core.observation import CompileRecord, Observation, RunRecord
from grader.core.reasons import ReasonCode
from grader.core.verdict import Verdict
from grader.errors import Place, RecordError
from grader.runner.grading import Assignment, Recorder
from grader.sandbox.base import Facts, Isolation
from grader.store import (
    EntryHeader,
    Record,
    RecordedEntry,
    RecordFacts,
    RecordWriter,
    SubmissionHeader,
    resume_differences,
)


class Recording:
    """One record of everything that a runner grades; without a folder, none at all."""

    def __init__(self, folder: Path | None, *, keep_files: bool) -> None:
        self.folder = folder
        self._keep_files = keep_files
        self._writer: RecordWriter | None = None

    def begin(self, assignment: Assignment, facts: Callable[[], RecordFacts]) -> tuple[Recorder, int | None]:
        """Where the runs of an assignment go, and its number in the record. The first one begins the record, with
        `facts`."""
        if self.folder is None:
            return Recorder(), None
        if self._writer is None:
            self._writer = RecordWriter.create(self.folder, facts())
        entry = self._writer.begin(_header(assignment, keep_files=self._keep_files))
        return _EntryRecorder(self._writer, entry), entry

    def reopen(self, facts: RecordFacts) -> None:
        """Go on with the record of the folder. Raises what `RecordWriter.reopen` does."""
        assert self.folder is not None
        self._writer = RecordWriter.reopen(self.folder, facts)

    def go_on(self, entry: int, aside: frozenset[int]) -> Recorder:
        """Where further runs of an entry go, once the runs in `aside` are set aside."""
        assert self._writer is not None
        if aside:
            self._writer.supersede(entry, aside)
        return _EntryRecorder(self._writer, entry)

    def verdict(self, entry: int | None, verdict: Verdict) -> None:
        """Keep the verdict on an entry."""
        if self._writer is not None and entry is not None:
            self._writer.append_verdict(entry, verdict)

    def close(self, *, seal: bool) -> None:
        """Make all of it durable; `seal`: nothing is missing that was to be graded."""
        if self._writer is not None:
            self._writer.close(seal=seal)


class _EntryRecorder(Recorder):
    """Records what ends under one entry of a record."""

    def __init__(self, writer: RecordWriter, entry: int) -> None:
        self._writer = writer
        self._entry = entry

    def append_compile(self, record: CompileRecord) -> None:
        self._writer.append_compile(self._entry, record)

    def append_run(self, record: RunRecord) -> None:
        self._writer.append_run(self._entry, record)

    def append_observation(self, observation: Observation) -> None:
        self._writer.append_observation(self._entry, observation)


def record_facts(facts: Facts, isolation: Isolation) -> RecordFacts:
    """What a record keeps of the machine and of how grading was set up."""
    return RecordFacts(
        grader_version=_version(),
        isolation=isolation,
        host=dict(facts.host),
        host_id=_host_id(),
        not_enforced=facts.not_enforced,
    )


def check_resumable(record: Record, entry: RecordedEntry, assignment: Assignment, facts: RecordFacts) -> None:
    """Raises RecordError (`record.mismatch`) unless what would run now is what ran then."""
    differences = resume_differences(entry, record.sessions[0], _header(assignment, keep_files=False), facts)
    if differences:
        raise RecordError(
            f"{assignment.submission.name} cannot be resumed: " + "; ".join(differences),
            code=ReasonCode.RECORD_MISMATCH,
            where=Place(str(record.folder)),
            hint="run it again from the start (grader run)",
        )


def _header(assignment: Assignment, *, keep_files: bool) -> EntryHeader:
    """What a record says of an assignment before its first run."""
    submission = assignment.submission
    return EntryHeader(
        task=assignment.task,
        submission=SubmissionHeader(
            name=submission.name,
            digest=submission.digest,
            language=submission.language,
            entry=submission.entry,
            files=submission.files if keep_files else None,
        ),
        profiles=assignment.plan.profiles,
        plan_fingerprint=assignment.plan.fingerprint,
        planned_runs=len(assignment.plan.runs),
        selection=None if assignment.selection is None else assignment.selection.model_dump(mode="json"),
    )


@cache
def _version() -> str:
    """The installed version; finding it means reading all of the package's metadata."""
    return version("grader")


@cache
def _host_id() -> str:
    """Tells two machines of one kind apart; a digest, so that a record does not give the machine's own id away."""
    for file in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        try:
            return sha256_hex(b"grader host " + Path(file).read_bytes().strip())[:16]
        except OSError:
            continue
    return "unknown"
