"""Durations as people write them, exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.core.durations import parse_duration_ns
from grader.core.expectation import TraceSettings


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("5ms", 5_000_000),
        ("250 us", 250_000),
        ("3µs", 3_000),
        ("7 ns", 7),
        ("1.5s", 1_500_000_000),
        ("2min", 120_000_000_000),
        ("0", 0),
        ("0.000000001s", 1),
        (" 1 s ", 1_000_000_000),
        (12, 12),
        ("9007199254740993ns", 9007199254740993),  # beyond what a double can hold
    ],
)
def test_written_durations(written: object, nanoseconds: int) -> None:
    assert parse_duration_ns(written) == nanoseconds


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("5", "has no unit"),
        ("soon", "expected a duration"),
        ("-5ms", "expected a duration"),
        ("", "expected a duration"),
        ("5 parsecs", "expected a duration"),
        ("1e3ms", "expected a duration"),
        ("٣ms", "expected a duration"),
        ("0.5ns", "not a whole number of nanoseconds"),
        (-1, "must not be negative"),
        (2**63, "292 years"),
        ("999999999999999999999s", "292 years"),
        (0.005, "expected a duration"),
        (True, "expected a duration"),
        (None, "expected a duration"),
    ],
)
def test_what_is_refused(written: object, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_duration_ns(written)


@given(st.integers(0, 2**63 - 1))
def test_whole_nanoseconds_are_exact(nanoseconds: int) -> None:
    assert parse_duration_ns(f"{nanoseconds}ns") == nanoseconds
    seconds, rest = divmod(nanoseconds, 10**9)
    assert parse_duration_ns(f"{seconds}.{rest:09}s") == nanoseconds


def test_trace_settings_take_text_and_are_stored_as_nanoseconds() -> None:
    settings = TraceSettings.model_validate({"clock_skew_tolerance": "5ms"})
    assert settings == TraceSettings(clock_skew_tolerance_ns=5_000_000)
    stored = settings.model_dump(mode="json", exclude_defaults=True)
    assert stored == {"clock_skew_tolerance_ns": 5_000_000}
    assert TraceSettings.model_validate(stored) == settings
