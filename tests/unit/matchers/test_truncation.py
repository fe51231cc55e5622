"""Truncated evidence: whatever a matcher says of a part must be what it says of the whole."""

from __future__ import annotations

import hashlib

from hypothesis import example, given, settings
from hypothesis import strategies as st

import grader.matchers  # noqa: F401 # pyright: ignore[reportUnusedImport] - registers them
from grader.core.captured import Captured
from grader.core.matching import parse_matcher
from grader.core.tri import Tri

Plain = dict[str, object]

PIECES = ["a", "b", "A", "1", "2", "10", ".", "e", "-", "nan", " ", "  ", "\t", "\n", "\r\n", "\r", "\x0c", "é", "1.50"]
JSON_PIECES = ["{", "}", "[", "]", ",", ":", '"a"', '"b', '"', "\\", "\\u00e9", "1", "1.0", "e1", "true", "tr", "null",
               " ", "\n", "é", "NaN", "-", '{"a":1}', "[1,2]"]  # fmt: skip

texts = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)
json_texts = st.lists(st.sampled_from(JSON_PIECES), max_size=10).map("".join)
values = st.one_of(
    texts.map(str.encode),
    json_texts.map(str.encode),
    st.binary(max_size=8),
    texts.map(lambda text: text.encode() + b"\xff\xc3"),
)


def options(**choices: list[object]) -> st.SearchStrategy[Plain]:
    """Any of the options, each left out or with one of its values."""
    return st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in choices.items()})


def combined(name: str, parts: object) -> Plain:
    return {name: parts}


def named(name: str, argument: st.SearchStrategy[object], **choices: list[object]) -> st.SearchStrategy[Plain]:
    return st.tuples(argument, options(**choices)).map(lambda pair: {name: pair[0], **pair[1]})


TOLERANCES: list[object] = [0, "0.5", 1, 1000]
plain_json = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.5, '"a"']), lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
leaves = st.one_of(
    named("equals", texts, newlines=["any", "exact"], trailing_newline=["optional"]),
    named("contains", texts.filter(bool)),
    named("regex", st.sampled_from(["a$", "a", "^a.b", r"1\b", r"a\B", "(?m)b$", "[^a]é"])),
    named("regex", st.sampled_from(["(?s)a.*", r"\z", r"(?i)A\s+b|1"])),
    named("regex", st.sampled_from([r"\xc3", "a.$", r"1\b"]), encoding=["latin-1"]),
    named("lines", texts, order=["any"], case=["ignore"]),
    named("tokens", texts, float_absolute=TOLERANCES, float_relative=TOLERANCES, case=["ignore", "exact"],
          spaces=["exact"], dialect=["icpc"]),
    named("json", st.one_of(plain_json.filter(lambda value: value != '"a"'), st.just({"a": 1})), subset=[True],
          float_absolute=TOLERANCES),
    texts.map(lambda text: {"digest": hashlib.sha256(text.encode()).hexdigest()}),
)  # fmt: skip
matchers: st.SearchStrategy[Plain] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: combined("all_of", parts)),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: combined("any_of", parts)),
        inner.map(lambda part: combined("not", part)),
    ),
    max_leaves=3,
)


def check(plain: Plain, data: bytes) -> None:
    """Every cut of `data` is judged as the whole is, or is undetermined."""
    matcher = parse_matcher(plain)
    whole = matcher.match(Captured.whole(data))
    digest = hashlib.sha256(data).hexdigest()
    for kept in range(len(data)):
        found = matcher.match(Captured(data[:kept], len(data), digest))
        assert found.value in (whole.value, Tri.UNDETERMINED), (plain, data, kept, found, whole)
        assert (found.value is Tri.TRUE) == (found.detail == "")


@settings(max_examples=200, deadline=None)
@given(matchers, values)
def test_any_matcher_on_any_cut_of_any_value(plain: Plain, data: bytes):
    check(plain, data)


@settings(max_examples=150, deadline=None)
@given(leaves, st.data())
@example({"equals": "a\r\r\n", "newlines": "any"}, None)
def test_values_that_are_nearly_what_is_expected(plain: Plain, data: st.DataObject | None):
    """Random values are mostly wrong from the start; these begin as the expected one does."""
    argument = next(iter(plain.values()))
    base = argument if isinstance(argument, str) else '{"a": 1}'
    if data is None:
        check(plain, b"a\r\n")
        return
    at = data.draw(st.integers(0, len(base)))
    check(plain, (base[:at] + data.draw(st.sampled_from(["", *PIECES])) + base[at:]).encode())
    check(plain, base.replace("\n", data.draw(st.sampled_from(["\r\n", "\n\n", " \n", "\r\r\n"]))).encode())


@settings(max_examples=150, deadline=None)
@given(json_texts)
def test_a_prefix_of_json_is_refused_only_if_nothing_can_mend_it(text: str):
    check({"json": 1}, text.encode())
    check({"json": {"a": 1}}, ('{"a":1' + text + "}").encode())


def test_bounds_of_json_hold_for_its_prefixes():
    """What is beyond a bound is never looked at, in the whole as in a part: an error there is no error anywhere."""
    for data in (b"[" * 101 + b"x" * 20, b"[" * 99 + b"x" * 20, b'["[[[[\\"' + b"[" * 100 + b'",[' + b"x" * 20):
        check({"json": 1}, data)
    assert parse_matcher({"json": 1}).match(Captured.whole(b"[" * 101 + b"x" * 20)).value is Tri.UNDETERMINED
    assert parse_matcher({"json": 1}).match(Captured.whole(b"[" * 99 + b"x" * 20)).value is Tri.FALSE


def test_a_value_that_is_one_byte_longer_than_what_was_kept():
    for plain, data in (({"tokens": "ab"}, b"ab "), ({"lines": "ab"}, b"ab\n"), ({"json": 12}, b"12\n")):
        cut = Captured(data[:-1], len(data), hashlib.sha256(data + b"x").hexdigest())
        assert parse_matcher(plain).match(cut).value is Tri.UNDETERMINED
