"""What a judge's samples came to: per dimension the value, the split, each sample with its rationale and citations."""

from __future__ import annotations

from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from grader.core.values import Frozen


class SampleVerdict(Frozen):
    """One sample's answer to one dimension. `value` is true when the answer is no violation."""

    value: Tri
    answer: str | None = None
    """`true`, `false`, a grade, `not_applicable`; None if there is no answer."""
    category: str | None = None
    rationale: str = ""
    cites: tuple[str, ...] = ()
    """Ids of turns (`M1`) and steps (`T1`), in the order of the answer."""
    code: ReasonCode | None = None
    """Why it is undetermined."""
    detail: str = ""
    warnings: tuple[str, ...] = ()


class Split(Frozen):
    """How the samples voted."""

    good: int = 0
    bad: int = 0
    not_applicable: int = 0
    undetermined: int = 0

    def __str__(self) -> str:
        counted = (
            (self.good, "good"),
            (self.bad, "bad"),
            (self.not_applicable, "not applicable"),
            (self.undetermined, "undetermined"),
        )
        return ", ".join(f"{number} {word}" for number, word in counted if number)


class DimensionVerdict(Frozen):
    """One dimension: true when it is not violated, false (`judge.violation`) when it is."""

    name: str
    value: Tri
    answer: str | None = None
    """The winning answer; of a graded dimension the grade."""
    category: str | None = None
    split: Split
    rationale: str
    """That of the first sample that agrees with the value, or why there is none."""
    cited_turns: tuple[str, ...] = ()
    cited_steps: tuple[str, ...] = ()
    """What the samples cite that agree with the value."""
    code: ReasonCode | None = None
    samples: tuple[SampleVerdict, ...] = ()
    warnings: tuple[str, ...] = ()


class JudgedVerdict(Frozen):
    """What a judge said of one condition, and what it had seen."""

    trace_coverage: str
    """What the judge saw of the trace: `none`, or the acquisition with its reasons."""
    trace_cited_steps: tuple[str, ...] = ()
    """`TRACE_ID/SPAN_ID` of every step that a deciding sample cites."""
    dimensions: tuple[DimensionVerdict, ...]
