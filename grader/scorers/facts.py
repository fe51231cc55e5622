"""Facts for a judge: what the task's tool conditions settle without one."""

from __future__ import annotations

from grader.core.expectation import Expectation
from grader.core.judging.judgement import Fact
from grader.core.observation import Observation
from grader.core.tools.arguments import compact_json
from grader.core.tools.conditions import ToolCondition
from grader.core.tri import Tri
from grader.scorers.tool_scorers import tool_scorers

MOST_FACTS = 100
_MEANS = {
    "tools_called": "each of these tools was executed as often as it says",
    "tools_called_in_order": "these tools were executed in this order",
    "tools_not_called": "none of these tools was executed",
    "tool_preceded_by": "every execution of the tool has its own earlier execution of the other",
}


def facts_of(
    expectation: Expectation, tools: Observation | None, *, clock_skew_tolerance_ns: int = 0
) -> tuple[Fact, ...]:
    """The tool conditions that are true or false on this evidence, each once, in the order of the task."""
    if tools is None:
        return ()
    by_type = {scorer.reads: scorer for scorer in tool_scorers(clock_skew_tolerance_ns=clock_skew_tolerance_ns)}
    leaves = {leaf.fingerprint: leaf for leaf in expectation.leaves() if isinstance(leaf, ToolCondition)}
    found: list[Fact] = []
    for leaf in leaves.values():
        verdict = by_type[type(leaf)].score(leaf, tools)
        if verdict.value is Tri.UNDETERMINED or len(found) == MOST_FACTS:
            continue
        plain = {key: item for key, item in leaf.to_plain().items() if key != "condition_type"}
        statement = f"{_MEANS.get(leaf.condition_type, leaf.condition_type)}: {compact_json(plain)}"
        found.append(Fact(id=f"F{len(found) + 1}", statement=statement, holds=verdict.value is Tri.TRUE))
    return tuple(found)
