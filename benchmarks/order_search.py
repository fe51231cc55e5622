"""Times the order search on 10,000 and 100,000 attempts of distinct tools: the ratio should be about 10 (linear).

Run with `python benchmarks/order_search.py`. Each time is CPU time, the best of five. `one after another` is true by
the definite search alone; `all overlap` is undetermined after the possible search as well.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from grader.core.tools.calls import Attempt, EvidenceSource, ToolCall, ToolsPayload
from grader.core.tools.conditions import ToolCallRequirement, ToolPrecededBy, ToolsCalledInOrder
from grader.core.traces.coverage import Coverage
from grader.scorers.interval_order import Span, find_definite, find_possible
from grader.scorers.order import judge_order
from grader.scorers.preceded_by import judge_preceded_by
from grader.scorers.tool_evidence import ToolEvidence

TOOLS = [f"tool{number}" for number in range(5)]


def best_of_five(run: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(5):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def spans_of(attempts: int, *, overlap: bool) -> list[Span]:
    """Attempts that all overlap in the middle, or one after another."""
    rng = random.Random(attempts)
    if overlap:
        return [Span(rng.randrange(10**9), 10**9 + rng.randrange(10**9)) for _ in range(attempts)]
    return [Span(10 * index, 10 * index + rng.randrange(9)) for index in range(attempts)]


def payload(attempts: int, *, overlap: bool) -> ToolsPayload:
    spans = spans_of(attempts, overlap=overlap)
    return ToolsPayload(
        calls=tuple(
            ToolCall(
                key=str(index),
                names=(TOOLS[index % len(TOOLS)],),
                attempts=(Attempt(start_ns=span.start, end_ns=span.end),),
                sources=(EvidenceSource.TRACE,),
            )
            for index, span in enumerate(spans)
        ),
        coverage=Coverage(declared_by="benchmark"),
    )


def search(attempts: int, *, overlap: bool) -> float:
    spans = spans_of(attempts, overlap=overlap)
    steps = [list(range(first, attempts, len(TOOLS))) for first in range(len(TOOLS))]
    return best_of_five(lambda: (find_definite(steps, spans, 0), find_possible(steps, spans, 0)))


def order(attempts: int, *, overlap: bool) -> float:
    read = payload(attempts, overlap=overlap)
    condition = ToolsCalledInOrder(tools=tuple(ToolCallRequirement(name=name) for name in TOOLS))
    return best_of_five(lambda: judge_order(condition, ToolEvidence(read), 0))


def gate(attempts: int, *, overlap: bool) -> float:
    read = payload(attempts, overlap=overlap)
    condition = ToolPrecededBy(tool=TOOLS[0], by=TOOLS[1])
    return best_of_five(lambda: judge_preceded_by(condition, ToolEvidence(read), 0))


def main() -> None:
    for name, measure in (("the two searches", search), ("tools_called_in_order", order), ("tool_preceded_by", gate)):
        for overlap in (False, True):
            small, large = measure(10_000, overlap=overlap), measure(100_000, overlap=overlap)
            shape = "all overlap" if overlap else "one after another"
            print(
                f"{name:22} {shape:18} 10,000: {small * 1e3:7.1f} ms   100,000: {large * 1e3:7.1f} ms   "
                f"ratio {large / small:.1f}"
            )


if __name__ == "__main__":
    main()
