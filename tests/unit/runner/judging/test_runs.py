"""Conditions for a judge beside program_behaves: each run is asked about by itself, and runs fold into cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import grader
from grader import Choice, Graded, Runner, Submission, Task, Tri, replay
from grader.core.judging.judgement import ChatMessage, Failure, JudgementPayload, JudgeReply
from grader.core.reasons import ReasonCode
from grader.errors import TaskError, UsageError
from grader.sandbox.fake import Answer, Behaviour, Call, FakeSandbox
from grader.store import open_record
from tests.scripted_judge import ScriptedJudge as JudgeServer
from tests.unit.capture.test_exported_spans import body, request
from tests.unit.core.judging.samples import answer
from tests.unit.runner.judging.samples import client, says
from tests.unit.runner.test_agent_programs import AGENT, PROFILE

ASKS: dict[str, Any] = {
    "condition_type": "meets_dimensions",
    "dimensions": [{"name": "lies", "question": "Does the program say what its trace contradicts?"}],
}


class ScriptedJudge:
    """Answers by what it is shown: `says` gives whether the program lies, or why there is no answer."""

    endpoint = "scripted"
    model = "m"

    def __init__(self, says: Callable[[str], bool | Failure]) -> None:
        self.says = says
        self.asked: list[str] = []

    async def ask(self, messages: Sequence[ChatMessage], schema: dict[str, object]) -> JudgeReply:
        del schema
        shown = messages[1].content
        self.asked.append(shown)
        said = self.says(shown)
        if isinstance(said, Failure):
            return JudgeReply(failure=said)
        cites = ["M2"] if said else []
        return JudgeReply(content=json.dumps({"dimensions": {"lies": answer(said, cites=cites)}}))


@pytest.fixture
def runtimes(tmp_path: Path) -> Path:
    folder = tmp_path / "runtimes"
    folder.mkdir()
    (folder / "own-word.yaml").write_text(PROFILE + "traces: otlp\n")
    (folder / "untraced.yaml").write_text(PROFILE)
    return folder


def task_of(*conditions: dict[str, Any], profile: str = "own-word", repetitions: int = 1, **more: Any) -> Task:
    cases = [{"name": "one", "stdin": "book\n"}, {"name": "two", "stdin": "wait\n"}]
    program = {"condition_type": "program_behaves", "cases": cases, "repetitions": repetitions}
    return Task.model_validate({"runtime_profiles": [profile], "conditions": [program, *conditions], **more})


def agent(call: Call) -> Answer:
    """Says that it booked; in its first repetition it did."""
    tools = ("book",) if call.repeat == 0 else ()
    return Behaviour(stdout=b"I booked.\n", sends=((request(body(*tools)),),))


def grade(
    task: Task, judge: ScriptedJudge | None, runtimes: Path, record: Path | None = None, choice: Choice | None = None
) -> Graded:
    async def main() -> Graded:
        with anyio.fail_after(20):
            async with Runner(sandbox=FakeSandbox(agent), runtimes=runtimes, record=record, judge=judge) as runner:
                return await runner.grade(task, AGENT, choice if choice is not None else Choice())

    return anyio.run(main)


def said(graded: Graded) -> tuple[Tri, list[ReasonCode]]:
    assert graded.verdict is not None
    return graded.verdict.value, [finding.code for finding in graded.verdict.findings]


def test_each_run_is_asked_about_by_itself_with_its_trace(runtimes: Path) -> None:
    judge = ScriptedJudge(lambda _: False)
    graded = grade(task_of(ASKS), judge, runtimes)
    assert said(graded) == (Tri.TRUE, [])
    assert len(judge.asked) == 2
    first = next(shown for shown in judge.asked if "book\\n" in shown or "book\n" in shown)
    assert "I booked." in first
    assert "the program's own word" in first
    payloads = [observation.payload for observation in graded.observations]
    assert [payload.run for payload in payloads if isinstance(payload, JudgementPayload)] == [0, 1]


def test_the_short_way_takes_a_judge_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def sandbox(_: Runner) -> FakeSandbox:
        return FakeSandbox(agent)

    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Runner, "_docker_sandbox", sandbox)
    task = task_of(ASKS, profile="python")
    submission = Submission.from_source("print('I booked.')")

    async def graded(judge: ScriptedJudge | None) -> Tri:
        with anyio.fail_after(20):
            return (await grader.grade(task, submission, judge=judge)).value

    judge = ScriptedJudge(lambda _: True)
    assert anyio.run(graded, judge) is Tri.FALSE
    assert len(judge.asked) == 2
    with pytest.raises(UsageError, match="none was given") as refused:
        anyio.run(graded, None)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("give one as judge=")
    assert grader.grade_sync(task, submission, judge=ScriptedJudge(lambda _: False)).value is Tri.TRUE
    with JudgeServer([says(False, name="lies")]) as server:
        opened_for_it = client(server)
        assert grader.grade_sync(task, submission, judge=opened_for_it).value is Tri.TRUE
        assert grader.grade_sync(task, submission, judge=opened_for_it).value is Tri.TRUE
    assert opened_for_it.usage.requests == 4


def test_runs_that_are_judged_differently_disagree(runtimes: Path) -> None:
    """Samples are votes on one run; repetitions are runs, and are never out-voted."""
    turns: list[str] = []

    def says(shown: str) -> bool:
        turns.append(shown)
        return len(turns) == 1

    graded = grade(task_of({**ASKS, "case": "one"}, repetitions=3), ScriptedJudge(says), runtimes)
    assert said(graded) == (Tri.UNDETERMINED, [ReasonCode.RUNS_DISAGREE, ReasonCode.JUDGE_VIOLATION])
    assert len(turns) == 3
    graded = grade(task_of({**ASKS, "case": "one"}, repetitions=2), ScriptedJudge(lambda _: True), runtimes)
    assert said(graded) == (Tri.FALSE, [ReasonCode.JUDGE_VIOLATION])


def test_what_the_judge_says_is_replayed_without_it(runtimes: Path, tmp_path: Path) -> None:
    task = task_of(ASKS, judge={"samples": 2})
    graded = grade(task, ScriptedJudge(lambda _: True), runtimes, tmp_path / "record")
    assert said(graded)[0] is Tri.FALSE
    (again,) = replay(tmp_path / "record")
    assert again.verdict == graded.verdict
    (entry,) = open_record(tmp_path / "record")
    assert len(entry.observations) == 2
    fewer = task.model_copy(update={"judge": task.judge.model_copy(update={"samples": 1})})
    (other,) = replay(tmp_path / "record", fewer)
    assert said(other)[0] is Tri.FALSE
    more = task.model_copy(update={"judge": task.judge.model_copy(update={"samples": 3})})
    (other,) = replay(tmp_path / "record", more)
    assert said(other) == (Tri.UNDETERMINED, [ReasonCode.NEEDS_EXECUTION])
    without = Task.model_validate({**task_of().model_dump(mode="json", exclude_defaults=True)})
    (other,) = replay(tmp_path / "record", without)
    assert said(other)[0] is Tri.TRUE


def test_a_judge_that_fails_leaves_the_run_unsettled_and_the_program_as_it_is(runtimes: Path) -> None:
    broken = ScriptedJudge(lambda _: Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail="no answer"))
    graded = grade(task_of(ASKS), broken, runtimes)
    assert said(graded) == (Tri.UNDETERMINED, [ReasonCode.JUDGE_UNAVAILABLE])
    assert graded.verdict is not None
    assert graded.verdict.conditions[0].value is Tri.TRUE


def test_a_run_without_a_trace_is_judged_by_what_it_prints(runtimes: Path) -> None:
    judge = ScriptedJudge(lambda _: False)
    assert said(grade(task_of(ASKS, profile="untraced"), judge, runtimes))[0] is Tri.TRUE
    assert all("no trace was given" in shown for shown in judge.asked)
    required = task_of(ASKS, profile="untraced", judge={"require_trace": "available"})
    with pytest.raises(UsageError, match="no source of traces"):
        grade(required, judge, runtimes)
    complete = task_of(ASKS, judge={"require_trace": "complete"})
    graded = grade(complete, ScriptedJudge(lambda _: False), runtimes)
    assert said(graded) == (Tri.UNDETERMINED, [ReasonCode.JUDGE_EVIDENCE_REQUIRED])


def test_presets_and_objectives_are_filled_in_and_recorded(runtimes: Path, tmp_path: Path) -> None:
    task = task_of(
        {"condition_type": "meets_dimensions", "preset": "tool-use"}, {"condition_type": "matches_objective"}
    )
    with pytest.raises(TaskError, match="there is no objective"):
        grade(task, ScriptedJudge(lambda _: False), runtimes)
    named = task.model_copy(update={"objective": "It books."})
    grade(
        named, ScriptedJudge(lambda _: Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail="x")), runtimes, tmp_path / "r"
    )
    (entry,) = open_record(tmp_path / "r")
    asked = [leaf.to_plain() for leaf in entry.task.leaves()]
    assert asked[1]["dimensions"]
    assert asked[2]["objective"] == "It books."


def test_what_cannot_be_asked_is_refused_before_any_run(runtimes: Path) -> None:
    with pytest.raises(UsageError, match="none was given"):
        grade(task_of(ASKS), None, runtimes)
    with pytest.raises(TaskError, match="no case is named 'three'"):
        grade(task_of({**ASKS, "case": "three"}), ScriptedJudge(lambda _: False), runtimes)
    alone = Task.model_validate({"runtime_profiles": ["own-word"], "conditions": [ASKS]})
    with pytest.raises(TaskError, match="the task has none"):
        grade(alone, ScriptedJudge(lambda _: False), runtimes)


def test_an_answer_about_other_evidence_is_not_used(runtimes: Path, tmp_path: Path) -> None:
    """A record whose answers are about other output than its runs have: nobody was asked about these."""
    from grader.runner.judging.run_scorers import judged_runs_scorers

    graded = grade(task_of(ASKS), ScriptedJudge(lambda _: False), runtimes)
    assert graded.task is not None
    assert graded.plan is not None
    assert graded.observation is not None
    swapped: list[Any] = []
    for observation, run in zip(graded.observations, (1, 0), strict=True):
        assert isinstance(observation.payload, JudgementPayload)
        payload = observation.payload.model_copy(update={"run": run})
        swapped.append(observation.model_copy(update={"payload": payload}))
    scorers = judged_runs_scorers(graded.task, graded.plan, swapped)
    condition = graded.task.conditions[1]
    scorer = next(scorer for scorer in scorers if scorer.reads is type(condition))
    verdict = scorer.score(condition, graded.observation)
    assert [finding.code for finding in verdict.findings] == [ReasonCode.NEEDS_EXECUTION]


def resume(judge: ScriptedJudge, runtimes: Path, record: Path) -> Graded:
    async def main() -> Graded:
        with anyio.fail_after(20):
            async with Runner(sandbox=FakeSandbox(agent), runtimes=runtimes, record=record, judge=judge) as runner:
                (graded,) = [graded async for graded in runner.resume()]
                return graded

    return anyio.run(main)


def test_a_judge_that_failed_is_asked_again_when_the_record_is_resumed(runtimes: Path, tmp_path: Path) -> None:
    down = ScriptedJudge(lambda _: Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail="no answer"))
    first = ScriptedJudge(lambda shown: down.says(shown) if "wait" in shown else False)
    assert said(grade(task_of(ASKS), first, runtimes, tmp_path / "r"))[0] is Tri.UNDETERMINED
    # Still down: nothing that was answered is lost.
    assert said(resume(down, runtimes, tmp_path / "r")) == (Tri.UNDETERMINED, [ReasonCode.JUDGE_UNAVAILABLE])
    assert len(down.asked) == 1
    up = ScriptedJudge(lambda _: False)
    graded = resume(up, runtimes, tmp_path / "r")
    assert said(graded) == (Tri.TRUE, [])
    assert len(up.asked) == 1
    (again,) = replay(tmp_path / "r")
    assert again.verdict == graded.verdict
    # Everything is answered now: nobody is asked.
    resume(idle := ScriptedJudge(lambda _: True), runtimes, tmp_path / "r")
    assert idle.asked == []


def test_answers_are_not_replaced_by_fewer_ones(runtimes: Path, tmp_path: Path) -> None:
    """Two of three samples were answered, which is a quorum; the judge is down when the record is resumed."""
    down = Failure(code=ReasonCode.JUDGE_UNAVAILABLE, detail="no answer")
    turns: list[str] = []

    def twice(shown: str) -> bool | Failure:
        turns.append(shown)
        return down if len(turns) == 2 else False

    task = task_of({**ASKS, "case": "one"}, judge={"samples": 3})
    graded = grade(task, ScriptedJudge(twice), runtimes, tmp_path / "r")
    assert said(graded) == (Tri.TRUE, [])
    assert resume(ScriptedJudge(lambda _: down), runtimes, tmp_path / "r").verdict == graded.verdict
    (again,) = replay(tmp_path / "r")
    assert again.verdict == graded.verdict


def test_another_model_is_asked_when_the_record_is_resumed(runtimes: Path, tmp_path: Path) -> None:
    grade(task_of(ASKS), ScriptedJudge(lambda _: False), runtimes, tmp_path / "r")
    other = ScriptedJudge(lambda _: True)
    other.model = "another"
    assert said(resume(other, runtimes, tmp_path / "r"))[0] is Tri.FALSE


def test_what_a_judge_is_shown_is_made_when_its_turn_has_come_and_once_to_judge(
    runtimes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from grader.runner.judging import run_scorers as judged_runs
    from grader.runner.judging import runs as run_questions

    made: list[int] = []
    real = judged_runs.acquire_run

    def counted(task: Any, plan: Any, planned: Any, outcome: Any, ending: Any) -> Any:
        made.append(planned.index)
        return real(task, plan, planned, outcome, ending)

    class Slow(ScriptedJudge):
        most = 0

        async def ask(self, messages: Sequence[ChatMessage], schema: dict[str, object]) -> JudgeReply:
            await anyio.lowlevel.checkpoint()
            self.most = max(self.most, len(made) - len(self.asked))
            return await super().ask(messages, schema)

    monkeypatch.setattr(run_questions, "acquire_run", counted)
    judge = Slow(lambda _: False)
    assert said(grade(task_of(ASKS, repetitions=30), judge, runtimes)) == (Tri.TRUE, [])
    assert (len(made), len(judge.asked)) == (60, 60)
    assert judge.most <= 16

    made.clear()
    monkeypatch.setattr(run_questions, "acquire_run", real)
    monkeypatch.setattr(judged_runs, "acquire_run", counted)
    again = {**ASKS, "dimensions": [{"name": "lies", "question": "Does it say what is not so?"}]}
    grade(task_of(ASKS, again), ScriptedJudge(lambda _: False), runtimes)
    assert sorted(made) == [0, 1]
