"""The pool: no box is lost, whatever is cancelled or fails, and openings are bounded."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from grader.sandbox.docker.pool import CLOSING_AT_MOST, Pool, PoolLimits, Rate

pytestmark = pytest.mark.anyio


class Box:
    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.answers = True

    async def check(self) -> bool:
        await asyncio.sleep(0)
        return self.answers

    async def close(self) -> None:
        await self.engine.may_close.wait()
        self.engine.alive.discard(self)


class Engine:
    """Opens boxes when it may, and knows which are alive."""

    def __init__(self) -> None:
        self.alive: set[Box] = set()
        self.opened = 0
        self.opening = 0
        self.most_opening = 0
        self.may_open = asyncio.Event()
        self.may_open.set()
        self.may_close = asyncio.Event()
        self.may_close.set()
        self.fails = False

    async def open(self, _kind: str) -> Box:
        self.opening += 1
        self.most_opening = max(self.most_opening, self.opening)
        try:
            await self.may_open.wait()
            if self.fails:
                raise OSError("no box")
        finally:
            self.opening -= 1
        self.opened += 1
        box = Box(self)
        self.alive.add(box)
        return box


async def settled(until: Callable[[], bool]) -> None:
    with anyio.fail_after(2):
        while not until():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_box_given_back_is_claimed_again_by_its_kind_only() -> None:
    engine = Engine()
    pool = Pool(engine.open)
    first = await pool.claim("a")
    pool.give_back("a", first)
    assert await pool.claim("b") is not first
    assert await pool.claim("a") is first
    await pool.close()
    assert not engine.alive
    assert pool.size == 0


async def test_a_box_that_does_not_answer_is_replaced() -> None:
    engine = Engine()
    pool = Pool(engine.open)
    dead = await pool.claim("a")
    dead.answers = False
    pool.give_back("a", dead)
    assert await pool.claim("a") is not dead
    await settled(lambda: dead not in engine.alive)
    await pool.close()


async def test_an_expected_box_is_opened_once_and_waited_for() -> None:
    engine = Engine()
    engine.may_open.clear()
    pool = Pool(engine.open)
    pool.expect("a")
    pool.expect("a")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pool.claim, "a")
        await settled(lambda: engine.opening == 1)
        engine.may_open.set()
    assert engine.opened == 1
    await pool.close()
    assert not engine.alive


async def test_a_claim_that_is_cancelled_leaves_the_coming_box_to_the_next() -> None:
    engine = Engine()
    engine.may_open.clear()
    pool = Pool(engine.open)
    pool.expect("a")
    with anyio.move_on_after(0.01):
        await pool.claim("a")
    engine.may_open.set()
    await pool.claim("a")
    assert engine.opened == 1
    await pool.close()
    assert not engine.alive


async def test_an_expected_box_that_fails_to_come_is_opened_by_who_needs_it() -> None:
    engine = Engine()
    engine.fails = True
    pool = Pool(engine.open)
    pool.expect("a")
    await settled(lambda: pool.size == 0)
    with pytest.raises(OSError, match="no box"):
        await pool.claim("a")
    engine.fails = False
    await pool.claim("a")
    await pool.close()


async def test_closing_takes_the_claimed_the_idle_and_the_coming_ones_even_when_cancelled() -> None:
    engine = Engine()
    pool = Pool(engine.open)
    await pool.claim("a")
    pool.give_back("b", await pool.claim("b"))
    engine.may_open.clear()
    pool.expect("c")
    await asyncio.sleep(0)
    engine.may_close.clear()
    with anyio.move_on_after(0.01):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.close)
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.03, engine.may_close.set)
    assert not engine.alive
    assert pool.size == 0


async def test_too_many_idle_boxes_are_closed_the_longest_kept_first() -> None:
    engine = Engine()
    pool = Pool(engine.open, PoolLimits(idle=2))
    boxes = [await pool.claim(kind) for kind in "abc"]
    for kind, box in zip("abc", boxes, strict=True):
        pool.give_back(kind, box)
    await settled(lambda: engine.alive == set(boxes[1:]))
    await pool.close()


async def test_openings_at_once_are_bounded() -> None:
    engine = Engine()
    engine.may_open.clear()
    pool = Pool(engine.open, PoolLimits(openings_at_once=2))
    async with anyio.create_task_group() as tasks:
        for kind in "abcde":
            tasks.start_soon(pool.claim, kind)
        await settled(lambda: engine.opening == 2)
        engine.may_open.set()
    assert engine.most_opening == 2
    await pool.close()


async def test_no_box_is_opened_while_too_many_are_still_closing() -> None:
    engine = Engine()
    pool = Pool(engine.open)
    boxes = [await pool.claim("a") for _ in range(CLOSING_AT_MOST)]
    engine.may_close.clear()
    for box in boxes:
        pool.discard(box)
    with anyio.move_on_after(0.02) as scope:
        await pool.claim("a")
    assert scope.cancelled_caught
    assert engine.opened == CLOSING_AT_MOST
    engine.may_close.set()
    await pool.claim("a")
    await pool.close()


def test_a_rate_allows_a_burst_and_then_so_many_a_second() -> None:
    now_s = 0.0
    rate = Rate(per_s=10, in_a_row=3, now_s=lambda: now_s)
    assert [rate.delay_s() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    now_s = 10.0
    assert [rate.delay_s() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


async def test_boxes_are_opened_at_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    real_sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        await real_sleep(0)

    engine = Engine()
    pool = Pool(engine.open, PoolLimits(openings_per_s=1, openings_in_a_row=1))
    monkeypatch.setattr("grader.sandbox.docker.pool.asyncio.sleep", sleep)
    await pool.claim("a")
    await pool.claim("a")
    assert max(slept) == pytest.approx(1, abs=0.1)
    await pool.close()
