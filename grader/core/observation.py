"""Observations: what was acquired, judged by nobody yet."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import Annotated, ClassVar, Literal, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from grader.core.canonical import digest, sha256_hex
from grader.core.limits import EffectiveLimits
from grader.core.outcomes import RunOutcome
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode, ReasonKind
from grader.core.values import Value

OBSERVATION_VERSION = 1


class Acquisition(StrEnum):
    """How much of the evidence was got."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"
    ERROR = "error"


class Payload(Value):
    """Base of what an observation holds; each kind registers itself."""

    payload_kind: ClassVar[str] = ""

    def digested(self) -> dict[str, object]:
        """Plain data that stands for the payload in the observation's digest."""
        return _plain_payload(self)


P = TypeVar("P", bound=Payload)

_REGISTRY: dict[str, type[Payload]] = {}


def register_payload(cls: type[P]) -> type[P]:
    """Class decorator: make a payload known under its `payload_kind`. Raises ValueError for a kind already taken."""
    if cls.payload_kind in _REGISTRY:
        raise ValueError(f"two payloads are named {cls.payload_kind!r}")
    _REGISTRY[cls.payload_kind] = cls
    return cls


def _parse_payload(value: object) -> Payload:
    if isinstance(value, Payload):
        return value
    if not isinstance(value, dict):
        raise ValueError("a payload is a mapping with its kind")
    entries = dict(cast("dict[str, object]", value))
    kind = entries.pop("kind", None)
    cls = _REGISTRY.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise ValueError(f"unknown kind of observation: {kind!r}")
    return cls.model_validate(entries)


def _plain_payload(payload: Payload) -> dict[str, object]:
    plain = cast("dict[str, object]", payload.model_dump(mode="json", exclude_defaults=True))
    return {"kind": payload.payload_kind, **plain}


class Observation(Value):
    """The immutable record of what was acquired, in a payload of one kind."""

    schema_version: Literal[1] = OBSERVATION_VERSION
    acquisition: Acquisition
    acquisition_reasons: tuple[str, ...] = ()
    """Why the acquisition is not complete, in words."""
    payload: Annotated[Payload, BeforeValidator(_parse_payload), PlainSerializer(_plain_payload)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the canonical form: what a verdict names as the evidence it rests on."""
        own = self.model_dump(mode="json", exclude={"payload"})
        return digest({**own, "payload": self.payload.digested()})


class MissingRun(BaseModel):
    """Why there is no run to judge: a failure of ours, never of the program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: ReasonCode
    detail: str = ""

    @property
    def is_ours(self) -> bool:
        """Always true for a code of the right kind; used to check records that come from outside."""
        return self.code.kind is ReasonKind.MISSING


class RunRecord(BaseModel):
    """One attempt at one planned run: what came of it, or why nothing did."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int
    """The run's place in the plan, from 0."""
    attempt: int = 1
    outcome: RunOutcome | None = None
    missing: MissingRun | None = None

    def model_post_init(self, _context: object, /) -> None:
        """A record has an outcome or says why not, never both."""
        if (self.outcome is None) == (self.missing is None):
            raise ValueError("a run has either an outcome or a reason why it is missing")


class CompileRecord(BaseModel):
    """The one compile run of a submission under a profile; every cell of that profile rests on it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str
    limits: EffectiveLimits
    attempt: int = 1
    outcome: RunOutcome | None = None
    missing: MissingRun | None = None

    def model_post_init(self, _context: object, /) -> None:
        """A record has an outcome or says why not, never both."""
        if (self.outcome is None) == (self.missing is None):
            raise ValueError("a compile run has either an outcome or a reason why it is missing")


@register_payload
class ProgramRuns(Payload):
    """The runs of one submission: every attempt, in the order in which they ended."""

    payload_kind: ClassVar[str] = "program_runs"

    submission_digest: str
    submission_name: str = ""
    plan_fingerprint: str
    profiles: tuple[ProfileInForce, ...]
    compiles: tuple[CompileRecord, ...] = ()
    runs: tuple[RunRecord, ...] = ()

    def digested(self) -> dict[str, object]:
        """The payload with every run by the digest of its own JSON, which has no map whose order could vary."""
        plain = self.model_dump(mode="json", exclude_defaults=True, exclude={"runs", "profiles"})
        profiles = [profile.digested for profile in self.profiles]
        runs = [sha256_hex(run.model_dump_json(exclude_defaults=True).encode()) for run in self.runs]
        return {"kind": self.payload_kind, **plain, "profiles": profiles, "runs": runs}

    def last_attempts(self) -> dict[int, RunRecord]:
        """For every run of the plan that was tried, its last attempt."""
        last: dict[int, RunRecord] = {}
        for run in self.runs:
            known = last.get(run.index)
            if known is None or run.attempt >= known.attempt:
                last[run.index] = run
        return last

    def last_compiles(self) -> dict[str, CompileRecord]:
        """For every profile that compiles, the last attempt at it."""
        last: dict[str, CompileRecord] = {}
        for compiled in self.compiles:
            known = last.get(compiled.profile)
            if known is None or compiled.attempt >= known.attempt:
                last[compiled.profile] = compiled
        return last
