"""Our rules beside those of other graders, over pairs whose verdicts were measured or published elsewhere.

The pairs are test data that is not part of this repository; without them these tests are skipped. What is held here
is the *list of exceptions*: with which comparator each of our rules agrees, and where, on purpose, it does not.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from grader.core.captured import Captured
from grader.core.matching import Matcher
from grader.core.tri import Tri
from grader.matchers import Equals, Lines, Tokens

DATA = Path(__file__).parents[4] / "shared" / "data" / "matchers"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the measured pairs (../shared/data/matchers) are not here")


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def pair(row: dict[str, Any]) -> tuple[bytes, bytes]:
    return base64.b64decode(row["expected_b64"]), base64.b64decode(row["actual_b64"])


def is_true(matcher: Matcher, got: bytes) -> bool:
    found = matcher.match(Captured.whole(got))
    assert found.value is not Tri.UNDETERMINED
    return found.value is Tri.TRUE


BOTH = {"float_absolute": "1e-6", "float_relative": "1e-6"}
ICPC = {"dialect": "icpc"}
NAN = {(b"nan\n", b"nan\n"), (b"nan\n", b"NaN\n")}

# Our rule; the comparator that it is closest to; the pairs on which they differ.
NEAREST: list[tuple[str, type[Matcher], dict[str, Any], str, set[tuple[bytes, bytes]]]] = [
    # The answer file of DMOJ is normalised, ours is what the author wrote.
    ("text", Equals, {}, "dmoj-ident", {(b"a\r\nb\r\n", b"a\nb\n")}),
    # White space at the end of a line is forgiven, a byte order mark is not.
    ("text", Lines, {}, "fcmp", {(b"a b\n", b"a b  \n"), (b"a\n", b"\xef\xbb\xbfa\n")}),
    ("text", Tokens, {}, "domj-cs", set()),
    ("text", Tokens, {"case": "ignore"}, "domjudge", set()),
    ("text", Tokens, ICPC, "domjudge", set()),
    ("text", Tokens, ICPC, "bapc", set()),
    ("text", Tokens, {**ICPC, "case": "exact"}, "domj-cs", set()),
    ("text", Tokens, {**ICPC, "spaces": "exact"}, "bapc-sp", set()),
    # NaN equals nothing.
    ("float", Tokens, BOTH, "bapc-ft", NAN),
    # ... and a difference of 1 is larger than 1e-6, also where doubles cannot see it; no hexadecimal.
    (
        "float",
        Tokens,
        {"float_absolute": "1e-6"},
        "kattis-abs",
        {*NAN, (b"50000000000000000\n", b"50000000000000001\n"), (b"16\n", b"0x10\n")},
    ),
    ("float", Tokens, {"float_relative": "1e-6"}, "bapc-rel", {*NAN, (b"0\n", b"-0.0\n")}),
    ("float", Tokens, {**ICPC, **BOTH}, "bapc-ft", set()),
    ("float", Tokens, {**ICPC, "float_relative": "1e-6"}, "bapc-rel", {(b"0\n", b"-0.0\n")}),
]


@pytest.mark.parametrize(("kind", "cls", "options", "comparator", "exceptions"), NEAREST)
def test_the_nearest_comparator_and_the_exceptions_from_it(
    kind: str, cls: type[Matcher], options: dict[str, Any], comparator: str, exceptions: set[tuple[bytes, bytes]]
):
    edge_cases = [row for row in rows("edge-cases.jsonl") if row["kind"] == kind]
    assert len(edge_cases) > 30
    differing: set[tuple[bytes, bytes]] = set()
    for row in edge_cases:
        expected, got = pair(row)
        ours = is_true(cls.model_validate({"expected": expected, **options}), got)
        if ours != (row["verdicts"][comparator] == "AC"):
            differing.add((expected, got))
    assert differing == exceptions


def options_of_flags(flags: list[str]) -> dict[str, Any]:
    """The options that stand for the flags of the ICPC default output validator."""
    options: dict[str, Any] = {"dialect": "icpc"}
    rest = iter(flags)
    for flag in rest:
        if flag == "case_sensitive":
            options["case"] = "exact"
        elif flag == "space_change_sensitive":
            options["spaces"] = "exact"
        else:
            tolerance = next(rest)
            names = {"float_tolerance": ("absolute", "relative")}.get(flag, (flag.split("_")[1],))
            options.update({f"float_{name}": tolerance for name in names})
    return options


def test_the_icpc_dialect_gives_every_published_verdict():
    published = rows("known-verdicts.jsonl")
    assert len(published) > 300
    for row in published:
        expected, got = pair(row)
        matcher = Tokens.model_validate({"expected": expected, **options_of_flags(row["flags"])})
        assert is_true(matcher, got) == (row["verdict"] == "AC"), row
