"""`grader score` on traces and conversations: verdicts, completeness, records, replay, and every kind of bad input."""

from __future__ import annotations

import gzip
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard

from grader.core.traces.coverage import CoverageCode
from grader.store import EntryHeader, RecordFacts, RecordWriter, open_record
from tests.unit.cli.conftest import Ended, RunIt
from tests.unit.traces.otlp_samples import (
    OTHER_TRACE,
    TRACE,
    S,
    framed,
    lines,
    request_json,
    request_protobuf,
    root,
    tool,
)

GATE = "{condition_type: tool_preceded_by, tool: send, by: confirm}"
SENT = "{condition_type: tools_called, tools: [{name: send, arguments: [{name: to, matcher: {equals: bob}}]}]}"
ALONE = "{condition_type: tools_called, exhaustive: true, tools: [{name: send}, {name: confirm}]}"
ORDER = "{condition_type: tools_called_in_order, tools: [{name: confirm}, {name: send}]}"


def write_task(*conditions: str, before: str = "", name: str = "tools.yaml") -> str:
    Path(name).write_text(f"{before}conditions:\n" + "".join(f"  - {condition}\n" for condition in conditions))
    return name


def write_trace(*spans: S, name: str = "trace.jsonl", has_root: bool = True) -> str:
    Path(name).write_bytes(lines([[root()] if has_root else [], spans]))
    return name


def confirmed(to: str = "bob") -> Sequence[S]:
    return tool(2, "confirm", start=1, end=2), tool(3, "send", start=3, end=4, arguments={"to": to}, call_id="c3")


def report(ended: Ended) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(ended.out)["submissions"][0])


# --- verdicts


def test_true_false_undetermined_and_their_exit_codes(grader: RunIt) -> None:
    task = write_task(GATE)
    good = grader("score", write_trace(*confirmed()), "--task", task, "--complete")
    assert (good.code, good.err) == (0, "")
    assert good.out.splitlines()[0] == "✓ tool_preceded_by  send by confirm"
    assert "evidence: complete (declared by the caller)    3 spans in 1 trace" in good.out.splitlines()
    bad = grader("score", write_trace(tool(2, "send")), "--task", task, "--complete")
    assert bad.code == 1
    assert "    tool.order             send was executed, and confirm was not (evidence complete" in bad.out
    unknown = grader("score", write_trace(*confirmed()), "--task", task)
    assert unknown.code == 3
    assert "evidence: partial: not_declared    3 spans in 1 trace" in unknown.out.splitlines()
    assert "nobody declared that the trace is complete" in unknown.out
    assert unknown.out.splitlines()[-2].startswith("UNDETERMINED    conditions 1: ? 1    exit 3")


def test_executions_are_listed_with_times_and_arguments(grader: RunIt) -> None:
    ended = grader("score", write_trace(*confirmed()), "--task", write_task(SENT))
    found = ended.out.splitlines()
    at = found.index("executions: 2, times from 2023-11-14T22:13:21Z")
    assert found[at + 1 : at + 3] == [
        "    +0 ns  took 1 s  confirm  not recorded: the trace has none for this call",
        '    +2 s   took 1 s  send     {"to":"bob"}',
    ]


def test_many_executions_are_cut_unless_all_are_asked_for(grader: RunIt) -> None:
    trace = write_trace(*(tool(number, "send", start=number, end=number + 1) for number in range(2, 16)))
    task = write_task(ORDER)
    assert "    and 4 more (--all lists them)" in grader("score", trace, "--task", task).out
    for option in ("--all", "-v"):
        whole = grader("score", trace, "--task", task, option).out
        assert "more (--all" not in whole
        assert whole.count("took 1 s") == 14
    assert grader("score", trace, "--task", task, "-q").out == "UNDETERMINED    conditions 1: ? 1    exit 3\n"


def test_what_does_not_count_is_said_and_listed_with_the_reason(grader: RunIt) -> None:
    pending = tool(5, "send", parent=3, start=3, end=3, **{"logfire__span_type": "pending_span"})
    trace = write_trace(*confirmed(), pending)
    short = grader("score", trace, "--task", write_task(GATE), "--complete")
    assert "not counted: 1 pending_span  (--all lists them)" in short.out
    whole = grader("score", trace, "--task", "tools.yaml", "--complete", "--all").out
    assert re.search(rf"pending_span +send  an announcement of a span that is recorded itself  {TRACE}/0+5", whole)
    assert "executions: 2" in whole


def test_composites_show_every_part(grader: RunIt) -> None:
    task = write_task(
        "{condition_type: not, condition: {condition_type: tools_not_called, tools: [send]}}",
        f"{{condition_type: any_of, conditions: [{GATE}, {SENT}]}}",
    )
    ended = grader("score", write_trace(*confirmed()), "--task", task)
    assert ended.code == 0
    assert ended.out.splitlines()[:4] == [
        "✓ not",
        "  ✗ tools_not_called  send",
        "      tool.forbidden         send was executed",
        "✓ any_of",
    ]
    assert "  ? tool_preceded_by  send by confirm" in ended.out
    task = write_task(f"{{condition_type: not, condition: {SENT}}}")
    ended = grader("score", write_trace(*confirmed()), "--task", task)
    assert ended.code == 1
    said = "it must not be so: send(to) was executed with the required arguments"
    assert ended.out.splitlines()[:2] == ["✗ not", f"    tool.forbidden         {said}"]


# --- completeness


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        (lambda: lines([[root()], [tool(2, "search")]])[:-40], CoverageCode.FILE_CUT),
        (lambda: lines([[tool(2, "search")]]), CoverageCode.ROOT_MISSING),
        (lambda: lines([[root(), tool(2, "search", end=None)]]), CoverageCode.SPAN_UNFINISHED),
        (lambda: lines([[root(), S(2, extra={"droppedAttributesCount": 3})]]), CoverageCode.DROPPED_ATTRIBUTES),
        (lambda: lines([[root()]]) + request_protobuf([tool(3, "send")]) + b"\n", CoverageCode.RECORD_UNREADABLE),
    ],
    ids=str,
)
def test_complete_is_declared_and_failed_checks_override_it(grader: RunIt, spoilt: Any, code: CoverageCode) -> None:
    Path("trace.jsonl").write_bytes(spoilt())
    task = write_task("{condition_type: tools_not_called, tools: [send]}")
    ended = grader("score", "trace.jsonl", "--task", task, "--complete")
    assert ended.code == 3
    (line,) = [line for line in ended.out.splitlines() if line.startswith("evidence: ")]
    assert code.value in line
    assert "(declared complete by the caller; these checks override it)" in line
    assert "evidence.incomplete" in ended.out
    found = report(grader("score", "trace.jsonl", "--task", task, "--complete", "--format", "json"))
    assert found["verdict"] == "undetermined"
    assert code.value in [reason["code"] for reason in found["evidence"]["reasons"]]
    assert (found["evidence"]["declared_by"], found["evidence"]["declaration_overridden"]) == ("the caller", True)
    in_full = grader("score", "trace.jsonl", "--task", task, "--complete", "--all").out
    assert code.text in in_full


def test_the_same_without_damage_is_true(grader: RunIt) -> None:
    task = write_task("{condition_type: tools_not_called, tools: [send]}")
    ended = grader("score", write_trace(tool(2, "search")), "--task", task, "--complete")
    assert (ended.code, "override" in ended.out) == (0, False)


def test_what_was_seen_counts_in_partial_evidence(grader: RunIt) -> None:
    Path("trace.jsonl").write_bytes(lines([[root()], confirmed(), [tool(9, "x")]])[:-40])
    task = write_task(SENT, "{condition_type: tools_not_called, tools: [confirm]}")
    ended = grader("score", "trace.jsonl", "--task", task)
    assert ended.code == 1
    assert "✓ tools_called  send(to)" in ended.out
    assert "✗ tools_not_called  confirm" in ended.out


# --- clocks


def test_tolerance_of_the_task_and_of_the_command_line(grader: RunIt) -> None:
    spans = tool(2, "confirm", start=1, end=2), tool(3, "send", start=2.004, end=3)
    trace = write_trace(*spans)
    assert grader("score", trace, "--task", write_task(ORDER)).code == 0
    task = write_task(ORDER, before="trace: {clock_skew_tolerance: 5ms}\n")
    ended = grader("score", trace, "--task", task)
    assert ended.code == 3
    assert "clocks may disagree by 5 ms" in ended.out
    assert grader("score", trace, "--task", task, "--clock-skew-tolerance", "3.9ms").code == 0
    assert grader("score", trace, "--task", task, "--clock-skew-tolerance", "0").code == 0
    over = grader("score", trace, "--task", write_task(ORDER), "--clock-skew-tolerance", "4000us", "--format", "json")
    assert over.code == 3  # a gap of exactly the tolerance proves nothing
    assert "clock_skew_tolerance_ns=4000000" in report(over)["conditions"][0]["scorer"]
    again = grader("replay", "--format", "json")
    assert report(again)["conditions"] == report(over)["conditions"]


@pytest.mark.parametrize("written", ["5", "-5ms", "soon", "0.1ns", ""])
def test_a_tolerance_that_is_none_is_refused(grader: RunIt, written: str) -> None:
    ended = grader("score", write_trace(), "--task", write_task(GATE), "--clock-skew-tolerance", written)
    assert (ended.code, ended.out) == (2, "")
    assert "error: --clock-skew-tolerance: " in ended.err
    assert "mend: --clock-skew-tolerance 5ms" in ended.err
    Path("tools.yaml").write_text(f'trace:\n  clock_skew_tolerance: "{written}"\nconditions: [{GATE}]\n')
    ended = grader("score", "trace.jsonl", "--task", "tools.yaml")
    assert ended.code == 2
    assert "error: tools.yaml:2:25: clock_skew_tolerance: " in ended.err


# --- content


def test_no_content_keeps_no_arguments_and_warns(grader: RunIt) -> None:
    trace = write_trace(*confirmed("secret-address"))
    ended = grader("score", trace, "--task", write_task(SENT), "--no-content", "--record", "kept", "--complete")
    assert ended.code == 3
    assert "arguments.not_recorded" in ended.out
    warned = "warning: tools_called constrains arguments, and this source keeps none"
    assert warned in ended.err
    assert all(b"secret-address" not in file.read_bytes() for file in Path("kept").rglob("*") if file.is_file())
    assert "send" in grader("show", "kept").out
    again = grader("replay", "kept", "--format", "json")
    assert warned in again.err
    assert warned.removeprefix("warning: ") in report(again)["warnings"][0]
    grader("score", trace, "--task", "tools.yaml", "--record", "with", "--complete")
    assert any(b"secret-address" in file.read_bytes() for file in Path("with").rglob("*") if file.is_file())


# --- records


def test_replay_gives_the_same_verdict_byte_for_byte(grader: RunIt) -> None:
    long = {"to": "bob", "body": "x" * 20_000, "numbers": [1, 2.50, 10**30]}
    trace = write_trace(*confirmed(), tool(4, "send", start=5, end=6, arguments=long), tool(5, "search", start=None))
    task = write_task(GATE, SENT, ALONE, ORDER, before="trace: {clock_skew_tolerance: 2ms}\n")
    before = grader("score", trace, "--task", task, "--complete", "--format", "json", "--record", "kept")
    files = {file: file.read_bytes() for file in Path("kept").rglob("*") if file.is_file()}
    Path(trace).unlink()
    after = grader("replay", "kept", "--format", "json")
    assert (after.code, after.out) == (before.code, before.out)
    assert {file: file.read_bytes() for file in Path("kept").rglob("*") if file.is_file()} == files
    (entry,) = open_record("kept")
    assert entry.verdict is not None
    assert entry.verdict.observations == (entry.observations[0].digest,)
    assert entry.submission is None


def test_replay_under_other_conditions(grader: RunIt) -> None:
    grader("score", write_trace(*confirmed()), "--task", write_task(GATE), "--complete")
    assert grader("replay").code == 0
    other = write_task("{condition_type: tools_not_called, tools: [send]}", name="other.yaml")
    ended = grader("replay", "latest", "--task", other)
    assert ended.code == 1
    assert "✗ tools_not_called  send" in ended.out
    assert "evidence: complete (declared by the caller)" in ended.out


def test_show_lists_the_calls_and_shows_those_of_a_tool_in_full(grader: RunIt) -> None:
    grader("score", write_trace(*confirmed()), "--task", write_task(GATE), "--complete")
    whole = grader("show")
    assert whole.code == 0
    assert "executions: 2" in whole.out
    assert "trace.jsonl  otlp-json lines, 3 spans" in whole.out
    assert "isolation" not in whole.out
    call = grader("show", "latest", "sen")
    assert call.out.splitlines()[:3] == ["send", "    ran        +2 s, took 1 s", '    arguments  {"to":"bob"}']
    assert f"    span       {TRACE}/{3:016x}" in call.out.splitlines()
    assert grader("show", "latest", "c3").out == call.out
    missing = grader("show", "latest", "pay")
    assert missing.code == 2
    assert "mend: tools are: confirm, send" in missing.err


def test_programs_and_tools_go_through_the_same_door(grader: RunIt) -> None:
    grader("run", "task.yaml", "all/good.py", "--record", "programs")
    grader("score", write_trace(*confirmed()), "--task", write_task(GATE), "--complete", "--record", "tools")
    assert grader("replay", "programs").code == grader("replay", "tools").code == 0
    crossed = grader("replay", "tools", "--task", "task.yaml")
    assert crossed.code == 2
    assert "error: program_behaves cannot be judged from traces or messages" in crossed.err
    assert "`grader run`" in crossed.err
    crossed = grader("replay", "programs", "--task", "tools.yaml")
    assert crossed.code == 2
    assert "`grader score`" in crossed.err
    resumed = grader("run", "task.yaml", "all/good.py", "--resume", "tools")
    assert resumed.code == 2
    assert "cannot be resumed: it is of evidence that was scored" in resumed.err


def test_no_record_and_a_record_that_is_there(grader: RunIt) -> None:
    ended = grader("score", write_trace(*confirmed()), "--task", write_task(GATE), "--no-record")
    assert not Path(".grader").exists()
    assert "next" not in ended.out
    assert grader("score", "trace.jsonl", "--task", "tools.yaml", "--record", "all").code == 2  # holds submissions
    both = grader("score", "trace.jsonl", "--task", "tools.yaml", "--record", "new", "--no-record")
    assert both.code == 2
    assert "contradict" in both.err


def test_a_record_that_broke_off_before_its_evidence_is_undetermined(grader: RunIt) -> None:
    from grader.formats.task_file import load_task

    with RecordWriter.create("kept", RecordFacts(grader_version="1")) as writer:
        writer.begin(EntryHeader(task=load_task(write_task(GATE))))
    ended = grader("replay", "kept")
    assert ended.code == 3
    assert "there is no observation of kind tools" in ended.out


def test_nothing_is_recorded_of_what_cannot_be_scored(grader: RunIt) -> None:
    Path("trace.jsonl").write_text("no trace")
    assert grader("score", "trace.jsonl", "--task", write_task(GATE)).code == 2
    assert not Path(".grader").exists()


# --- several sources


def test_a_source_by_name_needs_the_folder_it_is_in(grader: RunIt) -> None:
    task = write_task(GATE, before="trace: {trace_source: mail}\n")
    Path("talk.json").write_text(json.dumps({"requests": [{"messages": [{"role": "user", "content": "x"}]}]}))
    ended = grader("score", "--task", task, "--conversation", "talk.json")
    assert ended.code == 2
    assert "error: tools.yaml:1:23: the task takes its traces from the source 'mail'" in ended.err
    assert "mend: grader score FOLDER --task TASK, with the folder that `grader receive --source` wrote" in ended.err


def test_files_folders_and_compressions_are_one_observation(grader: RunIt) -> None:
    confirm, send = confirmed()
    folder = Path("traces/day")
    folder.mkdir(parents=True)
    (folder / "1.json").write_text(json.dumps(request_json([root()]), indent=1))
    (folder / "2.jsonl.gz").write_bytes(gzip.compress(lines([[confirm]])))
    (folder / "3.pb.zst").write_bytes(zstandard.compress(request_protobuf([send])))
    (folder / ".hidden").write_text("passed over")
    task = write_task(GATE, ALONE)
    ended = grader("score", "traces", "--task", task, "--complete", "--format", "json")
    assert ended.code == 0
    found = report(ended)
    assert [source["name"] for source in found["evidence"]["sources"]] == [
        "traces/day/1.json", "traces/day/2.jsonl.gz", "traces/day/3.pb.zst",
    ]  # fmt: skip
    assert found["submission"] is None
    assert found["evidence"]["name"] == "traces/day/1.json and 2 more"
    twice = grader("score", "traces", "traces/day/2.jsonl.gz", "--task", task, "--complete", "--format", "json")
    assert report(twice)["evidence"]["calls"] == found["evidence"]["calls"]


def test_one_bad_file_in_a_folder_is_an_error_and_never_left_out(grader: RunIt) -> None:
    Path("traces").mkdir()
    write_trace(*confirmed(), name="traces/a.jsonl")
    Path("traces/notes.txt").write_text("remember the milk")
    ended = grader("score", "traces", "--task", write_task(GATE), "--complete")
    assert (ended.code, ended.out) == (2, "")
    assert "error: traces/notes.txt: this is no OTLP trace" in ended.err


# --- conversations


def conversation(*requests: dict[str, object]) -> str:
    Path("talk.json").write_text(json.dumps({"requests": list(requests)}))
    return "talk.json"


def exchange(name: str, call_id: str, **link: str) -> dict[str, object]:
    call = {"id": call_id, "function": {"name": name, "arguments": '{"to": "bob"}'}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "sent"},
    ]
    return {**link, "messages": messages}


def test_a_conversation_alone_confirms_and_never_denies(grader: RunIt) -> None:
    talk = conversation(exchange("send", "c3"))
    ended = grader("score", "--conversation", talk, "--task", write_task(SENT))
    assert ended.code == 0
    assert "evidence: partial: not_declared, messages.only; 1 of 1 request has no trace link    1 request" in ended.out
    absent = grader(
        "score", "--conversation", talk, "--task", write_task("{condition_type: tools_not_called, tools: [x]}")
    )
    assert absent.code == 3


def test_linked_traces_count_and_others_are_said_to_be_left_out(grader: RunIt) -> None:
    link = f"00-{TRACE}-{1:016x}-01"
    other = [S(1, "agent", parent=None, trace=OTHER_TRACE, end=9)]
    Path("trace.jsonl").write_bytes(lines([[S(2, "agent", parent=1), tool(3, "send", parent=2, call_id="c3")], other]))
    talk = conversation(exchange("send", "c3", traceparent=link))
    task = write_task("{condition_type: tools_called, exhaustive: true, tools: [{name: send, at_most: 1}]}")
    ended = grader("score", "trace.jsonl", "--conversation", talk, "--task", task, "--complete")
    assert ended.code == 0, ended.out
    assert f"note: 1 trace is linked to no request of the conversation and do not count: {OTHER_TRACE}" in ended.out
    assert "2 spans in 1 trace, 1 request" in ended.out or "3 spans in 1 trace, 1 request" in ended.out
    assert report(grader("replay", "--format", "json"))["evidence"]["trace_ids"] == [TRACE]


def test_a_request_without_a_link_unsettles_absences(grader: RunIt) -> None:
    talk = conversation(exchange("send", "c3", trace_id=TRACE), {"messages": [{"role": "user", "content": "and?"}]})
    trace = write_trace(*confirmed())
    task = write_task("{condition_type: tools_not_called, tools: [delete]}")
    assert grader("score", trace, "--task", task, "--complete").code == 0
    ended = grader("score", trace, "--conversation", talk, "--task", task, "--complete")
    assert ended.code == 3
    assert "; 1 of 2 requests has no trace link" in ended.out
    assert "request 2" in grader("score", trace, "--conversation", talk, "--task", task, "--complete", "--all").out


def test_without_any_link_all_traces_count(grader: RunIt) -> None:
    talk = conversation({"messages": [{"role": "user", "content": "go"}]})
    ended = grader("score", write_trace(*confirmed()), "--conversation", talk, "--task", write_task(SENT))
    assert ended.code == 0


def test_a_call_that_only_the_messages_have_is_a_conflict(grader: RunIt) -> None:
    talk = conversation(exchange("delete", "c9", trace_id=TRACE))
    ended = grader(
        "score", write_trace(*confirmed()), "--conversation", talk, "--task", write_task(ALONE), "--complete"
    )
    assert ended.code == 1
    assert "in the messages only" in ended.out
    task = write_task("{condition_type: tools_not_called, tools: [pay]}")
    ended = grader("score", "trace.jsonl", "--conversation", talk, "--task", task, "--complete")
    assert ended.code == 3
    assert "evidence.conflict" in ended.out


# --- bad input


def test_an_empty_folder_selects_nothing(grader: RunIt) -> None:
    Path("empty/.hidden").mkdir(parents=True)
    ended = grader("score", "empty", "--task", write_task(GATE))
    assert (ended.code, ended.out) == (5, "")
    assert ended.err == "nothing selected: there is no file in empty\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--task", "tools.yaml"], "there is no evidence"),
        (["trace.jsonl"], "there is no task"),
        (["-", "-", "--task", "tools.yaml"], "standard input can be read once only"),
        (["-", "--conversation", "-", "--task", "tools.yaml"], "standard input can be read once only"),
        (["trace.jsonl", "--task", "nowhere.yaml"], "nowhere.yaml: no task here"),
        (["nowhere.jsonl", "--task", "tools.yaml"], "nowhere.jsonl: cannot be read: No such file or directory"),
        (["trace.jsonl/x", "--task", "tools.yaml"], "trace.jsonl/x: cannot be read: Not a directory"),
        (["/proc/self/mem", "--task", "tools.yaml"], "/proc/self/mem: cannot be read: Input/output error"),
        (["trace.jsonl", "--conversation", "nowhere.json", "--task", "tools.yaml"], "nowhere.json: cannot be read"),
        (["trace.jsonl", "--conversation", "all", "--task", "tools.yaml"], "all: cannot be read: Is a directory"),
        (["trace.jsonl", "--conversation", "tools.yaml", "--task", "tools.yaml"], "tools.yaml: a request without"),
    ],
)  # fmt: skip
def test_usage_and_unreadable_files(grader: RunIt, arguments: list[str], said: str) -> None:
    write_task(GATE)
    write_trace(*confirmed())
    ended = grader("score", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert f"error: {said}" in ended.err
    assert "\n  mend: " in ended.err
    assert not Path(".grader").exists()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"hello\n", "it is neither JSON nor protobuf"),
        (b"{}\n", "no OTLP request"),
        (b'{"resourceSpans":[{"scop', "Unterminated string"),
        (framed([request_protobuf([root()])])[:12], "it ends in the middle of a record"),
        (b"[" * 100_000, "nested too deeply"),
        (gzip.compress(b"hello"), "it is neither JSON nor protobuf"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "it is neither JSON nor protobuf"),
        (b'{"resourceSpans": "\xff\xfe"}', "no line of it is an OTLP request"),
        (b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"12","spanId":"34"}]}]}]}', "none of its 1 spans"),
    ],
)  # fmt: skip
def test_what_is_no_trace(grader: RunIt, data: bytes, said: str) -> None:
    Path("trace").write_bytes(data)
    ended = grader("score", "trace", "--task", write_task(GATE), "--complete")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("error: trace: ")
    assert said in ended.err
    assert "\n  mend: " in ended.err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"eval_set_id": "s", "eval_cases": []}, "which says what calls are expected, not which were made"),
        ({"id": "t", "observations": ["o-1"]}, "export the trace with its observations"),
        ([{"role": "user", "content": "hello"}], "it is a conversation, which is given with --conversation"),
    ],
)
def test_known_json_that_is_no_trace_is_refused_with_what_it_is(grader: RunIt, data: object, said: str) -> None:
    Path("pasted.json").write_text(json.dumps(data))
    ended = grader("score", "pasted.json", "--task", write_task(GATE))
    assert (ended.code, ended.out) == (2, "")
    assert "this is no OTLP trace" in ended.err
    assert said in ended.err
    assert "mend: give OTLP/JSON" in ended.err


def test_conditions_that_evidence_cannot_settle_are_refused_before_it_is_read(grader: RunIt) -> None:
    program = "{condition_type: program_behaves, cases: [{stdin: 'x', exit_code: 0}]}"
    task = write_task(GATE, f"{{condition_type: any_of, conditions: [{SENT}, {program}]}}")
    ended = grader("score", "nowhere", "--task", task)
    assert (ended.code, ended.out) == (2, "")
    column = Path(task).read_text().splitlines()[2].index("{condition_type: program") + 1
    assert ended.err.startswith(
        f"error: tools.yaml:3:{column}: program_behaves cannot be judged from traces or messages"
    )
    assert "mend: give it a task of its own, for `grader run` with a submission" in ended.err
    named = write_task("{condition_type: tools_not_called, tools: [x], case: first}")
    ended = grader("score", "nowhere", "--task", named)
    assert ended.code == 2
    assert "error: tools.yaml:2:5: the condition is about the case 'first'" in ended.err
    ended = grader("score", "nowhere", "--task", write_task("{condition_type: tool_called, tools: [x]}"))
    assert ended.code == 2
    assert "error: tools.yaml:2:22: unknown condition_type 'tool_called'" in ended.err
    assert "did you mean tools_called?" in ended.err


def test_a_fifo_in_a_folder_never_hangs(grader: RunIt) -> None:
    Path("traces").mkdir()
    os.mkfifo("traces/pipe")
    ended = grader("score", "traces", "--task", write_task(GATE))
    assert ended.code == 2
    assert "error: traces/pipe: is no regular file" in ended.err


# --- reports, and hostile content in them


HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\u200b<&>|`*\r\n"


def test_hostile_names_arguments_and_files_reach_no_report(grader: RunIt) -> None:
    spans = (
        tool(2, f"send{HOSTILE}", arguments={f"to{HOSTILE}": HOSTILE}, call_id=HOSTILE),
        tool(3, "send", start=3, end=4, arguments=HOSTILE, parent=1),
        S(4, HOSTILE, attributes={"gen_ai.tool.call.id": HOSTILE}, scope=HOSTILE),
        tool(5, HOSTILE, start=5, end=5, parent=3, **{"logfire__span_type": "pending_span"}),
    )
    file = write_trace(*spans, name="trace\x1b[31m.jsonl")
    Path("talk\x1b.json").write_text(json.dumps([exchange(HOSTILE, HOSTILE), exchange("x", "y" + HOSTILE)]))
    condition = json.dumps({"condition_type": "tools_not_called", "tools": [f"send{HOSTILE}"]})
    task = write_task(condition, SENT, "{condition_type: tools_called, exhaustive: true}")
    arguments = ("score", file, "--conversation", "talk\x1b.json", "--task", task, "--complete")
    bad = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e]")
    for options in (
        [],
        ["--all"],
        ["--format", "json"],
        ["--format", "jsonl"],
        ["--format", "junit"],
        ["--format", "markdown"],
    ):
        ended = grader(*arguments, *options)
        assert ended.code == 1
        assert bad.search(ended.out) is None, options
        assert bad.search(ended.err) is None, options
    for command in (["show"], ["replay"], ["show", "latest", "send"], ["show", "latest", f"send{HOSTILE}"]):
        ended = grader(*command)
        assert "send" in ended.out
        assert bad.search(ended.out + ended.err) is None, command
    ET.fromstring(grader(*arguments, "--format", "junit").out)
    table = [line for line in grader(*arguments, "--format", "markdown").out.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in table} == {6}


def test_a_hostile_error_is_harmless(grader: RunIt) -> None:
    name = "no\x1b[2J\u202etrace"
    Path(name).write_text("\x1b[2J\u202e")
    ended = grader("score", name, "--task", write_task(GATE))
    assert ended.code == 2
    assert "\x1b" not in ended.err
    assert "\u202e" not in ended.err


def test_junit_names_every_condition_apart(grader: RunIt) -> None:
    task = write_task(GATE, SENT, "{condition_type: tools_called, tools: [{name: pay}]}", ORDER)
    ended = grader("score", write_trace(*confirmed()), "--task", task, "-o", "report.xml", "-q")
    assert ended.code == 3
    (suite,) = ET.parse("report.xml").getroot().iter("testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures"), suite.get("errors")) == (
        "trace.jsonl",
        "4",
        "0",
        "2",
    )
    assert [case.get("name") for case in suite.iter("testcase")] == [
        "tool_preceded_by send by confirm",
        "tools_called send(to)",
        "tools_called pay",
        "tools_called_in_order confirm, then send",
    ]
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert properties["evidence"] == "partial: not_declared; 3 spans in 1 trace"


def test_json_has_every_call_with_exact_times(grader: RunIt) -> None:
    odd = 1_700_000_001_234_567_891  # no double has this value
    span = tool(2, "send", start=1, end=None, arguments={"to": "bob"}, call_id="c2")
    span.extra["startTimeUnixNano"] = str(odd)
    span.extra["endTimeUnixNano"] = str(odd + 1)
    ended = grader("score", write_trace(span), "--task", write_task(SENT), "--format", "jsonl")
    found = json.loads(ended.out)
    (call,) = found["evidence"]["calls"]
    assert (call["start_ns"], call["end_ns"]) == (odd, odd + 1)
    assert call["names"] == ["send"]
    assert call["arguments"]["text"] == '{"to":"bob"}'
    assert call["call_id"] == "c2"
    assert ended.out.isascii()
    assert ended.out.count("\n") == 1


def test_markdown_lists_all_conditions_and_the_evidence(grader: RunIt) -> None:
    ended = grader("score", write_trace(*confirmed()), "--task", write_task(GATE, SENT), "--format", "markdown")
    assert "| ✓ | `tools_called` | send\\(to\\) |" in ended.out
    assert "| ? | `tool_preceded_by` | send by confirm | `evidence.incomplete`" in ended.out
    assert "evidence\\: partial\\: not\\_declared" in ended.out
