"""Reads the lines of a record into what they hold, trusting nothing in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar, cast

from pydantic import ValidationError

import grader.core.judging.judgement  # pyright: ignore[reportUnusedImport] - registers its payload
import grader.core.tools.calls  # pyright: ignore[reportUnusedImport] - registers its payload
import grader.core.tools.conditions  # pyright: ignore[reportUnusedImport] - registers its conditions
import grader.core.traces.execution_trace  # pyright: ignore[reportUnusedImport] - registers its payload
import grader.matchers  # noqa: F401  # pyright: ignore[reportUnusedImport] - registers the matchers
from grader.core.captured import Captured
from grader.core.expectation import Task
from grader.core.observation import CompileRecord, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import RunOutcome, TraceOutcome
from grader.core.plan import ProfileInForce
from grader.core.verdict import Verdict
from grader.errors import RecordError
from grader.store.blobs import BlobReader
from grader.store.contents import (
    ENTRY_KEYS,
    MOST_PLANNED_RUNS,
    EntryHeader,
    RecordFacts,
    SubmissionHeader,
    parse_submission,
)
from grader.store.folder import corrupt
from grader.store.journal import Line
from grader.store.packing import Unpacker, blob_name, decode_json
from grader.store.sharing import SharedParts, without_garbage_collection

_BEYOND = 2**63
_MOST_ATTEMPTS = 10_000
_SHA256 = re.compile(r"[0-9a-f]{64}")
T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class RecordedEntry:
    """One submission under one task, as it was recorded."""

    number: int
    header: EntryHeader
    compiles: tuple[CompileRecord, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    """Every attempt that counts, in the order in which they ended."""
    run_sessions: tuple[int, ...] = ()
    """For each of `runs` the session that recorded it: an index into `Record.sessions`."""
    superseded: tuple[RunRecord, ...] = ()
    """Runs that were set aside because their cell was run again on another host."""
    observations: tuple[Observation, ...] = ()
    """Evidence of other kinds than program runs."""
    verdict: Verdict | None = None
    """The last verdict that was recorded; None if grading did not get so far."""

    @property
    def task(self) -> Task:
        """The task in force when it was recorded."""
        return self.header.task

    @property
    def submission(self) -> SubmissionHeader | None:
        """The submission; None for evidence that no submission gave."""
        return self.header.submission

    @property
    def profiles(self) -> tuple[ProfileInForce, ...]:
        """The profiles in force, in the order of the plan."""
        return self.header.profiles

    @cached_property
    def payload(self) -> ProgramRuns:
        """The program runs, as the scorer takes them."""
        submission = self.header.submission
        return ProgramRuns(
            submission_digest=submission.digest if submission is not None else "",
            submission_name=submission.name if submission is not None else "",
            plan_fingerprint=self.header.plan_fingerprint or "",
            profiles=self.header.profiles,
            compiles=self.compiles,
            runs=self.runs,
        )

    @cached_property
    def missing_runs(self) -> tuple[int, ...]:
        """Indices of planned runs without an outcome: what resuming has to run."""
        done = {run.index for run in self.runs if run.outcome is not None}
        return tuple(index for index in range(self.header.planned_runs) if index not in done)


class LineReader:
    """Reads bodies of lines. `place` is the journal's path, for messages."""

    def __init__(self, place: str, blobs: BlobReader) -> None:
        self._place = place
        self._blobs = blobs
        self._tasks: dict[str, Task] = {}
        self._shared = SharedParts()

    def session(self, line: Line) -> RecordFacts:
        """The facts of a `session` line. Raises RecordError."""
        body = self._mapping(self._document(line), line, {"facts"})
        return self._checked(line, RecordFacts.model_validate, body["facts"])

    def header(self, line: Line) -> EntryHeader:
        """The header of an entry, from its `entry` line. Raises RecordError."""
        if line.kind != "entry":
            raise self._wrong(line, "an entry does not begin with its entry line")
        unpacker = self._unpacker(line)
        body = self._mapping(unpacker.whole(decode_json(line.body, self._place, line.number)), line, ENTRY_KEYS)
        planned, plan, profiles = body["planned_runs"], body["plan"], body["profiles"]
        selection = unpacker.document(body["selection"])
        if not isinstance(planned, int) or isinstance(planned, bool) or not 0 <= planned <= MOST_PLANNED_RUNS:
            raise self._wrong(line, "planned_runs is no sensible number")
        if not isinstance(profiles, list) or not isinstance(plan, str | None) or not isinstance(selection, dict | None):
            raise self._wrong(line, "profiles, plan or selection are of a wrong type")

        def parse(profiles: list[object]) -> EntryHeader:
            return EntryHeader(
                task=self._task(body["task"], unpacker),
                submission=parse_submission(body["submission"], unpacker),
                profiles=tuple(ProfileInForce.model_validate(unpacker.document(profile)) for profile in profiles),
                plan_fingerprint=plan,
                planned_runs=planned,
                selection=cast("dict[str, object] | None", selection),
            )

        return self._checked(line, parse, cast("list[object]", profiles))

    def entry(self, number: int, lines: Iterable[Line], session_of: Callable[[int], int]) -> RecordedEntry:
        """An entry from all its lines; `session_of` tells which session wrote a line. Raises RecordError."""
        with without_garbage_collection():
            return self._entry(number, lines, session_of)

    def _entry(self, number: int, lines: Iterable[Line], session_of: Callable[[int], int]) -> RecordedEntry:
        header: EntryHeader | None = None
        compiles: list[CompileRecord] = []
        runs: list[tuple[RunRecord, int]] = []
        superseded: list[RunRecord] = []
        observations: list[Observation] = []
        verdict: Verdict | None = None
        for line in lines:
            if header is None:
                header = self.header(line)
            elif line.kind == "run":
                runs.append((self._run(line, header), session_of(line.number)))
            elif line.kind == "compile":
                compiles.append(self._compile(line, header))
            elif line.kind == "superseded":
                aside = self._superseded(line)
                superseded.extend(run for run, _ in runs if run.index in aside)
                runs = [(run, session) for run, session in runs if run.index not in aside]
            elif line.kind == "observation":
                observations.append(self._parsed(line, Observation.model_validate))
            elif line.kind == "verdict":
                verdict = self._parsed(line, Verdict.model_validate)
        if header is None:
            raise corrupt(self._place, f"entry {number} has no lines")
        return RecordedEntry(
            number=number,
            header=header,
            compiles=tuple(compiles),
            runs=tuple(run for run, _ in runs),
            run_sessions=tuple(session for _, session in runs),
            superseded=tuple(superseded),
            observations=tuple(observations),
            verdict=verdict,
        )

    def _run(self, line: Line, header: EntryHeader) -> RunRecord:
        document = self._document(line)
        self._shared.put_into(document)
        record = self._checked(line, RunRecord.model_validate, document)
        if not 0 <= record.index < header.planned_runs:
            raise self._wrong(line, f"run {record.index} is not one of the {header.planned_runs} that were planned")
        self._check_attempt(line, record)
        return record

    def _compile(self, line: Line, header: EntryHeader) -> CompileRecord:
        record = self._parsed(line, CompileRecord.model_validate)
        if all(profile.name != record.profile for profile in header.profiles):
            raise self._wrong(line, "a compile run is of a profile that the entry does not have")
        if any(not 0 <= value < _BEYOND for value in record.limits.__dict__.values()):
            raise self._wrong(line, "a limit is beyond measure")
        self._check_attempt(line, record)
        return record

    def _check_attempt(self, line: Line, record: RunRecord | CompileRecord) -> None:
        if not 1 <= record.attempt <= _MOST_ATTEMPTS:
            raise self._wrong(line, f"an attempt has the number {record.attempt}")
        if record.missing is not None and not record.missing.is_ours:
            raise self._wrong(line, f"{record.missing.code} is no reason why a run is missing")
        if record.outcome is not None:
            self._check_outcome(line, record.outcome)

    def _check_outcome(self, line: Line, outcome: RunOutcome) -> None:
        """Numbers stay within what the kernel can count, so that nothing that reckons with them can overflow."""
        for value in outcome.measures.__dict__.values():
            if value.__class__ is int and not -_BEYOND < value < _BEYOND:
                raise self._wrong(line, "a measure is beyond measure")
        for stream in (outcome.stdout, outcome.stderr):
            self._check_captured(line, stream.captured)
            if not 0 <= (stream.wrote_after_main_bytes or 0) < _BEYOND:
                raise self._wrong(line, "the bytes written after the main process are beyond measure")
        for file in outcome.files:
            if file.captured is not None:
                self._check_captured(line, file.captured)
        if outcome.traces is not None:
            self._check_traces(line, outcome.traces)

    def _check_traces(self, line: Line, traces: TraceOutcome) -> None:
        for captured in (traces.messages, traces.lines):
            self._check_captured(line, captured)
        for value in traces.__dict__.values():
            if isinstance(value, int) and not 0 <= value < _BEYOND:
                raise self._wrong(line, "a count of what came to the trace endpoint is beyond measure")

    def _check_captured(self, line: Line, captured: Captured) -> None:
        if captured.is_complete:
            return
        if captured.total_bytes >= _BEYOND or _SHA256.fullmatch(captured.sha256) is None:
            raise self._wrong(line, "length or SHA-256 of what the program wrote are not such")

    def _superseded(self, line: Line) -> set[int]:
        runs = self._mapping(self._document(line), line, {"runs"})["runs"]
        if not isinstance(runs, list) or not all(isinstance(run, int) for run in cast("list[object]", runs)):
            raise self._wrong(line, "superseded runs are a list of their indices")
        return set(cast("list[int]", runs))

    def _task(self, value: object, unpacker: Unpacker) -> Task:
        """The entries of a batch mostly have one task, in one blob: it is parsed once."""
        key = blob_name(value)
        if key is None:
            return Task.model_validate(unpacker.document(value))
        if key not in self._tasks:
            self._tasks = {key: Task.model_validate(unpacker.document(value))}
        return self._tasks[key]

    def _parsed(self, line: Line, parse: Callable[[object], T]) -> T:
        return self._checked(line, parse, self._document(line))

    def _document(self, line: Line) -> object:
        value = decode_json(line.body, self._place, line.number)
        return self._unpacker(line).document(value) if b'"$' in line.body else value

    def _unpacker(self, line: Line) -> Unpacker:
        return Unpacker(self._blobs, self._place, line.number)

    def _mapping(self, value: object, line: Line, keys: frozenset[str] | set[str]) -> dict[str, object]:
        if not isinstance(value, dict) or set(cast("dict[str, object]", value)) != keys:
            raise self._wrong(line, "it has other keys than it should")
        return cast("dict[str, object]", value)

    def _wrong(self, line: Line, what: str) -> RecordError:
        return corrupt(self._place, f"a line of kind {line.kind} is not valid: {what}", line=line.number)

    def _checked(self, line: Line, parse: Callable[[V], T], value: V) -> T:
        try:
            return parse(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise self._wrong(line, f"{where}: {first['msg']}"[:500]) from error
        except (ValueError, TypeError, RecursionError, OverflowError) as error:
            raise self._wrong(line, str(error)[:500]) from error
