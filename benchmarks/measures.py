"""What a benchmark gives: numbers, some of them held against a bar. A bar is always an upper bound.

Times are only compared within one run of the benchmark: what is measured and what it is measured against take turns,
and each is summed up by its first quartile, which other work on the machine moves least.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measure:
    """One line of the table."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    """The value must not be above it; None: told for its own sake."""
    details: Mapping[str, object] = field(default_factory=dict[str, object])

    @property
    def word(self) -> str:
        """How it stands to its bar."""
        if self.bar is None:
            return ""
        return "ok" if self.value <= self.bar else "MISSED"


def first_quartile(values: Sequence[float]) -> float:
    """The value that a quarter of them are not above."""
    return statistics.quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]


@dataclass(frozen=True)
class Contest:
    """Times of several ways to do the same, which took turns: a list of seconds for each."""

    seconds: Mapping[str, Sequence[float]]

    def best(self, name: str) -> float:
        """The first quartile of one way's rounds, in seconds."""
        return first_quartile(self.seconds[name])

    def ratio(self, name: str, base: str) -> float:
        """How many times as long as `base` it takes."""
        return self.best(name) / self.best(base)

    def in_ms(self) -> dict[str, object]:
        """The first quartile of each, in milliseconds."""
        return {f"{name}_ms": round(self.best(name) * 1e3, 3) for name in self.seconds}


async def take_turns(
    ways: Mapping[str, Callable[[], Awaitable[None]]], *, rounds: int, runs_a_round: int = 1
) -> Contest:
    """Do each of them in turn, `runs_a_round` times a round; a round counts as the median of its runs."""
    medians: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        await way()
    for _ in range(rounds):
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(runs_a_round):
            for name, way in ways.items():
                start = time.perf_counter()
                await way()
                times[name].append(time.perf_counter() - start)
        for name, seconds in times.items():
            medians[name].append(statistics.median(seconds))
    return Contest(medians)
