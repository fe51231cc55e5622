"""The runner of a pipeline: grades one submission, or a stream of them, in one sandbox."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from grader.core.agent_tasks import asks_a_judge
from grader.core.expectation import Task
from grader.core.plan import Plan, ProfileInForce, limit_problems, make_plan
from grader.core.reasons import ReasonCode
from grader.core.selection import Selection
from grader.errors import (
    GraderError,
    Place,
    PrerequisiteError,
    Problem,
    RecordError,
    TaskError,
    UsageError,
    first_error,
)
from grader.formats.task_file import load_task
from grader.judge.base import Judge
from grader.runner.choice import EVERYTHING, Choice
from grader.runner.graded import Graded
from grader.runner.grading import (
    Assignment,
    Execution,
    Recorder,
    Watcher,
    grade_assignment,
    runs_done,
    runs_of_other_hosts,
    seats_for,
)
from grader.runner.programs import Profiles, image_of, make_program, profiles_for
from grader.runner.recording import Recording, check_resumable, record_facts
from grader.runner.replay import recorded_selection
from grader.runner.run import Rules, exported_spans
from grader.runner.verdicts import check_readable, check_traced
from grader.runtimes import LoadedProfile
from grader.sandbox.base import ISOLATIONS, Isolation, Sandbox
from grader.store import Record, RecordedEntry, RecordFacts, open_record
from grader.submission import Submission

TaskLike = Task | Path | str
SubmissionLike = Submission | Path | str


class Runner:
    """Grades submissions in one sandbox; an async context manager.

    `max_parallel`: runs at the same time, by default one a CPU. `isolation`: what two runs may share (see
    docs/explanation/threat-model.md). `record`: a folder for one record of everything that is graded, or None to keep
    none. `runtimes`: a folder with further profiles. `sandbox`: another than Docker's, such as
    `grader.sandbox.fake.FakeSandbox` in tests. `watcher` is told what goes on. `judge`: who is asked where a task has
    conditions for a judge, such as what `grader.runner.judging.call.http_judge` gives.

    Entering raises PrerequisiteError if the engine cannot be used.
    """

    def __init__(  # noqa: PLR0913 - the settings of a pipeline, all optional and by name
        self,
        *,
        max_parallel: int | None = None,
        isolation: Isolation = "submission",
        record: Path | str | None = None,
        runtimes: Path | str | None = None,
        sandbox: Sandbox | None = None,
        watcher: Watcher | None = None,
        stop_at_first_false: bool = False,
        keep_submission_files: bool = True,
        judge: Judge | None = None,
    ) -> None:
        if isolation not in ISOLATIONS:
            raise UsageError(f"isolation {isolation!r} is none of {', '.join(ISOLATIONS)}")
        if max_parallel is not None and max_parallel < 1:
            raise UsageError(f"max_parallel is at least 1, not {max_parallel}")
        self.max_parallel = max_parallel if max_parallel is not None else len(os.sched_getaffinity(0))
        self._isolation: Isolation = isolation
        self._recording = Recording(Path(record) if record is not None else None, keep_files=keep_submission_files)
        self._profiles = Profiles(Path(runtimes) if runtimes is not None else None)
        self._given_sandbox = sandbox
        self._watcher = watcher if watcher is not None else Watcher()
        self._stop_at_first_false = stop_at_first_false
        self._judge = judge
        self._limiter = anyio.Semaphore(self.max_parallel, fast_acquire=True)
        self._images: dict[tuple[str, Path], ProfileInForce] = {}
        self._image_lock = anyio.Lock()
        self._stack = AsyncExitStack()
        self._was_entered = False
        self._sandbox: Sandbox | None = None
        self._group: TaskGroup | None = None
        self._last_plan: tuple[Task, Plan] | None = None

    async def __aenter__(self) -> Runner:
        if self._was_entered:
            raise UsageError("a runner is entered once", hint="make another Runner; both may be open at the same time")
        self._was_entered = True
        sandbox = self._given_sandbox if self._given_sandbox is not None else self._docker_sandbox()
        await self._stack.__aenter__()
        try:
            self._sandbox = await self._stack.enter_async_context(sandbox)
        except BaseException:
            await self._stack.aclose()
            self._was_entered = False
            raise
        self._group = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            # The group holds only what feeds `grade_many`, which never raises: an error of the caller's own block goes
            # past it as it is, instead of inside an exception group.
            group = self._tasks()
            if error is not None:
                group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)
        finally:
            self._sandbox = None
            try:
                await self._stack.__aexit__(kind, error, trace)
            finally:
                self._recording.close(seal=error is None)
        return None

    async def grade(self, task: TaskLike, submission: SubmissionLike, choice: Choice = EVERYTHING) -> Graded:
        """Execute, record and judge one submission.

        Raises TaskError, SubmissionError, PrerequisiteError or UsageError before anything ran.
        """
        assignment = await self._assignment(_task(task), _submission(submission), choice)
        return await self._begun(assignment, Rules(seats_per_profile=seats_for(assignment.plan, self.max_parallel)))

    async def grade_many(
        self,
        pairs: Iterable[tuple[TaskLike, SubmissionLike]] | AsyncIterable[tuple[TaskLike, SubmissionLike]],
        choice: Choice = EVERYTHING,
    ) -> AsyncGenerator[Graded]:
        """Grade many submissions, a bounded number of them at a time; each is given out as it ends.

        A submission or task that is refused is given out with its `error`, and the others go on. Leaving the iteration
        early (with `contextlib.aclosing`, or `break` and `aclose()`) cancels what is under way and removes its boxes.
        """
        sender, receiver = anyio.create_memory_object_stream[Graded | BaseException](self.max_parallel)
        scope = anyio.CancelScope()
        self._tasks().start_soon(self._grade_all, pairs, choice, sender, scope)
        try:
            async for graded in receiver:
                if isinstance(graded, BaseException):
                    raise graded
                yield graded
        finally:
            scope.cancel()
            receiver.close()

    async def _grade_all(
        self,
        pairs: Iterable[tuple[TaskLike, SubmissionLike]] | AsyncIterable[tuple[TaskLike, SubmissionLike]],
        choice: Choice,
        sender: MemoryObjectSendStream[Graded | BaseException],
        scope: anyio.CancelScope,
    ) -> None:
        turn = anyio.Lock(fast_acquire=True)

        async def grade_one_after_the_other(coming: AsyncGenerator[tuple[TaskLike, SubmissionLike]]) -> None:
            while True:
                async with turn:
                    pair = await anext(coming, None)
                if pair is None:
                    return
                try:
                    # Given out before the next one is begun: a slow reader holds the work back instead of piling it up.
                    await sender.send(await self._graded_or_refused(*pair, choice))
                except anyio.BrokenResourceError:
                    return  # nobody reads any more; the scope is being cancelled

        async with sender:
            with scope:
                try:
                    async with aclosing(_each(pairs)) as coming, anyio.create_task_group() as group:
                        for _ in range(self.max_parallel):
                            group.start_soon(grade_one_after_the_other, coming)
                except BaseExceptionGroup as error:
                    if scope.cancel_called:
                        raise
                    await sender.send(first_error(error))
                except Exception as error:  # noqa: BLE001 - raised again where the results are read
                    await sender.send(error)

    async def _graded_or_refused(self, task: TaskLike, submission: SubmissionLike, choice: Choice) -> Graded:
        try:
            assignment = await self._assignment(_task(task), _submission(submission), choice)
        except PrerequisiteError:
            raise  # it would be the same for every other submission
        except GraderError as error:
            return Graded(submission_name=_name(submission), error=error)
        return await self._begun(assignment, Rules())

    async def resume(self) -> AsyncGenerator[Graded]:
        """Go on with the record of this runner: run what is missing in it, entry by entry, and judge each again.

        Runs that have an outcome are not run again. A cell that was begun on another host is run again whole; its old
        runs stay in the record, set aside.

        Raises RecordError (`record.mismatch`) if plan, submission, profile, image, supervisor, isolation or kind of
        host are not what they were: then nothing is run.
        """
        if self._recording.folder is None:
            raise UsageError("there is no record to resume", hint="give the Runner the record's folder")
        record = open_record(self._recording.folder)
        assignments: list[tuple[Assignment, frozenset[int]]] = []
        runs = ended = 0
        for entry in record:
            assignment = await self._resumed(entry, record)
            aside = runs_of_other_hosts(entry, record.sessions, self._facts().host_id, assignment.plan)
            assignments.append((assignment, aside))
            runs += len(assignment.plan.runs)
            ended += sum(run.index not in aside for run in runs_done(assignment.plan, entry.payload))
        self._recording.reopen(self._facts())
        self._watcher.resumed(len(record), runs, ended)
        for entry, (assignment, aside) in zip(record, assignments, strict=True):
            kept = tuple(run for run in entry.runs if run.index not in aside)
            resumed = replace(
                assignment, done=entry.payload.model_copy(update={"runs": kept}), answered=entry.observations
            )
            rules = Rules(seats_per_profile=seats_for(assignment.plan, self.max_parallel))
            yield await self._graded(resumed, rules, self._recording.go_on(entry.number, aside), entry.number)

    async def _resumed(self, entry: RecordedEntry, record: Record) -> Assignment:
        """The assignment of a recorded entry, if what would run now is what ran then."""
        recorded = entry.submission
        if recorded is None or recorded.files is None:
            kept = "it is of evidence that was scored" if recorded is None else "the submission's files were not kept"
            raise RecordError(
                f"this record cannot be resumed: {kept}",
                code=ReasonCode.RECORD_MISMATCH,
                where=Place(str(record.folder)),
            )
        submission = Submission(recorded.files, recorded.name, recorded.language, recorded.entry)
        assignment = await self._assigned(entry.task, submission, recorded_selection(record, entry))
        check_resumable(record, entry, assignment, self._facts())
        return assignment

    async def _assignment(self, task: Task, submission: Submission, choice: Choice) -> Assignment:
        """All that must be known before the first run; whatever is wrong is raised here."""
        effective, selection = choice.of(task)
        return await self._assigned(effective, submission, selection)

    async def _assigned(self, effective: Task, submission: Submission, selection: Selection | None) -> Assignment:
        check_readable(effective)
        effective = self._with_questions(effective)
        profiles = profiles_for(effective, submission, self._profiles)
        check_traced(effective, [profile.name for profile in profiles if profile.profile.traces is None])
        if any(profile.profile.traces is not None for profile in profiles):
            exported_spans()  # that what receives spans is installed is known before the first run
        in_force = [await self._in_force(profile) for profile in profiles]
        programs = {
            profile.name: make_program(profile, force, submission)
            for profile, force in zip(profiles, in_force, strict=True)
        }
        if asks_a_judge(effective):
            from grader.runner.judging.runs import check_questions

            check_questions(effective, in_force)
        return Assignment(
            task=effective,
            plan=self._plan(effective, in_force),
            programs=programs,
            submission=submission,
            selection=selection,
        )

    def _with_questions(self, task: Task) -> Task:
        """The task with what a judge is asked filled in. Raises UsageError if it asks a judge, and there is none."""
        if not asks_a_judge(task):
            return task
        from grader.runner.judging.verdicts import with_questions  # few tasks have a judge

        if self._judge is None:
            raise UsageError(
                "the task has conditions for a judge, and none was given",
                hint="give one as judge=...; the command line takes GRADER_JUDGE_URL and GRADER_JUDGE_MODEL",
            )
        return with_questions(task, of_runs=True)

    async def _in_force(self, profile: LoadedProfile) -> ProfileInForce:
        """The profile with its image, which is built at most once."""
        key = (profile.name, profile.file)
        if key not in self._images:
            async with self._image_lock:
                if key not in self._images:
                    self._images[key] = await image_of(profile, self._opened(), self._watcher.image_step)
        return self._images[key]

    def _plan(self, task: Task, profiles: Sequence[ProfileInForce]) -> Plan:
        """The plan; the last one is kept, because most submissions of a stream have the same task. Raises TaskError."""
        known = self._last_plan
        if known is not None and known[0] is task and known[1].profiles == tuple(profiles):
            return known[1]
        problems = limit_problems(task, profiles)
        if problems:
            raise TaskError(
                [Problem(problem, hint="a case may only lower what the profile allows") for problem in problems]
            )
        plan = make_plan(task, profiles)
        self._last_plan = (task, plan)
        return plan

    async def _begun(self, assignment: Assignment, rules: Rules) -> Graded:
        recorder, entry = self._recording.begin(assignment, self._facts)
        return await self._graded(assignment, rules, recorder, entry)

    async def _graded(self, assignment: Assignment, rules: Rules, recorder: Recorder, entry: int | None) -> Graded:
        execution = Execution(
            sandbox=self._opened(),
            limiter=self._limiter,
            rules=rules,
            stop_at_first_false=self._stop_at_first_false,
            recorder=recorder,
            watcher=self._watcher,
            judge=self._judge if asks_a_judge(assignment.task) else None,
        )
        outcome = await grade_assignment(assignment, execution)
        self._recording.verdict(entry, outcome.verdict)
        return Graded(
            submission_name=assignment.submission.name,
            task=assignment.task,
            selection=assignment.selection,
            plan=assignment.plan,
            observation=outcome.observation,
            observations=outcome.judgements,
            verdict=outcome.verdict,
            record=self._recording.folder,
            entry=entry,
        )

    def _facts(self) -> RecordFacts:
        return record_facts(self._opened().facts, self._isolation)

    def _docker_sandbox(self) -> Sandbox:
        from grader.sandbox.docker.sandbox import DockerSandbox

        return DockerSandbox(isolation=self._isolation, max_parallel=self.max_parallel)

    def _opened(self) -> Sandbox:
        if self._sandbox is None:
            state = "not open any more" if self._was_entered else "not open"
            raise UsageError(f"the runner is {state}", hint="use it as `async with grader.Runner() as runner:`")
        return self._sandbox

    def _tasks(self) -> TaskGroup:
        self._opened()
        assert self._group is not None
        return self._group


def _task(task: TaskLike) -> Task:
    return task if isinstance(task, Task) else load_task(task)


def _submission(submission: SubmissionLike) -> Submission:
    return submission if isinstance(submission, Submission) else Submission.from_path(submission)


def _name(submission: SubmissionLike) -> str:
    return submission.name if isinstance(submission, Submission) else str(submission)


async def _each(
    pairs: Iterable[tuple[TaskLike, SubmissionLike]] | AsyncIterable[tuple[TaskLike, SubmissionLike]],
) -> AsyncGenerator[tuple[TaskLike, SubmissionLike]]:
    if isinstance(pairs, AsyncIterable):
        async for pair in pairs:
            yield pair
        return
    for pair in pairs:
        yield pair
