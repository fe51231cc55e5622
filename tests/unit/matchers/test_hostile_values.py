"""Values made to hurt: every one gets an answer, soon, and a failure of ours is never the program's."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable

import pytest

from grader.core.captured import Captured
from grader.core.matching import Match, Matcher, parse_matcher
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from grader.matchers import Equals, JsonEquals, Lines, MatchesAll, Regex, Tokens
from grader.matchers import json_value as json_value_file
from grader.matchers.evidence import guarded

SIZE = 16 << 20
"""The default cap of standard output."""

SECONDS = 20.0
"""Far more than any of these needs, on a busy machine; a rule that is not linear takes hours."""

U, F, T = Tri.UNDETERMINED, Tri.FALSE, Tri.TRUE

ROWS: list[tuple[dict[str, object], Callable[[], bytes], Tri]] = [
    ({"equals": "a"}, lambda: b"a" * SIZE, F),
    ({"lines": "a", "order": "any"}, lambda: b" \n" * (SIZE // 2), F),
    ({"lines": "a"}, lambda: b"a\n" + b"\n" * SIZE, T),
    ({"tokens": "1 1"}, lambda: b"1 " * (SIZE // 2), F),
    ({"tokens": "1", "spaces": "exact"}, lambda: b" " * SIZE, F),
    ({"tokens": "1", "float_relative": 1}, lambda: b"1" * SIZE, F),
    ({"tokens": "1", "float_relative": 1}, lambda: b"1e" + b"9" * SIZE, F),
    ({"tokens": "1", "float_relative": 1}, lambda: b"0." + b"0" * SIZE + b"1", T),
    ({"tokens": "1", "float_relative": "0.5"}, lambda: b"1e-999999999999999999", F),
    ({"tokens": "1e999999999", "float_absolute": 1}, lambda: b"1.1e999999999", F),
    ({"tokens": "1e999999999999999", "float_relative": "0.2"}, lambda: b"1.1e999999999999999", T),
    ({"regex": "b"}, lambda: b"a" * SIZE, F),
    ({"regex": "(a*)*b"}, lambda: b"a" * SIZE, F),
    ({"regex": "[ab]*a[ab]{900}c"}, lambda: b"ab" * (SIZE // 2), U),
    ({"contains": "a" * 5000 + "b"}, lambda: b"a" * SIZE, F),
    ({"json": []}, lambda: b"[" * SIZE, U),
    ({"json": []}, lambda: b"[]" * (SIZE // 2), F),
    ({"json": []}, lambda: b'{"a":' * (SIZE // 50), U),
    ({"json": []}, lambda: b'"' + b'\\"' * (SIZE // 2), F),
    ({"json": []}, lambda: b" " * SIZE, F),
    ({"json": []}, lambda: b"1" * SIZE, U),
    ({"json": []}, lambda: b"[" + b"1" * 4300 + b"a" * SIZE, F),
    ({"json": []}, lambda: b"\xff" * SIZE, F),
    ({"json": "1e999999999"}, lambda: b"1e-999999999", F),
]


@pytest.mark.parametrize(("plain", "make", "wanted"), ROWS)
def test_large_values_are_judged_in_linear_time(plain: dict[str, object], make: Callable[[], bytes], wanted: Tri):
    data = make()
    captured = Captured(data, len(data), hashlib.sha256(data).hexdigest())
    matcher = parse_matcher(plain)
    start = time.perf_counter()
    found = matcher.match(captured)
    assert time.perf_counter() - start < SECONDS
    assert found.value is wanted, found.detail
    assert len(found.detail) < 600
    if wanted is U:
        assert found.code is ReasonCode.MATCHER_FAILED


def test_many_numbers():
    matcher = Tokens.model_validate({"expected": "1.5 " * 300_000, "float_absolute": "1e-3"})
    data = b"1.5001\n" * 300_000
    start = time.perf_counter()
    assert matcher.match(Captured.whole(data)).value is Tri.TRUE
    assert time.perf_counter() - start < SECONDS


def test_ten_thousand_small_outputs_are_judged_in_no_time():
    matchers: list[Matcher] = [Equals(expected=b"Uryyb\n"), Lines(expected=b"Uryyb"), Tokens(expected=b"Uryyb")]
    captured = Captured.whole(b"Uryyb\n")
    for matcher in matchers:
        start = time.perf_counter()
        for _ in range(10_000):
            matcher.match(captured)
        assert time.perf_counter() - start < 1.0


def test_deep_json_does_not_depend_on_the_stack():
    """Near the recursion limit the answer may become undetermined, never false and never an exception."""
    data = b"[" * 100 + b"]" * 100
    matcher = JsonEquals(expected=data.decode())
    assert matcher.match(Captured.whole(data)).value is Tri.TRUE
    seen: list[Match] = []

    def descend(depth: int) -> None:
        if depth > 0:
            descend(depth - 1)
        else:
            seen.append(matcher.match(Captured.whole(data)))

    frames = 0
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        frames, frame = frames + 1, frame.f_back
    descend(sys.getrecursionlimit() - frames - 30)
    assert seen[0].value is Tri.UNDETERMINED
    assert seen[0].code is ReasonCode.MATCHER_FAILED


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), ValueError("x"), KeyError("a bug of ours")])
def test_our_failure_is_undetermined(monkeypatch: pytest.MonkeyPatch, error: Exception):
    def explode(_: bytes) -> None:
        raise error

    part = JsonEquals(expected="1")
    monkeypatch.setattr(json_value_file, "parse_json", explode)
    for matcher in (part, MatchesAll(matchers=(part,))):
        found = matcher.match(Captured.whole(b"1"))
        assert found == Match.undetermined(f"the matcher failed with {type(error).__name__}", ReasonCode.MATCHER_FAILED)


def test_the_guard_lets_an_interruption_through():
    @guarded
    def judge(_self: object, _value: object) -> Match:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judge(None, None)


def test_a_pattern_too_large_for_the_text_is_still_found_in_the_part_that_is_searched():
    data = b"ab" + b"x" * SIZE
    found = Regex(pattern="ab|y{900}").match(Captured.whole(data))
    assert found.value is Tri.TRUE


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"\xff", Tri.FALSE),
        (b"\xc3", Tri.FALSE),
        (b"\xc0\x80", Tri.FALSE),
        (b"\xf5\x80\x80\x80", Tri.FALSE),
        # Forbidden by UTF-8, and a character to RE2: a lone surrogate, too long a form, too high a number.
        (b"\xed\xa0\x80", Tri.TRUE),
        (b"\xe0\x80\x80", Tri.TRUE),
        (b"\xf4\x90\x80\x80", Tri.TRUE),
    ],
)
def test_which_bytes_are_a_character_of_a_regex(data: bytes, value: Tri) -> None:
    assert parse_matcher({"regex": "."}).match(Captured.whole(data)).value is value
    assert parse_matcher({"regex": ".", "encoding": "latin-1"}).match(Captured.whole(data)).value is Tri.TRUE
