"""What the benchmarks say of a number: its ratio to what took turns with it, and how it stands to its bar."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from benchmarks.measures import Contest, Measure, first_quartile, take_turns


def test_a_bar_is_an_upper_bound() -> None:
    assert [Measure("m", value, "x", 1.5).word for value in (1.4, 1.5, 1.6)] == ["ok", "ok", "MISSED"]
    assert Measure("m", 9.0, "x").word == ""


def test_ratios_are_of_first_quartiles_so_that_other_work_moves_them_least() -> None:
    calm, disturbed = [1.0, 1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 90.0, 90.0, 90.0]
    assert first_quartile(disturbed) == 2.0
    contest = Contest({"host": calm, "supervised": disturbed})
    assert contest.ratio("supervised", "host") == 2.0
    assert contest.in_ms() == {"host_ms": 1000.0, "supervised_ms": 2000.0}


@pytest.mark.anyio
async def test_what_is_compared_takes_turns() -> None:
    order: list[str] = []

    def way(name: str) -> Callable[[], Awaitable[None]]:
        async def run() -> None:
            order.append(name)
            await anyio.lowlevel.checkpoint()

        return run

    contest = await take_turns({"a": way("a"), "b": way("b")}, rounds=2, runs_a_round=2)
    assert order == ["a", "b"] * 5  # the first pair is to warm up
    assert {name: len(seconds) for name, seconds in contest.seconds.items()} == {"a": 2, "b": 2}
