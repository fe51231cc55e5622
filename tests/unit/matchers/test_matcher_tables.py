"""A table for every matcher: what is true, what is false (and how it says so), what is undetermined."""

from __future__ import annotations

import hashlib

import pytest

import grader.matchers  # noqa: F401 # pyright: ignore[reportUnusedImport] - registers them
from grader.core.captured import Captured
from grader.core.matching import Match, matcher_names, parse_matcher
from grader.core.reasons import ReasonCode
from grader.core.tri import Tri

Row = tuple[dict[str, object], bytes, str]


def cut(data: bytes, kept: int) -> Captured:
    return Captured(data[:kept], len(data), hashlib.sha256(data).hexdigest())


def judge(plain: dict[str, object], data: bytes) -> Match:
    return parse_matcher(plain).match(Captured.whole(data))


TRUE: list[tuple[dict[str, object], bytes]] = [
    ({"equals": "a\n"}, b"a\n"),
    ({"equals": ""}, b""),
    ({"equals": {"base64": "/wA="}}, b"\xff\x00"),
    ({"equals": "a\nb\n", "newlines": "any"}, b"a\r\nb\n"),
    ({"equals": "a\r\nb\r\n", "newlines": "any"}, b"a\nb\n"),
    ({"equals": "a\n", "trailing_newline": "optional"}, b"a"),
    ({"equals": "a", "trailing_newline": "optional"}, b"a\n"),
    ({"equals": "", "trailing_newline": "optional"}, b"\n"),
    ({"equals": "a\n", "newlines": "any", "trailing_newline": "optional"}, b"a\r\n"),
    ({"contains": "b"}, b"abc"),
    ({"contains": {"base64": "/w=="}}, b"a\xff"),
    ({"regex": "b+c"}, b"a\xffbbbc"),
    ({"regex": "^.$"}, "é".encode()),
    ({"regex": "^..$", "encoding": "latin-1"}, "é".encode()),
    ({"regex": "\\xff", "encoding": "latin-1"}, b"\xff"),
    ({"regex": "(?i)YES"}, b"yes"),
    ({"regex": "(?m)^b$"}, b"a\nb\nc"),
    ({"regex": "(?s)a.b"}, b"a\nb"),
    ({"lines": ["a", "b"]}, b"a \nb\r\n\n \n"),
    ({"lines": "a\nb"}, b"a\nb"),
    ({"lines": []}, b""),
    ({"lines": []}, b" \n\n"),
    ({"lines": ["a", "", "b"]}, b"a\n\t\nb\n"),
    ({"lines": ["b", "a", "a"], "order": "any"}, b"a\nb\n\na"),
    ({"lines": ["Ab"], "case": "ignore"}, b"aB\n"),
    ({"tokens": "1 b"}, b" 1\t\n\x0b\x0cb \r\n"),
    ({"tokens": ""}, b" \n"),
    ({"tokens": "nan"}, b"nan"),
    ({"tokens": "0.5", "float_absolute": 0}, b"+5.0e-1"),
    ({"tokens": "0", "float_relative": 0}, b"-0.00"),
    ({"tokens": "x 1 y", "float_absolute": 0.1}, b"x 1.1 y"),
    ({"tokens": "1000", "float_absolute": 0, "float_relative": "1e-3"}, b"1001"),
    ({"tokens": "1000", "float_absolute": 1, "float_relative": 0}, b"999"),
    ({"tokens": "1e999999999", "float_relative": 0}, b"10e999999998"),
    ({"tokens": "1e999999999999999999999", "float_relative": 0}, b"0.1e1000000000000000000000"),
    ({"tokens": "inf", "float_absolute": 1}, b"inf"),
    ({"tokens": "1" + "0" * 50, "float_absolute": 1}, b"1" + b"0" * 49 + b"1"),  # the bound is included
    ({"tokens": "0e99999", "float_absolute": 0}, b"0e-99999"),
    ({"tokens": "Yes 1", "case": "ignore"}, b"YES 1"),
    ({"tokens": "Yes nan", "dialect": "icpc", "float_absolute": 1}, b"YES NaN"),
    ({"tokens": "a  b\n", "spaces": "exact"}, b"a  b\n"),
    ({"tokens": "1  2\n", "spaces": "exact", "float_absolute": 1}, b"1  3\n"),
    ({"json": {"a": [1, True, None, "x"], "b": {}}}, b'{"b":{},"a":[1.0,true,null,"\\u0078"]}'),
    ({"json": '"yes"'}, b'"yes"'),
    ({"json": 10}, b" 1e1\n"),
    ({"json": 0}, b"-0.0"),
    ({"json": "50000000000000001"}, b"50000000000000001.0"),
    ({"json": "1e999999999"}, b"10E+999999998"),
    ({"json": {"a": {"b": 1}}, "subset": True}, b'{"c":0,"a":{"b":1,"d":2}}'),
    ({"json": [1.5], "float_absolute": 0.5}, b"[2]"),
    ({"json": [100], "float_relative": "0.01"}, b"[101]"),
    ({"json": '"\\ud800"'}, b'"\\uD800"'),
    ({"digest": hashlib.sha256(b"a").hexdigest()}, b"a"),
    ({"digest": hashlib.sha256(b"a").hexdigest().upper()}, b"a"),
    ({"all_of": [{"contains": "a"}, {"contains": "b"}]}, b"ab"),
    ({"any_of": [{"contains": "a"}, {"contains": "b"}]}, b"b"),
    ({"not": {"contains": "a"}}, b"b"),
]

FALSE: list[Row] = [
    ({"equals": "a\nb\n"}, b"a\nb\r\n", 'line 2: expected "b␊", got "b␍␊"'),
    ({"equals": "a\nb\n"}, b"a\nb", 'line 2: expected "b␊", got "b"'),
    ({"equals": "a\n"}, b"", 'line 1: expected "a␊", got nothing'),
    ({"equals": "a\n"}, b"a\nb\n", 'line 2: expected nothing, got "b␊"'),
    ({"equals": "x" * 100 + "y"}, b"x" * 100 + b"z", f'line 1: expected …"{"x" * 20}y", got …"{"x" * 20}z"'),
    ({"equals": "é"}, b"\xc3\xaa", 'line 1: expected "é", got "ê"'),
    ({"equals": "a\n", "newlines": "any"}, b"a\r", 'line 1: expected "a␊", got "a␍"'),
    ({"equals": "a\n\n", "trailing_newline": "optional"}, b"a\n", 'line 1: expected "a␊", got "a"'),
    ({"equals": "a\n\n", "trailing_newline": "optional"}, b"a", 'line 1: expected "a␊", got "a"'),
    ({"equals": "a\r\n", "trailing_newline": "optional"}, b"a\n", 'line 1: expected "a␍", got "a"'),
    ({"contains": "b"}, b"ac\n", '"b" not found in "ac␊"'),
    ({"contains": "b"}, b"", '"b" not found in nothing'),
    ({"regex": "^b$"}, b"a\nb\n", 'no match for "^b$" in "a␊b␊"'),
    ({"regex": "a$"}, b"a\n", 'no match for "a$" in "a␊"'),
    ({"regex": "\\xff"}, b"\xff", 'no match for "\\\\xff" in "\\xFF"'),
    ({"regex": "a.b"}, b"a\xffb", 'no match for "a.b" in "a\\xFFb"'),
    ({"lines": ["a", "b"]}, b"a\nc\n", 'line 2: expected "b", got "c"'),
    ({"lines": ["a", "b"]}, b"a\n\nb\n", 'line 2: expected "b", got nothing'),
    ({"lines": ["a", "", "b"]}, b"a\n", 'line 3: expected "b", got nothing'),
    ({"lines": ["a"]}, b"a\n\nb\n", 'line 3: expected nothing, got "b"'),
    ({"lines": ["a"]}, b" a\n", 'line 1: expected "a", got " a"'),
    ({"lines": []}, b"\n x", 'line 2: expected nothing, got " x"'),
    ({"lines": ["a", "b"]}, b"a\rb\r", 'line 1: expected "a", got "a␍b"'),
    ({"lines": ["a", "b"], "order": "any"}, b"a\n\na\nb", 'line 3: "a" is not expected, or not so often'),
    ({"lines": ["a", "b"], "order": "any"}, b"b\n", 'expected a line "a", not found'),
    ({"lines": ["a"]}, b"A", 'line 1: expected "a", got "A"'),
    ({"lines": ["É"], "case": "ignore"}, "é".encode(), 'line 1: expected "É", got "é"'),
    ({"tokens": "a b"}, b"a\n\nc", 'line 3, token 2: expected "b", got "c"'),
    ({"tokens": "a b"}, b"a\n", 'line 1, token 2: expected "b", got nothing'),
    ({"tokens": "a"}, b"a b c", 'line 1, token 2: expected nothing, got "b"'),
    ({"tokens": "a"}, b"A", 'line 1, token 1: expected "a", got "A"'),
    ({"tokens": "1"}, b"1.0", 'line 1, token 1: expected "1", got "1.0"'),
    ({"tokens": "a b"}, "a\u00a0b".encode(), 'line 1, token 1: expected "a", got "a\\u00a0b"'),
    (
        {"tokens": "1", "float_absolute": "0.1"},
        b"1.1000000000000000000000001",
        'line 1, token 1: expected "1", got "1.1000000000000000000000001"',
    ),
    (
        {"tokens": "50000000000000000", "float_absolute": "0.5"},
        b"50000000000000001",
        'line 1, token 1: expected "50000000000000000", got "50000000000000001"',
    ),
    ({"tokens": "1", "float_relative": 1}, b"-1e-999999999", 'line 1, token 1: expected "1", got "-1e-999999999"'),
    ({"tokens": "1", "float_relative": 1}, b"1e999999999", 'line 1, token 1: expected "1", got "1e999999999"'),
    (
        {"tokens": "1e99999999999999999999", "float_relative": "0.5"},
        b"1e99999999999999999998",
        'line 1, token 1: expected "1e99999999999999999999", got "1e99999999999999999998"',
    ),
    ({"tokens": "nan", "float_absolute": 1}, b"nan", 'line 1, token 1: expected "nan", which equals nothing'),
    ({"tokens": "1", "float_absolute": 1}, b"nan", 'line 1, token 1: expected "1", got "nan"'),
    ({"tokens": "16", "float_absolute": 1}, b"0x10", 'line 1, token 1: expected "16", got "0x10"'),
    ({"tokens": "1000", "float_absolute": 1}, b"1_000", 'line 1, token 1: expected "1000", got "1_000"'),
    ({"tokens": "1", "float_absolute": 9}, "٣".encode(), 'line 1, token 1: expected "1", got "٣"'),
    ({"tokens": "1", "float_absolute": 9}, b"e", 'line 1, token 1: expected "1", got "e"'),
    ({"tokens": "inf", "float_absolute": 9}, b"Infinity", 'line 1, token 1: expected "inf", got "Infinity"'),
    ({"tokens": "Yes", "dialect": "icpc", "case": "exact"}, b"YES", 'line 1, token 1: expected "Yes", got "YES"'),
    ({"tokens": "a b", "spaces": "exact"}, b"a  b", 'token 1: expected " ", got "  "'),
    ({"tokens": "a b\n", "spaces": "exact"}, b"a b", 'token 2: expected "␊", got nothing'),
    ({"tokens": "a", "spaces": "exact"}, b"a b", 'token 1: expected nothing, got " b"'),
    ({"json": True}, b"1", "at $: expected true, got 1"),
    ({"json": 1}, b'"1"', 'at $: expected 1, got "1"'),
    ({"json": 1}, b"true", "at $: expected 1, got true"),
    ({"json": '"1"'}, b"1", 'at $: expected "1", got 1'),
    ({"json": [1]}, b'["1"]', 'at $[0]: expected 1, got "1"'),
    ({"json": None}, b"false", "at $: expected null, got false"),
    ({"json": {"a": [0, {"b c": 1}]}}, b'{"a":[0,{"b c":2}]}', 'at $.a[1]["b c"]: expected 1, got 2'),
    ({"json": {"a": 1}}, b"{}", 'at $: the key "a" is missing'),
    ({"json": {}}, b'{"a":1}', 'at $: the key "a" is not expected'),
    ({"json": [1], "subset": True}, b"[1,2]", "at $: expected 1 items, got 2"),
    ({"json": {}}, b"[]", "at $: expected an object of 0 keys, got an array of 0 items"),
    (
        {"json": "0.1"},
        b"0.1000000000000000055511151231257827",
        "at $: expected 0.1, got 0.1000000000000000055511151231257827",
    ),
    ({"json": 1}, b"", "not JSON: nothing"),
    ({"json": 1}, b" \n", "not JSON: nothing but white space"),
    ({"json": 1}, b"1,", 'not JSON at line 1, column 2: ","'),
    ({"json": 1}, b"NaN", "NaN is not in JSON"),
    ({"json": 1}, b"[Infinity]", "Infinity is not in JSON"),
    ({"json": 1}, b"01", 'not JSON at line 1, column 2: "1"'),
    ({"json": 1}, b"\xef\xbb\xbf1", 'not JSON at line 1, column 1: "\\ufeff1"'),
    ({"json": '"\xff"'}, b'"\xff"', "not UTF-8 at byte 1"),
    ({"json": 1}, b"1\x00", 'not JSON at line 1, column 2: "␀"'),
    ({"json": 1}, "١".encode(), 'not JSON at line 1, column 1: "١"'),
    ({"json": '"a\\nb"'}, b'"a\nb"', 'not JSON at line 1, column 3: "␊b\\""'),
    ({"json": 1}, b'{"a":1,"a":1', 'not JSON at line 1, column 13: ""'),
    ({"digest": "0" * 64}, b"", f"expected SHA-256 {'0' * 64}, got {hashlib.sha256(b'').hexdigest()} (0 bytes)"),
    ({"all_of": [{"contains": "a"}, {"contains": "b"}]}, b"x", '"a" not found in "x"; "b" not found in "x"'),
    ({"any_of": [{"contains": "a"}, {"equals": "b"}]}, b"x", '"a" not found in "x"; line 1: expected "b", got "x"'),
    ({"not": {"contains": "a"}}, b"a", 'it must not match: contains "a"'),
]

CUT_FALSE: list[tuple[dict[str, object], bytes, int]] = [
    ({"equals": "abc"}, b"abcd", 3),  # the length
    ({"equals": "abc"}, b"abd", 2),  # the digest
    ({"equals": "abc"}, b"axc", 2),  # the kept part
    ({"equals": "a\nb\n", "newlines": "any"}, b"a\r\nbcdef", 3 + 2),
    ({"equals": "a\n", "newlines": "any"}, b"a\r\n\r\n\r\n", 3),  # longer than any way to write it
    ({"equals": "ab\n", "trailing_newline": "optional"}, b"ac", 1),  # the digest of both ways to write it
    ({"equals": "a\nb\n", "newlines": "any"}, b"a\r\nc\n", 4),  # the kept part
    ({"equals": "a\n\n", "trailing_newline": "optional"}, b"a\n", 1),
    ({"equals": "a\r\r\n", "newlines": "any"}, b"a\n", 1),  # only the CR before the LF goes away
    ({"equals": "a\r\r\n", "newlines": "any"}, b"a\r\n", 1),
    ({"contains": "abcd"}, b"abc", 1),  # no room for it
    ({"lines": ["a", "b"]}, b"a\nc\nd\n", 4),
    ({"lines": ["a", "b"]}, b"a\nb\nc", 5),
    ({"lines": ["abc"]}, b"abdef", 3),  # a line that was cut off cannot become the expected one
    ({"lines": ["a"], "order": "any"}, b"a\na\nb", 4),
    ({"lines": ["abc"], "order": "any"}, b"abdef", 3),
    ({"tokens": "a b"}, b"a c d", 4),
    ({"tokens": "a b"}, b"a bc d", 4),
    ({"tokens": "a bc"}, b"a b c", 4),  # the white space after it was kept: the token is whole
    ({"tokens": "a"}, b"a bcd", 3),
    ({"tokens": "1", "float_absolute": 1}, b"1x25", 2),  # no number begins like this
    ({"tokens": "a b", "spaces": "exact"}, b"a  bcd", 3),
    ({"json": 1}, b'{"a" 1xxxxxxxxxxxx}', 16),
    ({"json": 1}, b"\xff\xffaaa", 4),
    ({"digest": "0" * 64}, b"abc", 1),
    ({"all_of": [{"regex": "z"}, {"equals": "x"}]}, b"abc", 1),  # false and undetermined is false
    ({"any_of": [{"equals": "x"}, {"equals": "abd"}]}, b"abc", 1),
    ({"not": {"contains": "a"}}, b"abc", 1),
]

CUT_TRUE: list[tuple[dict[str, object], bytes, int]] = [
    ({"equals": "abc"}, b"abc", 2),
    ({"equals": "a\nb\n", "newlines": "any"}, b"a\r\nb\r\n", 2),
    ({"equals": "a\n", "trailing_newline": "optional"}, b"a", 0),
    ({"contains": "b"}, b"abc", 2),
    ({"regex": "b"}, b"abc", 2),
    ({"regex": "b$|c\\b"}, b"ac d", 3),  # what it looks ahead to was kept
    ({"lines": ["a", "b"]}, b"a\nb\n", 1),
    ({"tokens": "a b"}, b"a b\n", 1),
    ({"json": {"a": 1}}, b'{"a":1}\n', 1),
    ({"digest": hashlib.sha256(b"abc").hexdigest()}, b"abc", 1),
    ({"all_of": [{"contains": "a"}, {"contains": "b"}]}, b"abc", 2),
    ({"any_of": [{"regex": "z"}, {"equals": "abc"}]}, b"abc", 1),  # true or undetermined is true
    ({"not": {"equals": "x"}}, b"abc", 1),
]

CUT_UNDETERMINED: list[tuple[dict[str, object], bytes, int]] = [
    ({"equals": "a\nb\n", "newlines": "any"}, b"a\r\nb\n", 4),
    ({"equals": "a\nb\nc", "newlines": "any"}, b"a\r\nb\nc", 2),  # the cut goes through a CRLF
    ({"contains": "c"}, b"abc", 2),
    ({"regex": "z"}, b"abc", 2),
    ({"regex": "b$"}, b"abc", 2),  # the end of what was kept is not the end
    ({"regex": "ab\\b"}, b"abc", 2),
    ({"regex": "-\\B"}, b"-a", 1),
    ({"lines": ["a", "b"]}, b"a\nb \n", 3),
    ({"lines": ["a", "b"]}, b"a\nb\n\n\n", 5),
    ({"lines": ["a", "b"], "order": "any"}, b"b\na \n", 3),
    ({"lines": ["ab"], "order": "any"}, b"ab \n", 1),  # a line that was cut off is not the whole line
    ({"tokens": "a b"}, b"a b  ", 3),
    ({"tokens": "a b"}, b"a b c", 4),  # all that is expected, but not all there is
    ({"tokens": "a  b", "spaces": "exact"}, b"a  bc", 2),  # the cut goes through white space
    ({"tokens": "15", "float_absolute": 1}, b"1500e-2", 4),
    ({"tokens": "nan", "float_absolute": 1}, b"nan", 1),
    ({"tokens": "a b", "spaces": "exact"}, b"a bc", 3),
    ({"json": {"a": 1}}, b'{"a": 1}', 5),
    ({"json": [True]}, b"[ true]", 5),  # the cut goes through a word
    ({"json": [False]}, b"[ false]", 6),
    ({"json": '"é"'}, b' "\\u00e9"', 7),
    ({"json": -15}, b" -15", 2),
    ({"json": 1.5}, b" 1.5", 3),
    ({"json": "1e2"}, b" 1e2", 3),
    ({"json": '"éa"'}, '"éa" '.encode(), 2),  # the cut goes through a character
    ({"json": {"a": 1}}, b'{"b": 1}', 7),  # a key may come twice, and then it could not be judged
    ({"all_of": [{"regex": "z"}, {"contains": "a"}]}, b"abc", 1),
    ({"any_of": [{"regex": "z"}, {"equals": "x"}]}, b"abc", 1),
    ({"not": {"contains": "c"}}, b"abc", 1),
]

FAILED: list[Row] = [
    ({"json": {"a": 1}}, b'{"a":1,"a":1}', 'the key "a" stands in one object more than once'),
    ({"json": {"a": 1}}, b'{"a":{"x":0,"\\u0078":0}}', 'the key "x" stands in one object more than once'),
    ({"json": []}, b"[" * 101 + b"]" * 101, "nested more than 100 levels deep"),
    ({"json": []}, b'["' + b"]" * 200 + b'",' + b"[" * 100 + b"]" * 101, "nested more than 100 levels deep"),
    ({"json": []}, b"[" * 101, "nested more than 100 levels deep"),
    ({"json": 1}, b"1" * 4301, "a number of 4301 characters (at most 4300 are read)"),
    ({"json": 1}, b"[" + b"1," * 2_000_001, "more than 2000000 values"),
    ({"not": {"json": {"a": 1}}}, b'{"a":1,"a":1}', 'the key "a" stands in one object more than once'),
]


def test_every_matcher_is_in_every_table():
    # A regex is never false of a part: the rest may match. A digest always decides. A checker has its own tests.
    tables = [(TRUE, ""), (FALSE, ""), (CUT_TRUE, ""), (CUT_FALSE, "regex"), (CUT_UNDETERMINED, "digest")]
    for table, without in tables:
        names = {name for row in table for name in row[0]}
        assert names >= set(matcher_names()) - {without, "checker"}


@pytest.mark.parametrize(("plain", "data"), TRUE)
def test_true(plain: dict[str, object], data: bytes):
    assert judge(plain, data) == Match(Tri.TRUE)


@pytest.mark.parametrize(("plain", "data", "detail"), FALSE)
def test_false_and_why(plain: dict[str, object], data: bytes, detail: str):
    assert judge(plain, data) == Match(Tri.FALSE, detail)


@pytest.mark.parametrize(("plain", "data", "detail"), FAILED)
def test_what_cannot_be_processed_is_undetermined(plain: dict[str, object], data: bytes, detail: str):
    assert judge(plain, data) == Match(Tri.UNDETERMINED, detail, ReasonCode.MATCHER_FAILED)


@pytest.mark.parametrize(("plain", "data", "kept"), CUT_TRUE)
def test_true_of_a_truncated_value(plain: dict[str, object], data: bytes, kept: int):
    assert judge(plain, data).value is Tri.TRUE
    assert parse_matcher(plain).match(cut(data, kept)) == Match(Tri.TRUE)


@pytest.mark.parametrize(("plain", "data", "kept"), CUT_FALSE)
def test_false_of_a_truncated_value(plain: dict[str, object], data: bytes, kept: int):
    assert judge(plain, data).value is Tri.FALSE
    found = parse_matcher(plain).match(cut(data, kept))
    assert found.value is Tri.FALSE
    assert found.detail != ""


@pytest.mark.parametrize(("plain", "data", "kept"), CUT_UNDETERMINED)
def test_undetermined_of_a_truncated_value(plain: dict[str, object], data: bytes, kept: int):
    found = parse_matcher(plain).match(cut(data, kept))
    assert found.value is Tri.UNDETERMINED
    assert found.code is ReasonCode.EVIDENCE_TRUNCATED
    assert found.detail == f"only the first {kept} of {len(data)} bytes were kept"
