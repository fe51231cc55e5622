"""Every link of README and docs leads to a file that is there, and to a heading that it has."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest
import yaml

import grader.matchers as _matchers
from grader.core.matching import parse_matcher

assert _matchers.__all__  # importing it registers the matchers

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted((*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links_of(page: Path) -> list[str]:
    """The targets of a page's links; what stands in code is none."""
    text = _CODE.sub("code", page.read_text("utf-8"))
    return _LINK.findall(text)


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.*?) *$", text, re.MULTILINE):
        slug = "".join(
            char for char in heading.lower() if char in "-_ " or unicodedata.category(char)[0] in "LNM"
        ).replace(" ", "-")
        number = 1
        name = slug
        while name in found:
            name = f"{slug}-{number}"
            number += 1
        found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links(page: Path) -> None:
    for link in links_of(page):
        target, _, anchor = link.partition("#")
        if target.startswith(("https://", "http://")):
            continue
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{page.relative_to(ROOT)} links to {link}"
        assert file.is_relative_to(ROOT), f"{page.relative_to(ROOT)} links to {link}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors_of(file), f"{page.relative_to(ROOT)} links to {link}"


def test_the_index_leads_to_every_page() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in links_of(DOCS / "README.md")}
    assert {page for page in PAGES if page.is_relative_to(DOCS) and page.name != "README.md"} <= linked


def test_a_dead_link_and_a_dead_anchor_would_be_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# `a.b` c_d: É\n[`code`](x.md) `[no](y.md)`\n```text\n[no](z.md)\n```\n[b](#ab-c_d-é)\n", "utf-8")
    assert links_of(page) == ["x.md", "#ab-c_d-é"]
    assert anchors_of(page) == {"ab-c_d-é"}


def test_matchers_named_in_how_to_pages_are_matchers() -> None:
    found = [
        snippet
        for page in sorted((DOCS / "how-to").glob("*.md"))
        for snippet in re.findall(r"`(\{(?:equals|lines|tokens|json|any_of)\b[^`]*\})`", page.read_text("utf-8"))
        if "..." not in snippet
    ]
    assert len(found) >= 6
    for snippet in found:
        parse_matcher(yaml.safe_load(snippet))
