"""Limits: what may be written, what is in force, and what is refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from grader.core.limits import BUILT_IN_DEFAULTS, LimitRange, Limits, nanoseconds, parse_size

BUILT_IN_CPU_NS = 10_000_000_000


@pytest.mark.parametrize("name", list(Limits.model_fields))
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, None, [], "x", 2**63])
def test_a_limit_that_limits_nothing_is_refused(name: str, value: object) -> None:
    if value is None:
        assert getattr(Limits.model_validate({name: None}), name) is None
        return
    with pytest.raises(ValidationError):
        Limits.model_validate({name: value})


@pytest.mark.parametrize(
    ("text", "count"),
    [(1, 1), ("64 MiB", 64 * 2**20), ("1.5KiB", 1536), ("2 GB", 2 * 10**9), (2.0, 2), ("7", 7), (" 3 B ", 3)],
)
def test_sizes(text: object, count: int) -> None:
    assert parse_size(text) == count


@pytest.mark.parametrize("text", ["0.3 B", "64 mib", "-1 KiB", "0 KiB", "1e3", ""])
def test_sizes_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"bytes|greater"):
        parse_size(text)


def test_seconds_are_the_decimal_that_was_written() -> None:
    assert nanoseconds(0.1) == 100_000_000
    assert nanoseconds(1.1) == 1_100_000_000
    assert nanoseconds(1e-9) == 1
    with pytest.raises(ValidationError, match="less than a nanosecond"):
        Limits(cpu_time_s=1e-10)


def test_wall_time_follows_from_a_cpu_limit() -> None:
    limits = LimitRange(maximum=Limits(cpu_time_s=60)).effective(Limits(cpu_time_s=2))
    assert (limits.cpu_time_ns, limits.wall_time_ns) == (2_000_000_000, 8_000_000_000)


def test_derived_wall_time_stops_at_the_maximum() -> None:
    limits = LimitRange(maximum=Limits(wall_time_s=5)).effective(Limits(cpu_time_s=2))
    assert limits.wall_time_ns == 5_000_000_000


def test_a_wall_limit_alone_leaves_the_cpu_limit() -> None:
    limits = LimitRange().effective(Limits(wall_time_s=1))
    assert (limits.cpu_time_ns, limits.wall_time_ns) == (BUILT_IN_CPU_NS, 1_000_000_000)


def test_the_profiles_wall_default_holds_only_where_nothing_is_asked() -> None:
    profile = LimitRange(defaults=Limits(cpu_time_s=4, wall_time_s=5), maximum=Limits(cpu_time_s=4, wall_time_s=100))
    assert profile.effective(Limits()).wall_time_ns == 5_000_000_000
    assert profile.effective(Limits(cpu_time_s=1)).wall_time_ns == 5_000_000_000


@pytest.mark.parametrize("name", [name for name in Limits.model_fields if name != "wall_time_s"])
def test_above_the_maximum_is_refused_and_equal_is_not(name: str) -> None:
    most = getattr(BUILT_IN_DEFAULTS, name)
    asked = Limits.model_validate({name: most})
    assert LimitRange().refusals(asked) == ()
    over = Limits.model_validate({name: most + 1})
    (refusal,) = LimitRange().refusals(over)
    assert name in refusal
    with pytest.raises(ValueError, match=name):
        LimitRange().effective(over)
    raised = LimitRange(maximum=over)
    assert raised.refusals(over) == ()


def test_a_wall_limit_above_the_derived_maximum_is_refused() -> None:
    assert LimitRange().refusals(Limits(wall_time_s=32)) == ()
    assert LimitRange().refusals(Limits(wall_time_s=32.5)) != ()
