"""Program verdicts: the folds against a brute force, every reason, and the pinned sentences."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

import grader.matchers
from grader.core.cases import ProgramBehaves, ProgramCase
from grader.core.expectation import Task
from grader.core.limits import LimitRange, Limits
from grader.core.observation import Acquisition, CompileRecord, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import FileOutcome, Measures, RunOutcome, StreamOutcome, parse_captured
from grader.core.plan import Plan, ProfileInForce, make_plan
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from grader.core.verdict import CellVerdict, ConditionVerdict, Finding, RunVerdict
from grader.scorers.program import ProgramExecutionScorer, fold_cell

assert grader.matchers  # importing it registers the matchers
T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
M = "missing"


def ran(stdout: str = "ok\n", *, files: Mapping[str, Any] | None = None, **measures: Any) -> RunOutcome:
    base: dict[str, Any] = {"wall_time_ns": 1000, "cpu_time_ns": 1000, "exit_code": 0, "oom_kills": 0}
    outcomes = tuple(FileOutcome(name=name.encode(), **facts) for name, facts in (files or {}).items())
    return RunOutcome(
        command=(b"/usr/bin/python3", b"/submission/main.py"),
        command_is_submission=False,
        measures=Measures(**{**base, **measures}),
        stdout=StreamOutcome(captured=parse_captured({"text": stdout})),
        stderr=StreamOutcome(captured=parse_captured({"text": ""})),
        files=outcomes,
    )


def task_of(*cases: dict[str, Any], repetitions: int = 1, profiles: tuple[str, ...] = ("python",)) -> tuple[Task, Plan]:
    program = ProgramBehaves.model_validate({"cases": list(cases), "repetitions": repetitions})
    task = Task(conditions=(program,), runtime_profiles=profiles)
    return task, make_plan(task, [ProfileInForce(name=name, image_id="sha256:0") for name in profiles])


def judge(
    task: Task, plan: Plan, outcomes: list[RunOutcome | ReasonCode | None], compiles: tuple[CompileRecord, ...] = ()
) -> ConditionVerdict:
    """One outcome for each run of the plan: an outcome, a reason why it is missing, or None for no record at all."""
    records = [
        RunRecord(index=run.index, outcome=outcome)
        if isinstance(outcome, RunOutcome)
        else RunRecord(index=run.index, missing=MissingRun(code=outcome))
        for run, outcome in zip(plan.runs, outcomes, strict=True)
        if outcome is not None
    ]
    payload = ProgramRuns(
        submission_digest="0" * 64,
        plan_fingerprint=plan.fingerprint,
        profiles=plan.profiles,
        compiles=compiles,
        runs=tuple(records),
    )
    return scored(task, plan, payload)


def scored(task: Task, plan: Plan, payload: ProgramRuns) -> ConditionVerdict:
    observation = Observation(acquisition=Acquisition.COMPLETE, payload=payload)
    return ProgramExecutionScorer(task, plan).score(task.conditions[0], observation)


def codes(verdict: ConditionVerdict | CellVerdict) -> list[str]:
    return [finding.code.value for finding in verdict.findings]


def run_of(value: Tri | str, repetition: int) -> RunVerdict:
    if value == M:
        finding = Finding(code=ReasonCode.BOX_LOST)
        return RunVerdict(repetition=repetition, attempts=3, value=U, is_missing=True, findings=(finding,))
    assert isinstance(value, Tri)
    found = {T: (), F: (Finding(code=ReasonCode.EXIT_CODE),), U: (Finding(code=ReasonCode.EVIDENCE_TRUNCATED),)}
    return RunVerdict(repetition=repetition, attempts=1, value=value, findings=found[value])


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_cell_is_settled_only_if_all_runs_are_there_determined_and_equal(length: int) -> None:
    for values in product([T, F, U, M], repeat=length):
        cell = fold_cell(0, "python", [run_of(value, index) for index, value in enumerate(values)])
        expected = values[0] if len(set(values)) == 1 and values[0] in (T, F) else U
        assert cell.value is expected, values
        reasons = [finding.code for finding in cell.findings]
        wanted = [
            code
            for code, there in (
                (ReasonCode.RUNS_DISAGREE, {T, F} <= set(values)),
                (ReasonCode.EVIDENCE_TRUNCATED, U in values),
                (ReasonCode.BOX_LOST, M in values),
                (ReasonCode.EXIT_CODE, F in values),
            )
            if there and cell.value is not T
        ]
        assert reasons == wanted, values


CASE = {"stdout": {"equals": "ok\n"}}


def test_pinned_rationale_of_disagreement() -> None:
    task, plan = task_of(CASE, repetitions=3)
    verdict = judge(task, plan, [ran("no\n"), ran(), ran("no\n")])
    assert verdict.value is U
    assert verdict.rationale == "case 0 gave different results across runs (2 of 3 failed)"
    assert codes(verdict)[0] == "runs.disagree"


def test_flaky_under_one_profile_and_false_under_another() -> None:
    """The row of decision 1: one cell undetermined, the case false, and the unsettled cell is listed even so."""
    task, plan = task_of(CASE, repetitions=2, profiles=("python", "pypy"))
    verdict = judge(task, plan, [ran(), ran("no\n"), ran("no\n"), ran("no\n")])
    (case,) = verdict.cases
    assert [cell.value for cell in case.cells] == [U, F]
    assert case.value is F
    assert verdict.value is F
    assert "case 0 gave different results across runs (1 of 2 failed) [python]" in verdict.rationale
    assert {"stdout.differs", "runs.disagree"} <= set(codes(verdict))


@pytest.mark.parametrize("code", [code for code in ReasonCode if code.kind.value == "M"])
def test_a_missing_run_is_undetermined_and_says_why(code: ReasonCode) -> None:
    task, plan = task_of(CASE, repetitions=2)
    verdict = judge(task, plan, [ran(), code])
    assert verdict.value is U
    assert codes(verdict) == [code.value]


def test_a_run_without_any_record_is_missing() -> None:
    task, plan = task_of(CASE, repetitions=2)
    assert judge(task, plan, [ran(), None]).value is U
    assert judge(task, plan, [None, None]).value is U


def test_runs_false_for_different_reasons_agree() -> None:
    task, plan = task_of(CASE, repetitions=3)
    verdict = judge(task, plan, [ran("no\n"), ran("no\n"), ran(exit_code=3)])
    assert verdict.value is F
    assert [(f.code.value, f.count) for f in verdict.findings] == [("stdout.differs", 2), ("exit.code", 1)]


def test_only_what_the_case_checks_is_nondeterminism() -> None:
    task, plan = task_of({"exit_code": 0}, repetitions=2)
    verdict = judge(task, plan, [ran("a"), ran("b")])
    assert verdict.value is T
    assert verdict.cases[0].cells[0].notes == ("stdout was not the same in every run, and the case does not check it",)


def test_right_output_does_not_save_a_breached_limit_or_a_signal() -> None:
    task, plan = task_of(CASE)
    rows: list[tuple[dict[str, Any], str]] = [
        ({"signal": 11, "exit_code": None}, "signal"),
        ({"oom_kills": 1, "memory_limit_hits": 1}, "memory.exceeded"),
        ({"cpu_time_ns": 10**12}, "cpu_time.exceeded"),
        ({"wall_time_ns": 10**12}, "wall_time.exceeded"),
        ({"stopped_for": "stdout"}, "output.exceeded"),
        ({"stopped_for": "file_size"}, "file_size.exceeded"),
    ]
    for facts, code in rows:
        verdict = judge(task, plan, [ran(**facts)])
        assert (verdict.value, codes(verdict)) == (F, [code])


@pytest.mark.parametrize(
    ("allowed", "code", "value"),
    [(0, 0, T), (0, 1, F), ([0, 3], 3, T), ([0, 3], 2, F), ("any", 77, T), (3, 0, F)],
)
def test_exit_codes(allowed: object, code: int, value: Tri) -> None:
    task, plan = task_of({"exit_code": allowed})
    assert judge(task, plan, [ran(exit_code=code)]).value is value


@pytest.mark.parametrize(
    ("facts", "value", "code"),
    [
        ({"log": {"status": "regular", "captured": {"text": "done"}}}, T, None),
        ({"log": {"status": "regular", "captured": {"text": "doing"}}}, F, "file.differs"),
        ({"log": {"status": "missing"}}, F, "file.missing"),
        ({"log": {"status": "not_regular", "kind": "symlink"}}, F, "file.not_regular"),
        ({"log": {"status": "refused", "detail": "a link on the way to it"}}, F, "file.not_regular"),
        (
            {"log": {"status": "too_large", "captured": {"text": "d", "total_bytes": 9, "sha256": "0" * 64}}},
            U,
            "evidence.truncated",
        ),
        ({"log": {"status": "too_large", "detail": "9 bytes"}}, U, "evidence.truncated"),
        ({}, U, "evidence.not_collected"),
    ],
)
def test_output_files(facts: dict[str, Any], value: Tri, code: str | None) -> None:
    task, plan = task_of({"output_files": {"log": {"contains": "done"}}})
    verdict = judge(task, plan, [ran(files=facts)])
    assert verdict.value is value
    assert codes(verdict) == ([code] if code is not None else [])


def compiled(**measures: Any) -> CompileRecord:
    return CompileRecord(profile="python", limits=LimitRange().effective(Limits()), outcome=ran(**measures))


def test_a_failed_compile_makes_every_cell_of_its_profile_false() -> None:
    task, plan = task_of(CASE, CASE, repetitions=2)
    verdict = judge(task, plan, [None] * 4, (compiled(exit_code=1),))
    assert verdict.value is F
    assert codes(verdict) == ["compile.failed"]
    assert verdict.findings[0].count == 4


def test_a_starved_compile_is_undetermined() -> None:
    task, plan = task_of(CASE)
    verdict = judge(task, plan, [None], (compiled(stopped_for="starved"),))
    assert (verdict.value, codes(verdict)) == (U, ["host.starved"])


def test_the_last_attempt_counts() -> None:
    task, plan = task_of(CASE)
    payload = ProgramRuns(
        submission_digest="0" * 64,
        plan_fingerprint=plan.fingerprint,
        profiles=plan.profiles,
        runs=(
            RunRecord(index=0, attempt=2, outcome=ran()),
            RunRecord(index=0, attempt=1, missing=MissingRun(code=ReasonCode.HOST_STARVED)),
        ),
    )
    verdict = scored(task, plan, payload)
    assert verdict.value is T
    assert verdict.cases[0].cells[0].runs[0].attempts == 2


def test_the_limit_is_named_with_its_source() -> None:
    task, plan = task_of({**CASE, "limits": {"cpu_time_s": 2}})
    verdict = judge(task, plan, [ran(cpu_time_ns=3 * 10**9)])
    assert verdict.findings[0].detail == "used more CPU time than 2 s (limit of the case)"
    verdict = judge(task, plan, [ran(wall_time_ns=9 * 10**9)])
    assert verdict.findings[0].detail == "ran longer than 8 s (derived from the CPU limit of the case)"


def test_the_condition_is_and_over_its_cases() -> None:
    for values in product([T, F, U], repeat=2):
        outcome = {T: ran(), F: ran("no\n"), U: ReasonCode.BOX_LOST}
        task, plan = task_of(CASE, {"name": "second", **CASE})
        verdict = judge(task, plan, [outcome[value] for value in values])
        assert verdict.value is (F if F in values else U if U in values else T)


def test_no_cases_is_no_condition() -> None:
    with pytest.raises(ValueError, match="at least 1 item"):
        ProgramBehaves(cases=())


@pytest.mark.parametrize("repetitions", [0, -1, True, 1.5, "2", {"at_least": 2}])
def test_repetitions_are_a_whole_number(repetitions: object) -> None:
    with pytest.raises(ValueError, match=r"repetitions|greater than or equal"):
        ProgramBehaves.model_validate({"cases": [{}], "repetitions": repetitions})


def test_fingerprints_are_pinned() -> None:
    case = ProgramCase.model_validate(
        {"name": "a", "stdin": "x", "stdout": {"equals": "y"}, "limits": {"cpu_time_s": 2}}
    )
    one = ProgramBehaves(cases=(case,))
    assert one.fingerprint == "86159b4d482e26afb46fe04e25b5655830bf87b95b510f68015ff8b9c0f093d4"
    assert one.fingerprint == ProgramBehaves(cases=(case,), repetitions=1).fingerprint
    assert one.fingerprint != ProgramBehaves(cases=(case,), repetitions=2).fingerprint
    task = Task(conditions=(one,), objective="words")
    assert task.fingerprint == "cc60810ce088197a008f98d85ab044a0ed3f456ec42359337830b397664a0742"
    profile = ProfileInForce(name="python", image_id="sha256:0", body={"language": "python"})
    assert profile.fingerprint == "447764976edc36752c2a278d1a5f990658060ca6781249737d1e9eb1faac80e7"
    plan = make_plan(task, [profile])
    assert plan.fingerprint == "8cd61cc1e7dd76337f4d7acb443a674b88a2deda3ff476cb4b52af68d0afae62"
    # Names and objectives are outside the plan, expected values too; 2 and 2.0 are the same limit.
    other = ProgramCase.model_validate({"stdin": "x", "stdout": {"equals": "z"}, "limits": {"cpu_time_s": 2.0}})
    assert make_plan(Task(conditions=(ProgramBehaves(cases=(other,)),)), [profile]).fingerprint == plan.fingerprint
