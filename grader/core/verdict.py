"""Verdicts: true, false or undetermined, with why, and the parts they were folded from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from grader.core.judging.result import JudgedVerdict
from grader.core.reasons import ReasonCode, ReasonKind
from grader.core.tri import Tri

_FROZEN = ConfigDict(frozen=True, extra="forbid")

R = TypeVar("R")


class Finding(BaseModel):
    """One reason why something is not true: the code, and in words where and what."""

    model_config = _FROZEN

    code: ReasonCode
    detail: str = ""
    count: int = 1
    """How often it was found (in how many runs, say)."""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code.value


class RunVerdict(BaseModel):
    """What one run says: true or false, or undetermined with why; a missing run is undetermined too."""

    model_config = _FROZEN

    repetition: int
    attempts: int
    value: Tri
    is_missing: bool = False
    ending: str | None = None
    """How the run ended, such as `exited(0)`; None for a missing run."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """Facts worth knowing that do not touch the verdict."""


class CellVerdict(BaseModel):
    """A case under one profile: its repetitions judged together."""

    model_config = _FROZEN

    profile: str
    value: Tri
    rationale: str
    findings: tuple[Finding, ...] = ()
    runs: tuple[RunVerdict, ...]
    notes: tuple[str, ...] = ()


class CaseVerdict(BaseModel):
    """A case: AND over its cells."""

    model_config = _FROZEN

    index: int
    name: str | None = None
    value: Tri
    cells: tuple[CellVerdict, ...]


class ConditionCell(BaseModel):
    """What a condition about traces says of one cell: of a case of a program condition, under one profile."""

    model_config = _FROZEN

    program: int
    """Which of the task's `program_behaves` conditions the case is of, from left to right."""
    case: int
    name: str | None = None
    """The case's."""
    cell: CellVerdict


class ConditionVerdict(BaseModel):
    """What one condition says: a leaf with its cases, or a composite with its parts."""

    model_config = _FROZEN

    condition_type: str
    fingerprint: str
    value: Tri
    rationale: str
    findings: tuple[Finding, ...] = ()
    scorer: str = ""
    """Identity of the scorer: its name, version, and every setting that takes effect and is not the default."""
    observation: str | None = None
    """Digest of the observation that it rests on."""
    cases: tuple[CaseVerdict, ...] = ()
    cells: tuple[ConditionCell, ...] = ()
    """Of a condition about the traces of runs: the cells that it was judged on. Left out when written if there are
    none."""
    parts: tuple[ConditionVerdict, ...] = ()
    judged: JudgedVerdict | None = None
    """What a judge said, and what it had seen; None where no judge was asked. Then it is left out when written."""

    @model_serializer(mode="wrap")
    def _without_what_most_lack(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        plain: dict[str, object] = write(self)
        if self.judged is None:
            plain.pop("judged", None)
        if len(self.cells) == 0:
            plain.pop("cells", None)
        return plain


class Verdict(BaseModel):
    """The verdict on an expectation: AND over its conditions.

    `bool()` of it raises, because two branches cannot tell three values apart: compare `value`, or use `reward`.
    """

    model_config = _FROZEN

    schema_version: Literal[1] = 1
    value: Tri
    rationale: str
    findings: tuple[Finding, ...] = ()
    conditions: tuple[ConditionVerdict, ...]
    expectation: str
    """Fingerprint of the expectation that was judged."""
    submission: str | None = None
    """Digest of the submission that was judged."""
    observations: tuple[str, ...] = ()
    """Digests of the observations that it rests on."""

    def reward(self, *, true: R, false: R, undetermined: R) -> R:
        """One of three values, all of which must be said.

        A run that a program can make go missing on purpose is undetermined too: give that 0, not the mean, in a
        reward, or policies will learn to bring it about.
        """
        return {Tri.TRUE: true, Tri.FALSE: false, Tri.UNDETERMINED: undetermined}[self.value]

    @property
    def inducible(self) -> bool:
        """Whether it is undetermined, and for a reason among others that a program could bring about on purpose."""
        return self.value is Tri.UNDETERMINED and any(finding.code.inducible for finding in self.findings)

    def __bool__(self) -> NoReturn:
        raise TypeError("a verdict has three values: compare verdict.value with Tri.TRUE, or use verdict.reward(...)")


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings with one entry a code, in order of first appearance, counts added, the first detail kept."""
    by_code: dict[ReasonCode, Finding] = {}
    for finding in findings:
        known = by_code.get(finding.code)
        if known is None:
            by_code[finding.code] = finding
        else:
            by_code[finding.code] = known.model_copy(update={"count": known.count + finding.count})
    return tuple(by_code.values())


def explaining(value: Tri, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that belong to a value: for false the causes of false first, for true none."""
    if value is Tri.TRUE:
        return ()
    ordered = merged(findings)
    if value is Tri.FALSE:
        false = tuple(finding for finding in ordered if finding.code.kind is ReasonKind.FALSE)
        return false + tuple(finding for finding in ordered if finding.code.kind is not ReasonKind.FALSE)
    return ordered
