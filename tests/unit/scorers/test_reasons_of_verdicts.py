"""Every verdict that is not true says why: over all condition types, in every combination of them, at every level."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.core.cases import ProgramBehaves
from grader.core.conditions import AllOf, AnyOf, Condition, Not, condition_class, condition_types
from grader.core.endings import Ending
from grader.core.expectation import Task
from grader.core.judging.conditions import MatchesObjective, MeetsDimensions
from grader.core.judging.judgement import Judgement, JudgementPayload, JudgeReply
from grader.core.limits import LimitRange, Limits
from grader.core.observation import Acquisition, CompileRecord, MissingRun, Observation, ProgramRuns, RunRecord
from grader.core.outcomes import RunOutcome
from grader.core.plan import Plan, PlannedRun, ProfileInForce, make_plan
from grader.core.reasons import ReasonCode, ReasonKind
from grader.core.tools.conditions import ToolPrecededBy, ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from grader.core.tri import Tri
from grader.core.verdict import CellVerdict, ConditionVerdict, RunVerdict, Verdict
from grader.scorers.base import Scorer
from grader.scorers.composite import CompositeScorer, judge_condition
from grader.scorers.judge_scorers import judge_scorers
from grader.scorers.program import ProgramExecutionScorer
from grader.scorers.tool_scorers import tool_scorers, trace_scorers
from grader.scorers.traced_runs import JudgedRunsScorer, TracedRunsScorer
from tests.unit.core.judging.samples import CLAIM, answer, reply, turn
from tests.unit.scorers.test_program import ran
from tests.unit.scorers.tool_samples import COMPLETE, CUT, SELF_REPORTED, call, observed, payload, tool

T, F, U = Tri.TRUE, Tri.FALSE, Tri.UNDETERMINED

# --- what is asked


def program(*cases: dict[str, object], repetitions: int = 1) -> ProgramBehaves:
    return ProgramBehaves.model_validate({"cases": list(cases), "repetitions": repetitions})


PROGRAMS: tuple[Condition, ...] = (
    program({"stdout": {"equals": "ok\n"}}, {"arguments": ["2"]}, repetitions=2),
    program({"stdin": "x", "stderr": {"equals": ""}}),
    program({"stdin": "y", "output_files": {"f": {"contains": "z"}}}),
    program({"stdin": "z", "exit_code": [0, 3]}),
)
TOOLS: tuple[Condition, ...] = (
    ToolsCalled(tools=(tool("book"),)),
    ToolsCalled(tools=(tool("book", 0, 1),), exhaustive=True),
    ToolsCalledInOrder(tools=(tool("look"), tool("book"))),
    ToolsNotCalled(tools=("book",)),
    ToolPrecededBy(tool="book", by="look"),
)
JUDGED: tuple[Condition, ...] = (
    MeetsDimensions(dimensions=(CLAIM,)),
    MatchesObjective(objective="The trip was booked."),
)


def trees(leaves: Sequence[Condition]) -> st.SearchStrategy[Condition]:
    def combined(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        several = st.lists(parts, min_size=1, max_size=3).map(tuple)
        return st.one_of(
            parts.map(lambda part: Not(condition=part)),
            several.map(lambda found: AllOf(conditions=found)),
            several.map(lambda found: AnyOf(conditions=found)),
        )

    return st.recursive(st.sampled_from(list(leaves)), combined, max_leaves=5)


# --- what there is to see

ENDED: list[RunOutcome | ReasonCode | None] = [
    ran(),
    ran("no\n"),
    ran(exit_code=3),
    ran(exit_code=None, signal=11),
    ran(files={"f": {"status": "missing"}}),
    ReasonCode.BOX_LOST,
    None,
]
CALLED = [(), ("look",), ("book",), ("look", "book"), ("book", "look", "book"), ("other",)]
COVERED = [COMPLETE, CUT, SELF_REPORTED]
SAID = [
    JudgeReply(content=json.dumps({"dimensions": {name: answer(value, cites=["M1"] if value is bad else [])}}))
    for name, bad in (("claim", True), ("meets_objective", False))
    for value in (True, False)
] + [JudgeReply(content="?"), reply({"claim": answer(True)})]


def answered(said: JudgeReply) -> Observation:
    """One reply to every question that is asked here."""
    asked = [condition.questions for condition in JUDGED if isinstance(condition, MeetsDimensions | MatchesObjective)]
    judgements = tuple(Judgement(dimensions=dimensions, replies=(said,)) for dimensions in asked)
    about = JudgementPayload(name="c", turns=(turn(1, "hello"),), trace_budget=60_000, judgements=judgements)
    return Observation(acquisition=Acquisition.COMPLETE, payload=about)


def tools_seen(names: Sequence[str], covered: int) -> Observation:
    calls = [call(name, span=(2 * at, 2 * at + 1)) for at, name in enumerate(names)]
    return observed(payload(*calls, coverage=COVERED[covered]))


# --- what must hold


def check_run(run: RunVerdict) -> None:
    assert (len(run.findings) == 0) is (run.value is T), run


def check_cell(cell: CellVerdict) -> None:
    assert (len(cell.findings) == 0) is (cell.value is T), cell
    for run in cell.runs:
        check_run(run)


def check(verdict: ConditionVerdict | Verdict) -> None:
    """It has a reason exactly if it is not true, of the kind that belongs to its value; and so has all below it."""
    kinds = [finding.code.kind for finding in verdict.findings]
    if verdict.value is T:
        assert kinds == []
    elif verdict.value is F:
        assert kinds[0] is ReasonKind.FALSE, verdict
    else:
        assert ReasonKind.UNDETERMINED in kinds or ReasonKind.MISSING in kinds, verdict
    assert ReasonKind.ERROR not in kinds
    assert verdict.rationale != ""
    if isinstance(verdict, Verdict):
        for condition in verdict.conditions:
            check(condition)
        return
    for case in verdict.cases:
        for cell in case.cells:
            check_cell(cell)
    for found in verdict.cells:
        check_cell(found.cell)
    for dimension in verdict.judged.dimensions if verdict.judged is not None else ():
        assert (dimension.code is None) is (dimension.value is T)
    for part in verdict.parts:
        check(part)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(trees((*PROGRAMS, *TOOLS, *JUDGED)), min_size=1, max_size=3),
    st.lists(
        st.tuples(st.sampled_from(ENDED), st.sampled_from(CALLED), st.integers(0, 2), st.sampled_from(SAID)),
        min_size=7,
        max_size=7,
    ),
    st.booleans(),
)
def test_of_the_runs_of_a_program(
    conditions: list[Condition],
    runs: list[tuple[RunOutcome | ReasonCode | None, tuple[str, ...], int, JudgeReply]],
    compiles: bool,
) -> None:
    task = Task(conditions=(*conditions, PROGRAMS[0]), runtime_profiles=("p",))
    plan = make_plan(task, [ProfileInForce(name="p", image_id="i")])
    verdict = CompositeScorer(list(run_scorers(task, plan, runs))).score(task, [program_runs(plan, runs, compiles)])
    check(verdict)


def run_scorers(
    task: Task, plan: Plan, runs: Sequence[tuple[RunOutcome | ReasonCode | None, tuple[str, ...], int, JudgeReply]]
) -> Sequence[Scorer]:
    def traced(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        del outcome, ending
        _, names, covered, _ = runs[planned.index]
        return tools_seen(names, covered)

    def asked(planned: PlannedRun, outcome: RunOutcome, ending: Ending) -> Observation:
        del outcome, ending
        return answered(runs[planned.index][3])

    return (
        ProgramExecutionScorer(task, plan),
        *(TracedRunsScorer(scorer, task, plan, traced) for scorer in trace_scorers()),
        *(
            JudgedRunsScorer(scorer, task, plan, asked)
            for scorer in judge_scorers(task.judge, has_trace_source=False, has_facts=False)
        ),
    )


def program_runs(
    plan: Plan,
    runs: Sequence[tuple[RunOutcome | ReasonCode | None, tuple[str, ...], int, JudgeReply]],
    compiles: bool,
) -> Observation:
    ends = [(planned.index, runs[planned.index][0]) for planned in plan.runs]
    records = [
        RunRecord(index=index, outcome=end)
        if isinstance(end, RunOutcome)
        else RunRecord(index=index, missing=MissingRun(code=end))
        for index, end in ends
        if end is not None
    ]
    failed = CompileRecord(profile="p", limits=LimitRange().effective(Limits()), outcome=ran(exit_code=1))
    found = ProgramRuns(
        submission_digest="0" * 64,
        plan_fingerprint=plan.fingerprint,
        profiles=plan.profiles,
        compiles=() if compiles else (failed,),
        runs=tuple(records),
    )
    return Observation(acquisition=Acquisition.COMPLETE, payload=found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(trees((*TOOLS, *JUDGED)), min_size=1, max_size=3),
    st.none() | st.sampled_from(CALLED),
    st.integers(0, 2),
    st.none() | st.sampled_from(SAID),
)
def test_of_traces_and_a_conversation(
    conditions: list[Condition], names: tuple[str, ...] | None, covered: int, said: JudgeReply | None
) -> None:
    task = Task(conditions=tuple(conditions))
    scorers = (*tool_scorers(), *judge_scorers(task.judge, has_trace_source=False, has_facts=False))
    seen = [] if names is None else [tools_seen(names, covered)]
    seen += [] if said is None else [answered(said)]
    check(CompositeScorer(scorers).score(task, seen))


# --- what a false `not` is called


def value_of(values: dict[str, Tri], condition: Condition) -> ConditionVerdict:
    """A leaf that has the value that is wanted, without asking any scorer."""
    value = values[condition.fingerprint]
    code = {F: ReasonCode.SIGNAL, U: ReasonCode.EVIDENCE_TRUNCATED}.get(value)
    findings = () if code is None else ({"code": code, "detail": "d"},)
    return ConditionVerdict.model_validate(
        {
            "condition_type": condition.condition_type,
            "fingerprint": condition.fingerprint,
            "value": value,
            "rationale": f"is {value}",
            "findings": findings,
        }
    )


def said_of(condition: Condition, **values: Tri) -> tuple[Tri, list[str]]:
    """The verdict, and its codes, where the leaves A and B have these values."""
    wanted = {leaf.fingerprint: values[name] for name, leaf in (("a", A), ("b", B)) if name in values}
    verdict = judge_condition(condition, lambda leaf: value_of(wanted, leaf))
    return verdict.value, [finding.code.value for finding in verdict.findings]


A, B = PROGRAMS[0], TOOLS[3]


@pytest.mark.parametrize(
    ("leaf", "code"),
    [
        (PROGRAMS[0], "stdout.differs"),
        (PROGRAMS[1], "stderr.differs"),
        (PROGRAMS[2], "file.differs"),
        (PROGRAMS[3], "exit.code"),
        (TOOLS[0], "tool.forbidden"),
        (TOOLS[1], "tool.missing"),
        (ToolsCalled(exhaustive=True), "tool.missing"),
        (TOOLS[2], "tool.order"),
        (TOOLS[3], "tool.missing"),
        (TOOLS[4], "tool.order"),
        (JUDGED[0], "judge.violation"),
        (JUDGED[1], "judge.violation"),
    ],
)
def test_a_not_that_is_false_has_the_code_of_what_must_not_be(leaf: Condition, code: str) -> None:
    verdict = judge_condition(Not(condition=leaf), lambda one: value_of({leaf.fingerprint: T}, one))
    assert (verdict.value, [str(finding) for finding in verdict.findings]) == (
        F,
        [f"{code}: it must not be so: is true"],
    )
    twice = judge_condition(Not(condition=Not(condition=leaf)), lambda one: value_of({leaf.fingerprint: F}, one))
    assert (twice.value, [str(finding) for finding in twice.findings]) == (F, ["signal: d"])


def test_every_leaf_type_has_such_a_code() -> None:
    classes = [condition_class(name) for name in condition_types()]
    leaf_types = {cls for cls in classes if cls is not None and not cls.composite}
    leaves = (*PROGRAMS, *TOOLS, *JUDGED)
    assert leaf_types == {type(leaf) for leaf in leaves}, "a new type of condition belongs into the lists of this file"
    assert all(leaf.code_if_negated.kind is ReasonKind.FALSE for leaf in leaves)


def test_only_what_makes_a_not_false_is_a_reason_for_it() -> None:
    either, both = AnyOf(conditions=(A, B)), AllOf(conditions=(A, B))
    # That A is false is what the `not` wants: no reason.
    assert said_of(Not(condition=either), a=F, b=T) == (F, ["tool.missing"])
    assert said_of(Not(condition=either), a=T, b=T) == (F, ["stdout.differs", "tool.missing"])
    assert said_of(Not(condition=either), a=U, b=T) == (F, ["tool.missing", "evidence.truncated"])
    assert said_of(Not(condition=either), a=U, b=F) == (U, ["evidence.truncated"])
    assert said_of(Not(condition=both), a=T, b=T) == (F, ["stdout.differs", "tool.missing"])
    assert said_of(Not(condition=both), a=T, b=U) == (U, ["evidence.truncated"])
    assert said_of(Not(condition=both), a=F, b=U) == (T, [])
    mixed = AllOf(conditions=(A, Not(condition=B)))
    assert said_of(Not(condition=mixed), a=T, b=F) == (F, ["stdout.differs", "signal"])
    assert said_of(Not(condition=Not(condition=either)), a=F, b=F) == (F, ["signal"])


@pytest.mark.parametrize("a", list(Tri))
@pytest.mark.parametrize("b", list(Tri))
def test_not_of_any_is_all_of_nots(a: Tri, b: Tri) -> None:
    outside = said_of(Not(condition=AnyOf(conditions=(A, B))), a=a, b=b)
    inside = said_of(AllOf(conditions=(Not(condition=A), Not(condition=B))), a=a, b=b)
    assert outside == inside
