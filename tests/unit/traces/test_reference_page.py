"""The reference page lists every coverage reason with its text, and its example is a conversation."""

from __future__ import annotations

import re
from pathlib import Path

from grader.core.traces.coverage import CoverageCode
from grader.messages.conversation import read_conversation

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "traces.md").read_text()


def test_every_coverage_reason_is_on_the_page() -> None:
    rows = dict(re.findall(r"^\| `([a-z._]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert rows == {str(code): code.text for code in CoverageCode}


def test_the_example_of_a_conversation() -> None:
    example = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]
    conversation = read_conversation(example.encode(), "example")
    assert [call.names for call in conversation.payload().calls] == [("send_email",)]
    assert conversation.trace_ids == ("0af7651916cd43dd8448eb211c80319c",)
