"""What real agent libraries export, read by grader, against what their tools wrote down themselves.

The recordings are made by `record.py`. `read.txt` has all that is not read right; after a change of the reader look at
`python -m tests.producers.held_to_truth`, and keep it with `--write` when it is what a careful reader would say.
"""

from __future__ import annotations

import gzip
import json
import re
from typing import Any

import pytest

from tests.producers.held_to_truth import BEGIN, END, PAGE, READ, Reading, compared, export_of, recordings, told
from tests.producers.held_to_truth import table as table_of_producers
from tests.producers.record import needs, programs

RECORDINGS = {folder.name: folder for folder in recordings()}
MOST_BYTES, MOST_BYTES_IN_ALL = 150_000, 1_500_000
HOW_TO = PAGE.parents[1] / "how-to" / "traces"
NEEDED = {"openai_agents", "langgraph", "pydantic_ai", "strands", "google_adk"}


def test_the_frameworks_that_matter_are_recorded() -> None:
    assert {re.sub(r"_[a-z]+$", "", name) for name in RECORDINGS} >= NEEDED
    assert {program.stem for program in programs()} == set(RECORDINGS)


@pytest.mark.parametrize("name", RECORDINGS)
def test_no_execution_is_made_up_and_none_is_missed_in_silence(name: str) -> None:
    lies = {reading.scenario: reading.lies() for reading in compared(RECORDINGS[name])}
    assert not any(lies.values()), lies


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_process_that_was_killed_left_no_complete_evidence(name: str) -> None:
    for reading in compared(RECORDINGS[name]):
        assert reading.scenario != "cut_short" or not reading.payload.coverage.is_complete


@pytest.mark.parametrize("name", RECORDINGS)
def test_starts_are_in_the_order_in_which_tools_ran_one_after_the_other(name: str) -> None:
    for reading in compared(RECORDINGS[name]):
        if reading.scenario != "in_order":
            continue
        calls = reading.payload.at_least_once_each()
        names = [min(call.names, key=len).removeprefix("mcp__tools__") for call in calls]
        assert names == ["search", "send_email"]
        first, second = (call.attempts[0] for call in calls)
        assert first.end_ns is not None
        assert second.start_ns is not None
        assert first.end_ns <= second.start_ns


def test_what_is_read_is_what_was_looked_through() -> None:
    now = {name: told(folder).splitlines() for name, folder in RECORDINGS.items()}
    kept = {block.split("\n", 1)[0]: block.splitlines() for block in READ.read_text(encoding="utf-8").split("\n\n")}
    assert now == kept


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == table_of_producers()


def test_the_recordings_are_small_and_know_no_machine() -> None:
    total = 0
    for name, folder in RECORDINGS.items():
        size = sum(file.stat().st_size for file in folder.iterdir())
        total += size
        assert size < MOST_BYTES, name
        for scenario in json.loads((folder / "truth.json").read_text(encoding="utf-8"))["scenarios"]:
            export = gzip.decompress(export_of(folder, scenario).read_bytes())
            assert not re.search(rb"/tmp/|/root/|grader-producers", export), (name, scenario)
    assert total < MOST_BYTES_IN_ALL


def test_programs_name_all_that_they_need() -> None:
    for program in programs():
        wanted = needs(program)
        assert "npm" in wanted or any("opentelemetry-exporter" in one for one in wanted["dependencies"]), program


def test_pages_install_what_their_programs_need() -> None:
    names = re.compile(r"[\[<>=~!;].*")
    for page in HOW_TO.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        sources = set(re.findall(r"^```[a-z]+ from=tests/producers/programs/(\w+)\.", text, re.MULTILINE))
        wanted = {
            one for program in programs() if program.stem in sources for of in needs(program).values() for one in of
        }
        said = re.findall(r"(?:pip|npm) install ([^`\n]+)", text)
        installed = {names.sub("", one.strip('"')) for line in said for one in line.split()}
        assert installed <= {names.sub("", one) for one in wanted}, page


def test_what_a_killed_process_left() -> None:
    left = {name: [one.scenario for one in compared(folder)] for name, folder in RECORDINGS.items()}
    without = {name for name, scenarios in left.items() if "cut_short" not in scenarios}
    assert without == {"langgraph_langsmith", "mcp_openai_agents"}
    for name in left.keys() - without:
        reading = next(one for one in compared(RECORDINGS[name]) if one.scenario == "cut_short")
        assert [call["outcome"] for call in reading.truth["calls"]] == ["returned", "killed"]
        assert len(reading.payload.at_least_once_each()) == 1, name


def _made_up(calls: list[Any], keep: int | None) -> Reading:
    """A reading of the first scenario of a recording, with another truth, or with calls left out."""
    reading = next(one for one in compared(RECORDINGS["pydantic_ai_own"]) if one.scenario == "in_order")
    payload = reading.payload.model_copy(update={"calls": reading.payload.calls[:keep]})
    return Reading(
        reading.scenario, payload, reading.steps, {**reading.truth, "calls": calls or reading.truth["calls"]}
    )


def test_lies_are_found_out() -> None:
    assert _made_up([], None).lies() == []
    assert _made_up([], 1).lies() == ["send_email: 1 happened, 0 were read, and the evidence is called complete"]
    truth: list[Any] = _made_up([], None).truth["calls"]
    assert _made_up(truth[:1], None).lies()[0] == "send_email: 1 executions were read, 0 happened"
    changed = [{**truth[0], "arguments": {"query": "another"}}, truth[1]]
    assert "were never given" in _made_up(changed, None).lies()[0]
    later = [{**truth[0], "started_ns": truth[0]["started_ns"] - 10**9}, truth[1]]
    assert _made_up(later, None).cells("times") == {"wrong": ["search"]}
