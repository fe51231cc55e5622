"""Tool conditions over runs: each run by itself, cells folded as those of programs, and no negative out of nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.agent_tasks import case_problems, cases_of
from grader.core.cases import ProgramBehaves
from grader.core.conditions import Condition
from grader.core.endings import Ending
from grader.core.expectation import Task
from grader.core.limits import LimitRange, Limits
from grader.core.observation import Acquisition, CompileRecord, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import PlannedRun, ProfileInForce, make_plan
from grader.core.reasons import ReasonCode
from grader.core.tools.calls import ToolsPayload
from grader.core.tools.conditions import ToolCallRequirement, ToolsCalled, ToolsNotCalled
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict
from grader.scorers.tool_scorers import trace_scorers
from grader.scorers.traced_runs import TracedRunsScorer
from tests.unit.scorers.test_program import ran
from tests.unit.scorers.tool_samples import call, observed, payload

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED
OWN_WORD = Coverage(reasons=(CoverageReason(code=CoverageCode.SELF_REPORTED),))
TRUSTED = Coverage(declared_by="the profile p")
NAMES = ("book", "search", "cancel")

Run = Sequence[str] | ReasonCode | None
"""The tools that a run reports, why it is missing, or that there is no record of it."""


def conditions() -> dict[str, Condition]:
    return {
        "books": ToolsCalled(tools=(ToolCallRequirement(name="book"),)),
        "nothing else": ToolsCalled(tools=(ToolCallRequirement(name="book", at_least=0),), exhaustive=True),
        "no cancel": ToolsNotCalled(tools=("cancel",)),
    }


def task_of(condition: Condition, cases: int = 1, repetitions: int = 1) -> Task:
    data = {"cases": [{"name": f"c{number}"} for number in range(cases)], "repetitions": repetitions}
    return Task(conditions=(ProgramBehaves.model_validate(data), condition), runtime_profiles=("p",))


def judge(
    condition: Condition,
    runs: Sequence[Run],
    *,
    cases: int = 1,
    coverage: Coverage = OWN_WORD,
    compiled: CompileRecord | None = None,
) -> ConditionVerdict:
    """The verdict over runs, spread evenly over the cases."""
    task = task_of(condition, cases, len(runs) // cases)
    plan = make_plan(task, [ProfileInForce(name="p", image_id="i")])

    def evidence(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        del outcome, ending
        tools = runs[planned.index]
        assert isinstance(tools, tuple | list)
        calls = (call(name, key=f"{name} {at}") for at, name in enumerate(tools))
        return observed(payload(*calls, coverage=coverage))

    records = [
        RunRecord(index=index, missing=MissingRun(code=run))
        if isinstance(run, ReasonCode)
        else RunRecord(index=index, outcome=ran())
        for index, run in enumerate(runs)
        if run is not None
    ]
    program_runs = ProgramRuns(
        submission_digest="0" * 64,
        plan_fingerprint=plan.fingerprint,
        profiles=plan.profiles,
        compiles=() if compiled is None else (compiled,),
        runs=tuple(records),
    )
    scorer = next(scorer for scorer in trace_scorers() if scorer.reads is type(condition))
    over_runs = TracedRunsScorer(scorer, task, plan, evidence)
    return over_runs.score(condition, Observation(acquisition=Acquisition.COMPLETE, payload=program_runs))


BOOKS, ALONE, NO_CANCEL = conditions()["books"], conditions()["nothing else"], conditions()["no cancel"]


@pytest.mark.parametrize(
    ("condition", "runs", "value", "code"),
    [
        (BOOKS, [("book",), ("book", "search")], T, None),
        (BOOKS, [("book",), ()], U, ReasonCode.EVIDENCE_SELF_REPORTED),
        (BOOKS, [(), ()], U, ReasonCode.EVIDENCE_SELF_REPORTED),
        (BOOKS, [("book",), ReasonCode.BOX_LOST], U, ReasonCode.BOX_LOST),
        (BOOKS, [("book",), None], U, ReasonCode.INTERRUPTED),
        (NO_CANCEL, [("cancel",), ("cancel", "book")], F, ReasonCode.TOOL_FORBIDDEN),
        (NO_CANCEL, [("cancel",), ()], U, ReasonCode.EVIDENCE_SELF_REPORTED),
        (NO_CANCEL, [("cancel",), ReasonCode.HOST_STARVED], U, ReasonCode.HOST_STARVED),
        (ALONE, [("book", "search"), ("book", "cancel")], F, ReasonCode.TOOL_EXTRA),
        (ALONE, [("book",)], U, ReasonCode.EVIDENCE_SELF_REPORTED),
    ],
)
def test_of_a_program_that_is_taken_at_its_word(
    condition: Condition, runs: list[Run], value: Tri, code: ReasonCode | None
) -> None:
    verdict = judge(condition, runs)
    assert verdict.value is value, verdict.rationale
    assert [finding.code for finding in verdict.findings][:1] == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("condition", "runs", "value", "code"),
    [
        (BOOKS, [(), ("search",)], F, ReasonCode.TOOL_MISSING),
        (BOOKS, [("book",), ()], U, ReasonCode.RUNS_DISAGREE),
        (NO_CANCEL, [("book",), ()], T, None),
        (NO_CANCEL, [("cancel",), ()], U, ReasonCode.RUNS_DISAGREE),
        (ALONE, [("book",), ("book",)], T, None),
        (ALONE, [("book",), ("book", "search")], U, ReasonCode.RUNS_DISAGREE),
    ],
)
def test_of_a_trusted_exporter(condition: Condition, runs: list[Run], value: Tri, code: ReasonCode | None) -> None:
    verdict = judge(condition, runs, coverage=TRUSTED)
    assert verdict.value is value, verdict.rationale
    assert [finding.code for finding in verdict.findings][:1] == ([] if code is None else [code])


def test_the_rationale_says_on_what_it_rests() -> None:
    assert judge(NO_CANCEL, [()], coverage=TRUSTED).rationale == (
        "case 0 is true in every run: cancel was not executed (evidence complete, declared by the profile p)"
    )
    assert judge(NO_CANCEL, [("cancel",), ()], coverage=TRUSTED).rationale == (
        "case 0 gave different results across runs (1 of 2 failed)"
    )
    assert judge(BOOKS, [("book",), ("book",)], cases=2).rationale == (
        "case 0 is true in every run: book was executed, and so in 1 more cells"
    )


def test_every_unsettled_cell_is_listed_beside_the_one_that_decides() -> None:
    verdict = judge(NO_CANCEL, [(), ("cancel",)], cases=2)
    assert verdict.value is F
    assert [(cell.name, cell.cell.value) for cell in verdict.cells] == [("c0", U), ("c1", F)]
    assert verdict.rationale.startswith("case 1 is false in every run")
    assert "case 0 is not settled" in verdict.rationale


def test_a_condition_about_one_case_looks_at_no_other() -> None:
    about = ToolsNotCalled(tools=("cancel",), case="c1")
    verdict = judge(about, [("cancel",), ("book",)], cases=2, coverage=TRUSTED)
    assert (verdict.value, [cell.case for cell in verdict.cells]) == (T, [1])


def test_a_program_that_did_not_compile_has_done_nothing_that_could_be_judged() -> None:
    limits = LimitRange().effective(Limits())
    failed = CompileRecord(profile="p", limits=limits, outcome=ran(exit_code=1))
    for condition in conditions().values():
        verdict = judge(condition, [("cancel",)], coverage=TRUSTED, compiled=failed)
        assert (verdict.value, verdict.findings[0].code) == (U, ReasonCode.EVIDENCE_NOT_COLLECTED)
    lost = CompileRecord(profile="p", limits=limits, missing=MissingRun(code=ReasonCode.BOX_LOST))
    assert judge(BOOKS, [("book",)], compiled=lost).findings[0].code is ReasonCode.BOX_LOST


def test_conditions_name_cases_that_are_there() -> None:
    task = task_of(ToolsNotCalled(tools=("x",), case="c9"), cases=2)
    (problem,) = case_problems(task)
    assert (problem.leaf, problem.message, problem.hint) == (1, "no case is named 'c9'", "cases are: c0, c1")
    alone = Task(conditions=(BOOKS,))
    assert "the task has none" in case_problems(alone)[0].message
    assert case_problems(task_of(BOOKS)) == ()
    assert [(found.program, found.case) for found in cases_of(task, "c1")] == [(0, 1)]


tools = st.lists(st.sampled_from(NAMES), max_size=3)
runs_of_a_cell = st.lists(st.one_of(tools, st.sampled_from([ReasonCode.BOX_LOST, None])), min_size=1, max_size=4)


@settings(max_examples=150)
@given(runs_of_a_cell, st.sampled_from([BOOKS, ALONE, NO_CANCEL]))
def test_without_trust_only_what_was_said_decides(runs: list[Run], condition: Condition) -> None:
    """True needs the call in every run; false needs the forbidden call in every run: never anything left unsaid."""
    value = judge(condition, runs).value
    said = [set(run) if isinstance(run, list) else None for run in runs]
    if condition is BOOKS:
        assert (value is T) == all(names is not None and "book" in names for names in said)
        assert value is not F
    else:
        allowed = {"book"} if condition is ALONE else {"book", "search"}
        assert (value is F) == all(names is not None and not names <= allowed for names in said)
        assert value is not T


@settings(max_examples=150)
@given(runs_of_a_cell, st.sampled_from([BOOKS, ALONE, NO_CANCEL]))
def test_a_cell_is_settled_only_if_all_its_runs_are_there_and_equal(runs: list[Run], condition: Condition) -> None:
    """The fold of `program_behaves`, by brute force over runs that are each judged alone."""
    verdict = judge(condition, runs, coverage=TRUSTED)
    alone = [judge(condition, [run], coverage=TRUSTED).value if run is not None else U for run in runs]
    assert verdict.value is (alone[0] if len(set(alone)) == 1 else U)
    if {T, F} <= set(alone):
        assert verdict.findings[0].code is ReasonCode.RUNS_DISAGREE


def test_it_reads_nothing_but_tool_conditions_on_program_runs() -> None:
    task = task_of(BOOKS)
    plan = make_plan(task, [ProfileInForce(name="p", image_id="i")])

    def nothing(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        raise AssertionError((planned, outcome, ending))

    scorer = TracedRunsScorer(trace_scorers()[0], task, plan, nothing)
    assert scorer.identity == "TracedRunsScorer/1(OtelToolCallScorer/1)"
    tools_read = observed(ToolsPayload())
    with pytest.raises(ValueError, match="on program runs"):
        scorer.score(BOOKS, tools_read)
