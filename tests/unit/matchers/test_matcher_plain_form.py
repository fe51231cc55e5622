"""Matchers as plain data: read, refused with a reason, written back, and their digests."""

from __future__ import annotations

import datetime
import pickle
import re
from decimal import Decimal

import pytest
from pydantic import ValidationError

from grader.core.canonical import digest
from grader.core.captured import Captured
from grader.core.matching import parse_matcher
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri
from grader.matchers import Contains, Equals, JsonEquals, Lines, MatchesAll, Regex, Tokens

Plain = dict[str, object]

# What is written, and its digest. A digest that changes makes every stored record a stranger.
PINNED: list[tuple[Plain, str]] = [
    ({"equals": "Uryyb\n"}, "ec538df6f37e8e0d2d764f0b79357205fc7b07182bbe284456832c5c8a67ccb4"),
    ({"equals": {"base64": "/w=="}, "newlines": "any", "trailing_newline": "optional"},
     "a8bd18b285c908fc7a6cea4eb7150792eb03c7df315ba37eaaca765bc290e3bf"),
    ({"contains": "done"}, "90758646522a1bba6871423db43a28fada4324829f576e461b5be740c7cb570c"),
    ({"regex": "^a+$"}, "c504ed5302ad0bd7c2758951bea22da28e4fe864ec0feef8ecd9f6167bbfc950"),
    ({"lines": ["nop"]}, "9e9f6b602321645fd8304c4467d72dcfdd37b0033ac6a78f04bb7971a70b5a6c"),
    ({"lines": ["b", "a"], "order": "any", "case": "ignore"},
     "753d3ab8d82fa125aff263882f72f65ebbc9ef12ff0e83850c066035c46dfed6"),
    ({"tokens": "3.14", "float_absolute": "1e-6", "float_relative": 1e-06},
     "5756e0591ef9d75ba6dd78cc4adaba9640742d75edf18dbb9b637dc28c08c619"),
    ({"tokens": "Yes", "dialect": "icpc"}, "8fbf26f4d3f2773622a9458682d4beff54f68b9167f0a2357a2efa6245466d58"),
    ({"json": {"b": 1.0, "a": [True, None]}, "subset": True},
     "978d3320de53b526c1a8fb056b3e6b33548f307120a74060a7cdd8704d41febc"),
    ({"digest": "ab" * 32}, "9faf9eab9a9febfe54574ae8648893b873c4002b8040e45bb059ba8da1b2d2bd"),
    ({"all_of": [{"contains": "a"}, {"not": {"any_of": [{"equals": "b"}]}}]},
     "340c42f7f2b8da4a41083e6d3a5a014af24c7b78ad8d768c9483c3a3d8477ee2"),
]  # fmt: skip

# What may be read, and what is written for it.
FORMS: list[tuple[Plain, Plain]] = [
    ({"equals": "a"}, {"equals": "a"}),
    ({"equals": "a", "newlines": "exact", "trailing_newline": "exact"}, {"equals": "a"}),
    ({"equals": b"a", "newlines": "any"}, {"equals": "a", "newlines": "any"}),
    ({"equals": {"text": "a"}}, {"equals": "a"}),
    ({"equals": {"base64": "YQ=="}}, {"equals": "a"}),
    ({"equals": {"base64": "/w=="}}, {"equals": {"base64": "/w=="}}),
    ({"contains": "é"}, {"contains": "é"}),
    ({"regex": "a+", "encoding": "latin-1"}, {"regex": "a+", "encoding": "latin-1"}),
    ({"lines": ["a ", "", "b", ""]}, {"lines": "a\n\nb"}),
    ({"lines": "a \r\n\nb\n \n"}, {"lines": "a\n\nb"}),
    ({"lines": [{"base64": "/w=="}], "order": "any"}, {"lines": {"base64": "/w=="}, "order": "any"}),
    ({"tokens": "1", "float_absolute": "1e-6"}, {"tokens": "1", "float_absolute": 1e-06}),
    ({"tokens": "1", "float_absolute": 0.000001}, {"tokens": "1", "float_absolute": 1e-06}),
    ({"tokens": "1", "float_relative": 1.0}, {"tokens": "1", "float_relative": 1}),
    ({"tokens": "1", "float_relative": "0.10000000000000000000010"},
     {"tokens": "1", "float_relative": "0.1000000000000000000001"}),
    ({"tokens": "a", "case": "exact", "dialect": "icpc"}, {"tokens": "a", "case": "exact", "dialect": "icpc"}),
    ({"json": {"b": [1.0, 100, "x"], "a": None}}, {"json": '{"a":null,"b":[1,100,"x"]}'}),
    ({"json": ' {"a" : 1e2, "b": 0.50} '}, {"json": '{"a":100,"b":0.5}'}),
    ({"json": b"1e999999999"}, {"json": "1E+999999999"}),
    ({"json": "-0.0"}, {"json": "0"}),
    ({"json": "12345678901234567890.123456789"}, {"json": "12345678901234567890.123456789"}),
    ({"json": '"\\ud800\\u00e9"'}, {"json": '"\\ud800\\u00e9"'}),
    ({"json": '"\\u00e9"'}, {"json": '"é"'}),
    ({"json": 1, "subset": False}, {"json": "1"}),
    ({"digest": "AB" * 32}, {"digest": "ab" * 32}),
    ({"all_of": [{"lines": ["a"]}, {"not": {"contains": "b"}}]},
     {"all_of": [{"lines": "a"}, {"not": {"contains": "b"}}]}),
    ({"any_of": [{"json": [1]}]}, {"any_of": [{"json": "[1]"}]}),
]  # fmt: skip

REFUSED: list[tuple[Plain, str]] = [
    ({"equals": 10}, "expected text, not int"),
    ({"equals": False}, "expected text, not bool"),
    ({"equals": datetime.date(2024, 1, 1)}, "put it in quotes"),
    ({"equals": None}, "expected text, not NoneType"),
    ({"equals": "\ud800"}, "not valid Unicode"),
    ({"equals": "a", "newlines": "some"}, "'exact' or 'any'"),
    ({"equals": "a", "strip": True}, "Extra inputs"),
    ({"contains": ""}, "every value contains the empty text"),
    ({"contains": 3}, "expected text, not int"),
    ({"regex": ""}, "the empty pattern matches every value"),
    ({"regex": 3}, "a pattern is text, not int"),
    ({"regex": "(?=a)"}, "not a pattern that RE2 takes"),
    ({"regex": "(a)\\1"}, "invalid escape sequence"),
    ({"regex": "["}, "missing ]"),
    ({"regex": "a{1001}"}, "invalid repetition size"),
    ({"regex": ".{900}" * 2}, "the pattern is too large"),
    ({"regex": "\ud800"}, "cannot be written in utf-8"),
    ({"regex": "漢", "encoding": "latin-1"}, "cannot be written in latin-1"),
    ({"lines": ["a\nb"]}, "has a newline in it"),
    ({"lines": [1]}, "expected text, not int"),
    ({"lines": 1}, "expected text, not int"),
    ({"tokens": 1}, "expected text, not int"),
    ({"tokens": "1", "float_absolute": -1}, "cannot be negative"),
    ({"tokens": "1", "float_absolute": "-1e-9"}, "cannot be negative"),
    ({"tokens": "1", "float_absolute": True}, "a tolerance is a decimal number"),
    ({"tokens": "1", "float_absolute": float("nan")}, "a tolerance is a decimal number"),
    ({"tokens": "1", "float_absolute": float("inf")}, "a tolerance is a decimal number"),
    ({"tokens": "1", "float_absolute": "0x1"}, "a tolerance is a decimal number"),
    ({"tokens": "1", "float_absolute": "1e99999"}, "too many digits"),
    ({"tokens": "1", "float_absolute": "1e9999999999999999999"}, "out of range"),
    ({"tokens": "1", "dialect": "codeforces"}, "'default' or 'icpc'"),
    ({"json": "yes"}, "To expect the JSON string, write it with JSON's own quotes: '\"yes\"'"),
    ({"json": "{"}, "not JSON at line 1"),
    ({"json": b"\xff"}, "not UTF-8"),
    ({"json": '{"a":1,"a":2}'}, "more than once"),
    ({"json": "[" * 101 + "]" * 101}, "levels deep"),
    ({"json": "1" * 4301}, "a number of 4301 characters"),
    ({"json": "1e9999999999999999"}, "out of range"),
    ({"json": "1e99999999999999999999"}, "out of range"),
    ({"json": {1: 2}}, "the keys of a JSON object are text"),
    ({"json": datetime.date(2024, 1, 1)}, "is not a JSON value"),
    ({"json": float("nan")}, "nan is not in JSON"),
    ({"digest": "abc"}, "64 hex digits"),
    ({"digest": 0}, "64 hex digits"),
    ({"all_of": []}, "at least 1 item"),
    ({"any_of": []}, "at least 1 item"),
    ({"not": {}}, "found nothing"),
    ({"not": {"equals": "a", "contains": "b"}}, "expected exactly one matcher"),
]


@pytest.mark.parametrize(("read", "written"), FORMS)
def test_round_trip(read: Plain, written: Plain):
    matcher = parse_matcher(read)
    assert matcher.to_plain() == written
    assert parse_matcher(written) == matcher
    assert parse_matcher(written).to_plain() == written
    assert hash(parse_matcher(written)) == hash(matcher)


@pytest.mark.parametrize(("plain", "why"), REFUSED)
def test_what_is_refused_and_why(plain: Plain, why: str):
    with pytest.raises(ValueError, match=re.escape(why)):
        parse_matcher(plain)


@pytest.mark.parametrize(("plain", "pinned"), PINNED)
def test_digests_are_pinned(plain: Plain, pinned: str):
    assert digest(parse_matcher(plain).to_plain()) == pinned


def test_a_matcher_that_was_used_is_still_equal_hashable_and_can_be_sent_to_another_process():
    for plain, _ in FORMS:
        used, fresh = parse_matcher(plain), parse_matcher(plain)
        used.match(Captured.whole(b"1 2\n"))
        used.match(Captured(b"1", 4, "0" * 64))
        assert used == fresh
        assert hash(used) == hash(fresh)
        assert pickle.loads(pickle.dumps(used)) == fresh
        assert used.to_plain() == fresh.to_plain()
        assert used.describe() != ""


def test_a_matcher_is_frozen():
    with pytest.raises(ValidationError):
        Equals(expected=b"a").expected = b"b"  # pyright: ignore[reportAttributeAccessIssue]


# --- arguments of tool calls


ARGUMENTS: list[tuple[Plain, object, Tri]] = [
    ({"equals": "3"}, "3", Tri.TRUE),
    ({"equals": "3"}, 3, Tri.TRUE),  # text matchers see the JSON text, so these are the same to them
    ({"equals": '{"a":1,"b":[true,null]}'}, {"b": [True, None], "a": 1}, Tri.TRUE),
    ({"json": 3}, 3, Tri.TRUE),
    ({"json": 3}, 3.0, Tri.TRUE),
    ({"json": 3}, "3", Tri.FALSE),  # typed
    ({"json": '"3"'}, "3", Tri.TRUE),
    ({"json": {"a": 1}}, '{"a":1}', Tri.FALSE),  # a string that holds JSON is a string
    ({"json": {"a": 1}, "subset": True}, {"a": 1, "b": 2}, Tri.TRUE),
    ({"json": "0.1"}, 0.1, Tri.TRUE),
    ({"json": "0.1"}, Decimal("0.10"), Tri.TRUE),
    ({"all_of": [{"json": '"3"'}, {"equals": "3"}]}, "3", Tri.TRUE),
    ({"not": {"json": 3}}, "3", Tri.TRUE),
    ({"json": 3}, float("nan"), Tri.UNDETERMINED),
    ({"not": {"json": 3}}, float("nan"), Tri.UNDETERMINED),
    ({"contains": "a"}, "\ud800a", Tri.TRUE),
    ({"contains": "a"}, ["\ud800a"], Tri.UNDETERMINED),
    ({"not": {"contains": "a"}}, {"x": float("nan")}, Tri.UNDETERMINED),
]


@pytest.mark.parametrize(("plain", "value", "wanted"), ARGUMENTS)
def test_arguments(plain: Plain, value: object, wanted: Tri):
    assert parse_matcher(plain).match_json(value).value is wanted


def test_a_json_argument_nested_too_deeply_is_undetermined():
    value: object = 1
    for _ in range(102):
        value = [value]
    found = JsonEquals(expected="[1]").match_json(value)
    assert (found.value, found.code) == (Tri.UNDETERMINED, ReasonCode.MATCHER_FAILED)


def test_words_for_reports():
    assert Contains(expected=b"a\n").describe() == 'contains "a␊"'
    both = MatchesAll(matchers=(Lines(expected=b"a"), Tokens(expected=b"b"), Regex(pattern="c")))
    assert both.describe() == 'all of: lines "a"; tokens "b"; regex "c"'
