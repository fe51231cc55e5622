"""Order on real dumps: what a reader of the times would say, taking the evidence as complete."""

from __future__ import annotations

import pytest

from grader.core.tools.conditions import ToolsCalledInOrder
from grader.core.traces.coverage import Coverage
from grader.core.tri import Tri
from grader.scorers.tool_scorers import OtelToolCallOrderScorer
from grader.traces.reader import TraceInput, read_traces
from tests.unit.scorers.tool_samples import observed, tool
from tests.unit.traces.otlp_samples import SHARED

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared trace files are not at {SHARED}")


@pytest.mark.parametrize(
    ("name", "steps", "value"),
    [
        ("openai_agents_genai_live_spans", ["lookup_stock_price", "multiply_numbers", "multiply_numbers"], Tri.TRUE),
        ("openai_agents_genai_live_spans", ["ask_research_specialist", "ask_math_specialist"], Tri.TRUE),
        ("openai_agents_genai_live_spans", ["multiply_numbers", "lookup_stock_price"], Tri.FALSE),
        # The inner call lies inside the outer one.
        ("openai_agents_genai_live_spans", ["ask_research_specialist", "lookup_stock_price"], Tri.UNDETERMINED),
        # The second begins at the instant at which the first ends.
        ("otel_genai_convention_spans", ["get_weather", "get_weather"], Tri.UNDETERMINED),
    ],
)
def test_order(name: str, steps: list[str], value: Tri) -> None:
    read = read_traces([TraceInput.of_path(SHARED / f"strands-evals__{name}.json")]).payload()
    evidence = read.model_copy(update={"coverage": Coverage(declared_by="the test")})
    condition = ToolsCalledInOrder(tools=tuple(tool(step) for step in steps))
    assert OtelToolCallOrderScorer().score(condition, observed(evidence)).value is value
