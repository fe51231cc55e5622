"""The leaf scorers of tool conditions: one a condition, over traces (`Otel...`) and over messages (`Message...`).

A trace scorer judges all that was read, provided that a trace was read: calls that the conversation shows are united
with those of the trace. A message scorer looks at the conversation alone, which shows what was answered and never that
nothing else ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from grader.core.conditions import Condition
from grader.core.observation import Observation
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import ArgumentState, WhyNotRecorded
from grader.core.tools.calls import PAYLOAD_KIND, EvidenceSource, ToolsPayload
from grader.core.tools.conditions import ToolCondition, ToolPrecededBy, ToolsCalled, ToolsCalledInOrder, ToolsNotCalled
from grader.core.traces.coverage import CoverageCode, CoverageReason
from grader.core.tri import Tri
from grader.core.verdict import ConditionVerdict
from grader.errors import UsageError
from grader.scorers.base import Scorer
from grader.scorers.composite import FirstDetermined
from grader.scorers.order import judge_order
from grader.scorers.preceded_by import judge_preceded_by
from grader.scorers.tool_evidence import Part, ToolEvidence, conclude, read_tools
from grader.scorers.tools import judge_tools_called, judge_tools_not_called

C = TypeVar("C", bound=ToolCondition)


class _ToolScorer(Generic[C]):
    """A leaf scorer: `source` is what it needs to have been read, `version` counts changes of its rules, from 1."""

    source: ClassVar[EvidenceSource] = EvidenceSource.TRACE
    version: ClassVar[int] = 1
    payload_kind: str = PAYLOAD_KIND

    reads: type[C]

    @property
    def identity(self) -> str:
        """Name, version, and every setting that takes effect and is not the default."""
        return f"{type(self).__name__}/{self.version}"

    def score(self, condition: Condition, observation: Observation) -> ConditionVerdict:
        """The verdict on a condition. Raises UsageError for a condition of another type."""
        if not isinstance(condition, self.reads):
            raise UsageError(f"{type(self).__name__} reads {self.reads.condition_type}, not {condition.condition_type}")
        evidence = self._read(observation)
        parts = (evidence,) if isinstance(evidence, Part) else self._judge(condition, evidence)
        return conclude(condition, self.identity, observation, parts)

    def warnings(self, condition: Condition, observation: Observation) -> tuple[str, ...]:
        """That the source keeps no arguments, if the condition constrains them."""
        payload = observation.payload
        if not isinstance(condition, ToolCondition) or not condition.constrains_arguments:
            return ()
        if not isinstance(payload, ToolsPayload) or _keeps_arguments(payload):
            return ()
        return (
            f"{condition.condition_type} constrains arguments, and this source keeps none: "
            "only the absence of the tool can settle it",
        )

    def _read(self, observation: Observation) -> ToolEvidence | Part:
        read = read_tools(observation)
        if isinstance(read, Part):
            return read
        if not _has_source(read.payload, self.source):
            word = "no trace was read" if self.source is EvidenceSource.TRACE else "no conversation was read"
            return Part(Tri.UNDETERMINED, word, ReasonCode.EVIDENCE_NOT_COLLECTED)
        if self.source is EvidenceSource.MESSAGES:
            return ToolEvidence(seen_in_messages(read.payload))
        return read

    def _judge(self, condition: C, evidence: ToolEvidence) -> Sequence[Part]:
        raise NotImplementedError


class OtelToolCallScorer(_ToolScorer[ToolsCalled]):
    """Judges `ToolsCalled` on traces."""

    reads = ToolsCalled

    def _judge(self, condition: ToolsCalled, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_tools_called(condition, evidence)


class OtelToolsNotCalledScorer(_ToolScorer[ToolsNotCalled]):
    """Judges `ToolsNotCalled` on traces."""

    reads = ToolsNotCalled

    def _judge(self, condition: ToolsNotCalled, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_tools_not_called(condition, evidence)


class _ClockScorer(_ToolScorer[C]):
    def __init__(self, *, clock_skew_tolerance_ns: int = 0) -> None:
        """`clock_skew_tolerance_ns`: how far two clocks may disagree. Raises UsageError for a negative one."""
        if type(clock_skew_tolerance_ns) is not int or clock_skew_tolerance_ns < 0:
            raise UsageError(
                f"a clock skew tolerance is a whole number of nanoseconds, at least 0, not {clock_skew_tolerance_ns!r}"
            )
        self.clock_skew_tolerance_ns = clock_skew_tolerance_ns

    @property
    def identity(self) -> str:
        """Name and version, and the tolerance unless it is 0."""
        if self.clock_skew_tolerance_ns == 0:
            return super().identity
        return f"{super().identity}(clock_skew_tolerance_ns={self.clock_skew_tolerance_ns})"


class OtelToolCallOrderScorer(_ClockScorer[ToolsCalledInOrder]):
    """Judges `ToolsCalledInOrder` on traces."""

    reads = ToolsCalledInOrder

    def _judge(self, condition: ToolsCalledInOrder, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_order(condition, evidence, self.clock_skew_tolerance_ns)


class OtelToolPrecededByScorer(_ClockScorer[ToolPrecededBy]):
    """Judges `ToolPrecededBy` on traces."""

    reads = ToolPrecededBy

    def _judge(self, condition: ToolPrecededBy, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_preceded_by(condition, evidence, self.clock_skew_tolerance_ns)


class MessageToolCallScorer(_ToolScorer[ToolsCalled]):
    """Judges `ToolsCalled` on a conversation alone."""

    source = EvidenceSource.MESSAGES
    reads = ToolsCalled

    def _judge(self, condition: ToolsCalled, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_tools_called(condition, evidence)


class MessageToolsNotCalledScorer(_ToolScorer[ToolsNotCalled]):
    """Judges `ToolsNotCalled` on a conversation alone: false or undetermined."""

    source = EvidenceSource.MESSAGES
    reads = ToolsNotCalled

    def _judge(self, condition: ToolsNotCalled, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_tools_not_called(condition, evidence)


class MessageToolCallOrderScorer(_ToolScorer[ToolsCalledInOrder]):
    """Judges `ToolsCalledInOrder` on a conversation alone: a result before a later proposal is an order."""

    source = EvidenceSource.MESSAGES
    reads = ToolsCalledInOrder

    def _judge(self, condition: ToolsCalledInOrder, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_order(condition, evidence, 0)


class MessageToolPrecededByScorer(_ToolScorer[ToolPrecededBy]):
    """Judges `ToolPrecededBy` on a conversation alone: always undetermined, because a call may be unseen."""

    source = EvidenceSource.MESSAGES
    reads = ToolPrecededBy

    def _judge(self, condition: ToolPrecededBy, evidence: ToolEvidence) -> Sequence[Part]:
        return judge_preceded_by(condition, evidence, 0)


def tool_scorers(*, clock_skew_tolerance_ns: int = 0) -> tuple[Scorer, ...]:
    """A scorer for every tool condition: over a trace, and where that settles nothing, over the conversation.

    Raises UsageError for a negative tolerance.
    """
    order = OtelToolCallOrderScorer(clock_skew_tolerance_ns=clock_skew_tolerance_ns)
    gate = OtelToolPrecededByScorer(clock_skew_tolerance_ns=clock_skew_tolerance_ns)
    return (
        FirstDetermined([OtelToolCallScorer(), MessageToolCallScorer()]),
        FirstDetermined([order, MessageToolCallOrderScorer()]),
        FirstDetermined([OtelToolsNotCalledScorer(), MessageToolsNotCalledScorer()]),
        FirstDetermined([gate, MessageToolPrecededByScorer()]),
    )


def trace_scorers(*, clock_skew_tolerance_ns: int = 0) -> tuple[Scorer, ...]:
    """A scorer for every tool condition, over a trace alone. Raises UsageError for a negative tolerance."""
    return (
        OtelToolCallScorer(),
        OtelToolCallOrderScorer(clock_skew_tolerance_ns=clock_skew_tolerance_ns),
        OtelToolsNotCalledScorer(),
        OtelToolPrecededByScorer(clock_skew_tolerance_ns=clock_skew_tolerance_ns),
    )


def seen_in_messages(payload: ToolsPayload) -> ToolsPayload:
    """What the conversation alone shows of a payload: its paired calls and their order, and no times."""
    calls = tuple(
        call.model_copy(update={"attempts": (), "maybe_same_as": None})
        for call in payload.calls
        if EvidenceSource.MESSAGES in call.sources
    )
    keys = {call.key for call in calls}
    edges = tuple(edge for edge in payload.order_edges if edge.before in keys and edge.after in keys)
    coverage = payload.coverage
    if not coverage.has(CoverageCode.MESSAGES_ONLY):
        coverage = coverage.with_reasons(CoverageReason(code=CoverageCode.MESSAGES_ONLY))
    update = {"calls": calls, "order_edges": edges, "coverage": coverage, "possible": (), "only_in_messages": ()}
    return payload.model_copy(update=update)


def _has_source(payload: ToolsPayload, source: EvidenceSource) -> bool:
    return any(read.kind is source for read in payload.sources) or any(source in call.sources for call in payload.calls)


def _keeps_arguments(payload: ToolsPayload) -> bool:
    """False if content was not retained, or every call's arguments are missing for that reason."""
    if not payload.retain_content:
        return False
    whys = [call.arguments.why for call in payload.calls if call.arguments.state is ArgumentState.NOT_RECORDED]
    return len(payload.calls) == 0 or len(whys) < len(payload.calls) or set(whys) != {WhyNotRecorded.NOT_RETAINED}
