"""Values to put into records, and a record with one of everything."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from grader.core.captured import Captured
from grader.core.expectation import Task
from grader.core.limits import LimitRange, Limits
from grader.core.observation import Acquisition, CompileRecord, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import FileOutcome, Measures, RunOutcome, StreamOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode
from grader.core.submission_files import SubmissionFile, submission_digest
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict, Finding, Verdict
from grader.store import EntryHeader, RecordFacts, RecordWriter, SubmissionHeader

CREATED = "2026-01-02T03:04:05Z"
FACTS = RecordFacts(
    grader_version="0.1.0",
    isolation="submission",
    host={"kernel": "6.1", "architecture": "x86_64", "supervisor": "f" * 64},
    host_id="one",
    not_enforced=("nothing of note",),
    options={"retries": 2},
)
TASK = Task.model_validate(
    {
        "objective": "says hello",
        "conditions": [
            {
                "condition_type": "program_behaves",
                "repetitions": 2,
                "cases": [
                    {"name": "small", "stdin": "a\n", "stdout": {"equals": "hello\n"}},
                    {"stdin": {"base64": "/w=="}, "files": {"in": "x" * 5000}, "stdout": {"equals": "é" * 5000}},
                ],
            }
        ],
    }
)
COMPILE_LIMITS = LimitRange().effective(Limits())
PROFILE = ProfileInForce(
    name="c",
    image_id="sha256:" + "1" * 64,
    compile_limits=COMPILE_LIMITS,
    body={"language": "c", "notes": "n" * 5000, "$blob": "only looks like one"},
)
FILES = (SubmissionFile(b"data\xff", b"\x00" * 6000), SubmissionFile(b"main.c", b"int main;\n", executable=True))
SUBMISSION = SubmissionHeader("hello.c", submission_digest(FILES), "c", "main.c", FILES)
HEADER = EntryHeader(
    task=TASK,
    submission=SUBMISSION,
    profiles=(PROFILE,),
    plan_fingerprint="2" * 64,
    planned_runs=4,
    selection={"cases": "small", "odd": {"$map": 1}},
)


def outcome(stdout: bytes = b"hello\n", stderr: bytes = b"", *, files: tuple[FileOutcome, ...] = ()) -> RunOutcome:
    return RunOutcome(
        command=(b"/submission/main", b"\xff"),
        command_is_submission=True,
        measures=Measures(exit_code=0, wall_time_ns=20_000_000, cpu_time_ns=0, oom_kills=0),
        stdout=StreamOutcome(captured=Captured.whole(stdout)),
        stderr=StreamOutcome(captured=Captured.whole(stderr), wrote_after_main_bytes=1),
        files=files,
    )


def run(index: int, stdout: bytes = b"hello\n", *, attempt: int = 1) -> RunRecord:
    return RunRecord(index=index, attempt=attempt, outcome=outcome(stdout))


ALL_BYTES = bytes(range(256))
CUT = Captured(b"kept" * 2000, 10**6, "a" * 64)
RUNS = (
    run(0),
    RunRecord(index=1, missing=MissingRun(code=ReasonCode.BOX_LOST, detail="gone")),
    run(1, ALL_BYTES, attempt=2),
    run(2, "ü".encode() * 4000),
    RunRecord(
        index=3,
        outcome=outcome(
            ALL_BYTES * 100,
            b"e" * 4097,
            files=(
                FileOutcome(name=b"log\xfe", status="regular", captured=CUT),
                FileOutcome(name=b"small", status="regular", captured=Captured.whole(b"x")),
                FileOutcome(name=b"none", status="missing"),
            ),
        ),
    ),
)
COMPILE = CompileRecord(profile="c", limits=COMPILE_LIMITS, outcome=outcome(b""))
VERDICT = Verdict(
    value=Tri.FALSE,
    rationale="no",
    findings=(Finding(code=ReasonCode.STDOUT_DIFFERS, detail="line 1", count=2),),
    conditions=(
        ConditionVerdict(condition_type="program_behaves", fingerprint="3" * 64, value=Tri.FALSE, rationale="r" * 5000),
    ),
    expectation="4" * 64,
    submission=SUBMISSION.digest,
)
OBSERVATION = Observation(
    acquisition=Acquisition.PARTIAL,
    acquisition_reasons=("cut",),
    payload=ProgramRuns(
        submission_digest="5" * 64, plan_fingerprint="6" * 64, profiles=(), runs=(run(0, b"z" * 9000),)
    ),
)


def write_record(folder: Path, *, seal: bool = True) -> Path:
    """A record of two entries and two sessions, with lines of every kind."""
    writer = RecordWriter.create(folder, FACTS, created=CREATED)
    first = writer.begin(HEADER)
    writer.append_compile(first, COMPILE)
    for record in RUNS[:2]:
        writer.append_run(first, record)
    writer.close(seal=False)
    with RecordWriter.reopen(folder, FACTS.model_copy(update={"host_id": "two"})) as writer:
        writer.supersede(first, [0])
        second = writer.begin(EntryHeader(task=TASK))
        for record in (run(0, b"again"), *RUNS[2:]):
            writer.append_run(first, record)
        writer.append_observation(second, OBSERVATION)
        writer.append_verdict(first, VERDICT)
        writer.append_verdict(second, VERDICT.model_copy(update={"rationale": "not yet"}))
        writer.append_verdict(second, VERDICT)
        if not seal:
            writer.close(seal=False)
    return folder


CAPTURED = st.one_of(
    st.binary(max_size=30).map(Captured.whole),
    st.text(max_size=20).map(lambda text: Captured.whole(text.encode())),
    st.integers(4090, 4110).map(lambda size: Captured.whole(b"\xff" * size)),
    st.binary(max_size=20).map(lambda kept: Captured(kept, len(kept) + 1, "b" * 64)),
)
STREAMS = st.builds(StreamOutcome, captured=CAPTURED, wrote_after_main_bytes=st.integers(0, 2**62))
COUNTS = st.none() | st.integers(0, 2**62)
OUTCOMES = st.builds(
    RunOutcome,
    command=st.lists(st.binary(max_size=8), min_size=1, max_size=3).map(tuple),
    command_is_submission=st.booleans(),
    measures=st.builds(
        Measures,
        stopped_for=st.sampled_from([None, "cpu", "starved"]),
        exit_code=st.none() | st.integers(0, 255),
        signal=st.none() | st.integers(1, 64),
        wall_time_ns=st.integers(0, 2**62),
        cpu_time_ns=COUNTS,
        peak_memory_bytes=COUNTS,
        oom_kills=COUNTS,
        survivors=COUNTS,
    ),
    stdout=STREAMS,
    stderr=STREAMS,
    files=st.lists(
        st.builds(
            FileOutcome,
            name=st.binary(min_size=1, max_size=5),
            status=st.just("regular"),
            captured=st.none() | CAPTURED,
            detail=st.none() | st.text(max_size=5),
        ),
        max_size=2,
    ).map(tuple),
)
RECORDS = st.one_of(
    st.builds(RunRecord, index=st.integers(0, 99), attempt=st.integers(1, 9), outcome=OUTCOMES),
    st.builds(
        RunRecord,
        index=st.integers(0, 99),
        missing=st.builds(MissingRun, code=st.just(ReasonCode.HOST_STARVED), detail=st.text(max_size=10)),
    ),
)
