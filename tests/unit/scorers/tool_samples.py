"""Short ways to write tool evidence in tests."""

from __future__ import annotations

from collections.abc import Sequence

import grader.matchers as _matchers
from grader.core.observation import Acquisition, Observation
from grader.core.tools.arguments import (
    NOT_RECORDED,
    NOT_RETAINED,
    REDACTED,
    ContentRules,
    ToolArguments,
    recorded_arguments,
    unparsable_arguments,
)
from grader.core.tools.calls import (
    Attempt,
    ConversationLinks,
    EvidenceSource,
    OrderEdge,
    PossibleToolSpan,
    SourceRead,
    ToolCall,
    ToolsPayload,
)
from grader.core.tools.conditions import ToolArgumentRequirement, ToolCallRequirement
from grader.core.traces.coverage import Coverage, CoverageCode, CoverageReason

COMPLETE = Coverage(declared_by="the caller")
UNDECLARED = Coverage()
CUT = Coverage(declared_by="the caller", reasons=(CoverageReason(code=CoverageCode.FILE_CUT),))
SELF_REPORTED = Coverage(declared_by="p", reasons=(CoverageReason(code=CoverageCode.SELF_REPORTED),))

ABSENT, HIDDEN, NO_CONTENT = NOT_RECORDED, REDACTED, NOT_RETAINED
UNREADABLE = unparsable_arguments("to=x", ContentRules(), detail="not JSON")
TRUNCATED = recorded_arguments({"to": "x" * 90, "b": "y"}, ContentRules(max_argument_bytes=20))


def given(**arguments: object) -> ToolArguments:
    """Recorded arguments."""
    return recorded_arguments(arguments, ContentRules())


def call(
    name: str | Sequence[str],
    arguments: ToolArguments | None = None,
    *,
    key: str | None = None,
    span: tuple[int | None, int | None] | None = None,
    source: EvidenceSource = EvidenceSource.TRACE,
    same: str | None = None,
    failed: bool | None = None,
) -> ToolCall:
    """An executed call; without a key, one that `observed` gives it."""
    return ToolCall(
        key=key or "?",
        names=(name,) if isinstance(name, str) else tuple(sorted(name)),
        arguments=arguments if arguments is not None else given(),
        attempts=() if span is None else (Attempt(start_ns=span[0], end_ns=span[1]),),
        sources=(source,),
        maybe_same_as=same,
        failed=failed,
    )


def payload(
    *calls: ToolCall,
    coverage: Coverage = COMPLETE,
    unlinked: Sequence[str] = (),
    unnamed: int = 0,
    only_in_messages: Sequence[str] = (),
    edges: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
) -> ToolsPayload:
    """What was read from one trace (and, with `unlinked`, one conversation)."""
    keyed = [c if c.key != "?" else c.model_copy(update={"key": f"c{i}"}) for i, c in enumerate(calls)]
    return ToolsPayload(
        calls=tuple(keyed),
        coverage=coverage,
        conversation=ConversationLinks(requests=3, unlinked=tuple(unlinked)) if unlinked else None,
        possible=tuple(PossibleToolSpan(span=f"t/{i}", why="no name") for i in range(unnamed)),
        only_in_messages=tuple(only_in_messages),
        order_edges=tuple(OrderEdge(before=before, after=after) for before, after in edges),
        sources=(SourceRead(name="t.json", kind=EvidenceSource.TRACE, encoding="otlp-json"),),
        notes=tuple(notes),
    )


def observed(evidence: ToolsPayload, acquisition: Acquisition = Acquisition.COMPLETE, *reasons: str) -> Observation:
    """The observation around it."""
    return Observation(acquisition=acquisition, acquisition_reasons=reasons, payload=evidence)


def tool(name: str, at_least: int = 1, at_most: int | None = None, **arguments: str) -> ToolCallRequirement:
    """A requirement whose arguments must equal the given texts."""
    return ToolCallRequirement(
        name=name,
        at_least=at_least,
        at_most=at_most,
        arguments=tuple(
            ToolArgumentRequirement(name=argument, matcher=_matchers.Equals(expected=text.encode()))
            for argument, text in arguments.items()
        ),
    )
