"""What the documentation says about matchers is what they do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import grader.matchers
from grader.core.bytes_field import parse_bytes
from grader.core.captured import Captured
from grader.core.matching import Matcher, matcher_names, parse_matcher
from grader.core.tri import Tri
from grader.matchers import Equals, Lines, Tokens
from grader.matchers.json_text import MAX_DEPTH, MAX_NUMBER_CHARACTERS
from grader.matchers.regex import MAX_INSTRUCTIONS

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = (DOCS / "reference" / "matchers.md").read_text("utf-8")
EXPLANATION = (DOCS / "explanation" / "matchers.md").read_text("utf-8")

EXAMPLES: list[dict[str, Any]] = [
    yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", REFERENCE, re.DOTALL)
]
TABLE_ROWS = re.findall(r'^\| `(".*?")` \| `(".*?")` \|((?: [✓✗] \|)+)', EXPLANATION, re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES)
def test_reference_examples(example: dict[str, Any]):
    matcher = parse_matcher(example["matcher"])
    words = {"matches": Tri.TRUE, "differs": Tri.FALSE, "undetermined": Tri.UNDETERMINED}
    examples = {word: values for word, values in example.items() if word != "matcher"}
    assert {"matches", "differs"} <= set(examples) <= set(words)
    for word, values in examples.items():
        for value in values:
            found = matcher.match(Captured.whole(parse_bytes(value)))
            assert found.value is words[word], (value, found)


def test_every_matcher_has_a_heading_and_an_example_and_every_option_is_named():
    for name in set(matcher_names()) - {"checker"}:
        assert re.search(rf"^## .*\b{name}\b", REFERENCE, re.MULTILINE), name
        assert any(name in str(example["matcher"]) for example in EXAMPLES), name
    for name in grader.matchers.__all__:
        matcher: type[Matcher] = getattr(grader.matchers, name)
        for option in set(matcher.model_fields) - {matcher.matcher_argument}:
            section = REFERENCE.split(f"\n## {matcher.matcher_name}\n")[1].split("\n## ")[0]
            assert f"`{option}`" in section, option


def test_the_bounds_are_the_ones_in_the_code():
    assert f"{MAX_INSTRUCTIONS:,} instructions" in REFERENCE
    assert f"{MAX_NUMBER_CHARACTERS:,} characters" in REFERENCE
    assert f"{MAX_DEPTH} levels" in REFERENCE


def verdict(matcher: Matcher, got: bytes) -> str:
    return "✓" if matcher.match(Captured.whole(got)).value is Tri.TRUE else "✗"


@pytest.mark.parametrize(("expected", "got", "marks"), TABLE_ROWS)
def test_rows_where_graders_disagree(expected: str, got: str, marks: str):
    left, right = json.loads(expected).encode(), json.loads(got).encode()
    both: dict[str, Any] = {"float_absolute": "1e-6", "float_relative": "1e-6"}
    texts: list[Matcher] = [Equals(expected=left), Lines(expected=left), Tokens(expected=left)]
    numbers: list[Matcher] = [
        Tokens.model_validate({"expected": left, **both}),
        Tokens.model_validate({"expected": left, "dialect": "icpc", **both}),
    ]
    wanted = re.findall("[✓✗]", marks)
    assert [verdict(matcher, right) for matcher in (texts if len(wanted) == 3 else numbers)] == wanted


def test_all_rows_were_found():
    assert len(TABLE_ROWS) == len(re.findall(r'^\| `"', EXPLANATION, re.MULTILINE)) >= 40
