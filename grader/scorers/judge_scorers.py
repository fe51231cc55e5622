"""The leaf scorers of judge conditions: they re-parse what a judge answered, check what it cites, and vote.

Pure: nobody is asked here. The same observation gives the same verdict with the endpoint long gone, and another verdict
under another voting rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from grader.core.canonical import digest
from grader.core.conditions import Condition
from grader.core.judging.answer import read_reply
from grader.core.judging.conditions import (
    JudgeCondition,
    JudgeSettings,
    MatchesObjective,
    MeetsDimensions,
    TraceEvidenceRequirement,
)
from grader.core.judging.dimensions import Dimension
from grader.core.judging.judgement import PAYLOAD_KIND, RENDERING_VERSION, Failure, Judgement, JudgementPayload
from grader.core.judging.result import DimensionVerdict, JudgedVerdict
from grader.core.judging.votes import fold
from grader.core.observation import Acquisition, Observation
from grader.core.quoting import quote_text
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri, all_of
from grader.core.verdict import ConditionVerdict, Finding, explaining
from grader.errors import UsageError
from grader.scorers.base import Scorer

C = TypeVar("C", bound=JudgeCondition)
_LONGEST_RATIONALE = 400


def unmet_requirement(
    requirement: TraceEvidenceRequirement, acquisition: Acquisition | None, reasons: Sequence[str] = ()
) -> Failure | None:
    """Why a judge may not be asked on a trace of which so much was got; None if it may."""
    if requirement is TraceEvidenceRequirement.NONE or acquisition is Acquisition.COMPLETE:
        return None
    if requirement is TraceEvidenceRequirement.AVAILABLE and acquisition is Acquisition.PARTIAL:
        return None
    got = acquisition.value if acquisition is not None else "not asked for"
    why = f" ({'; '.join(reasons)})" if reasons else ""
    detail = f"a trace must be {requirement.value}, and it is {got}{why}: the judge is not asked"
    return Failure(code=ReasonCode.JUDGE_EVIDENCE_REQUIRED, detail=detail)


class _JudgeScorer(Generic[C]):
    """A leaf scorer; `version` counts changes of its rules, from 1."""

    version: ClassVar[int] = 1
    payload_kind: str = PAYLOAD_KIND
    reads: type[C]

    def __init__(
        self,
        settings: JudgeSettings | None = None,
        *,
        has_trace_source: bool,
        has_facts: bool = False,
        clock_skew_tolerance_ns: int = 0,
    ) -> None:
        """Raises UsageError for settings that require a trace where there is no source of traces."""
        self.settings = settings if settings is not None else JudgeSettings()
        self._has_facts = has_facts
        self._tolerance_ns = clock_skew_tolerance_ns
        if self.settings.require_trace is not TraceEvidenceRequirement.NONE and not has_trace_source:
            raise UsageError(
                f"a trace is required ({self.settings.require_trace.value}), and there is no source of traces",
                hint="name a trace, or require none",
            )

    @property
    def identity(self) -> str:
        """Name, version, and every setting that takes effect and is not the default."""
        parts = list(self.settings.identity(has_facts=self._has_facts))
        if self._has_facts and self.settings.give_facts and self._tolerance_ns:
            parts.append(f"clock_skew_tolerance={self._tolerance_ns}ns")
        if RENDERING_VERSION != 1:
            parts.append(f"rendering={RENDERING_VERSION}")
        more = f"({', '.join(parts)})" if parts else ""
        return f"{type(self).__name__}/{self.version}{more}"

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The verdict on a condition. Raises UsageError for a condition of another type."""
        if not isinstance(condition, self.reads):
            raise UsageError(f"{type(self).__name__} reads {self.reads.condition_type}, not {condition.condition_type}")
        payload = observation.payload
        if not isinstance(payload, JudgementPayload):
            text = f"the observation is of kind {payload.payload_kind}, and holds no judgement"
            return self._undetermined(condition, observation, Failure(code=_NOT_COLLECTED, detail=text), None)
        found = self._find(condition.questions, payload)
        if isinstance(found, Failure):
            return self._undetermined(condition, observation, found, payload)
        return self._concluded(condition, observation, payload, self._vote(found, payload))

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """What was odd in the judge's answers, such as a category that contradicts its value."""
        judged = self.score(condition, observation).judged
        dimensions = judged.dimensions if judged is not None else ()
        return tuple(f"{dimension.name}: {text}" for dimension in dimensions for text in dimension.warnings)

    def _find(self, questions: tuple[Dimension, ...], payload: JudgementPayload) -> Judgement | Failure:
        """The samples to vote on, or why there are none."""
        settings = self.settings
        unmet = unmet_requirement(settings.require_trace, payload.acquisition, payload.acquisition_reasons)
        if unmet is not None:
            return unmet
        found = next((one for one in payload.judgements if one.dimensions == questions), None)
        if found is None:
            return _needs("the judge was not asked this")
        if payload.trace_budget != settings.trace_budget:
            return _needs(f"the judge was shown {payload.trace_budget:,} characters of the trace")
        if found.facts and not settings.give_facts:
            return _needs("the judge was given facts")
        if found.not_asked is not None:
            if found.not_asked.code is ReasonCode.JUDGE_EVIDENCE_REQUIRED:
                return _needs("the judge was not asked, because more of a trace was required then")
            return found.not_asked
        if len(found.replies) < settings.samples:
            return _needs(f"the judge was asked {len(found.replies)} times, not {settings.samples} times")
        return found.model_copy(update={"replies": found.replies[: settings.samples]})

    def _vote(self, judgement: Judgement, payload: JudgementPayload) -> tuple[DimensionVerdict, ...]:
        known = frozenset((*(turn.id for turn in payload.turns), *judgement.steps))
        samples = [read_reply(reply, judgement.dimensions, judgement.facts, known) for reply in judgement.replies]
        return tuple(
            fold(dimension, [sample[dimension.name] for sample in samples], self.settings.rule)
            for dimension in judgement.dimensions
        )

    def _concluded(
        self,
        condition: Condition,
        observation: Observation,
        payload: JudgementPayload,
        dimensions: tuple[DimensionVerdict, ...],
    ) -> ConditionVerdict:
        value = all_of(dimension.value for dimension in dimensions)
        ordered = sorted(dimensions, key=lambda dimension: dimension.value is not value)
        told = [dimension for dimension in ordered if dimension.value is value or dimension.value is not Tri.TRUE]
        findings = [Finding(code=one.code, detail=in_words(one)) for one in ordered if one.code is not None]
        cited = dict.fromkeys(step for dimension in dimensions for step in dimension.cited_steps)
        return self._verdict(
            condition,
            observation,
            value,
            "; ".join(in_words(dimension) for dimension in told),
            explaining(value, findings),
        ).model_copy(
            update={
                "judged": JudgedVerdict(
                    trace_coverage=payload.trace_coverage,
                    trace_cited_steps=tuple(payload.spans[int(step[1:]) - 1] for step in cited),
                    dimensions=dimensions,
                )
            }
        )

    def _undetermined(
        self, condition: Condition, observation: Observation, why: Failure, payload: JudgementPayload | None
    ) -> ConditionVerdict:
        findings = (Finding(code=why.code, detail=why.detail),)
        verdict = self._verdict(condition, observation, Tri.UNDETERMINED, why.detail, findings)
        if payload is None:
            return verdict
        judged = JudgedVerdict(trace_coverage=payload.trace_coverage, dimensions=())
        return verdict.model_copy(update={"judged": judged})

    def _verdict(
        self, condition: Condition, observation: Observation, value: Tri, rationale: str, findings: tuple[Finding, ...]
    ) -> ConditionVerdict:
        return ConditionVerdict(
            condition_type=condition.condition_type,
            fingerprint=condition.fingerprint,
            value=value,
            rationale=rationale,
            findings=findings,
            scorer=self.identity_for(condition),
            observation=observation.digest,
        )

    def identity_for(self, condition: Condition) -> str:
        """The identity with the dimensions that were asked, where they are not fixed by the condition's type."""
        if not isinstance(condition, MeetsDimensions):
            return self.identity
        asked = digest([dimension.fingerprint for dimension in condition.dimensions])[:12]
        head, _, rest = self.identity.partition("(")
        return f"{head}(dimensions={asked}{', ' + rest if rest else ')'}"


class JudgeObjectiveScorer(_JudgeScorer[MatchesObjective]):
    """Whether the objective was met."""

    reads = MatchesObjective


class JudgeDimensionScorer(_JudgeScorer[MeetsDimensions]):
    """Whether no dimension has its bad value."""

    reads = MeetsDimensions


def judge_scorers(
    settings: JudgeSettings, *, has_trace_source: bool, has_facts: bool, clock_skew_tolerance_ns: int = 0
) -> tuple[Scorer, ...]:
    """The scorers of all judge conditions. Raises UsageError if a trace is required and there is no source."""
    return tuple(
        cls(
            settings,
            has_trace_source=has_trace_source,
            has_facts=has_facts,
            clock_skew_tolerance_ns=clock_skew_tolerance_ns,
        )
        for cls in (JudgeObjectiveScorer, JudgeDimensionScorer)
    )


def in_words(dimension: DimensionVerdict) -> str:
    """A dimension with its answer, split, rationale (quoted: it is a model's) and citations."""
    if dimension.value is Tri.UNDETERMINED:
        return f"{dimension.name}: {dimension.rationale}"
    category = f", {dimension.category}" if dimension.category is not None else ""
    cites = ", ".join((*dimension.cited_turns, *dimension.cited_steps))
    said = f"{dimension.name} is {dimension.answer}{category} ({dimension.split})"
    words = quote_text(dimension.rationale, _LONGEST_RATIONALE)
    return f"{said}: {words}" + (f", citing {cites}" if cites else "")


_NOT_COLLECTED = ReasonCode.EVIDENCE_NOT_COLLECTED


def _needs(why: str) -> Failure:
    return Failure(code=ReasonCode.NEEDS_EXECUTION, detail=why)
