"""`grader judge` on the example, with the stand-in that the example brings: without the trace, with it, and again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.conftest import COMMAND, EXAMPLES, WITHIN_S, Ended, Grader, environment

FOLDER = EXAMPLES / "budget-claim"
CONVERSATION = FOLDER / "conversation.yaml"
TRACE = ("--trace", FOLDER / "trace.jsonl", "--complete")
KEY = "sk-very-secret-0123456789"


def judge(folder: Path, *arguments: str | Path) -> Ended:
    done = subprocess.run(
        [sys.executable, FOLDER / "with_scripted_judge.py", *COMMAND, "judge", *(str(one) for one in arguments)],
        cwd=folder,
        env=environment(folder, GRADER_JUDGE_KEY=KEY),
        capture_output=True,
        timeout=WITHIN_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def test_without_and_with_the_trace(tmp_path: Path, grader: Grader) -> None:
    blind = judge(tmp_path, CONVERSATION, "--preset", "tool-use")
    assert (blind.code, blind.out.splitlines()[-2].split()[0]) == (0, "TRUE"), blind.err
    assert "trace: none" in blind.out
    seen = judge(tmp_path, CONVERSATION, *TRACE, "--preset", "tool-use", "--samples", "3", "--all")
    assert seen.code == 1, seen.err
    assert "✗ reports_tools_truly  true, other_values  (3 bad)  cites M2, T3" in seen.out
    assert seen.out.count("sample 3 ") == 4
    # The server is gone now, and the record alone says the same.
    replayed = grader("replay", "latest", "--all")
    assert replayed.code == 1
    assert _body(replayed.out) == _body(seen.out)
    shown = grader("show", "latest")
    assert "cites M2, T3" in shown.out
    for text in (seen.out, seen.err, *(_texts(tmp_path))):
        assert KEY not in text


def test_a_task_with_facts_and_its_json(tmp_path: Path, grader: Grader) -> None:
    ended = judge(
        tmp_path, CONVERSATION, *TRACE, "--task", FOLDER / "objective.yaml", "--format", "json", "--record", "kept"
    )
    report = cast("dict[str, Any]", json.loads(ended.out))
    (entry,) = report["submissions"]
    assert (report["exit_code"], ended.code, entry["verdict"]) == (1, 1, "false")
    tools, objective = entry["conditions"]
    assert tools["verdict" if "verdict" in tools else "value"] == "true"
    assert objective["judged"]["trace_coverage"] == "complete"
    assert objective["judged"]["trace_cited_steps"] == ["4bf92f3577b34da6a3ce929d0e0e4736/0000000000000003"]
    assert Path(entry["record"]).name == "kept"
    (dimension,) = objective["judged"]["dimensions"]
    assert dimension["split"] == {"good": 0, "bad": 3, "not_applicable": 0, "undetermined": 0}
    assert "447" in dimension["rationale"]
    about = entry["judge"]
    assert (about["samples"], about["requests"], about["models_reported"]) == (3, 3, ["scripted-judge"])
    assert [fact["holds"] for fact in about["facts"]] == [True]
    again = json.loads(grader("replay", "kept", "--format", "json").out)
    assert again["submissions"][0]["conditions"] == entry["conditions"]
    reused = judge(
        tmp_path, CONVERSATION, *TRACE, "--task", FOLDER / "objective.yaml", "--reuse", "kept", "--no-record"
    )
    assert (reused.code, "reused: the evidence is the same" in reused.err) == (1, True)


def test_of_received_folders_the_source_that_the_task_names_counts(tmp_path: Path, grader: Grader) -> None:
    task = tmp_path / "task.yaml"
    task.write_text((FOLDER / "objective.yaml").read_text() + "trace: {trace_source: wallet}\n")
    for name in ("wallet", "other"):
        (tmp_path / "spans" / name).mkdir(parents=True)
    (tmp_path / "spans" / "wallet" / "trace.jsonl").write_bytes((FOLDER / "trace.jsonl").read_bytes())
    # What is beside the source is not read at all: this is no trace.
    (tmp_path / "spans" / "other" / "trace.jsonl").write_text("nothing\n")
    asked = (CONVERSATION, "--task", task, "--no-record", "--format", "json")
    ended = judge(tmp_path, *asked, "--trace", "spans", "--complete")
    direct = judge(tmp_path, CONVERSATION, "--task", FOLDER / "objective.yaml", *TRACE, *asked[3:])
    assert (ended.code, direct.code) == (1, 1), ended.err
    (found,), (expected,) = (json.loads(one.out)["submissions"] for one in (ended, direct))
    assert found["conditions"][0]["value"] == expected["conditions"][0]["value"] == "true"
    judged = found["conditions"][1]["judged"]
    assert (judged["trace_coverage"], judged) == ("complete", expected["conditions"][1]["judged"])
    line = task.read_text().count("\n")
    for more, said in (
        ((), f"error: {task}:{line}:23: the task takes its traces from the source 'wallet'"),
        (("--trace", "spans/wallet"), "the source 'wallet', and spans/wallet has no folder of that name"),
    ):
        refused = grader("judge", *asked, *more)
        assert (refused.code, said in refused.err, "mend: " in refused.err) == (2, True, True), refused.err
    assert "--trace FOLDER" in grader("judge", *asked).err
    scored = grader("score", "--task", task, "--conversation", CONVERSATION)
    assert scored.code == 2


@pytest.mark.parametrize("kind", ["text", "json", "jsonl", "junit", "markdown"])
def test_every_format(tmp_path: Path, kind: str) -> None:
    ended = judge(tmp_path, CONVERSATION, *TRACE, "--preset", "tool-use", "--format", kind, "--no-record")
    assert ended.code == 1, ended.err
    assert "447" in ended.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "there is no conversation"),
        ((CONVERSATION,), 2, "there is nothing to ask"),
        ((CONVERSATION, "--preset", "nope"), 2, "no preset is named 'nope'"),
        ((CONVERSATION, "--preset", "tool-use", "--samples", "0"), 2, "--samples"),
        ((CONVERSATION, "--preset", "tool-use", "--rule", "some"), 2, "--rule"),
        ((CONVERSATION, "--preset", "tool-use", "--require-trace", "complete"), 2, "no source of traces"),
        ((CONVERSATION, "--task", EXAMPLES / "rot13"), 2, "program_behaves cannot be judged from a conversation"),
        ((CONVERSATION, "--task", EXAMPLES / "send-after-confirm"), 2, "no condition is for a judge"),
        ((FOLDER / "nothing.yaml", "--preset", "tool-use"), 2, "cannot be read"),
        ((CONVERSATION, "--preset", "tool-use", *TRACE[:2], *TRACE[:2]), 2, "given twice"),
        ((CONVERSATION, "--preset", "tool-use"), 4, "there is no judge"),
    ],
)
def test_what_cannot_be_asked(
    tmp_path: Path, grader: Grader, arguments: tuple[str | Path, ...], code: int, said: str
) -> None:
    ended = grader("judge", *arguments, GRADER_JUDGE_URL="", GRADER_JUDGE_MODEL="")
    assert (ended.code, said in ended.err) == (code, True), ended.err
    assert not (tmp_path / ".grader").exists()


def test_a_judge_that_is_gone_leaves_it_undetermined(tmp_path: Path, grader: Grader) -> None:
    ended = grader(
        "judge", CONVERSATION, "--preset", "grounding", GRADER_JUDGE_URL="http://127.0.0.1:9/v1", GRADER_JUDGE_MODEL="m"
    )
    assert (ended.code, ended.out.count("judge.unavailable")) == (3, 3), ended.err


def test_other_commands_say_who_judges(grader: Grader) -> None:
    for command in (("score", FOLDER / "trace.jsonl"), ("run",)):
        where = ("--task",) if command[0] == "score" else ()
        rest = () if command[0] == "score" else (FOLDER / "with_scripted_judge.py",)
        ended = grader(*command, *where, FOLDER / "objective.yaml", *rest)
        assert ended.code == 2
        assert "use `grader judge`" in ended.err


def test_presets_are_listed(grader: Grader) -> None:
    listed = grader("judge", "--list-presets")
    assert (listed.code, sum(not line.startswith(" ") for line in listed.out.splitlines())) == (0, 11)


def _body(report: str) -> list[str]:
    return [line for line in report.splitlines() if not line.startswith(("FALSE", "next"))]


def _texts(folder: Path) -> list[str]:
    return [file.read_text("utf-8", "replace") for file in folder.rglob("*") if file.is_file()]
