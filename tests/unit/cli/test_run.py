"""grader run: verdicts and exit codes, streams, records, selection, several submissions, formats."""

from __future__ import annotations

import json
import os
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

import anyio
import pytest

from grader.cli import sandboxes
from grader.errors import PrerequisiteError
from grader.formats.task_file import load_task
from grader.runner.runner import Runner
from grader.sandbox.base import Sandbox
from grader.sandbox.fake import HANGS, Answer, Behaviour, Call, FakeSandbox
from tests.unit.cli.conftest import RunIt


def use(monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox) -> None:
    def make(isolation: object, max_parallel: object) -> Sandbox:
        del isolation, max_parallel
        return sandbox

    monkeypatch.setattr(sandboxes, "make_sandbox", make)


@pytest.mark.parametrize(("word", "code", "value"), [("good", 0, "TRUE"), ("wrong", 1, "FALSE"), ("flaky", 3, "UNDET")])
def test_exit_codes_of_verdicts(grader: RunIt, word: str, code: int, value: str) -> None:
    ended = grader("run", "task.yaml", f"all/{word}.py")
    assert ended.code == code
    summary = ended.out.splitlines()[-2]
    assert summary.startswith(value)
    assert summary.endswith(f"exit {code}")


def test_results_go_to_stdout_and_progress_to_stderr(grader: RunIt) -> None:
    ended = grader("run", ".", "all/wrong.py")
    cost, *cells = ended.err.splitlines()
    assert cost == "2 cases × 3 repetitions × 1 profile = 6 runs"
    assert cells == [
        '✗ letters  [python]  ✗✗✗  stdout.differs  line 1: expected "ABC␊", got "abc␊"',
        "✓ digits  [python]  ✓✓✓",
    ]
    assert ended.out.splitlines()[1].startswith("✗ letters  ✗✗✗      stdout.differs  line 1")
    assert "next    grader show latest letters · grader replay latest" in ended.out


def test_quiet_leaves_the_summary_alone(grader: RunIt) -> None:
    ended = grader("run", ".", "all/wrong.py", "-q")
    assert ended.err == ""
    assert len(ended.out.splitlines()) == 1
    assert ended.out.startswith("FALSE")


def test_hostile_output_reaches_no_stream_raw(grader: RunIt) -> None:
    for arguments in (
        ("run", ".", "all/hostile.py", "--color", "never"),
        ("show", "latest", "letters", "--color", "never"),
        ("replay", "--format", "junit"),
        ("replay", "--format", "markdown"),
        ("replay", "--format", "json"),
    ):
        ended = grader(*arguments)
        assert "owned" in ended.out
        assert not {"\x1b", "\x07", "\u202e"} & set(ended.out + ended.err)


def test_color_only_where_it_is_wanted(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in grader("run", ".", "all/wrong.py").out  # not a terminal
    assert "\x1b[31m✗" in grader("run", ".", "all/wrong.py", "--color", "always").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b[31m✗" in grader("run", ".", "all/wrong.py").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in grader("run", ".", "all/wrong.py").out
    assert grader("run", ".", "all/wrong.py", "--color", "blue").code == 2


def test_a_record_is_kept_and_replayed(grader: RunIt, workplace: Path) -> None:
    run = grader("run", ".", "all/flaky.py")
    replayed = grader("replay")
    assert replayed.code == run.code == 3
    assert replayed.out.splitlines()[:3] == run.out.splitlines()[:3]
    assert "replayed" in replayed.out
    assert len(list((workplace / ".grader" / "records").glob("*/record.json"))) == 1


def test_replay_warns_of_a_record_that_does_not_have_all_that_was_asked(grader: RunIt, workplace: Path) -> None:
    """A batch that was killed between two submissions: the second, which is wrong, is in no line of the record."""
    grader("run", ".", "all/good.py", "all/wrong.py", "-j", "1", "--record", "r")
    assert "warning" not in grader("replay", "r").err
    journal = workplace / "r" / "runs.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    second = next(index for index, line in enumerate(lines) if line.startswith(b'{"kind":"entry","entry":1'))
    journal.write_bytes(b"".join(lines[:second]))
    (workplace / "r" / "seal.json").unlink()
    (workplace / "r" / "verdict.json").unlink()
    ended = grader("replay", "r")
    assert ended.code == 0
    assert "warning: r was interrupted, or is still being written: submissions that were not begun are not" in ended.err
    assert grader("run", ".", "all/good.py", "all/wrong.py", "--resume", "r").code == 1


def test_replay_under_another_expectation(grader: RunIt, workplace: Path) -> None:
    grader("run", ".", "all/good.py")
    text = (workplace / "task.yaml").read_text()
    (workplace / "other.yaml").write_text(text.replace('"ABC', '"XYZ'))
    assert grader("replay", "latest", "--task", "other.yaml").code == 1
    for old, new, said in (
        ('"abc', '"abd', "has another stdin"),
        ("repetitions: 3", "repetitions: 2", "2 repetitions"),
        ("runtime_profiles", "limits: {cpu_time_s: 1}\nruntime_profiles", "case 0 has other limits"),
    ):
        (workplace / "third.yaml").write_text(text.replace(old, new))
        ended = grader("replay", "latest", "--task", "third.yaml")
        assert ended.code == 2
        assert "another plan" in ended.err
        assert said in ended.err


def test_no_record(grader: RunIt, workplace: Path) -> None:
    ended = grader("run", ".", "all/wrong.py", "--no-record")
    assert ended.code == 1
    assert not (workplace / ".grader").exists()
    assert "next" not in ended.out
    assert grader("run", ".", "all/wrong.py", "--no-record", "--record", "r").code == 2


def test_a_record_in_a_folder_of_my_own(grader: RunIt, workplace: Path) -> None:
    ended = grader("run", ".", "all/wrong.py", "--record", "mine")
    assert (workplace / "mine" / "record.json").is_file()
    assert "grader replay mine" in ended.out
    assert grader("replay", "mine").code == 1
    again = grader("run", ".", "all/wrong.py", "--record", "mine")
    assert again.code == 2
    assert "mine" in again.err


def test_a_refused_run_leaves_no_empty_record(grader: RunIt, workplace: Path) -> None:
    assert grader("run", ".", "all/good.py", "-p", "nosuch").code == 2
    assert list((workplace / ".grader" / "records").iterdir()) == []


def test_selection(grader: RunIt) -> None:
    ended = grader("run", ".", "all/wrong.py", "-k", "digits", "-n", "2")
    assert ended.code == 0
    assert "1 of 2 cases selected, repetitions set to 2" in ended.out
    assert "1 case × 2 repetitions × 1 profile = 2 runs" in ended.err
    replayed = grader("replay")
    assert replayed.code == 0
    assert "1 of 2 cases selected" in replayed.out


def test_nothing_selected_is_5(grader: RunIt, workplace: Path) -> None:
    ended = grader("run", ".", "all/good.py", "-k", "nothing")
    assert (ended.code, ended.out) == (5, "")
    assert "nothing selected: no case matches 'nothing'" in ended.err
    (workplace / "empty").mkdir()
    assert grader("run", ".", "--each", "empty").code == 5


def test_stop_at_the_first_false(grader: RunIt) -> None:
    ended = grader("run", ".", "all/wrong.py", "-x", "-j", "1")
    assert ended.code == 1
    assert "not run" in ended.out


def test_each_entry_is_a_submission(grader: RunIt, workplace: Path) -> None:
    (workplace / "all" / ".hidden.py").write_text("good")
    ended = grader("run", ".", "--each", "all", "--format", "json")
    report = json.loads(ended.out)
    assert [entry["submission"] for entry in report["submissions"]] == ["flaky.py", "good.py", "hostile.py", "wrong.py"]
    assert [entry["verdict"] for entry in report["submissions"]] == ["undetermined", "true", "false", "false"]
    assert ended.code == report["exit_code"] == 1
    assert ended.err.startswith("4 submissions, each 2 cases × 3 repetitions × 1 profile = 6 runs\n")
    assert grader("replay").code == 1


def test_a_refused_submission_is_listed_and_the_others_run(grader: RunIt, workplace: Path) -> None:
    (workplace / "all" / "bad.zip").write_bytes(b"no archive")
    ended = grader("run", ".", "--each", "all")
    assert ended.code == 2
    assert "refused submission.refused" in ended.out
    assert "✓ 1" in ended.out.splitlines()[-1]
    assert "refused 1" in ended.out.splitlines()[-1]


def test_one_error_for_all_submissions_is_told_once(grader: RunIt) -> None:
    ended = grader("run", ".", "--each", "all", "-p", "nosuch")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.count("no runtime profile is called 'nosuch'") == 1


def test_formats_and_files(grader: RunIt, workplace: Path) -> None:
    names = ("r.json", "r.jsonl", "r.xml", "r.md", "r.txt")
    ended = grader("run", ".", "all/wrong.py", *(part for name in names for part in ("-o", name)))
    assert ended.out.splitlines()[-2].startswith("FALSE")
    assert json.loads((workplace / "r.json").read_text())["verdict"] == "false"
    assert json.loads((workplace / "r.jsonl").read_text())["verdict"] == "false"
    assert ET.parse(workplace / "r.xml").getroot().find("testsuite/testcase/failure") is not None
    assert "stdout.differs" in (workplace / "r.md").read_text()
    assert "exit 1" in (workplace / "r.txt").read_text()
    assert json.loads(grader("run", ".", "all/wrong.py", "--format", "jsonl").out)["submission"] == "wrong.py"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "there is no task"),
        (("task.yaml",), "there is no submission"),
        (("nowhere", "all/good.py"), "nowhere: no task here"),
        (("task.yaml", "nowhere.py"), "nowhere.py: there is no such file or folder"),
        (("task.yaml", "all/good.py", "--each", "nowhere"), "nowhere: --each: No such file or directory"),
        (("task.yaml", "all/good.py", "--isolation", "none"), "--isolation is one of run, submission, shared"),
        (("task.yaml", "all/good.py", "--format", "pdf"), "--format is one of text, json"),
        (("task.yaml", "all/good.py", "-o", "x.pdf"), "x.pdf: no kind of report ends in '.pdf'"),
        (("task.yaml", "all/good.py", "-o", "no/x.md"), "no: there is no such folder"),
        (("task.yaml", "all/good.py", "-n", "0"), "-n"),
        (("task.yaml", "all/good.py", "-j", "x"), "-j"),
        (("task.yaml", "all/good.py", "--what"), "--what"),
        (("task.yaml", "all/good.py", "-p", "python", "-p", "python"), "error: the profile 'python' is named twice\n"),
        (("task.yaml", "all/good.py", "-p", "nosuch"), "no runtime profile is called 'nosuch'"),
        (("task.yaml", "all/good.py", "--resume", "nowhere"), "nowhere: there is no record here"),
        (("task.yaml", "all/good.py", "--runtimes", "nowhere"), "nowhere is not a folder with runtime profiles"),
    ],
)
def test_bad_usage_is_2_with_the_place_and_nothing_on_stdout(
    grader: RunIt, arguments: tuple[str, ...], said: str
) -> None:
    ended = grader("run", *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert "error: " in ended.err
    assert ended.out == ""


def test_a_current_folder_that_is_gone_is_no_bug(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "gone").mkdir()
    monkeypatch.chdir(workplace / "gone")
    (workplace / "gone").rmdir()
    ended = grader("run", "../task.yaml", "../all/good.py")
    assert (ended.code, ended.out) == (2, "")
    assert (
        ended.err == "error: the current folder is gone\n  mend: change to a folder that is there, and run this again\n"
    )


def test_every_problem_of_a_task_is_told(grader: RunIt, workplace: Path) -> None:
    (workplace / "task.yaml").write_text("a: 1\nconditions: []\n")
    ended = grader("run", ".", "all/good.py")
    assert ended.code == 2
    assert ended.err.splitlines()[0] == "error: task.yaml:1:1: unknown key 'a'"
    assert "error: task.yaml:2:13: the list of conditions is empty" in ended.err


def test_a_limit_above_the_profiles_maximum(grader: RunIt, workplace: Path) -> None:
    (workplace / "task.yaml").write_text("limits: {cpu_time_s: 1000000}\n" + (workplace / "task.yaml").read_text())
    ended = grader("run", ".", "all/good.py")
    assert ended.code == 2
    assert "above the profile's maximum" in ended.err
    assert "mend: " in ended.err


class _Missing(FakeSandbox):
    async def __aenter__(self) -> Sandbox:
        raise PrerequisiteError("no engine answers", code="engine.unreachable", hint="start it")


def test_a_missing_engine_is_4_with_the_mend(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, _Missing(lambda _: Behaviour()))
    ended = grader("run", ".", "all/good.py")
    assert (ended.code, ended.out) == (4, "")
    assert "error: no engine answers\n  mend: start it" in ended.err


def test_an_empty_folder_that_was_named_for_the_record_is_not_removed(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another grader may be about to write there; one of our own making is nobody else's."""
    use(monkeypatch, _Missing(lambda _: Behaviour()))
    (workplace / "mine").mkdir()
    assert grader("run", ".", "all/good.py", "--record", "mine").code == 4
    assert (workplace / "mine").is_dir()
    assert grader("run", ".", "all/good.py").code == 4
    assert list((workplace / ".grader" / "records").iterdir()) == []


def test_a_bug_is_70_and_v_says_where(grader: RunIt, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(call: Call) -> Behaviour:
        raise ZeroDivisionError("\x1b[31moops")

    use(monkeypatch, FakeSandbox(broken))
    ended = grader("run", ".", "all/good.py")
    assert ended.code == 70
    assert ended.err.splitlines()[-2] == "bug: ZeroDivisionError: ␛[31moops"
    assert "Traceback" not in ended.err
    assert "Traceback" in grader("run", ".", "all/good.py", "-v").err


def test_an_interrupt_keeps_the_record_and_says_how_to_go_on(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(call: Call) -> Answer:
        if call.number == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            return HANGS
        return Behaviour(stdout=call.invocation.stdin.upper())

    use(monkeypatch, FakeSandbox(script))
    choice = "-n 2 -p python -x -j 1"
    ended = grader("run", ".", "all/good.py", *choice.split())
    assert ended.code == 143
    (record,) = (workplace / ".grader" / "records").glob("*/record.json")
    command = ended.err.splitlines()[-1].partition("To go on: grader ")[2]
    assert command == f"run . all/good.py {choice} --resume {record.parent.relative_to(workplace)}"
    assert grader("replay").code == 3

    use(monkeypatch, FakeSandbox(lambda call: Behaviour(stdout=call.invocation.stdin.upper())))
    resumed = grader(*command.split())
    assert resumed.code == 0
    assert grader("replay").code == 0


def test_resume_needs_no_task(grader: RunIt) -> None:
    grader("run", ".", "all/wrong.py")
    assert grader("run", "--resume", "latest").code == 1


@pytest.mark.parametrize("change", ["expectation", "repetitions", "part", "more cases"])
def test_a_record_is_not_gone_on_with_under_another_task(grader: RunIt, workplace: Path, change: str) -> None:
    """Neither is its old verdict given for the task that is named, nor are new submissions graded beside it."""
    grader("run", ".", "all/good.py", "--record", "r")
    journal = (workplace / "r" / "runs.jsonl").read_bytes()
    task = (workplace / "task.yaml").read_text()
    options = {"repetitions": ["-n", "2"], "part": ["-k", "digits"]}.get(change, [])
    if change == "expectation":
        task = task.replace("ABC", "XYZ")
    if change == "more cases":
        task += '      - {name: nothing, stdin: "", stdout: {equals: ""}}\n'
    (workplace / "task.yaml").write_text(task)
    for submission in ("all/good.py", "all/wrong.py"):
        ended = grader("run", ".", submission, *options, "--resume", "r")
        assert (ended.code, ended.out) == (2, "")
        assert "error: r: this record was begun with another task, or with another part of it\n  mend: " in ended.err
    assert (workplace / "r" / "runs.jsonl").read_bytes() == journal


def test_a_record_of_a_part_is_gone_on_with_under_the_same_part(grader: RunIt) -> None:
    grader("run", ".", "all/good.py", "-k", "digits", "-n", "2", "--record", "r")
    ended = grader("run", ".", "all/good.py", "all/wrong.py", "-k", "digits", "-n", "2", "--resume", "r")
    assert ended.code == 0, ended.err
    assert "wrong.py\n1 case is true" in ended.out


def test_an_interrupted_record_of_several_tasks_is_gone_on_with(
    grader: RunIt, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python can make one; what its cases are called is known of neither task alone."""
    short = load_task(workplace)
    (workplace / "task.yaml").write_text(
        (workplace / "task.yaml").read_text() + "      - {stdin: x, stdout: {equals: X}}\n"
    )
    long = load_task(workplace)

    async def both() -> None:
        sandbox = FakeSandbox(lambda call: Behaviour(stdout=call.invocation.stdin.upper()))
        async with Runner(record="r", sandbox=sandbox) as runner:
            await runner.grade(short, "all/good.py")
            await runner.grade(long, "all/good.py")

    anyio.run(both)
    journal = workplace / "r" / "runs.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    last_run = max(index for index, line in enumerate(lines) if line.startswith(b'{"kind":"run"'))
    journal.write_bytes(b"".join(lines[:last_run]))
    (workplace / "r" / "seal.json").unlink()
    (workplace / "r" / "verdict.json").unlink()
    ended = grader("run", "--resume", "r")
    assert ended.code == 0, ended.err
    assert "✓ case 2  [python]  ✓✓✓" in ended.err
