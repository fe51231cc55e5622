"""Any bytes give evidence, or one clear error: never a crash, never another exception."""

from __future__ import annotations

import json
import zlib

from hypothesis import given, settings
from hypothesis import strategies as st

from grader.errors import TraceError
from tests.unit.traces.otlp_samples import ENCODINGS, TRACE, S, read, root, tool

SPANS = (
    root(),
    tool(2, "search", arguments={"q": "ä", "n": 2**70, "f": 1.5}, call_id="c1"),
    S(4, "chat", attributes={"gen_ai.operation.name": "chat", "nested": {"a": [1, "x", {"b": 2.5}]}}),
    S(5, "TOOL", attributes={"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"a":1}'}),
    S(6, "plain", events=(("gen_ai.choice", {"message": "x"}),), status=2, message="no"),
)
SEEDS = {name: encode([SPANS[:4], SPANS[4:]]) for name, encode in ENCODINGS.items()}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_changed_bytes_never_crash_the_reader(data: st.DataObject) -> None:
    seed = bytearray(SEEDS[data.draw(st.sampled_from(sorted(SEEDS)))])
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(seed) - 1))
        kind = data.draw(st.integers(0, 3))
        if kind == 0:
            seed[at] = data.draw(st.integers(0, 255))
        elif kind == 1:
            del seed[at : at + data.draw(st.integers(1, 40))]
        elif kind == 2:
            seed[at:at] = data.draw(st.binary(max_size=20))
        else:
            seed[at:at] = seed[at : at + data.draw(st.integers(1, 80))]
        if not seed:
            return
    _reads_or_refuses(bytes(seed))


@settings(max_examples=150, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from(
        [b"", b"{", b"[", b"\x0a", b"\x00\x00\x00", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b'{"resourceSpans":[']
    ),
)
def test_random_bytes_never_crash_the_reader(data: bytes, head: bytes) -> None:
    _reads_or_refuses(head + data)
    _reads_or_refuses(zlib.compress(head + data, wbits=31))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "resourceSpans",
                    "scopeSpans",
                    "spans",
                    "traceId",
                    "attributes",
                    "key",
                    "value",
                    "events",
                    "status",
                    "name",
                    "kvlistValue",
                    "values",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(JSON_VALUES, st.sampled_from(["resource", "span", "attribute"]))
def test_json_of_the_wrong_shape_never_crashes_the_reader(value: object, where: str) -> None:
    span = {"traceId": TRACE, "spanId": "00000000000000aa", "attributes": [{"key": "gen_ai.tool.name", "value": value}]}
    document = {"resource": {"resourceSpans": value}, "span": _around(value), "attribute": _around([span])}[where]
    _reads_or_refuses(json.dumps(document).encode())


def _around(spans: object) -> object:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def _reads_or_refuses(data: bytes) -> None:
    try:
        payload = read(data)
    except TraceError:
        return
    assert type(payload).model_validate_json(payload.model_dump_json()) == payload


KEYS = [
    *("gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "input.value"),
    *("openinference.span.kind", "tool.name", "tool.id", "tool.parameters", "output.value", "gen_ai.output.messages"),
    *("mcp.method.name", "error.type", "logfire.msg", "logfire.span_type", "traceloop.span.kind", "gen_ai.tool.type"),
    *("gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response", "gen_ai.request.model", "tool_calls"),
    *("gen_ai.completion.0.tool_calls.0.name", "llm.output_messages.0.message.tool_calls.0.tool_call.function.name"),
]
WORDS = [
    "execute_tool",
    "chat",
    "TOOL",
    "LLM",
    "AGENT",
    "t",
    "{",
    "{}",
    '{"a":1}',
    "tools/call",
    '[{"parts":[{"type":"tool_call"}]}]',
]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "type", "parts"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), PLAIN, max_size=6), min_size=1, max_size=3),
    st.sampled_from(sorted(ENCODINGS)),
)
def test_attributes_of_any_type_never_crash_a_vocabulary(found: list[dict[str, object]], encoding: str) -> None:
    events = (("gen_ai.choice", found[0]), ("gen_ai.client.inference.operation.details", found[-1]))
    spans = [S(number, attributes=attributes, events=events) for number, attributes in enumerate(found, start=2)]
    _reads_or_refuses(ENCODINGS[encoding]([[root(), *spans]]))
