"""The library on a scripted sandbox: grading, recording, replaying, resuming, streaming."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TypeVar, cast

import anyio
import pytest

import grader
from grader import Choice, Graded, Runner, Submission, Task, Tri
from grader.core.reasons import ReasonCode
from grader.sandbox.base import Facts, Failed, Sandbox
from grader.sandbox.fake import HANGS, Answer, Behaviour, Call, FakeSandbox, Script
from grader.store import open_record

T = TypeVar("T")

ECHO = Submission.from_source("print(input())", name="echo.py")


def task_of(*cases: dict[str, object], repetitions: int = 1) -> Task:
    program = grader.ProgramBehaves.model_validate({"cases": list(cases), "repetitions": repetitions})
    return Task(conditions=(program,), runtime_profiles=("python",))


ONE = task_of({"name": "one", "stdin": "1\n", "stdout": {"equals": "1\n"}})
TWO = task_of(
    {"name": "one", "stdin": "1\n", "stdout": {"equals": "1\n"}},
    {"name": "two", "stdin": "2\n", "stdout": {"equals": "2\n"}},
    repetitions=2,
)


def echo(call: Call) -> Answer:
    return Behaviour(stdout=call.invocation.stdin)


def run(main: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        with anyio.fail_after(20):
            return await main()

    return anyio.run(bounded)


def graded(task: Task, script: Script = echo, *, record: Path | None = None, choice: Choice | None = None) -> Graded:
    async def main() -> Graded:
        async with Runner(sandbox=FakeSandbox(script), record=record) as runner:
            return await runner.grade(task, ECHO, choice if choice is not None else Choice())

    return run(main)


def value(result: Graded) -> Tri:
    assert result.verdict is not None
    return result.verdict.value


def test_true_false_undetermined() -> None:
    assert value(graded(ONE)) is Tri.TRUE
    assert value(graded(ONE, lambda _: Behaviour(stdout=b"2\n"))) is Tri.FALSE
    flaky = graded(TWO, lambda call: Behaviour(stdout=call.invocation.stdin if call.repeat else b"?"))
    assert value(flaky) is Tri.UNDETERMINED
    assert value(graded(ONE, lambda _: Failed(ReasonCode.BOX_LOST, "gone", retryable=False))) is Tri.UNDETERMINED


def test_a_verdict_has_no_truth_and_a_reward_needs_all_three() -> None:
    verdict = graded(ONE).verdict
    assert verdict is not None
    with pytest.raises(TypeError, match="three values"):
        bool(verdict)
    assert verdict.reward(true=1.0, false=0.0, undetermined=None) == 1.0
    with pytest.raises(TypeError):
        verdict.reward(true=1.0, false=0.0)  # pyright: ignore[reportCallIssue]


def test_replay_says_the_same_byte_for_byte(tmp_path: Path) -> None:
    scripts: list[Script] = [echo, lambda _: Behaviour(stdout=b"2\n"), lambda _: Behaviour(exit_code=3)]
    for number, script in enumerate(scripts):
        folder = tmp_path / str(number)
        first = graded(TWO, script, record=folder)
        (again,) = grader.replay(folder)
        assert again.verdict is not None
        assert first.verdict is not None
        assert again.verdict.model_dump_json() == first.verdict.model_dump_json()
        assert again.observation == first.observation


def test_replay_under_another_expectation(tmp_path: Path) -> None:
    graded(ONE, record=tmp_path / "r")
    other = task_of({"name": "renamed", "stdin": "1\n", "stdout": {"equals": "other\n"}})
    (again,) = grader.replay(tmp_path / "r", other)
    assert value(again) is Tri.FALSE


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (task_of({"stdin": "2\n"}), "stdin"),
        (task_of({"stdin": "1\n"}, repetitions=2), "1 case × 2 repetitions × 1 profile = 2 runs"),
        (task_of({"stdin": "1\n", "limits": {"cpu_time_s": 1}}), "limits"),
        (task_of({"stdin": "1\n", "arguments": ["x"]}), "list of arguments"),
        (task_of({"stdin": "1\n", "environment": {"A": "b"}}), "environment"),
        (task_of({"stdin": "1\n", "files": {"a": "b"}}), "files"),
        (task_of({"stdin": "1\n", "output_files": {"a": {"contains": "b"}}}), "list of output files"),
        (ONE.model_copy(update={"runtime_profiles": ("c",)}), "profiles c"),
    ],
)
def test_replay_refuses_another_plan_and_names_the_difference(tmp_path: Path, other: Task, difference: str) -> None:
    graded(ONE, record=tmp_path / "r")
    with pytest.raises(grader.RecordError, match=difference) as caught:
        list(grader.replay(tmp_path / "r", other))
    assert caught.value.code == "record.mismatch"


def test_a_selection_is_judged_as_an_effective_task_but_says_nothing_of_the_whole(tmp_path: Path) -> None:
    part = graded(TWO, choice=Choice(cases="two"), record=tmp_path / "r")
    assert value(part) is Tri.TRUE
    assert part.whole_verdict is not None
    assert part.whole_verdict.value is Tri.UNDETERMINED
    assert [finding.code for finding in part.whole_verdict.findings] == [ReasonCode.NOT_SELECTED]
    (again,) = grader.replay(tmp_path / "r")
    assert again.verdict == part.verdict
    (under_whole_task,) = grader.replay(tmp_path / "r", TWO)
    assert under_whole_task.verdict == part.verdict
    assert str(part.selection) == "1 of 2 cases selected"


def test_nothing_selected_is_an_error() -> None:
    with pytest.raises(grader.UsageError, match="no case matches 'nine'"):
        graded(TWO, choice=Choice(cases="nine"))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (Choice(repetitions=0), "repetitions is a whole number from 1 to 10,000, not 0"),
        (Choice(repetitions=10_001), "repetitions is a whole number from 1 to 10,000, not 10001"),
        (Choice(repetitions=cast("int", 2.5)), "repetitions is a whole number from 1 to 10,000, not 2.5"),
        (Choice(repetitions=True), "repetitions is a whole number from 1 to 10,000, not True"),
        (Choice(profiles=("python", "python")), "the profile 'python' is named twice"),
        (Choice(profiles=()), "an empty list of profiles runs nothing; leave it out for the task's own"),
        (
            Choice(profiles=cast("tuple[str, ...]", "python")),
            "profiles is a sequence of names, such as ('python',), not the text 'python'",
        ),
    ],
)
def test_a_choice_that_no_task_can_have_is_refused_in_words(choice: Choice, said: str) -> None:
    with pytest.raises(grader.UsageError) as caught:
        graded(TWO, choice=choice)
    assert str(caught.value) == said


def test_a_limit_above_the_profiles_maximum_runs_nothing() -> None:
    calls: list[Call] = []

    def script(call: Call) -> Answer:
        calls.append(call)
        return echo(call)

    with pytest.raises(grader.TaskError, match="above the profile's maximum"):
        graded(task_of({"limits": {"cpu_time_s": 10**6}}), script)
    assert calls == []


def interrupted(folder: Path, after: int) -> None:
    """A grading of TWO that dies (as by Ctrl-C) when `after` runs have ended."""

    def script(call: Call) -> Answer:
        return HANGS if call.number >= after else echo(call)

    async def main() -> None:
        async with Runner(sandbox=FakeSandbox(script), record=folder, max_parallel=1) as runner:
            with anyio.move_on_after(0.2) as scope:
                await runner.grade(TWO, ECHO)
            assert scope.cancelled_caught
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anyio.run(main)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_resume_runs_only_what_is_missing(tmp_path: Path, after: int) -> None:
    folder = tmp_path / "r"
    interrupted(folder, after)
    assert len(open_record(folder)[0].runs) == after
    sandbox = FakeSandbox(echo)

    async def main() -> list[Graded]:
        async with Runner(sandbox=sandbox, record=folder) as runner:
            return [result async for result in runner.resume()]

    (result,) = run(main)
    assert value(result) is Tri.TRUE
    assert len(sandbox.calls) == 4 - after
    (again,) = grader.replay(folder)
    assert again.verdict == result.verdict


def test_resume_refuses_another_kind_of_host_and_runs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    interrupted(folder, 1)
    sandbox = FakeSandbox(echo, facts=Facts(host={"engine": "another"}))

    async def main() -> None:
        async with Runner(sandbox=sandbox, record=folder) as runner:
            async for _ in runner.resume():
                pass

    with pytest.raises(grader.RecordError, match="engine is another"):
        run(main)
    assert sandbox.calls == []


async def many(runner: Runner, pairs: list[tuple[Task, Submission | Path]]) -> list[Graded]:
    return [result async for result in runner.grade_many(pairs)]


def test_grade_many_gives_every_submission_and_lists_the_refused(tmp_path: Path) -> None:
    folder = tmp_path / "batch"
    pairs: list[tuple[Task, Submission | Path]] = [
        (ONE, Submission.from_source(f"print({number})", name=f"s{number}.py")) for number in range(20)
    ]
    pairs.insert(7, (ONE, tmp_path / "nowhere.py"))

    async def main() -> list[Graded]:
        async with Runner(sandbox=FakeSandbox(echo), record=folder, max_parallel=3) as runner:
            return await many(runner, pairs)

    results = run(main)
    assert len(results) == 21
    refused = [result for result in results if result.error is not None]
    assert [result.verdict for result in refused] == [None]
    assert all(value(result) is Tri.TRUE for result in results if result.error is None)
    names = sorted(entry.submission.name for entry in open_record(folder) if entry.submission is not None)
    assert names == sorted(f"s{number}.py" for number in range(20))


def test_grade_many_is_bounded_and_cancellable() -> None:
    taken: list[int] = []

    async def endless() -> AsyncIterator[tuple[Task, Submission]]:
        for number in range(10**9):
            taken.append(number)
            yield ONE, ECHO

    sandbox = FakeSandbox(echo)

    async def main() -> None:
        async with (
            Runner(sandbox=sandbox, max_parallel=2) as runner,
            aclosing(runner.grade_many(endless())) as results,
        ):
            async for _ in results:
                await anyio.sleep(0.05)
                break

    run(main)
    assert len(taken) < 10
    assert sandbox.seats_open == 0


def test_a_bug_in_the_middle_of_a_stream_comes_out_where_it_is_read() -> None:
    def script(call: Call) -> Answer:
        raise LookupError("a bug")

    async def main() -> None:
        async with Runner(sandbox=FakeSandbox(script)) as runner:
            with pytest.raises(LookupError, match="a bug"):
                await many(runner, [(ONE, ECHO)] * 5)

    run(main)


def test_a_runner_is_entered_once_and_of_no_use_when_it_is_closed() -> None:
    async def main() -> None:
        runner = Runner(sandbox=FakeSandbox(echo))
        with pytest.raises(grader.UsageError, match="the runner is not open") as never:
            await runner.grade(ONE, ECHO)
        assert "any more" not in str(never.value)
        async with runner:
            with pytest.raises(grader.UsageError, match="entered once"):
                async with runner:
                    pass
            assert value(await runner.grade(ONE, ECHO)) is Tri.TRUE  # it goes on as if nothing had been tried
        with pytest.raises(grader.UsageError, match="not open any more"):
            await runner.grade(ONE, ECHO)
        with pytest.raises(grader.UsageError, match="entered once"):
            async with runner:
                pass

    run(main)


def test_a_runner_that_could_not_open_may_be_tried_again() -> None:
    class Late(FakeSandbox):
        is_there = False

        async def __aenter__(self) -> Sandbox:
            if not self.is_there:
                raise grader.PrerequisiteError("no engine answers")
            return await super().__aenter__()

    async def main() -> None:
        sandbox = Late(echo)
        runner = Runner(sandbox=sandbox)
        with pytest.raises(grader.PrerequisiteError):
            await runner.__aenter__()
        sandbox.is_there = True
        async with runner:
            assert value(await runner.grade(ONE, ECHO)) is Tri.TRUE

    run(main)


def test_stopping_at_the_first_false() -> None:
    calls: list[int] = []

    def script(call: Call) -> Answer:
        calls.append(call.number)
        return Behaviour(stdout=b"wrong")

    async def main() -> Graded:
        async with Runner(sandbox=FakeSandbox(script), stop_at_first_false=True) as runner:
            return await runner.grade(TWO, ECHO)

    assert value(run(main)) is Tri.FALSE
    assert len(calls) == 2


def test_the_record_is_sealed_and_holds_the_verdict(tmp_path: Path) -> None:
    result = graded(ONE, record=tmp_path / "r")
    assert json.loads((tmp_path / "r" / "verdict.json").read_text())
    (entry,) = open_record(tmp_path / "r")
    assert entry.verdict == result.verdict


def test_what_is_for_scripts_names_what_to_await_inside_a_running_loop() -> None:
    async def notebook() -> None:
        with pytest.raises(RuntimeError, match=r"await grader\.grade\(\.\.\.\) instead"):
            grader.grade_sync(ONE, ECHO)
        with pytest.raises(RuntimeError, match=r"await grader\.judge_conversation\(\.\.\.\) instead"):
            grader.judge_conversation_sync(b"[]")

    anyio.run(notebook)
