"""Writing and reading back."""

from __future__ import annotations

import json
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.canonical import sha256_hex
from grader.core.observation import Acquisition, Observation, RunRecord
from grader.errors import UsageError
from grader.store import EntryHeader, RecordFacts, RecordWriter, SubmissionHeader, open_record, resume_differences
from tests.unit.store.record_samples import (
    COMPILE,
    CREATED,
    FACTS,
    HEADER,
    OBSERVATION,
    PROFILE,
    RECORDS,
    RUNS,
    TASK,
    VERDICT,
    run,
    write_record,
)


def test_everything_that_was_written_is_read_back_equal(tmp_path: Path) -> None:
    record = open_record(write_record(tmp_path / "r"))
    assert record.is_sealed
    assert not record.is_torn
    assert record.created == CREATED
    assert [facts.host_id for facts in record.sessions] == ["one", "two"]
    assert record.sessions[0] == FACTS
    assert len(record) == 2
    first, second = record
    assert first.header == HEADER
    assert first.compiles == (COMPILE,)
    assert first.runs == (RUNS[1], run(0, b"again"), *RUNS[2:])
    assert first.run_sessions == (0, 1, 1, 1, 1)
    assert first.superseded == (RUNS[0],)
    assert first.missing_runs == ()
    assert first.verdict == second.verdict == VERDICT
    assert second.header == EntryHeader(task=TASK)
    assert second.observations == (OBSERVATION,)
    assert second.observations[0].digest == OBSERVATION.digest


def test_the_payload_of_a_record_has_the_digest_of_the_payload_that_was_judged(tmp_path: Path) -> None:
    entry = open_record(write_record(tmp_path / "r"))[0]
    judged = entry.payload.model_copy(update={"runs": (RUNS[1], run(0, b"again"), *RUNS[2:]), "compiles": (COMPILE,)})
    assert judged.submission_name == "hello.c"
    assert judged.plan_fingerprint == "2" * 64
    observations = [
        Observation(acquisition=Acquisition.COMPLETE, payload=payload) for payload in (judged, entry.payload)
    ]
    assert observations[0].digest == observations[1].digest


def test_the_folder_is_plain_files(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    assert {path.name for path in folder.iterdir()} == {
        "record.json", "runs.jsonl", "blobs", "seal.json", "verdict.json", "lock",
    }  # fmt: skip
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_text("ascii").splitlines()]
    assert [(line["kind"], line["entry"]) for line in lines[:5]] == [
        ("entry", 0), ("compile", 0), ("run", 0), ("run", 0), ("session", None),
    ]  # fmt: skip
    assert lines[2]["body"]["outcome"]["stdout"] == {"captured": {"text": "hello\n"}}
    blobs = {path.name: path.read_bytes() for path in (folder / "blobs").iterdir()}
    assert all(sha256_hex(data) == name for name, data in blobs.items())
    output = bytes(range(256)) * 100
    assert blobs[sha256_hex(output)] == output, "what a program wrote is in its blob as it wrote it"
    verdicts = json.loads((folder / "verdict.json").read_text())
    assert [(item["entry"], item["submission"]) for item in verdicts["verdicts"]] == [(0, "hello.c"), (1, "")]
    assert verdicts["verdicts"][0]["verdict"] == json.loads(VERDICT.model_dump_json(exclude_defaults=True))
    assert json.loads((folder / "record.json").read_text())["schema_version"] == 1


def test_a_record_without_a_seal_is_readable_and_known_to_be_unfinished(tmp_path: Path) -> None:
    record = open_record(write_record(tmp_path / "r", seal=False))
    assert not record.is_sealed
    assert record[0].runs[-1] == RUNS[-1]
    assert not (tmp_path / "r" / "verdict.json").exists()


def test_an_exception_leaves_the_record_without_a_seal(tmp_path: Path) -> None:
    def interrupted() -> None:
        with RecordWriter.create(tmp_path / "r", FACTS) as writer:
            writer.append_run(writer.begin(HEADER), RUNS[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    record = open_record(tmp_path / "r")
    assert (record.is_sealed, record[0].runs) == (False, RUNS[:1])
    assert record[0].missing_runs == (1, 2, 3)


@settings(max_examples=30, deadline=None)
@given(st.lists(RECORDS, max_size=6))
def test_any_runs_come_back_equal(records: list[RunRecord]) -> None:
    with tempfile.TemporaryDirectory() as place:
        with RecordWriter.create(Path(place) / "r", FACTS) as writer:
            entry = writer.begin(EntryHeader(task=TASK, planned_runs=100))
            for record in records:
                writer.append_run(entry, record)
        assert open_record(Path(place) / "r")[0].runs == tuple(records)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.just("x" * 5000)
    | st.just("ö" * 2100)
    | st.just("A" * 8000),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["$blob", "$map", "bytes", "as", "base64", "text", "k"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=40, deadline=None)
@given(PLAIN)
def test_any_plain_data_comes_back_equal_even_if_it_looks_like_a_reference(value: object) -> None:
    with tempfile.TemporaryDirectory() as place:
        facts = RecordFacts(grader_version="0")
        with RecordWriter.create(Path(place) / "r", facts) as writer:
            writer.begin(EntryHeader(task=TASK, selection={"value": value}))
        RecordWriter.reopen(Path(place) / "r", RecordFacts(grader_version="0", options={"value": value})).close()
        record = open_record(Path(place) / "r")
        assert record[0].header.selection == {"value": value}
        assert record.sessions[1].options == {"value": value}


def test_a_batch_stores_its_task_once_and_every_output_once(tmp_path: Path) -> None:
    with RecordWriter.create(tmp_path / "r", FACTS) as writer:
        for number in range(20):
            submission = SubmissionHeader(f"s{number}", "0" * 64)
            entry = writer.begin(EntryHeader(task=TASK, submission=submission, profiles=(PROFILE,), planned_runs=2))
            writer.append_run(entry, run(0, b"w" * 10_000))
            writer.append_run(entry, run(1, b"w" * 10_000))
    before = len(list((tmp_path / "r" / "blobs").iterdir()))
    record = open_record(tmp_path / "r")
    assert [entry.submission.name for entry in record if entry.submission is not None] == [f"s{n}" for n in range(20)]
    assert before < 10
    assert record[3].task is record[3].task
    assert [entry.number for entry in record[-2:]] == [18, 19]
    with pytest.raises(IndexError):
        _ = record[20]


def test_interleaved_entries_are_told_apart(tmp_path: Path) -> None:
    with RecordWriter.create(tmp_path / "r", FACTS) as writer:
        first = writer.begin(HEADER)
        second = writer.begin(HEADER)
        for index in range(4):
            writer.append_run(second, run(index, b"2"))
            writer.append_run(first, run(index, b"1"))
    one, two = open_record(tmp_path / "r")
    assert one.runs == tuple(run(index, b"1") for index in range(4))
    assert two.runs == tuple(run(index, b"2") for index in range(4))


def test_runs_appended_from_several_threads_are_all_there(tmp_path: Path) -> None:
    with RecordWriter.create(tmp_path / "r", FACTS) as writer:
        entry = writer.begin(EntryHeader(task=TASK, planned_runs=400))

        def append(start: int) -> None:
            for index in range(start, start + 100):
                writer.append_run(entry, run(index, b"%d" % index * 1500))

        threads = [threading.Thread(target=append, args=(start,)) for start in range(0, 400, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    runs = open_record(tmp_path / "r")[0].runs
    assert sorted(record.index for record in runs) == list(range(400))


def test_misuse_is_an_error(tmp_path: Path) -> None:
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    with pytest.raises(ValueError, match="not begun"):
        writer.append_run(0, RUNS[0])
    writer.close()
    writer.close()
    with pytest.raises(ValueError, match="closed"):
        writer.begin(HEADER)
    with pytest.raises(UsageError, match="not empty"):
        RecordWriter.create(tmp_path / "r", FACTS)
    with pytest.raises(UsageError, match="no record"):
        open_record(tmp_path / "none")
    with pytest.raises(UsageError, match="no record"):
        RecordWriter.reopen(tmp_path, FACTS)


def test_nothing_stands_against_resuming_the_same(tmp_path: Path) -> None:
    record = open_record(write_record(tmp_path / "r"))
    assert resume_differences(record[0], record.sessions[0], HEADER, FACTS) == ()
    other_machine = FACTS.model_copy(update={"host_id": "three"})
    assert resume_differences(record[0], record.sessions[0], HEADER, other_machine) == ()


def test_every_difference_that_stands_against_resuming_is_named(tmp_path: Path) -> None:
    record = open_record(write_record(tmp_path / "r"))
    other_profile = PROFILE.model_copy(update={"body": {"language": "c"}})
    other_image = PROFILE.model_copy(update={"image_id": "sha256:other"})
    third = PROFILE.model_copy(update={"name": "d"})
    changes: list[tuple[dict[str, Any], dict[str, object], str]] = [
        ({"plan_fingerprint": "9" * 64}, {}, "other runs"),
        ({"submission": SubmissionHeader("hello.c", "0" * 64)}, {}, "submission is another"),
        ({"profiles": (other_profile,)}, {}, "profile c has changed"),
        ({"profiles": (other_image,)}, {}, "another image: sha256:other"),
        ({"profiles": (PROFILE, third)}, {}, "profile d was not among"),
        ({"profiles": ()}, {}, "profile c was among"),
        ({}, {"isolation": "run"}, "isolation is 'run' (recorded: 'submission')"),
        ({}, {"host": {**FACTS.host, "supervisor": "0" * 64}}, "supervisor is 000"),
        ({}, {"host": {"architecture": "x86_64", "supervisor": "f" * 64}}, "kernel is unknown (recorded: 6.1)"),
        ({}, {"not_enforced": ()}, "does not enforce the same"),
    ]
    for header_change, facts_change, words in changes:
        header = replace(HEADER, **header_change)
        facts = FACTS.model_copy(update=facts_change)
        differences = resume_differences(record[0], record.sessions[0], header, facts)
        assert len(differences) == 1, differences
        assert words in differences[0]
