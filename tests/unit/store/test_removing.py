"""Old records are removed; what is being written, or cannot be asked, is left alone and named."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grader.errors import PrerequisiteError, RecordError, UsageError
from grader.store import RecordWriter, open_record, removing, set_latest
from grader.store.lock import WriterLock
from grader.store.removing import RemovedRecords, remove_old_records
from tests.unit.store.record_samples import FACTS, HEADER, RUNS

OLD_S = 1_000_000.0
CUT_S = 2_000_000.0
FILES = ("record.json", "runs.jsonl", "seal.json", "verdict.json")


def make_old(folder: Path) -> None:
    for name in FILES:
        if (folder / name).exists():
            os.utime(folder / name, (OLD_S, OLD_S), follow_symlinks=False)


def old_record(folder: Path) -> Path:
    with RecordWriter.create(folder, FACTS) as writer:
        writer.append_run(writer.begin(HEADER), RUNS[0])
    make_old(folder)
    return folder


def left_in(removed: RemovedRecords) -> dict[str, str]:
    return {Path(str(problem.where)).name: problem.message for problem in removed.left}


def test_a_record_goes_whole_and_its_neighbour_stays(tmp_path: Path) -> None:
    old = old_record(tmp_path / "old")
    young = old_record(tmp_path / "young")
    os.utime(young / "runs.jsonl")
    assert (old / "blobs").is_dir()
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)
    assert os.listdir(tmp_path) == ["young"]
    assert len(open_record(young)) == 1


def test_a_record_that_is_being_written_stays_whole_and_is_named_with_why(tmp_path: Path) -> None:
    folder = old_record(tmp_path / "a")
    old_record(tmp_path / "b")
    with RecordWriter.reopen(folder, FACTS) as writer:
        make_old(folder)  # a run that takes longer than the age: nothing is written meanwhile
        removed = remove_old_records(tmp_path, CUT_S)
        assert removed.removed == 1
        assert left_in(removed) == {"a": "another grader is writing this record"}
        assert removed.left[0].hint == "wait until it has ended, or stop it"
        writer.append_run(0, RUNS[1])
    assert len(open_record(folder)[0].runs) == 2
    make_old(folder)
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)


HOLDER = """
import sys, time
from pathlib import Path
from grader.store.lock import WriterLock
lock = WriterLock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_the_lock_of_a_grader_that_was_killed_keeps_nothing(tmp_path: Path) -> None:
    folder = old_record(tmp_path / "a")
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(folder)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            assert list(left_in(remove_old_records(tmp_path, CUT_S))) == ["a"]
        finally:
            process.send_signal(signal.SIGKILL)
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)


def test_a_record_without_a_lock_file_is_locked_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_record(tmp_path / "a")
    (folder / "lock").unlink()
    monkeypatch.setattr(removing, "_remove", checked := _RefusesWriters())
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)
    assert checked.folders == [folder]


class _RefusesWriters:
    """Stands where a record is removed: at that moment nobody can begin to write there."""

    def __init__(self) -> None:
        self.folders: list[Path] = []

    def __call__(self, folder: Path) -> None:
        self.folders.append(folder)
        with pytest.raises(UsageError, match="another grader is writing"):
            RecordWriter.reopen(folder, FACTS)


@pytest.mark.parametrize("kind", ["link", "dangling", "fifo", "folder"])
def test_a_lock_that_is_no_file_is_neither_followed_nor_waited_for(tmp_path: Path, kind: str) -> None:
    folder = old_record(tmp_path / "a")
    old_record(tmp_path / "b")
    lock = folder / "lock"
    elsewhere = tmp_path / "elsewhere"
    lock.unlink()
    if kind in {"link", "dangling"}:
        lock.symlink_to(elsewhere)
        if kind == "link":
            elsewhere.write_bytes(b"mine")
    elif kind == "fifo":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    removed = remove_old_records(tmp_path, CUT_S)
    assert (removed.removed, left_in(removed)) == (1, {"lock": "is not a regular file"})
    assert removed.left[0].hint == "see what it is; if no grader writes here, remove it and clean again"
    assert len(open_record(folder)) == 1
    assert elsewhere.exists() == (kind == "link")


def test_a_lock_that_may_not_be_opened_leaves_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_record(tmp_path / "a")

    def refused(path: Path, flags: int) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("grader.store.lock.open_regular", refused)
    removed = remove_old_records(tmp_path, CUT_S)
    assert (removed.removed, left_in(removed)) == (
        0,
        {"a": "nobody can say whether it is being written: Permission denied"},
    )
    assert len(open_record(folder)) == 1


def test_a_file_system_without_locks_is_not_taken_for_another_grader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    folder = old_record(tmp_path / "a")
    monkeypatch.setattr(fcntl, "flock", none)
    removed = remove_old_records(tmp_path, CUT_S)
    assert left_in(removed) == {"a": "nobody can say whether it is being written: No locks available"}
    with pytest.raises(PrerequisiteError, match="the record cannot be written: No locks available"):
        RecordWriter.reopen(folder, FACTS)


@pytest.mark.parametrize("what", ["written", "latest"])
def test_what_happens_between_the_look_and_the_lock_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    folder = old_record(tmp_path / "a")

    def lock_late(path: Path) -> WriterLock:
        if what == "written":
            with RecordWriter.reopen(path, FACTS) as writer:
                writer.append_run(0, RUNS[1])
        else:
            set_latest(tmp_path, path)
        return WriterLock(path)

    monkeypatch.setattr(removing, "WriterLock", lock_late)
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(0)
    assert len(open_record(folder)) == 1


def test_a_writer_that_waited_at_the_door_gets_no_lock_on_a_file_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = old_record(tmp_path / "a")
    really_lock = fcntl.flock

    def removed_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", really_lock)
        assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)
        folder.mkdir()
        other.append(WriterLock(folder))
        really_lock(descriptor, operation)

    other: list[WriterLock] = []
    monkeypatch.setattr(fcntl, "flock", removed_first)
    with pytest.raises(UsageError, match="removed just now"):
        WriterLock(folder)
    other[0].release()


def test_a_removal_that_is_cut_short_is_ended_by_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = old_record(tmp_path / "a")
    really_unlink = os.unlink

    def cut_short(path: str, *, dir_fd: int | None = None) -> None:
        if path in {"record.json", "lock"}:
            raise PermissionError(1, "Operation not permitted")
        really_unlink(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", cut_short)
        removed = remove_old_records(tmp_path, CUT_S)
    assert (removed.removed, removed.left) == (0, ())
    assert [str(problem) for problem in removed.failed] == [f"{folder}: cannot be removed: Operation not permitted"]
    assert sorted(os.listdir(folder)) == ["lock", "record.json"]
    assert remove_old_records(tmp_path, CUT_S) == RemovedRecords(1)


def test_links_in_a_record_are_removed_and_never_followed(tmp_path: Path) -> None:
    folder = old_record(tmp_path / "records" / "a")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "keep").write_bytes(b"mine")
    for name, target in (("dangling", "nowhere"), ("more", str(outside))):
        (folder / name).symlink_to(target)
        os.utime(folder / name, (OLD_S, OLD_S), follow_symlinks=False)
    (folder.parent / "link").symlink_to(outside)
    os.mkfifo(folder / "pipe")
    os.utime(folder / "pipe", (OLD_S, OLD_S))
    assert remove_old_records(folder.parent, CUT_S) == RemovedRecords(1)
    assert os.listdir(outside) == ["keep"]


def test_a_header_that_is_a_link_makes_no_record(tmp_path: Path) -> None:
    record = old_record(tmp_path / "elsewhere" / "a")
    mine = tmp_path / "records" / "mine"
    mine.mkdir(parents=True)
    (mine / "record.json").symlink_to(record / "record.json")
    os.utime(mine / "record.json", (OLD_S, OLD_S), follow_symlinks=False)
    assert remove_old_records(mine.parent, CUT_S) == RemovedRecords(0)
    assert os.listdir(mine) == ["record.json"]


def test_no_folder_of_records_is_no_error_and_what_is_no_pointer_is_one(tmp_path: Path) -> None:
    assert remove_old_records(tmp_path / "none", CUT_S) == RemovedRecords(0)
    folder = old_record(tmp_path / "a")
    os.mkfifo(tmp_path / "latest")
    with pytest.raises(RecordError, match="latest: is not a regular file"):
        remove_old_records(tmp_path, CUT_S)
    assert len(open_record(folder)) == 1  # it may be the latest
