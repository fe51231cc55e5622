"""Writers: locks, crashes, readers beside them, full disks."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.errors import PrerequisiteError, RecordError, SandboxError, UsageError
from grader.store import (
    EntryHeader,
    RecordWriter,
    find_record,
    latest_record,
    new_record_folder,
    open_record,
    set_latest,
)
from tests.unit.store.record_samples import FACTS, HEADER, RUNS, TASK, VERDICT, run, write_record


def test_two_writers_are_kept_apart_and_a_dead_one_does_not_stop_the_next(tmp_path: Path) -> None:
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    with pytest.raises(UsageError, match="another grader is writing"):
        RecordWriter.reopen(tmp_path / "r", FACTS)
    writer.close(seal=False)
    RecordWriter.reopen(tmp_path / "r", FACTS).close()


def test_a_reader_beside_a_writer_sees_whole_runs_only_and_never_an_error(tmp_path: Path) -> None:
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    writer.begin(EntryHeader(task=TASK, planned_runs=10_000))
    done = threading.Event()

    def write() -> None:
        for index in range(300):
            writer.append_run(0, run(index, b"%d" % index * (2000 if index % 9 == 0 else 1)))
        writer.close()
        for _ in range(5):
            RecordWriter.reopen(tmp_path / "r", FACTS).close()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    seen = 0
    try:
        while not done.is_set():
            runs = open_record(tmp_path / "r")[0].runs
            assert [record.index for record in runs] == list(range(len(runs)))
            assert len(runs) >= seen
            seen = len(runs)
    finally:
        thread.join(60)
    assert len(open_record(tmp_path / "r")[0].runs) == 300


WRITER = """
import sys
from pathlib import Path
from grader.store import RecordWriter
from tests.unit.store.record_samples import FACTS, HEADER, run
from grader.store import EntryHeader
from tests.unit.store.record_samples import TASK
writer = RecordWriter.create(Path(sys.argv[1]), FACTS)
writer.begin(EntryHeader(task=TASK, planned_runs=1_000_000))
for index in range(1_000_000):
    writer.append_run(0, run(index, b"%d" % index * (3000 if index % 5 == 0 else 1)))
    print(index, flush=True)
"""


def test_a_writer_killed_at_any_moment_leaves_every_finished_run_and_can_be_gone_on_with(tmp_path: Path) -> None:
    chance = random.Random(7)
    for attempt in range(3):
        folder = tmp_path / f"r{attempt}"
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]
        )
        assert process.stdout is not None
        with process.stdout:
            finished = [process.stdout.readline()]
            time.sleep(chance.random() * 0.2)
            process.send_signal(signal.SIGKILL)
            finished += process.stdout.readlines()
        process.wait(30)
        told = [line for line in finished if line.endswith(b"\n")]
        runs = open_record(folder)[0].runs
        assert len(runs) in {len(told), len(told) + 1}
        assert runs == tuple(run(i, b"%d" % i * (3000 if i % 5 == 0 else 1)) for i in range(len(runs)))
        with RecordWriter.reopen(folder, FACTS) as writer:
            writer.append_run(0, run(999_999))
        record = open_record(folder)
        assert (record.is_sealed, len(record[0].runs)) == (True, len(runs) + 1)
        assert not [path for path in (folder / "blobs").iterdir() if len(path.name) != 64]


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_stops_recording_with_a_clear_error_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    entry = writer.begin(HEADER)
    writer.append_run(entry, RUNS[0])
    really_write = os.write

    def half_then_full(descriptor: int, data: bytes | memoryview) -> int:
        if len(data) < 100:
            return full()
        return really_write(descriptor, bytes(data)[: len(data) - 50])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half_then_full)
        with pytest.raises(SandboxError, match="No space left") as caught:
            writer.append_run(entry, RUNS[1])
        assert caught.value.code == "host.disk_full"
        with pytest.raises(SandboxError):
            writer.append_run(entry, run(2, b"large" * 2000))
    assert open_record(tmp_path / "r")[0].runs == RUNS[:1]
    assert not open_record(tmp_path / "r").is_torn, "the half line was taken back"
    writer.append_run(entry, RUNS[2])  # room again
    writer.close()
    assert open_record(tmp_path / "r")[0].runs == (RUNS[0], RUNS[2])


def test_after_a_failed_sync_nothing_is_claimed_to_be_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    entry = writer.begin(HEADER)
    writer.append_run(entry, RUNS[0])
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(SandboxError):
            writer.flush()
    with pytest.raises(SandboxError):
        writer.append_run(entry, RUNS[1])
    with pytest.raises(SandboxError):
        writer.close()
    record = open_record(tmp_path / "r")
    assert (record.is_sealed, record[0].runs) == (False, RUNS[:1])


def test_what_is_written_is_synced_within_about_a_second_though_nothing_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = threading.Event()
    really_sync = os.fsync
    writer = RecordWriter.create(tmp_path / "r", FACTS)
    journal = os.stat(tmp_path / "r" / "runs.jsonl").st_ino
    calls: list[float] = []

    def fsync(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino == journal:
            calls.append(time.monotonic())
            synced.set()
        really_sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    entry = writer.begin(EntryHeader(task=TASK, planned_runs=1000))
    for index in range(200):
        writer.append_run(entry, run(index))
    assert synced.wait(20)
    assert len(calls) == 1, "many runs, one sync"
    writer.close()
    assert len(calls) == 2, "and one at the end"


def test_a_folder_that_cannot_be_written_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "r"):
        with pytest.raises(PrerequisiteError) as caught:
            RecordWriter.create(folder, FACTS)
        assert caught.value.hint
    with pytest.raises(PrerequisiteError):
        new_record_folder(tmp_path / "file", "task")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PrerequisiteError, match="No space left"):
        RecordWriter.create(tmp_path / "r", FACTS)


def test_a_resumed_record_has_the_last_verdicts_and_all_names_in_its_summary(tmp_path: Path) -> None:
    folder = write_record(tmp_path / "r")
    with RecordWriter.reopen(folder, FACTS) as writer:
        assert not (folder / "seal.json").exists()
        writer.append_verdict(0, VERDICT.model_copy(update={"rationale": "resumed"}))
    verdicts = json.loads((folder / "verdict.json").read_text())["verdicts"]
    assert [(item["entry"], item["submission"], item["verdict"]["rationale"]) for item in verdicts] == [
        (0, "hello.c", "resumed"),
        (1, "", "no"),
    ]


def test_records_have_a_place_and_latest_names_the_last(tmp_path: Path) -> None:
    root = tmp_path / ".grader" / "records"
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with pytest.raises(UsageError, match="no latest record"):
        latest_record(root)
    first = new_record_folder(root, "rot13", now=now)
    second = new_record_folder(root, "rot13", now=now)
    odd = new_record_folder(root, "../../etc/pass wd\n", now=now)
    assert [path.name for path in (first, second, odd)] == [
        "20260102T030405Z-rot13-1",
        "20260102T030405Z-rot13-2",
        "20260102T030405Z-etc-pass-wd-1",
    ]
    assert odd.parent == root
    for folder in (first, tmp_path / "elsewhere", second):
        write_record(folder)
        set_latest(root, folder)
        assert latest_record(root).resolve() == folder.resolve()
        assert find_record("latest", root).resolve() == folder.resolve()
    assert find_record(str(first), root) == first
    assert find_record(first.name, root) == first
    for name in ("none", "a\0b", ""):
        with pytest.raises(UsageError):
            find_record(name, root)
    (root / "latest").write_text("gone\n")
    with pytest.raises(UsageError, match="no latest record"):
        latest_record(root)


def test_what_a_writer_left_that_died_before_its_record_began_is_in_nobodys_way(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    (folder / "blobs").mkdir(parents=True)
    for name in ("lock", "runs.jsonl", ".writing-123-record.json"):
        (folder / name).write_bytes(b"")
    writer = RecordWriter.create(folder, FACTS)
    with pytest.raises(UsageError, match="not empty"):
        RecordWriter.create(folder, FACTS)
    writer.close()
    assert sorted(path.name for path in folder.iterdir()) == [
        *("blobs", "lock", "record.json", "runs.jsonl", "seal.json", "verdict.json")
    ]
    assert len(open_record(folder)) == 0


@pytest.mark.parametrize("name", ["runs.jsonl", "blobs/x", "notes.txt"])
def test_a_folder_with_anything_in_it_is_no_place_for_a_record(tmp_path: Path, name: str) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(UsageError, match="not empty"):
        RecordWriter.create(tmp_path, FACTS)
    assert (tmp_path / name).read_bytes() == b"something"


def test_files_that_a_killed_writer_left_half_written_go_when_its_record_is_resumed(tmp_path: Path) -> None:
    write_record(tmp_path / "r")
    for name in (".writing-123-verdict.json", "blobs/.writing-123-abc"):
        (tmp_path / "r" / name).write_bytes(b"half")
    RecordWriter.reopen(tmp_path / "r", FACTS).close()
    assert list((tmp_path / "r").rglob(".writing-*")) == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EMFILE])
def test_a_folder_in_which_no_file_can_be_opened_is_a_missing_prerequisite_and_not_a_damaged_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    write_record(tmp_path / "r")
    real = os.open

    def refuse(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(number, os.strerror(number))
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse)
    for begin in (
        lambda: RecordWriter.create(tmp_path / "new", FACTS),
        lambda: RecordWriter.reopen(tmp_path / "r", FACTS),
    ):
        with pytest.raises(PrerequisiteError, match="the record cannot be written"):
            begin()
    assert len(open_record(tmp_path / "r")) > 0


def test_a_record_that_cannot_be_opened_to_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(tmp_path / "r")

    def refuse(path: str | Path, flags: int, mode: int = 0o777) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(RecordError, match="cannot be read: Too many open files"):
        open_record(tmp_path / "r")
