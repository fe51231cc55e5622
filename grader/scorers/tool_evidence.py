"""What the evidence says about single calls: which fit a requirement, which may, and what an absence proves.

A call fits *definitely* when a recorded call matches; it fits *possibly* when nothing recorded speaks against it
(arguments that were not kept, were cut or cannot be read never match and never miss).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits

from grader.core.conditions import Condition
from grader.core.matching import Match
from grader.core.observation import Acquisition, Observation
from grader.core.quoting import quote_text
from grader.core.reasons import ReasonCode
from grader.core.tools.arguments import ArgumentState, WhyNotRecorded
from grader.core.tools.calls import ToolCall, ToolsPayload
from grader.core.tools.conditions import ToolArgumentRequirement, ToolCallRequirement
from grader.core.tri import Tri, all_of
from grader.core.verdict import ConditionVerdict, Finding, explaining

_PLAIN = frozenset(ascii_letters + digits + "_-./:*?")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a condition asks for: its value, why in words, and the reason code unless it is true."""

    value: Tri
    text: str
    code: ReasonCode | None = None


@dataclass(frozen=True, slots=True)
class Fit:
    """The calls that have a requirement's name (`named`), those that may fit it, and those that do. Indices, sorted."""

    named: tuple[int, ...]
    possible: tuple[int, ...]
    definite: tuple[int, ...]
    doubt: Part | None = None
    """Why a call that may fit is not known to."""
    miss: str = ""
    """Why the first call that does not fit does not."""


class ToolEvidence:
    """The calls of one payload, and why an absence in it proves nothing (`gaps`, empty when it does).

    `group[i]` is equal for calls that may be one and the same execution: such calls are certainly one, and at most as
    many as there are.
    """

    def __init__(self, payload: ToolsPayload, *, partial: Sequence[str] | None = None) -> None:
        self.payload = payload
        self.calls: tuple[ToolCall, ...] = payload.calls
        self.group = _groups(payload)
        self.gaps, self.gap_code = _gaps(payload, partial)
        self._by_name: dict[str, list[int]] = {}
        for index, call in enumerate(self.calls):
            for name in call.names:
                self._by_name.setdefault(name, []).append(index)

    @property
    def is_complete(self) -> bool:
        """Whether an absence proves that something did not happen."""
        return len(self.gaps) == 0

    @property
    def basis(self) -> str:
        """In words, on what a verdict rests that rests on an absence: why there is none, or who vouches for it."""
        if self.is_complete:
            return f"evidence complete, declared by {self.payload.coverage.declared_by}"
        return f"evidence incomplete: {'; '.join(self.gaps)}"

    def named(self, name: str) -> tuple[int, ...]:
        """The calls that have this name among theirs."""
        return tuple(self._by_name.get(name, ()))

    def executions(self, indices: Iterable[int]) -> int:
        """How many executions these calls are at least."""
        return len({self.group[index] for index in indices})

    def fit(self, requirement: ToolCallRequirement) -> Fit:
        """Which calls fit a requirement."""
        named = self.named(requirement.name)
        if len(requirement.arguments) == 0:
            return Fit(named, named, named)
        possible: list[int] = []
        definite: list[int] = []
        doubts: list[Part] = []
        miss = ""
        for index in named:
            part = _match_arguments(requirement.arguments, self.calls[index])
            if part.value is Tri.FALSE:
                miss = miss or part.text
                continue
            possible.append(index)
            if part.value is Tri.TRUE:
                definite.append(index)
            else:
                doubts.append(part)
        return Fit(named, tuple(possible), tuple(definite), doubts[0] if doubts else None, miss)

    def absence(self, value: Tri, code: ReasonCode, fact: str, seen: str | None = None) -> Part:
        """A part that rests on an absence: `value` if the evidence is complete, else undetermined.

        `fact` says what is so if the evidence is complete; `seen` what was seen if it is not (None: the same).
        """
        if self.is_complete:
            return Part(value, f"{fact} ({self.basis})", None if value is Tri.TRUE else code)
        return Part(Tri.UNDETERMINED, f"{fact if seen is None else seen}; {self.basis}", self.gap_code)


def read_tools(observation: Observation) -> ToolEvidence | Part:
    """The tool evidence of an observation, or why there is none to judge."""
    payload = observation.payload
    if not isinstance(payload, ToolsPayload):
        text = f"the observation is of kind {payload.payload_kind}, and holds no tool calls"
        return Part(Tri.UNDETERMINED, text, ReasonCode.EVIDENCE_NOT_COLLECTED)
    if observation.acquisition in (Acquisition.ERROR, Acquisition.UNAVAILABLE):
        why = "; ".join(observation.acquisition_reasons) or "no reason was given"
        word = "failed" if observation.acquisition is Acquisition.ERROR else "was not possible"
        return Part(Tri.UNDETERMINED, f"getting the evidence {word}: {why}", ReasonCode.EVIDENCE_NOT_COLLECTED)
    partial = None
    if observation.acquisition is Acquisition.PARTIAL:
        partial = observation.acquisition_reasons or ("only a part of it was got",)
    return ToolEvidence(payload, partial=partial)


def conclude(condition: Condition, identity: str, observation: Observation, parts: Sequence[Part]) -> ConditionVerdict:
    """Kleene AND over the parts, with the words of those that decide first."""
    value = all_of(part.value for part in parts)
    decisive = [part for part in parts if part.value is value]
    others = [part for part in parts if part.value is not value and part.value is not Tri.TRUE]
    findings = [Finding(code=part.code, detail=part.text) for part in (*decisive, *others) if part.code is not None]
    return ConditionVerdict(
        condition_type=condition.condition_type,
        fingerprint=condition.fingerprint,
        value=value,
        rationale="; ".join(dict.fromkeys(part.text for part in (*decisive, *others))),
        findings=explaining(value, findings),
        scorer=identity,
        observation=observation.digest,
    )


def shown(name: object) -> str:
    """A tool's name as it is if it is a plain word, else quoted: names in a trace may hold anything."""
    text = str(name)
    return text if 0 < len(text) <= 80 and _PLAIN.issuperset(text) else quote_text(text)


def shown_requirement(requirement: ToolCallRequirement) -> str:
    """The name with the names of its arguments: `send_email(to)`."""
    if len(requirement.arguments) == 0:
        return shown(requirement.name)
    return f"{shown(requirement.name)}({', '.join(shown(item.name) for item in requirement.arguments)})"


def _groups(payload: ToolsPayload) -> tuple[int, ...]:
    """Connected parts of the relation "may be the same execution"."""
    if all(call.maybe_same_as is None for call in payload.calls):
        return tuple(range(len(payload.calls)))
    index_of = {call.key: index for index, call in enumerate(payload.calls)}
    group = list(range(len(payload.calls)))

    def root(index: int) -> int:
        while group[index] != index:
            group[index] = group[group[index]]
            index = group[index]
        return index

    for index, call in enumerate(payload.calls):
        if call.maybe_same_as is not None:
            group[root(index)] = root(index_of[call.maybe_same_as])
    return tuple(root(index) for index in range(len(group)))


def _gaps(payload: ToolsPayload, partial: Sequence[str] | None) -> tuple[tuple[str, ...], ReasonCode]:
    gaps = [str(reason) for reason in payload.coverage.why_not_complete()]
    code = payload.coverage.reason_code
    gaps.extend(reason for reason in partial or () if reason not in gaps)
    if len(payload.only_in_messages) > 0:
        code = ReasonCode.EVIDENCE_CONFLICT
        gaps.append(f"{_calls(len(payload.only_in_messages))} in the messages, and not in the trace")
    if payload.conversation is not None and len(payload.conversation.unlinked) > 0:
        unlinked = payload.conversation.unlinked
        more = ", ..." if len(unlinked) > 3 else ""
        gaps.append(f"requests of the conversation without a trace link ({', '.join(unlinked[:3])}{more})")
    if len(payload.possible) > 0:
        gaps.append(f"{len(payload.possible)} possible tool spans have no name")
    if any(attempt.end_ns is None for call in payload.calls for attempt in call.attempts):
        gaps.append("a call had not ended")
    return tuple(gaps), code


def _calls(count: int) -> str:
    return "1 call is" if count == 1 else f"{count} calls are"


def _match_arguments(requirements: Sequence[ToolArgumentRequirement], call: ToolCall) -> Part:
    """Kleene AND over the arguments: a recorded miss decides even when another argument was not kept."""
    parts = [_match_argument(requirement, call) for requirement in requirements]
    value = all_of(part.value for part in parts)
    return next(part for part in parts if part.value is value)


def _match_argument(requirement: ToolArgumentRequirement, call: ToolCall) -> Part:
    argument = call.arguments.argument(requirement.name)
    name = shown(requirement.name)
    if argument.state is ArgumentState.NOT_RECORDED:
        why = argument.why.text if argument.why is not None else WhyNotRecorded.ABSENT.text
        text = f"its arguments were not recorded: {why}"
        return Part(Tri.UNDETERMINED, text, ReasonCode.ARGUMENTS_NOT_RECORDED)
    if argument.state is ArgumentState.UNPARSABLE:
        detail = call.arguments.detail or "they are no JSON object"
        return Part(
            Tri.UNDETERMINED,
            f"its recorded arguments cannot be read: {shown(detail)}",
            ReasonCode.ARGUMENTS_UNPARSABLE,
        )
    if argument.is_absent:
        return Part(Tri.FALSE, f"{name} is absent", ReasonCode.TOOL_ARGUMENTS)
    match = _judge(requirement, argument.value)
    if match.value is Tri.TRUE:
        return Part(Tri.TRUE, "")
    code = match.code or ReasonCode.MATCHER_FAILED if match.value is Tri.UNDETERMINED else ReasonCode.TOOL_ARGUMENTS
    words = "its argument" if match.value is Tri.UNDETERMINED else ""
    return Part(match.value, f"{words} {name}: {match.detail}".strip(), code)


def _judge(requirement: ToolArgumentRequirement, value: object) -> Match:
    try:
        return requirement.matcher.match_json(value)
    except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        detail = f"the matcher failed with {type(error).__name__}"
        return Match.undetermined(detail, ReasonCode.MATCHER_FAILED)
