"""The pages that are made from the code say what the code says now, and have a heading for every reason."""

from __future__ import annotations

import re

import pytest

from grader.core.reasons import ReasonCode
from scripts.generate_docs.cli import commands
from scripts.generate_docs.pages import PAGES, stale, text_of


def test_none_is_stale() -> None:
    assert stale() == [], "run scripts/generate-docs"


def test_a_stale_page_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAGES, "reasons.md", lambda: "# Another\n")
    assert stale() == ["reasons.md"]


def test_every_reason_has_a_heading_that_its_anchor_names() -> None:
    headings = re.findall(r"^### (.*)$", text_of("reasons.md"), re.MULTILINE)
    assert headings == [code.value for code in ReasonCode]
    everything = re.findall(r"^#+ (.*)$", text_of("reasons.md"), re.MULTILINE)
    anchors = [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in everything]
    for code in ReasonCode:
        # A heading that stands twice would get the anchor `usage-1`.
        assert anchors.count(code.anchor) == 1


def test_every_public_name_and_every_command_is_there() -> None:
    import grader

    library = text_of("library.md")
    for name in grader.__all__:
        assert f"\n### {name}\n" in library
    cli = text_of("cli.md")
    names = [name for name, _ in commands()]
    assert {"run", "replay", "runtimes build"} <= set(names)
    for name in names:
        assert f"\n## grader {name}\n" in cli
    for option in ("`-k`, `--cases WHICH`", "`--each FOLDER`", "`--no-record`", "`--format FORMAT`"):
        assert option in cli
