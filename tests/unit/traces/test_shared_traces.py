"""Real dumps against the executions that a careful reader finds in them (index.md beside the files).

The dumps are flat lists of spans, or exports of a platform, so they are put into OTLP/JSON here first; what is judged
is the reading of the two vocabularies, not of those formats.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

import pytest

from grader.core.tool_calls import ToolsPayload
from tests.unit.traces.otlp_samples import SHARED, codes, content, pairs, read

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the shared trace files are not at {SHARED}")


def hex_of(value: object, digits: int) -> str:
    """An id of the right length; ids of synthetic dumps are words."""
    text = str(value)
    if len(text) == digits and set(text) <= set("0123456789abcdef"):
        return text
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def otlp(spans: Any) -> bytes:
    found: list[Any] = []
    for span in spans:
        status: Any = span.get("status") or {}
        logged: list[Any] = span.get("span_events") or []
        events = [
            {"name": event.get("event_name", event.get("name", "")), "attributes": pairs(event.get("attributes", {}))}
            for event in logged
        ]
        scope: Any = span.get("scope") or {}
        item: dict[str, Any] = {
            "traceId": hex_of(span["trace_id"], 32),
            "spanId": hex_of(span["span_id"], 16),
            "name": span["name"],
            "startTimeUnixNano": str(span["start_time"]),
            "endTimeUnixNano": str(span["end_time"]),
            "attributes": pairs(span.get("attributes", {})),
            "events": events,
            "status": {"code": {"OK": 1, "ERROR": 2}.get(status.get("code"), 0)},
        }
        if span.get("parent_span_id"):
            item["parentSpanId"] = hex_of(span["parent_span_id"], 16)
        found.append({"scope": {"name": scope.get("name", "")}, "spans": [item]})
    return json.dumps({"resourceSpans": [{"scopeSpans": found}]}).encode()


def dump(name: str) -> ToolsPayload:
    value: Any = json.loads((SHARED / f"strands-evals__{name}.json").read_text())
    return read(otlp(value if isinstance(value, list) else value["spans"]))


def nanoseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 10**9 + moment.microsecond * 1000


def langfuse(name: str) -> ToolsPayload:
    value: Any = json.loads((SHARED / f"langfuse__{name}.json").read_text())
    spans: list[dict[str, Any]] = []
    for item in value["observations"]:
        metadata: Any = item.get("metadata") or {}
        metadata = json.loads(metadata) if isinstance(metadata, str) else metadata
        attributes: Any = metadata.get("attributes") or {}
        spans.append(
            {
                "trace_id": value["trace"]["id"],
                "span_id": item["id"],
                "parent_span_id": item.get("parentObservationId"),
                "name": item["name"] or "",
                "start_time": nanoseconds(item["startTime"]),
                "end_time": nanoseconds(item["endTime"] or item["startTime"]),
                "attributes": json.loads(attributes) if isinstance(attributes, str) else attributes,
                "scope": metadata.get("scope") or {},
            }
        )
    return read(otlp(spans))


def told(payload: ToolsPayload) -> list[str]:
    """`name{arguments}` of every execution, in order of start."""
    return [
        "/".join(call.names) + (call.arguments.text or f" ({call.arguments.why or call.arguments.state})")
        for call in payload.calls
    ]


DUMPS: dict[str, list[str]] = {
    "adk_live_spans": ['calculator{"expression":"15 * 37"}'],
    "autogen_live_spans": ["calculate (absent)"],
    "openai_agents_genai_live_spans": [
        'ask_research_specialist{"query":"current stock price of AMZN"}',
        'lookup_stock_price{"ticker":"AMZN"}',
        'ask_math_specialist{"query":"240.98 multiplied by 1000"}',
        'multiply_numbers{"a":240,"b":1000}',
        'multiply_numbers{"a":0,"b":1000}',
    ],
    "otel_genai_convention_spans": ['get_weather{"location":"Paris"}', 'get_weather{"location":"London"}'],
    "pydantic_ai_live_spans": ['get_weather{"city":"Seattle"}'],
    "openinference_live_spans": ['finish{"answer":"Taipei is warmer"}'],
    "smolagents_live_spans": ['web_search{"query":"population of Tokyo"}'],
}


@pytest.mark.parametrize("name", DUMPS)
def test_dumps_of_spans(name: str) -> None:
    payload = dump(name)
    assert told(payload) == DUMPS[name]
    assert type(payload).model_validate_json(payload.model_dump_json()) == payload


def test_a_tool_that_was_recorded_as_an_agent_is_a_possible_tool() -> None:
    payload = dump("openinference_live_spans")
    assert [item.why for item in payload.possible] == ["an agent or a tool with agent in its name: route_to_agent"]
    # get_weather was asked for in this dump and has no span.
    assert {"tool.unnamed", "proposal.unanswered"} <= set(codes(payload))


def test_a_final_answer_is_excluded() -> None:
    assert [(item.names, item.why.value) for item in dump("smolagents_live_spans").excluded] == [
        (("final_answer",), "output_function")
    ]


def test_claude_agents_in_parallel() -> None:
    payload = dump("claude_adot_spans")
    assert sorted(call.names[0] for call in payload.calls) == ["Agent", "Agent", "Bash", "Bash"]
    agents = [call.attempts[0] for call in payload.calls if call.names == ("Agent",)]
    assert agents[0].end_ns is not None
    assert agents[1].start_ns is not None
    assert agents[1].start_ns < agents[0].end_ns
    assert all(call.arguments.is_recorded and call.call_id for call in payload.calls)
    assert payload.at_least_once_each() == payload.calls


LANGFUSE: dict[str, list[str]] = {
    "google-adk-2025-08-28": ["say_hello{}"],
    "microsoft-agent-2025-12-17": ["get_weather (absent)"],
    "openai-agents-2025-09-30": ['get_weather{"city":"Tokyo"}'],
    "pydantic-ai-tools-2025-06-06": [],
    "autogen-2025-06-06": [],
    "crewai-2025-07-11": [],
    "google-gemini-2025-08-01": [],
    "llamaindex-2025-06-05": [],
}


@pytest.mark.parametrize("name", LANGFUSE)
def test_attributes_out_of_platform_exports(name: str) -> None:
    assert told(langfuse(name)) == LANGFUSE[name]


def test_three_parallel_tools_in_a_wrapper_that_is_none() -> None:
    payload = langfuse("pydantic-ai-tools-2025-12-04")
    names = ["get_dad_joke_suggestion", "get_one_liner_suggestion", "get_pun_suggestion"]
    assert sorted(call.names[0] for call in payload.calls) == names


def test_the_official_example_has_no_tool() -> None:
    payload = read((SHARED / "otlp__trace.json").read_bytes())
    assert payload.trace_ids == ("5b8efff798038103d269b633813fc60c",)
    assert (payload.calls, codes(payload)) == ((), ["parent.missing", "root.missing", "scope.unknown"])


def test_a_tool_span_without_any_attribute_is_not_taken_for_no_tool() -> None:
    payload = langfuse("langgraph-python-2025-08-22")
    assert (payload.calls, codes(payload)) == ((), ["scope.unknown"])


GENERATED = ("otlp.json", "otlp_collector.jsonl", "otlp.json.gz", "otlp.pb", "otlp_collector_delimited.pb")


@pytest.mark.parametrize("name", [*GENERATED, "nonstd_protobuf_json.json", "nonstd_phoenix_snake.json"])
def test_generated_variants_read_alike(name: str) -> None:
    expected = content(read((SHARED / "generated" / "otlp.json").read_bytes()))
    payload = read((SHARED / "generated" / name).read_bytes())
    assert told(payload) == DUMPS["otel_genai_convention_spans"]
    assert [call.failed for call in payload.calls] == [False, True]
    assert payload.calls == expected.calls
    assert payload.vocabularies == expected.vocabularies
    assert codes(payload) == (["format.lossy"] if "snake" in name else [])
    assert bool(payload.sources[0].warnings) is name.startswith("nonstd")


def test_the_hostile_file() -> None:
    payload = read((SHARED / "generated" / "hostile.json").read_bytes())
    assert told(payload) == ['get_weather{"location":"Paris"}']
    assert payload.calls[0].attempts[0].end_ns is None
    assert [item.span.rsplit("/", 1)[1] for item in payload.possible] == ["84c4a7ddd656e99f"]
    assert codes(payload) == ["dropped.attributes", "span.unfinished", "tool.unnamed"]
    assert payload.sources[0].unknown_fields == 2
    assert payload.trace_ids == ("cb0296e64fc6fc7a9ecc74b634211c62",)
