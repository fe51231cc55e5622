"""Agent programs on a scripted sandbox: run, traced, recorded, judged, replayed under other tool conditions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from grader import Choice, Graded, Runner, Submission, Task, Tri, replay
from grader.core.observation import ProgramRuns
from grader.core.reasons import ReasonCode
from grader.errors import RecordError, TaskError
from grader.runtimes.profile import TRACE_ENVIRONMENT, RuntimeProfile
from grader.sandbox.fake import Answer, Behaviour, Call, FakeSandbox
from grader.store import open_record
from tests.unit.capture.test_exported_spans import body, request

AGENT = Submission.from_source("print('done')", name="agent.py")
PROFILE = """
language: python
suffixes: [.py]
image: {dockerfile: python}
run: [python3, "{entry}"]
"""


@pytest.fixture
def runtimes(tmp_path: Path) -> Path:
    folder = tmp_path / "runtimes"
    folder.mkdir()
    (folder / "own-word.yaml").write_text(PROFILE + "traces: otlp\n")
    (folder / "trusted.yaml").write_text(PROFILE + "traces: otlp\ntrusts_exporter: true\n")
    (folder / "untraced.yaml").write_text(PROFILE)
    return folder


def task_of(*conditions: dict[str, Any], profile: str = "trusted", repetitions: int = 1, cases: int = 1) -> Task:
    listed = [{"name": f"c{number}", "arguments": [f"{number}"]} for number in range(cases)]
    program = {"condition_type": "program_behaves", "cases": listed, "repetitions": repetitions}
    return Task.model_validate({"runtime_profiles": [profile], "conditions": [program, *conditions]})


BOOKS: dict[str, Any] = {"condition_type": "tools_called", "tools": [{"name": "book"}]}
NO_CANCEL: dict[str, Any] = {"condition_type": "tools_not_called", "tools": ["cancel"]}


def sends(*tools: str, padding: int = 0) -> Behaviour:
    return Behaviour(sends=((request(body(*tools, padding=padding)),),))


def grade(
    task: Task,
    script: Callable[[Call], Answer],
    runtimes: Path,
    record: Path | None = None,
    choice: Choice | None = None,
) -> tuple[Graded, FakeSandbox]:
    sandbox = FakeSandbox(script)

    async def main() -> Graded:
        with anyio.fail_after(20):
            async with Runner(sandbox=sandbox, runtimes=runtimes, record=record) as runner:
                return await runner.grade(task, AGENT, choice if choice is not None else Choice())

    return anyio.run(main), sandbox


def value(graded: Graded) -> tuple[Tri, tuple[ReasonCode, ...]]:
    assert graded.verdict is not None
    return graded.verdict.value, tuple(finding.code for finding in graded.verdict.findings)


def test_what_an_agent_did_is_judged_beside_what_it_printed(runtimes: Path) -> None:
    graded, sandbox = grade(task_of(BOOKS, NO_CANCEL), lambda _: sends("book"), runtimes)
    assert value(graded) == (Tri.TRUE, ())
    assert sandbox.answers[0][0].startswith(b"HTTP/1.1 200")
    graded, _ = grade(task_of(BOOKS, NO_CANCEL), lambda _: sends("book", "cancel"), runtimes)
    assert value(graded) == (Tri.FALSE, (ReasonCode.TOOL_FORBIDDEN,))
    graded, _ = grade(task_of(BOOKS, NO_CANCEL, profile="own-word"), lambda _: sends("book"), runtimes)
    assert value(graded) == (Tri.UNDETERMINED, (ReasonCode.EVIDENCE_SELF_REPORTED,))
    graded, _ = grade(task_of(BOOKS), lambda _: Behaviour(), runtimes)
    assert value(graded) == (Tri.UNDETERMINED, (ReasonCode.EVIDENCE_INCOMPLETE,))


def test_the_variables_are_part_of_the_invocation(runtimes: Path) -> None:
    _, sandbox = grade(task_of(BOOKS), lambda _: sends("book"), runtimes)
    given = sandbox.calls[0].invocation.environment
    assert {name: given[name].decode() for name in TRACE_ENVIRONMENT} == TRACE_ENVIRONMENT
    assert TRACE_ENVIRONMENT == {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }
    plain = Task.model_validate(task_of().model_dump(exclude_defaults=True) | {"runtime_profiles": ["untraced"]})
    graded, sandbox = grade(plain, lambda _: sends("book"), runtimes)
    assert not any(name.startswith("OTEL") for name in sandbox.calls[0].invocation.environment)
    assert sandbox.answers == []
    assert isinstance(graded.observation and graded.observation.payload, ProgramRuns)


def test_repetitions_that_call_different_tools_disagree(runtimes: Path) -> None:
    graded, _ = grade(
        task_of(NO_CANCEL, repetitions=3), lambda call: sends("cancel") if call.repeat == 1 else sends("book"), runtimes
    )
    assert value(graded) == (Tri.UNDETERMINED, (ReasonCode.RUNS_DISAGREE, ReasonCode.TOOL_FORBIDDEN))
    assert graded.verdict is not None
    assert graded.verdict.rationale == "case 0 gave different results across runs (1 of 3 failed)"
    (cell,) = graded.verdict.conditions[1].cells
    assert [run.value for run in cell.cell.runs] == [Tri.TRUE, Tri.FALSE, Tri.TRUE]


def test_a_record_replays_to_the_byte_and_under_other_tool_conditions(runtimes: Path, tmp_path: Path) -> None:
    task = task_of(BOOKS, NO_CANCEL, repetitions=2)
    graded, _ = grade(task, lambda _: sends("book", padding=9_000), runtimes, tmp_path / "record")
    assert any((tmp_path / "record" / "blobs").iterdir())
    (again,) = replay(tmp_path / "record")
    assert again.verdict == graded.verdict
    assert again.observation == graded.observation
    forbidden = task_of({"condition_type": "tools_not_called", "tools": ["boo*"]}, repetitions=2)
    (other,) = replay(tmp_path / "record", forbidden)
    assert value(other) == (Tri.FALSE, (ReasonCode.TOOL_FORBIDDEN,))
    with pytest.raises(RecordError, match="another plan"):
        list(replay(tmp_path / "record", task_of(BOOKS, repetitions=3)))
    with pytest.raises(TaskError, match="the task has none"):
        list(replay(tmp_path / "record", Task.model_validate({"conditions": [BOOKS]})))


def test_runs_that_had_no_endpoint_settle_nothing_about_tools(runtimes: Path, tmp_path: Path) -> None:
    grade(task_of(profile="untraced"), lambda _: Behaviour(), runtimes, tmp_path / "record")
    (again,) = replay(tmp_path / "record", task_of(NO_CANCEL, profile="untraced"))
    assert value(again) == (Tri.UNDETERMINED, (ReasonCode.EVIDENCE_NOT_COLLECTED,))


def test_a_changed_byte_of_a_trace_is_refused(runtimes: Path, tmp_path: Path) -> None:
    grade(task_of(BOOKS), lambda _: sends("book", padding=9_000), runtimes, tmp_path / "record")
    blobs = list((tmp_path / "record" / "blobs").iterdir())
    (blob,) = [file for file in blobs if b"resourceSpans" in file.read_bytes()]
    blob.chmod(0o644)
    blob.write_bytes(blob.read_bytes().replace(b"book", b"look"))
    with pytest.raises(RecordError):
        list(open_record(tmp_path / "record"))


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task.model_validate({"conditions": [BOOKS], "runtime_profiles": ["trusted"]}), "the task has none"),
        (task_of(BOOKS, profile="untraced"), "gives programs no trace endpoint"),
        (task_of({**BOOKS, "case": "c7"}), "no case is named 'c7'"),
    ],
)
def test_what_no_run_could_answer_is_refused_before_any(task: Task, message: str, runtimes: Path) -> None:
    def never(call: Call) -> Answer:
        raise AssertionError(call)

    with pytest.raises(TaskError, match=message):
        grade(task, never, runtimes)


def test_selected_cases_keep_the_conditions_that_are_about_them(runtimes: Path) -> None:
    about = [{**NO_CANCEL, "case": "c0"}, {**BOOKS, "case": "c1"}, NO_CANCEL]
    graded, sandbox = grade(task_of(*about, cases=2), lambda _: sends("book"), runtimes, choice=Choice(cases="c1"))
    assert len(sandbox.calls) == 1
    assert graded.task is not None
    assert [leaf.condition_type for leaf in graded.task.leaves()] == [
        "program_behaves",
        "tools_called",
        "tools_not_called",
    ]
    assert value(graded) == (Tri.TRUE, ())
    with pytest.raises(Exception, match="cases cannot be selected inside not"):
        grade(
            task_of({"condition_type": "not", "condition": BOOKS}, cases=2),
            lambda _: sends("book"),
            runtimes,
            choice=Choice(cases="c1"),
        )


def test_a_negated_condition_folds_each_run_first(runtimes: Path) -> None:
    negated = task_of({"condition_type": "not", "condition": BOOKS}, repetitions=2)
    graded, _ = grade(negated, lambda _: sends("book"), runtimes)
    assert value(graded) == (Tri.FALSE, (ReasonCode.TOOL_FORBIDDEN,))
    graded, _ = grade(negated, lambda call: sends("book" if call.repeat else "search"), runtimes)
    assert value(graded)[0] is Tri.UNDETERMINED
    # Over several cases it denies that all of them do it; that none does is another condition.
    several = task_of({"condition_type": "not", "condition": BOOKS}, cases=2)

    def one_books(call: Call) -> Answer:
        return sends("search" if call.invocation.arguments[0] == b"1" else "book")

    assert value(grade(several, one_books, runtimes)[0])[0] is Tri.TRUE
    none_may = task_of({"condition_type": "tools_not_called", "tools": ["book"]}, cases=2)
    assert value(grade(none_may, one_books, runtimes)[0])[0] is Tri.FALSE


def test_profiles_say_whom_they_trust() -> None:
    fields: dict[str, Any] = {"language": "x", "suffixes": [".x"], "image": {"dockerfile": "x"}, "run": ["x"]}
    with pytest.raises(ValueError, match="no exporter to trust"):
        RuntimeProfile.model_validate({**fields, "trusts_exporter": True})
    plain = RuntimeProfile.model_validate(fields).in_force("x", "i")
    assert not {"traces", "trusts_exporter"} & set(plain.body)
    traced = RuntimeProfile.model_validate({**fields, "traces": "otlp", "environment": {"OTEL_LOGS_EXPORTER": "otlp"}})
    assert traced.in_force("x", "i").environment["OTEL_LOGS_EXPORTER"] == "otlp"
    assert not traced.in_force("x", "i").trusts_exporter
