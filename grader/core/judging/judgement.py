"""What a judge was asked and what it answered: the payload of a `judgement` observation, voted on by nobody yet.

It holds all that re-parsing, re-voting and re-checking of citations needs, and no secret: no key is ever part of it.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from grader.core.judging.dimensions import Dimension
from grader.core.judging.turns import Turn
from grader.core.observation import Acquisition, Payload, register_payload
from grader.core.reasons import ReasonCode

PAYLOAD_KIND = "judgement"
SCHEMA_VERSION = 1
RENDERING_VERSION = 1
"""Counts changes of what a judge is shown and asked, from 1."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Fact(_Value):
    """Something that the evidence settles without a judge, such as the verdict on a tool condition."""

    id: str = Field(pattern=r"^F[1-9][0-9]{0,3}$")
    statement: str
    holds: bool


class ChatMessage(_Value):
    """One message to the judge."""

    role: Literal["system", "user"]
    content: str


class Tokens(_Value):
    """Token counts as the endpoint reports them; None where it does not."""

    prompt: int | None = Field(default=None, ge=0)
    completion: int | None = Field(default=None, ge=0)


class Attempt(_Value):
    """One HTTP request: its status, None if no answer came, and how long was waited before the next."""

    status: int | None = None
    detail: str = ""
    waited_ms: int | None = Field(default=None, ge=0)


class Failure(_Value):
    """Why a sample has no answer."""

    code: ReasonCode
    detail: str


class JudgeReply(_Value):
    """One answer of a judge, or why there is none."""

    content: str | None = None
    """The text of the answer, as it came."""
    failure: Failure | None = None
    model: str | None = None
    """The model's name as the endpoint reports it."""
    tokens: Tokens = Tokens()
    latency_ms: int | None = Field(default=None, ge=0)
    attempts: tuple[Attempt, ...] = ()

    def model_post_init(self, _context: object, /) -> None:
        """A reply has an answer or says why not, never both."""
        if (self.content is None) == (self.failure is None):
            raise ValueError("a reply has either content or a failure")


class Judgement(_Value):
    """One question, asked several times: the samples of one condition."""

    dimensions: tuple[Dimension, ...] = Field(min_length=1)
    messages: tuple[ChatMessage, ...] = ()
    """What was sent, the same for every sample; empty if the judge was not asked."""
    facts: tuple[Fact, ...] = ()
    """The facts that were given with the question."""
    steps: tuple[str, ...] = ()
    """Ids of the steps that the judge was shown."""
    not_asked: Failure | None = None
    replies: tuple[JudgeReply, ...] = ()


@register_payload
class JudgementPayload(Payload):
    """Everything that was asked about one conversation, on one acquisition of its trace."""

    payload_kind: ClassVar[str] = PAYLOAD_KIND

    schema_version: Literal[1] = SCHEMA_VERSION
    rendering_version: int = RENDERING_VERSION
    name: str
    """The conversation's name, for reports."""
    run: int | None = Field(default=None, ge=0)
    """The run of an agent program that was asked about, by its place in the plan; None for a stored conversation."""
    turns: tuple[Turn, ...]
    trace: str | None = None
    """Digest of the `execution_trace` observation that was shown; None if there was no source of traces."""
    acquisition: Acquisition | None = None
    """How much of the trace was got; None if there was no source of traces."""
    acquisition_reasons: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()
    """`TRACE_ID/SPAN_ID` of the steps T1, T2, ... in their order."""
    trace_budget: int
    endpoint: str = ""
    """Scheme, host and path: no user, password or query."""
    model: str = ""
    """The model that was asked for."""
    judgements: tuple[Judgement, ...] = ()

    @model_validator(mode="after")
    def _steps_are_those_of_the_trace(self) -> JudgementPayload:
        known = {f"T{number}" for number in range(1, len(self.spans) + 1)}
        for judgement in self.judgements:
            unknown = set(judgement.steps) - known
            if unknown:
                raise ValueError(f"the judge was shown {min(unknown)}, which the trace does not have")
        return self

    @property
    def trace_coverage(self) -> str:
        """In words what the judge saw of the trace."""
        if self.acquisition is None:
            return "none: no trace was given"
        reasons = "; ".join(self.acquisition_reasons)
        return f"{self.acquisition.value}: {reasons}" if reasons else self.acquisition.value

    @property
    def replies(self) -> tuple[JudgeReply, ...]:
        """All replies, question by question."""
        return tuple(reply for judgement in self.judgements for reply in judgement.replies)
