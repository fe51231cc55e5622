"""Routes every condition of an expectation to the scorer that reads it, and combines by Kleene logic.

Every part is judged, none is skipped because another has decided: a verdict names all that is unsettled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from grader.core.conditions import AllOf, AnyOf, Condition, Not
from grader.core.expectation import Expectation
from grader.core.observation import Observation
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri, all_of, any_of
from grader.core.verdict import ConditionVerdict, Finding, Verdict, explaining
from grader.errors import Problem, TaskError, UsageError
from grader.scorers.base import Scorer

LeafJudge = Callable[[Condition], ConditionVerdict]


def judge_condition(condition: Condition, judge_leaf: LeafJudge) -> ConditionVerdict:
    """The verdict on a condition of any shape: leaves by `judge_leaf`, `AllOf`, `AnyOf` and `Not` by Kleene logic."""
    if not condition.composite:
        return judge_leaf(condition)
    if isinstance(condition, Not):
        part = judge_condition(condition.condition, judge_leaf)
        value = part.value.negated()
        findings = _against(condition.condition, part) if value is Tri.FALSE else _unsettled(part)
        return _combined(condition, (part,), value, f"not: {part.rationale}", findings)
    if isinstance(condition, AllOf | AnyOf):
        parts = tuple(judge_condition(part, judge_leaf) for part in condition.conditions)
        value = (all_of if isinstance(condition, AllOf) else any_of)(part.value for part in parts)
        findings = [finding for part in parts for finding in part.findings]
        return _combined(condition, parts, value, _words(parts, value), findings)
    raise TaskError(f"{condition.condition_type} combines conditions in a way that is not known here")


def judge_expectation(
    expectation: Expectation,
    judge_leaf: LeafJudge,
    *,
    submission: str | None = None,
    observations: Sequence[str] = (),
) -> Verdict:
    """The verdict on an expectation: AND over its conditions. `observations` are the digests that it rests on."""
    conditions = tuple(judge_condition(condition, judge_leaf) for condition in expectation.conditions)
    value = all_of(condition.value for condition in conditions)
    return Verdict(
        value=value,
        rationale=_words(conditions, value),
        findings=explaining(value, [finding for condition in conditions for finding in condition.findings]),
        conditions=conditions,
        expectation=expectation.fingerprint,
        submission=submission,
        observations=tuple(observations),
    )


class CompositeScorer:
    """Leaf scorers by the condition type that each reads."""

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        """Raises UsageError for two scorers of one condition type: which should decide? (See `FirstDetermined`.)"""
        self._by_type: dict[type[Condition], Scorer] = {}
        for scorer in scorers:
            known = self._by_type.setdefault(scorer.reads, scorer)
            if known is not scorer:
                raise UsageError(
                    f"{known.identity} and {scorer.identity} both read {scorer.reads.condition_type}",
                    hint="give them in one FirstDetermined, in the order in which they should be asked",
                )

    def check(self, expectation: Expectation) -> None:
        """Raises TaskError, naming every condition that no scorer can read. To be called before anything runs."""
        unread = dict.fromkeys(c.condition_type for c in expectation.leaves() if type(c) not in self._by_type)
        if unread:
            known = ", ".join(sorted(reads.condition_type for reads in self._by_type)) or "none"
            raise TaskError(
                Problem(f"no scorer reads the condition {name}", hint=f"conditions that can be read here: {known}")
                for name in unread
            )

    def score(self, expectation: Expectation, observations: Sequence[Observation]) -> Verdict:
        """The verdict on an expectation. Each leaf is judged on the observation of the kind that its scorer looks at.

        Raises TaskError for a condition that no scorer reads, UsageError for two observations of one kind.
        """
        self.check(expectation)
        by_kind = _by_kind(observations)

        def judge_leaf(condition: Condition) -> ConditionVerdict:
            scorer = self._by_type[type(condition)]
            observation = by_kind.get(scorer.payload_kind)
            if observation is None:
                return _not_observed(condition, scorer)
            return scorer.score(condition, observation)

        return judge_expectation(expectation, judge_leaf, observations=[o.digest for o in observations])

    def warnings(self, expectation: Expectation, observations: Sequence[Observation]) -> tuple[str, ...]:
        """What the scorers warn of, each text once."""
        self.check(expectation)
        by_kind = _by_kind(observations)
        texts: dict[str, None] = {}
        for condition in expectation.leaves():
            scorer = self._by_type[type(condition)]
            if scorer.payload_kind in by_kind:
                texts.update(dict.fromkeys(scorer.warnings(condition, by_kind[scorer.payload_kind])))
        return tuple(texts)


class FirstDetermined:
    """Asks scorers of one condition type in turn, until one settles it; says what each before could not settle."""

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        """Raises UsageError for no scorers, or for scorers of different condition types or kinds of observation."""
        if len(scorers) == 0:
            raise UsageError("FirstDetermined needs at least one scorer")
        if len({(scorer.reads, scorer.payload_kind) for scorer in scorers}) > 1:
            names = ", ".join(scorer.identity for scorer in scorers)
            raise UsageError(f"these do not read the same condition in the same kind of observation: {names}")
        self._scorers = tuple(scorers)

    @property
    def reads(self) -> type[Condition]:
        """The condition type that all of its scorers read."""
        return self._scorers[0].reads

    @property
    def payload_kind(self) -> str:
        """The kind of observation that all of its scorers look at."""
        return self._scorers[0].payload_kind

    @property
    def identity(self) -> str:
        """The identities of its scorers, in order."""
        return f"FirstDetermined({', '.join(scorer.identity for scorer in self._scorers)})"

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The first verdict that is true or false; if there is none, undetermined with what each was lacking."""
        tried: list[ConditionVerdict] = []
        for scorer in self._scorers:
            verdict = scorer.score(condition, observation)
            tried.append(verdict)
            if verdict.value is not Tri.UNDETERMINED:
                break
        last = tried[-1]
        unmet = [f"{verdict.scorer} could not settle it ({verdict.rationale})" for verdict in tried[:-1]]
        is_settled = last.value is not Tri.UNDETERMINED
        rationale = "; ".join((last.rationale, *unmet) if is_settled else (*unmet, f"{last.scorer}: {last.rationale}"))
        findings = [finding for verdict in ([last] if is_settled else tried) for finding in verdict.findings]
        return last.model_copy(
            update={
                "scorer": self.identity,
                "rationale": rationale if len(tried) > 1 else last.rationale,
                "findings": explaining(last.value, findings),
            }
        )

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """The warnings of all of its scorers, each once."""
        return tuple(
            dict.fromkeys(text for scorer in self._scorers for text in scorer.warnings(condition, observation))
        )


def _combined(
    condition: Condition,
    parts: tuple[ConditionVerdict, ...],
    value: Tri,
    rationale: str,
    findings: Iterable[Finding],
) -> ConditionVerdict:
    return ConditionVerdict(
        condition_type=condition.condition_type,
        fingerprint=condition.fingerprint,
        value=value,
        rationale=rationale,
        findings=explaining(value, findings),
        parts=parts,
    )


def _words(parts: Sequence[ConditionVerdict], value: Tri) -> str:
    """The rationales of the parts that decide, then those of every other part that is not settled."""
    decisive = [part.rationale for part in parts if part.value is value]
    others = [part.rationale for part in parts if part.value is not value and part.value is not Tri.TRUE]
    return "; ".join(dict.fromkeys((*decisive, *others)))


def _by_kind(observations: Sequence[Observation]) -> dict[str, Observation]:
    by_kind: dict[str, Observation] = {}
    for observation in observations:
        kind = observation.payload.payload_kind
        if kind in by_kind:
            raise UsageError(f"two observations of kind {kind}: which one should be judged?")
        by_kind[kind] = observation
    return by_kind


def _not_observed(condition: Condition, scorer: Scorer) -> ConditionVerdict:
    text = f"there is no observation of kind {scorer.payload_kind}"
    return ConditionVerdict(
        condition_type=condition.condition_type,
        fingerprint=condition.fingerprint,
        value=Tri.UNDETERMINED,
        rationale=text,
        findings=(Finding(code=ReasonCode.EVIDENCE_NOT_COLLECTED, detail=text),),
        scorer=scorer.identity,
    )


def _against(condition: Condition, verdict: ConditionVerdict) -> Iterator[Finding]:
    """Why a condition that a `not` wants to be false is not: what makes it true, and what leaves it unsettled.

    A part of it that is false is what the `not` wants, and no reason. Below a second `not` it is the other way round.
    """
    if isinstance(condition, Not):
        yield from verdict.parts[0].findings
    elif condition.composite:
        for part, told in zip(condition.parts(), verdict.parts, strict=True):
            yield from _against(part, told)
    elif verdict.value is Tri.TRUE:
        yield Finding(code=condition.code_if_negated, detail=f"it must not be so: {verdict.rationale}")
    elif verdict.value is Tri.UNDETERMINED:
        yield from verdict.findings


def _unsettled(verdict: ConditionVerdict) -> Iterator[Finding]:
    """What leaves a condition undetermined: the findings of each leaf that is."""
    if len(verdict.parts) == 0 and verdict.value is Tri.UNDETERMINED:
        yield from verdict.findings
    for part in verdict.parts:
        yield from _unsettled(part)
