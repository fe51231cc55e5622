"""What grader run says after a signal: how many runs are kept, and the command that goes on; only what is true."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
from pathlib import Path

import pytest

from grader.cli import sandboxes
from grader.cli.interrupted import RunsSoFar, what_is_kept
from grader.sandbox.base import Sandbox
from grader.sandbox.fake import HANGS, Answer, Behaviour, Call, FakeSandbox
from grader.store import open_record
from tests.unit.cli.conftest import RunIt


def interrupted_at(monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    """From now on the run of this number, counted from 0, is under way when a signal comes; None: no signal comes."""

    def script(call: Call) -> Answer:
        if call.number == number:
            os.kill(os.getpid(), signal.SIGTERM)
            return HANGS
        return Behaviour(stdout=call.invocation.stdin.upper())

    def make(isolation: object, max_parallel: object) -> Sandbox:
        del isolation, max_parallel
        return FakeSandbox(script)

    monkeypatch.setattr(sandboxes, "make_sandbox", make)


def counted(folder: Path) -> int:
    """Runs of a record that have an outcome."""
    return sum(entry.header.planned_runs - len(entry.missing_runs) for entry in open_record(folder))


def test_the_number_of_runs_is_that_of_the_record_and_both_commands_work(
    grader: RunIt, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, 4)
    ended = grader("run", ".", "all/good.py", "-j", "1", "--record", "r")
    assert (ended.code, ended.out) == (143, "")
    *_, said = ended.err.splitlines()
    assert said == (
        "interrupted; 4 of 6 runs are in the record (what they show: grader replay r). "
        "To go on: grader run . all/good.py -j 1 --resume r"
    )
    assert counted(Path("r")) == 4
    assert grader("replay", "r").code == 3
    interrupted_at(monkeypatch, None)
    assert grader(*said.partition("To go on: grader ")[2].split()).code == 0


def test_a_resumed_record_that_is_interrupted_again_counts_all_that_it_has(
    grader: RunIt, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(monkeypatch, 2)
    grader("run", ".", "all/good.py", "-j", "1", "--record", "r")
    for number, said, there in ((0, "2 of 6 runs", 2), (3, "5 of 6 runs", 5)):
        interrupted_at(monkeypatch, number)
        ended = grader("run", "--resume", "r", "-j", "1")
        assert ended.code == 143
        assert f"interrupted; {said} are in the record" in ended.err
        assert ended.err.endswith("To go on: grader run -j 1 --resume r\n")
        assert counted(Path("r")) == there


def test_of_several_submissions_it_says_how_many_have_begun(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(monkeypatch, 8)
    ended = grader("run", ".", "all/good.py", "all/hostile.py", "all/wrong.py", "-j", "1", "--record", "r")
    assert "interrupted; 8 of 12 runs, of 2 of 3 submissions, are in the record" in ended.err
    assert counted(Path("r")) == 8
    interrupted_at(monkeypatch, 1)
    ended = grader("run", ".", "all/good.py", "all/hostile.py", "all/wrong.py", "-j", "1", "--resume", "r")
    assert "interrupted; 9 of 12 runs, of 2 of 3 submissions, are in the record" in ended.err
    assert counted(Path("r")) == 9


def test_without_a_record_nothing_is_said_to_be_kept(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted_at(monkeypatch, 4)
    ended = grader("run", ".", "all/good.py", "-j", "1", "--no-record")
    assert ended.code == 143
    assert ended.err.splitlines()[-1] == "interrupted; no record was kept of the 4 of 6 runs that ended"


def test_before_the_first_run_there_is_nothing_to_go_on_with(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(FakeSandbox):
        async def __aenter__(self) -> Sandbox:
            os.kill(os.getpid(), signal.SIGINT)
            import anyio

            await anyio.sleep(30)
            return self

    grader("run", ".", "all/good.py", "--record", "r")
    monkeypatch.setattr(sandboxes, "make_sandbox", lambda *_: Slow(lambda _: Behaviour()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    ended = grader("run", ".", "all/good.py")
    assert (ended.code, ended.err.splitlines()[-1]) == (130, "interrupted before the first run; nothing was recorded")
    assert list((workplace / ".grader" / "records").iterdir()) == []
    ended = grader("run", "--resume", "r")
    assert ended.code == 130
    assert ended.err.splitlines()[-1] == (
        "interrupted before another run; the record is as it was. To go on: grader run --resume r"
    )
    assert counted(Path("r")) == 6


def test_a_record_that_could_not_be_made_durable_is_told_too(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    interrupted_at(monkeypatch, 4)
    monkeypatch.setattr("grader.store.writer.RecordWriter._sync", full)
    ended = grader("run", ".", "all/good.py", "-j", "1", "--record", "r")
    assert ended.code == 143
    assert "error: r: the record can no longer be written: No space left on device" in ended.err


def test_a_name_that_begins_with_a_dash_is_no_option_of_the_command(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "-x.py").write_text("good")
    interrupted_at(monkeypatch, 4)
    ended = grader("run", ".", "./-x.py", "-j", "1", "--record", "./-r")
    command = ended.err.splitlines()[-1].partition("To go on: grader ")[2]
    assert command == "run . ./-x.py -j 1 --resume ./-r"
    looked = re.search(r"what they show: grader ([^)]*)\)", ended.err)
    assert looked is not None
    assert grader(*shlex.split(looked[1])).code == 3
    interrupted_at(monkeypatch, None)
    assert grader(*shlex.split(command)).code == 0


@pytest.mark.parametrize(
    ("so_far", "said"),
    [
        (RunsSoFar(1, 1, 0), "interrupted; 0 of 1 run is in the record"),
        (RunsSoFar(1, 6, 1), "interrupted; 1 of 6 runs is in the record (what they show: grader replay 'a b')"),
    ],
)
def test_one_run_and_none(so_far: RunsSoFar, said: str) -> None:
    assert what_is_kept(so_far, Path("a b"), submissions=1, is_resumed=False) == said
