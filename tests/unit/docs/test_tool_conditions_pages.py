"""The pages on tool conditions: every example is a condition, and the table of abilities is what scorers reach."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import grader.matchers as _matchers
from grader.core.conditions import Condition, parse_condition
from grader.core.observation import Acquisition, Observation
from grader.core.tools.arguments import NOT_RETAINED, ContentRules, ToolArguments, recorded_arguments
from grader.core.tools.calls import Attempt, EvidenceSource, OrderEdge, SourceRead, ToolCall, ToolsPayload
from grader.core.tools.conditions import (
    ToolArgumentRequirement,
    ToolCallRequirement,
    ToolPrecededBy,
    ToolsCalled,
    ToolsCalledInOrder,
    ToolsNotCalled,
)
from grader.core.traces.coverage import Coverage
from grader.core.tri import Tri
from grader.scorers.base import Scorer
from grader.scorers.tool_scorers import (
    MessageToolCallOrderScorer,
    MessageToolCallScorer,
    MessageToolPrecededByScorer,
    MessageToolsNotCalledScorer,
    OtelToolCallOrderScorer,
    OtelToolCallScorer,
    OtelToolPrecededByScorer,
    OtelToolsNotCalledScorer,
)

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = DOCS / "reference" / "tool-conditions.md"
EXAMPLES = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in (REFERENCE, DOCS / "explanation" / "evidence.md", DOCS / "explanation" / "order.md")
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


def test_there_are_examples_of_every_condition() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for name in ("tools_called", "tools_called_in_order", "tools_not_called", "tool_preceded_by"):
        assert f"condition_type: {name}\n" in text


@pytest.mark.parametrize("block", EXAMPLES)
def test_example_is_a_condition(block: str) -> None:
    condition = parse_condition(yaml.safe_load(block))
    assert parse_condition(condition.to_plain()) == condition


A = ToolCallRequirement(name="a")
B = ToolCallRequirement(name="b")
A_TO_X = ToolCallRequirement(
    name="a", arguments=(ToolArgumentRequirement(name="to", matcher=_matchers.Equals(expected=b"x")),)
)
COLUMNS: list[tuple[str, list[Condition]]] = [
    ("presence", [ToolsCalled(tools=(A,))]),
    ("arguments", [ToolsCalled(tools=(A_TO_X,))]),
    ("order", [ToolsCalledInOrder(tools=(A, B))]),
    ("gate", [ToolPrecededBy(tool="b", by="a")]),
    (
        "exhaustive, forbidden, at most",
        [
            ToolsCalled(tools=(ToolCallRequirement(name="a", at_least=0),), exhaustive=True),
            ToolsNotCalled(tools=("a",)),
            ToolsCalled(tools=(ToolCallRequirement(name="a", at_least=0, at_most=1),)),
        ],
    ),
]
OTEL: list[Scorer] = [
    OtelToolCallScorer(), OtelToolCallOrderScorer(), OtelToolPrecededByScorer(), OtelToolsNotCalledScorer()
]  # fmt: skip
MESSAGE: list[Scorer] = [
    MessageToolCallScorer(), MessageToolCallOrderScorer(), MessageToolPrecededByScorer(), MessageToolsNotCalledScorer()
]  # fmt: skip


def evidence(source: EvidenceSource, *, complete: bool, with_arguments: bool) -> Iterator[Observation]:
    """Every payload of up to two calls in a small world."""

    def arguments(to: str) -> ToolArguments:
        cut = ContentRules(max_argument_bytes=1 if to == "cut" else 1000)
        return recorded_arguments({"to": to}, cut) if with_arguments else NOT_RETAINED

    spans = [(0, 1), (2, 3), (1, 2)] if source is EvidenceSource.TRACE else [None]
    kinds = list(itertools.product("abc", ["x", "y", "cut"], spans))
    for calls in itertools.chain.from_iterable(itertools.product(kinds, repeat=n) for n in range(3)):
        made = tuple(
            ToolCall(
                key=str(index),
                names=(name,),
                arguments=arguments(to),
                attempts=() if span is None else (Attempt(start_ns=span[0], end_ns=span[1]),),
                sources=(source,),
            )
            for index, (name, to, span) in enumerate(calls)
        )
        edges: list[tuple[OrderEdge, ...]] = [()]
        if source is EvidenceSource.MESSAGES and len(made) == 2:
            edges.append((OrderEdge(before="0", after="1"),))
        for known in edges:
            payload = ToolsPayload(
                calls=made,
                order_edges=known,
                coverage=Coverage(declared_by="t" if complete else None),
                sources=(SourceRead(name="s", kind=source, encoding="e"),),
            )
            yield Observation(acquisition=Acquisition.COMPLETE, payload=payload)


LETTERS = {Tri.TRUE: "T", Tri.FALSE: "F", Tri.UNDETERMINED: "U"}
ROWS = [
    ("`Otel...`, complete trace", OTEL, EvidenceSource.TRACE, True, True),
    ("`Otel...`, partial trace", OTEL, EvidenceSource.TRACE, False, True),
    ("`Otel...`, complete trace without arguments", OTEL, EvidenceSource.TRACE, True, False),
    ("`Otel...`, partial trace without arguments", OTEL, EvidenceSource.TRACE, False, False),
    ("`Message...`, conversation", MESSAGE, EvidenceSource.MESSAGES, False, True),
]


@pytest.mark.parametrize(("title", "scorers", "source", "complete", "with_arguments"), ROWS, ids=[r[0] for r in ROWS])
def test_the_table_of_abilities_is_what_the_scorers_reach(
    title: str, scorers: list[Scorer], source: EvidenceSource, complete: bool, with_arguments: bool
) -> None:
    observations = list(evidence(source, complete=complete, with_arguments=with_arguments))
    cells: list[str] = []
    for _, conditions in COLUMNS:
        reached: set[Tri] = set()
        for condition in conditions:
            scorer = next(scorer for scorer in scorers if scorer.reads is type(condition))
            reached |= {scorer.score(condition, observation).value for observation in observations}
        cells.append(" ".join(LETTERS[value] for value in Tri if value in reached))
    assert f"| {title} | {' | '.join(cells)} |" in REFERENCE.read_text(encoding="utf-8")
