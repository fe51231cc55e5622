"""How much of what an agent did is in its trace: complete, or not complete and why.

Silence is never completeness: evidence is complete when whoever captured it *declared* it complete and no check found
a reason against it.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from grader.core.reasons import ReasonCode


class CoverageCode(StrEnum):
    """The closed list of reasons why evidence is not complete."""

    NOT_DECLARED = "not_declared"
    SELF_REPORTED = "self_reported"
    MESSAGES_ONLY = "messages.only"
    MESSAGES_CONFLICT = "messages.conflict"
    NO_SPANS = "trace.empty"
    TRACE_ABSENT = "trace.absent"
    ROOT_MISSING = "root.missing"
    ROOT_UNFINISHED = "root.unfinished"
    SPAN_UNFINISHED = "span.unfinished"
    SPAN_PENDING = "span.pending"
    SPAN_LATE = "span.late"
    SPAN_UNLINKED = "span.unlinked"
    SPAN_UNREADABLE = "span.unreadable"
    SPAN_CONFLICT = "span.conflict"
    PARENT_MISSING = "parent.missing"
    PARENT_CYCLE = "parent.cycle"
    DROPPED_ATTRIBUTES = "dropped.attributes"
    DROPPED_EVENTS = "dropped.events"
    DROPPED_LINKS = "dropped.links"
    UNSAMPLED = "unsampled"
    TOOL_UNNAMED = "tool.unnamed"
    PROPOSAL_UNANSWERED = "proposal.unanswered"
    HOSTED_TOOL = "tool.hosted"
    SCOPE_UNKNOWN = "scope.unknown"
    FORMAT_LOSSY = "format.lossy"
    FILE_CUT = "file.cut"
    RECORD_UNREADABLE = "record.unreadable"
    CAPACITY = "capacity"
    CAPTURE_FAILED = "capture.failed"
    PROGRAM_STOPPED = "program.stopped"

    @property
    def text(self) -> str:
        """The reason in one line."""
        return _TEXTS[self]


_C = CoverageCode
_TEXTS = {
    _C.NOT_DECLARED: "nobody declared that the trace is complete",
    _C.SELF_REPORTED: "the spans are the program's own word",
    _C.MESSAGES_ONLY: "messages show what was answered, not everything that ran",
    _C.MESSAGES_CONFLICT: "the messages show calls that the trace does not have",
    _C.NO_SPANS: "there is no span",
    _C.TRACE_ABSENT: "a trace that was asked for is not there",
    _C.ROOT_MISSING: "a trace has no root span",
    _C.ROOT_UNFINISHED: "a trace's root span had not ended",
    _C.SPAN_UNFINISHED: "a span had not ended",
    _C.SPAN_PENDING: "a span was announced and never came",
    _C.SPAN_LATE: "a span arrived after its trace was taken as complete",
    _C.SPAN_UNLINKED: "a span of an agent belongs to no request, and may belong to this one",
    _C.SPAN_UNREADABLE: "a span has no usable identity, so it was left out",
    _C.SPAN_CONFLICT: "two different records have the same span id",
    _C.PARENT_MISSING: "a span's parent is not there",
    _C.PARENT_CYCLE: "spans are each other's parents; they were taken as roots",
    _C.DROPPED_ATTRIBUTES: "the producer dropped attributes",
    _C.DROPPED_EVENTS: "the producer dropped events",
    _C.DROPPED_LINKS: "the producer dropped links",
    _C.UNSAMPLED: "a span is marked as not sampled, so others may not have been exported",
    _C.TOOL_UNNAMED: "a span may be a tool whose name is not recorded",
    _C.PROPOSAL_UNANSWERED: "a model asked for a call, and nothing shows what became of it",
    _C.HOSTED_TOOL: "the model's provider runs tools itself, and they have no spans of their own",
    _C.SCOPE_UNKNOWN: "an instrumentation records models or agents in names that are not understood",
    _C.FORMAT_LOSSY: "the format does not keep what a check of completeness needs",
    _C.FILE_CUT: "the input ends in the middle of a record",
    _C.RECORD_UNREADABLE: "a record of the input could not be read",
    _C.CAPACITY: "there was more than the reader keeps",
    _C.CAPTURE_FAILED: "the capture failed",
    _C.PROGRAM_STOPPED: "the program was stopped, so it may not have sent everything",
}


class CoverageReason(BaseModel):
    """One reason why evidence is not complete: how often it was found, and the first place or an explanation."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: CoverageCode
    count: int = Field(default=1, ge=1)
    detail: str = ""

    def __str__(self) -> str:
        text = f"{self.code.text} ({self.detail})" if self.detail else self.code.text
        return f"{text}, {self.count} times" if self.count > 1 else text


class Coverage(BaseModel):
    """Whether the evidence is complete. `declared_by` says who declared it (None: nobody, so it is not complete)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    declared_by: str | None = Field(default=None, min_length=1)
    reasons: tuple[CoverageReason, ...] = ()
    """Reasons found by checks, sorted by code, each code once."""

    @property
    def is_complete(self) -> bool:
        """Whether an absence in this evidence proves that something did not happen."""
        return self.declared_by is not None and len(self.reasons) == 0

    def why_not_complete(self) -> tuple[CoverageReason, ...]:
        """All reasons against completeness, with the missing declaration among them; empty when complete.

        That evidence is a program's own word says already why nobody declared it.
        """
        is_said = any(reason.code is CoverageCode.SELF_REPORTED for reason in self.reasons)
        if self.declared_by is not None or is_said:
            return self.reasons
        return (CoverageReason(code=CoverageCode.NOT_DECLARED), *self.reasons)

    def has(self, code: CoverageCode) -> bool:
        """Whether `code` is among the reasons against completeness."""
        return any(reason.code is code for reason in self.why_not_complete())

    @property
    def reason_code(self) -> ReasonCode:
        """The verdict reason for an absence that this evidence cannot carry."""
        if self.has(CoverageCode.MESSAGES_CONFLICT):
            return ReasonCode.EVIDENCE_CONFLICT
        if self.has(CoverageCode.SELF_REPORTED):
            return ReasonCode.EVIDENCE_SELF_REPORTED
        return ReasonCode.EVIDENCE_INCOMPLETE

    def declared(self, by: str) -> Coverage:
        """The same coverage, declared complete by `by`. Reasons that checks found stay, and override it."""
        return Coverage(declared_by=by, reasons=self.reasons)

    def with_reasons(self, *more: CoverageReason) -> Coverage:
        """The same coverage with further reasons; a code that is there already gets the sum of the counts."""
        return Coverage(declared_by=self.declared_by, reasons=merge_reasons((*self.reasons, *more)))


def merge_reasons(reasons: tuple[CoverageReason, ...]) -> tuple[CoverageReason, ...]:
    """Each code once, counts added, the smallest non-empty detail kept (the order of the input must not show)."""
    counts: dict[CoverageCode, int] = {}
    details: dict[CoverageCode, str] = {}
    for reason in reasons:
        counts[reason.code] = counts.get(reason.code, 0) + reason.count
        known = details.get(reason.code, "")
        details[reason.code] = min(filter(None, (known, reason.detail)), default="")
    return tuple(CoverageReason(code=code, count=counts[code], detail=details[code]) for code in sorted(counts))
