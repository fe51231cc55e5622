"""A changed, cut or invented byte is refused with its place, or is in one of the few places where it can do no harm."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.errors import RecordError
from grader.store import Record, RecordWriter, open_record
from grader.store.journal import encode_line
from grader.store.packing import decode_json
from tests.unit.store.record_samples import COMPILE, FACTS, HEADER, OBSERVATION, RUNS, run, write_record


def read_all(folder: Path) -> list[object]:
    record = open_record(folder)
    return [record.sessions, record.created, *record]


def refusal(folder: Path) -> RecordError | None:
    try:
        read_all(folder)
    except RecordError as error:
        refused = error
    else:
        return None
    assert refused.code == "record.corrupt"
    assert refused.where is not None
    assert refused.hint
    return refused


def flipped(data: bytes, place: int, bit: int) -> bytes:
    changed = bytearray(data)
    changed[place] ^= bit
    return bytes(changed)


@pytest.mark.parametrize("name", ["record.json", "runs.jsonl", "seal.json", "verdict.json"])
def test_every_changed_byte_of_a_sealed_record_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_record(tmp_path / "r")
    assert refusal(folder) is None
    path = folder / name
    data = path.read_bytes()
    step = max(1, len(data) // 400)
    for number, place in enumerate(range(0, len(data), step)):
        path.write_bytes(flipped(data, place, 1 << number % 8))
        error = refusal(folder)
        assert error is not None, place
        assert str(folder) in str(error)
    path.write_bytes(data)
    assert refusal(folder) is None


@pytest.mark.parametrize("key", ["chain", "verdicts"])
@pytest.mark.parametrize("value", ["\\ud800", "ä", 1, None, True])
def test_a_seal_with_anything_else_in_it_is_refused(tmp_path: Path, key: str, value: object) -> None:
    path = write_record(tmp_path / "r") / "seal.json"
    text = json.dumps({**json.loads(path.read_bytes()), key: value}, separators=(",", ":"))
    path.write_text(text.replace("\\\\", "\\") + "\n")
    error = refusal(path.parent)
    assert error is not None
    assert str(error.where) == str(path)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("entry", ("submission", "name"), "a\ud800"),
        ("entry", ("submission", "name"), "\ud800\U0001f600"),
        ("run", ("missing", "detail"), "\udfff"),
        ("verdict", ("rationale",), "\udfff"),
    ],
)
def test_a_forged_line_that_cannot_be_used_is_refused_and_not_met_later(
    tmp_path: Path, kind: str, path: tuple[str, ...], value: object
) -> None:
    folder = write_record(tmp_path / "r", seal=False)
    header = (folder / "record.json").read_bytes()
    chain, forged = hashlib.sha256(header).hexdigest().encode(), b""
    for text in (folder / "runs.jsonl").read_bytes().splitlines():
        line = json.loads(text)
        inner = line["body"]
        if line["kind"] == kind and inner.get(path[0]) is not None:
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
        data, chain = encode_line(line["kind"], line["entry"], json.dumps(line["body"], separators=(",", ":")), chain)
        forged += data
    (folder / "runs.jsonl").write_bytes(forged)
    error = refusal(folder)
    assert error is not None
    assert error.where is not None
    assert error.where.line is not None


def test_whole_characters_that_are_written_as_two_escapes_are_read(tmp_path: Path) -> None:
    assert decode_json(b'"\\ud83d\\ude00 \\\\ud800"', "r") == "\U0001f600 \\ud800"


def test_every_changed_byte_of_a_blob_is_refused(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    blobs = sorted((folder / "blobs").iterdir())
    assert len(blobs) > 5
    for blob in blobs:
        data = blob.read_bytes()
        for number, place in enumerate(range(0, len(data), len(data) // 3)):
            blob.write_bytes(flipped(data, place, 1 << number % 8))
            error = refusal(folder)
            assert error is not None
            assert blob.name in str(error)
        for other in (data[:-1], data + b"x", b""):
            blob.write_bytes(other)
            assert refusal(folder) is not None
        blob.unlink()
        error = refusal(folder)
        assert error is not None
        assert "missing" in error.message
        blob.write_bytes(data)
    assert refusal(folder) is None


def test_where_a_change_does_no_harm(tmp_path: Path) -> None:
    """The whole list: the lock file, files that no record has, and the last line end of a record without a seal."""
    folder = write_record(tmp_path / "r", seal=False)
    before = read_all(folder)
    (folder / "lock").write_bytes(b"anything")
    (folder / "blobs" / ".writing-1-x").write_bytes(b"left by a crash")
    (folder / "notes.txt").write_text("mine")
    assert read_all(folder) == before
    journal = folder / "runs.jsonl"
    data = journal.read_bytes()
    journal.write_bytes(data[:-1] + b"\x0b")
    record = open_record(folder)
    assert record.is_torn
    assert record[1].verdict is not None, "the line before the last is the same verdict"
    assert record[0].runs == before[2].runs  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_changes_of_an_unsealed_record_are_refused_with_their_line(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r", seal=False)
    journal = folder / "runs.jsonl"
    data = journal.read_bytes()
    for number, place in enumerate(range(0, len(data) - 1, max(1, len(data) // 300))):
        journal.write_bytes(flipped(data, place, 1 << number % 8))
        error = refusal(folder)
        assert error is not None, place
        assert error.where is not None
        assert error.where.line is not None


def test_a_record_cut_anywhere_keeps_every_line_before_the_cut(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r", seal=False)
    journal = folder / "runs.jsonl"
    data = journal.read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for size in sorted({*range(0, len(data), 61), *ends, *(end - 1 for end in ends), *(end + 1 for end in ends[:-1])}):
        journal.write_bytes(data[:size])
        record = open_record(folder)
        assert record.journal_index.lines == sum(end <= size for end in ends)
        assert record.is_torn == (size not in {0, *ends})
    journal.write_bytes(data + bytes(4096))
    assert open_record(folder).is_torn, "zeros that a power failure left at the end are not a line"


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_going_on_after_a_cut_takes_the_torn_line_away(tmp_path: Path, cut: int) -> None:
    with RecordWriter.create(tmp_path / "r", FACTS) as writer:
        entry = writer.begin(HEADER)
        for record in RUNS[:3]:
            writer.append_run(entry, record)
        writer.close(seal=False)
    journal = tmp_path / "r" / "runs.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    with RecordWriter.reopen(tmp_path / "r", FACTS) as writer:
        writer.append_run(entry, RUNS[3])
    record = open_record(tmp_path / "r")
    assert record.is_sealed
    assert record[0].runs == (*RUNS[:2], RUNS[3])


def test_lines_taken_out_doubled_or_moved_are_refused(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r", seal=False)
    journal = folder / "runs.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    others = [lines[:2] + lines[3:], lines[:3] + lines[2:], [*lines[:2], lines[3], lines[2], *lines[4:]], lines[1:]]
    for other in others:
        journal.write_bytes(b"".join(other))
        assert refusal(folder) is not None
    journal.write_bytes(b"".join(lines))
    sealed = write_record(tmp_path / "s")
    path = sealed / "runs.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    error = refusal(sealed)
    assert error is not None
    assert "seal" in error.message


def test_a_blob_that_was_damaged_is_written_again_when_its_value_comes_again(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    with RecordWriter.create(folder, FACTS) as writer:
        writer.append_run(writer.begin(HEADER), run(0, b"o" * 5000))
    blob = folder / "blobs" / hashlib.sha256(b"o" * 5000).hexdigest()
    blob.write_bytes(b"damaged")
    with RecordWriter.reopen(folder, FACTS) as writer:
        writer.append_run(0, run(1, b"o" * 5000))
    assert len(open_record(folder)[0].runs) == 2


def test_a_newer_schema_is_refused_by_its_version(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    header = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps({**header, "schema_version": 2, "more": {}}))
    with pytest.raises(RecordError, match="schema version 2") as caught:
        open_record(folder)
    assert caught.value.code == "record.too_new"
    for version in (0, -1, True, 1.5, "1", None):
        (folder / "record.json").write_text(json.dumps({**header, "schema_version": version}))
        with pytest.raises(RecordError) as caught:
            open_record(folder)
        assert caught.value.code == "record.corrupt"


# What follows has a sound chain: it was made to mislead the reader, not damaged.


def forge(
    folder: Path, change: Callable[[str, str], str], *, more: list[tuple[str, int | None, str]] | None = None
) -> Path:
    """Write a record, change bodies of its lines by `change(kind, body)`, add lines, and make the chain sound again."""
    if folder.exists():
        shutil.rmtree(folder)
    writer = RecordWriter.create(folder, FACTS)
    entry = writer.begin(HEADER)
    writer.append_compile(entry, COMPILE)
    writer.append_run(entry, RUNS[0])
    writer.append_run(entry, RUNS[1])
    writer.append_observation(entry, OBSERVATION)
    writer.close(seal=False)
    chain = hashlib.sha256((folder / "record.json").read_bytes()).hexdigest().encode()
    forged: list[bytes] = []
    lines = [json.loads(line) for line in (folder / "runs.jsonl").read_bytes().splitlines()]
    bodies = [(line["kind"], line["entry"], json.dumps(line["body"])) for line in lines]
    for kind, number, body in [*bodies, *(more or [])]:
        line, chain = encode_line(kind, number, change(kind, body), chain)
        forged.append(line)
    (folder / "runs.jsonl").write_bytes(b"".join(forged))
    return folder


def unchanged(_kind: str, body: str) -> str:
    return body


def test_forging_without_a_change_gives_a_good_record(tmp_path: Path) -> None:
    assert refusal(forge(tmp_path / "r", unchanged)) is None


HUGE = "9" * 5000
DEEP = "[" * 100_000
REPLACEMENTS: list[tuple[str, str, str]] = [
    ("run", '"index": 0', '"index": 4'),
    ("run", '"index": 0', '"index": -1'),
    ("run", '"index": 0', f'"index": {HUGE}'),
    ("run", '"index": 0', '"index": 0, "index": 1'),
    ("run", '"index": 0', '"index": 0, "attempt": 0'),
    ("run", '"index": 0', f'"index": 0, "attempt": {10**9}'),
    ("run", '"index": 0', '"index": 0, "surprise": 1'),
    ("run", '"index": 0', f'"index": {DEEP}'),
    ("run", '"index": 0', '"index": NaN'),
    ("run", '"index": 0', '"index": 1e999'),
    ("run", '"cpu_time_ns": 0', f'"cpu_time_ns": {2**63}'),
    ("run", '"cpu_time_ns": 0', '"cpu_time_ns": 0.5'),
    ("run", '"text": "hello\\n"', '"text": "\\ud800"'),
    ("run", '"text": "hello\\n"', '"text": "hello", "total_bytes": 3, "sha256": "0"'),
    ("run", '"text": "hello\\n"', '"text": "hello", "total_bytes": 9, "sha256": "\\u001b[31m"'),
    ("run", '"text": "hello\\n"', f'"text": "hello", "total_bytes": {2**63}, "sha256": "{"0" * 64}"'),
    ("run", '"text": "hello\\n"', '"$blob": "../record.json", "bytes": 1, "as": "text"'),
    ("run", '"text": "hello\\n"', f'"$blob": "{"0" * 64}", "bytes": 1, "as": "text"'),
    ("run", '"text": "hello\\n"', f'"$blob": "{"0" * 64}", "bytes": -1, "as": "text"'),
    ("run", '"text": "hello\\n"', f'"$blob": "{"0" * 64}", "bytes": {2**50}, "as": "text"'),
    ("run", '"text": "hello\\n"', '"$map": 3'),
    ("run", '"code": "box.lost"', '"code": "stdout.differs"'),
    ("run", '"code": "box.lost"', '"code": "no.such.code"'),
    ("compile", '"profile": "c"', '"profile": "other"'),
    ("compile", '"processes": 64', f'"processes": {2**63}'),
    ("entry", '"planned_runs": 4', '"planned_runs": -1'),
    ("entry", '"planned_runs": 4', f'"planned_runs": {10**12}'),
    ("entry", '"planned_runs": 4', '"planned_runs": true'),
    ("entry", '"planned_runs": 4', '"planned_runs": 4, "more": 1'),
    ("entry", '"name": "hello.c"', '"name": 1'),
    ("entry", '"executable": true', '"executable": false'),
    ("entry", '"executable": true', '"executable": 1'),
    ("entry", '"plan": "', '"plan": ["'),
    ("observation", '"kind": "program_runs"', '"kind": "nonsense"'),
    ("observation", '"schema_version": 1', '"schema_version": 99'),
]


@pytest.mark.parametrize(("kind", "old", "new"), REPLACEMENTS, ids=range(len(REPLACEMENTS)))
def test_a_forged_line_is_refused_with_its_place(tmp_path: Path, kind: str, old: str, new: str) -> None:
    hits = 0

    def change(line_kind: str, body: str) -> str:
        nonlocal hits
        if line_kind != kind or old not in body:
            return body
        hits += 1
        return body.replace(old, new, 1)

    folder = forge(tmp_path / "r", change)
    assert hits == 1
    error = refusal(folder)
    assert error is not None
    assert error.code == "record.corrupt"
    assert len(str(error)) < 2000


@pytest.mark.parametrize(
    ("kind", "entry", "body"),
    [
        ("run", 1, "{}"),
        ("run", None, "{}"),
        ("session", 0, "{}"),
        ("session", None, "{}"),
        ("entry", 2, "{}"),
        ("entry", 1, "[]"),
        ("entry", 0, "{}"),
        ("superseded", 0, '{"runs": ["x"]}'),
        ("superseded", 0, '{"runs": 3}'),
        ("verdict", 0, '{"value": "true"}'),
        ("surprise", 0, "{}"),
        ("run", 0, "nonsense"),
        ("run", 0, '{"index":0}\n{"index":0}'),
    ],
)
def test_a_forged_line_too_many_is_refused(tmp_path: Path, kind: str, entry: int | None, body: str) -> None:
    error = refusal(forge(tmp_path / "r", unchanged, more=[(kind, entry, body)]))
    assert error is not None


def test_links_and_fifos_in_a_record_are_neither_followed_nor_waited_for(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    for name in ("record.json", "runs.jsonl", "seal.json", "verdict.json"):
        path = folder / name
        kept = path.rename(tmp_path / "kept")
        path.symlink_to(kept)
        assert refusal(folder) is not None, name
        path.unlink()
        os.mkfifo(path)
        assert refusal(folder) is not None, name
        path.unlink()
        kept.rename(path)
    blob = next((folder / "blobs").iterdir())
    kept = blob.rename(tmp_path / "kept")
    blob.symlink_to(kept)
    assert refusal(folder) is not None
    blob.unlink()
    kept.rename(blob)
    assert refusal(folder) is None
    blobs = (folder / "blobs").rename(tmp_path / "elsewhere")
    (folder / "blobs").symlink_to(blobs)
    assert refusal(folder) is not None
    with pytest.raises(RecordError):
        RecordWriter.reopen(folder, FACTS)


def test_a_sparse_journal_and_blob_are_refused_without_reading_them(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r", seal=False)
    with open(folder / "runs.jsonl", "r+b") as file:
        file.truncate(2**40)
    error = refusal(folder)
    assert error is not None
    assert "more than" in error.message
    folder = write_record(tmp_path / "s")
    with open(next((folder / "blobs").iterdir()), "r+b") as file:
        file.truncate(2**40)
    assert refusal(folder) is not None
    with open(folder / "record.json", "r+b") as file:
        file.truncate(2**40)
    assert refusal(folder) is not None


def test_a_journal_that_changes_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    record: Record = open_record(folder)
    path = folder / "runs.jsonl"
    path.write_bytes(path.read_bytes().replace(b"hello", b"hallo"))
    with pytest.raises(RecordError, match="while it was read"):
        _ = record[0]
