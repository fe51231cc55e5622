"""The plan: which runs a task asks for, in which order, with exactly which inputs.

Order: program condition, case, profile, repetition. The plan's fingerprint is over the invocations alone, so that the
same runs can be judged under another expectation; names and objectives are outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from pydantic import Field

from grader.core.bytes_field import Bytes
from grader.core.canonical import Normal, canonical_json, digest, normal, sha256_hex
from grader.core.cases import InputFile, ProgramCase
from grader.core.expectation import Task
from grader.core.limits import EffectiveLimits, LimitRange, Limits
from grader.core.values import Value

T = TypeVar("T")


class ProfileInForce(Value):
    """What a record keeps of a runtime profile: its whole body, the image that ran, and what the plan needs of it."""

    name: str
    image_id: str
    environment: dict[str, str] = Field(default_factory=dict[str, str])
    limits: LimitRange = LimitRange()
    compile_limits: EffectiveLimits | None = None
    """The limits of the compile command; None if the profile does not compile."""
    body: dict[str, object] = Field(default_factory=dict[str, object])
    """The profile as it was written, with defaults filled in."""

    @property
    def is_traced(self) -> bool:
        """Whether programs have a trace endpoint."""
        return self.body.get("traces") is not None

    @property
    def trusts_exporter(self) -> bool:
        """Whether what a program sends to its trace endpoint can be all that it did."""
        return self.is_traced and self.body.get("trusts_exporter") is True

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over body and image id."""
        return digest({"body": self.body, "image_id": self.image_id})

    @cached_property
    def digested(self) -> Normal:
        """How it stands in the digests of observations, which of a stream of submissions all have the same profiles."""
        return normal(self.model_dump(mode="json", exclude_defaults=True))


class Invocation(Value):
    """The exact input of a run."""

    profile: str
    arguments: tuple[Bytes, ...]
    stdin: Bytes
    environment: dict[str, Bytes]
    """All of it: nothing is inherited."""
    files: tuple[InputFile, ...]
    collect: tuple[Bytes, ...]
    """Names of the files that are read back when the run has ended."""
    limits: EffectiveLimits

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical form; large inputs stand in it by their own digest."""
        return _InvocationDigests().of(self)


class _InvocationDigests:
    """Digests of invocations. What many of them share as one object (environment, limits) is written once."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[object, str]] = {}

    def of(self, invocation: Invocation) -> str:
        """The digest of `Invocation.digest`: the keys stand here in the order of canonical JSON."""
        files = sorted([sha256_hex(f.name), sha256_hex(f.content), f.executable] for f in invocation.files)
        text = (
            f'{{"arguments":{_digests(invocation.arguments)}'
            f',"collect":{_digests(sorted(invocation.collect, key=sha256_hex))}'
            f',"environment":{self._once(invocation.environment, _plain_environment)}'
            f',"files":{canonical_json(files).decode() if files else "[]"}'
            f',"limits":{self._once(invocation.limits, dict)}'
            f',"profile":{self._once(invocation.profile, str)}'
            f',"stdin":"{sha256_hex(invocation.stdin)}"}}'
        )
        return sha256_hex(text.encode())

    def _once(self, value: T, plain: Callable[[T], object]) -> str:
        known = self._written.get(id(value))
        if known is None:
            # The value is kept with its text: as long as it is, no other has its id.
            known = self._written[id(value)] = (value, canonical_json(plain(value)).decode())
        return known[1]


def _digests(values: Sequence[bytes]) -> str:
    """A JSON list of the digests of these values."""
    return '["' + '","'.join(sha256_hex(value) for value in values) + '"]' if values else "[]"


def _plain_environment(environment: dict[str, bytes]) -> dict[str, str]:
    return {name: sha256_hex(value) for name, value in environment.items()}


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of the plan. Indices count from 0."""

    index: int
    program: int
    """Which of the task's `ProgramBehaves` conditions, from left to right."""
    case: int
    repetition: int
    invocation: Invocation

    @property
    def profile(self) -> str:
        """The name of the profile it runs under."""
        return self.invocation.profile

    @property
    def cell(self) -> tuple[int, int, str]:
        """Runs with the same cell are repetitions of each other."""
        return (self.program, self.case, self.profile)


@dataclass(frozen=True)
class Plan:
    """All runs of a task under the given profiles, in order."""

    runs: tuple[PlannedRun, ...]
    profiles: tuple[ProfileInForce, ...]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) over the ordered digests of the invocations."""
        digests = _InvocationDigests()
        of_invocation: dict[int, str] = {}  # by id: repetitions share one invocation, and the plan holds it
        for run in self.runs:
            key = id(run.invocation)
            if key not in of_invocation:
                of_invocation[key] = digests.of(run.invocation)
        return digest([of_invocation[id(run.invocation)] for run in self.runs])

    @property
    def cells(self) -> tuple[tuple[int, int, str], ...]:
        """The cells, each once, in order."""
        return tuple(dict.fromkeys(run.cell for run in self.runs))

    def size_in_words(self) -> str:
        """`4 cases x 3 repetitions x 2 profiles = 24 runs`."""
        cases = len({(run.program, run.case) for run in self.runs})
        profiles = len({run.profile for run in self.runs})
        repetitions = {(run.program, run.case): run.repetition + 1 for run in self.runs}.values()
        fewest, most = min(repetitions), max(repetitions)
        times = _count(most, "repetition") if fewest == most else f"{fewest} to {most} repetitions"
        return f"{_count(cases, 'case')} × {times} × {_count(profiles, 'profile')} = {_count(len(self.runs), 'run')}"


def make_plan(task: Task, profiles: Sequence[ProfileInForce]) -> Plan:
    """The runs that `task` asks for. Raises ValueError for no runs, or a limit above a profile's maximum."""
    runs: list[PlannedRun] = []
    invocations = _Invocations(task, profiles)
    for program_index, program in enumerate(task.programs()):
        for case_index, case in enumerate(program.cases):
            for profile in profiles:
                invocation = invocations.of(case, profile)
                start = len(runs)
                runs.extend(
                    PlannedRun(start + repetition, program_index, case_index, repetition, invocation)
                    for repetition in range(program.repetitions)
                )
    if not runs:
        raise ValueError("nothing to run: the task has no program_behaves condition, or no profile fits")
    return Plan(tuple(runs), tuple(profiles))


def limit_problems(task: Task, profiles: Iterable[ProfileInForce]) -> tuple[str, ...]:
    """Every limit of the task that is above a profile's maximum, in words; empty if none is."""
    problems: list[str] = []
    for profile in profiles:
        known: dict[Limits, tuple[str, ...]] = {}  # most cases have the same limits: mostly none of their own
        for program in task.programs():
            for case_index, case in enumerate(program.cases):
                if case.limits not in known:
                    known[case.limits] = profile.limits.refusals(case.limits.over(task.limits))
                refusals = known[case.limits]
                problems.extend(f"case {case_index} under {profile.name}: {refusal}" for refusal in refusals)
    return tuple(problems)


class _Invocations:
    """Makes the invocations of a task; cases with the same limits share the work of laying them over a profile's."""

    def __init__(self, task: Task, profiles: Sequence[ProfileInForce]) -> None:
        self._task = task
        self._environments = {
            profile.name: {name: value.encode() for name, value in profile.environment.items()} for profile in profiles
        }
        self._limits: dict[tuple[str, Limits], EffectiveLimits] = {}

    def of(self, case: ProgramCase, profile: ProfileInForce) -> Invocation:
        """What a case gives to the program under a profile. Raises ValueError for a limit above the maximum."""
        key = (profile.name, case.limits)
        limits = self._limits.get(key)
        if limits is None:
            limits = self._limits[key] = profile.limits.effective(case.limits.over(self._task.limits))
        environment = self._environments[profile.name]
        return Invocation.model_construct(
            profile=profile.name,
            arguments=case.arguments,
            stdin=case.stdin,
            environment={**environment, **case.environment} if case.environment else environment,
            files=case.files,
            collect=tuple(file.name for file in case.output_files),
            limits=limits,
        )


def first_difference(asked: Plan, recorded: Plan) -> str | None:
    """The first way in which two plans differ, in words; None if they ask for the same runs."""
    if asked.fingerprint == recorded.fingerprint:
        return None
    for ours, theirs in zip(asked.runs, recorded.runs, strict=False):
        where = f"case {ours.case}"
        if ours.cell != theirs.cell or ours.repetition != theirs.repetition:
            break
        for name in Invocation.model_fields:
            if canonical_json(_plain(ours.invocation, name)) != canonical_json(_plain(theirs.invocation, name)):
                return f"{where} has {_OTHER.get(name, f'another {name}')}: {_changed(ours, theirs, name)}"
    return f"the task asks for {asked.size_in_words()}, the record has {recorded.size_in_words()}"


_OTHER = {
    "arguments": "another list of arguments",
    "collect": "another list of output files",
    "files": "other files",
    "limits": "other limits",
}


def _plain(invocation: Invocation, name: str) -> object:
    return invocation.model_dump(mode="json", include={name})[name]


def _changed(ours: PlannedRun, theirs: PlannedRun, name: str) -> str:
    if name == "limits":
        pairs = zip(ours.invocation.limits, theirs.invocation.limits, strict=True)
        return ", ".join(f"{key} {mine:,} (recorded: {other:,})" for (key, mine), (_, other) in pairs if mine != other)
    return "the record cannot answer for input that the program never got"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
