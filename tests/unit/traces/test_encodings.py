"""The same spans in any encoding, split in any way, are the same evidence; damage is said, never hidden."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.errors import TraceError
from grader.traces.ids import exact_int, hex_id, time_ns
from grader.traces.otlp import ReadLimits
from grader.traces.reader import ReadOptions, TraceInput, read_traces
from grader.traces.span_store import StoreLimits
from tests.unit.traces.otlp_samples import (
    ENCODINGS,
    OTHER_TRACE,
    TRACE,
    S,
    codes,
    content,
    framed,
    lines,
    read,
    request_json,
    request_protobuf,
    root,
    tool,
)

SPANS = (
    root(),
    tool(2, "search", arguments={"q": "ä", "n": 12345678901234567890, "f": 1.5}, call_id="c1", start=1, end=2),
    tool(3, "send", arguments={"to": "x"}, call_id="c2", start=3, end=4, scope="other"),
    S(4, "chat", attributes={"gen_ai.operation.name": "chat", "big": 2**53 + 1, "nested": {"a": [1, "x", {"b": 2.5}]}}),
    S(
        5,
        "TOOL",
        attributes={"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": '{"a":1}'},
        start=5,
        end=6,
    ),
    S(6, "plain", parent=4),
    tool(7, "", parent=4, start=8, end=None),
    S(1, "root b", parent=None, trace=OTHER_TRACE),
    S(2, "execute_tool x", trace=OTHER_TRACE, attributes={"gen_ai.tool.name": "x"}, extra={"flags": 2}, status=2),
)
EXPECTED = content(read(SPANS))


def test_the_sample_holds_something_of_everything() -> None:
    assert [call.names for call in EXPECTED.calls] == [("search",), ("x",), ("send",), ("look",)]
    assert codes(EXPECTED) == ["span.unfinished", "tool.unnamed", "unsampled"]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_gives_the_same_evidence(encoding: str) -> None:
    data = ENCODINGS[encoding]([SPANS[:3], SPANS[3:]])
    assert content(read(data)) == EXPECTED


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_split_over_files_lines_requests_and_encodings_gives_the_same_evidence(data: st.DataObject) -> None:
    order = data.draw(st.permutations(SPANS))
    files = data.draw(st.integers(1, 4))
    placed = [data.draw(st.tuples(st.integers(0, files - 1), st.integers(0, 2))) for _ in order]
    sources: list[bytes] = []
    for file in range(files):
        batches = [[s for s, place in zip(order, placed, strict=True) if place == (file, part)] for part in range(3)]
        encoding = data.draw(st.sampled_from(sorted(ENCODINGS)))
        if any(batches):
            sources.append(ENCODINGS[encoding]([batch for batch in batches if batch]))
    assert content(read(*sources)) == EXPECTED


def test_a_span_read_twice_is_one_span() -> None:
    assert content(read(SPANS, SPANS)) == EXPECTED


# --- exactly, never through float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1700000000000000001", 1700000000000000001),
        (1700000000000000001, 1700000000000000001),
        ("0", None),
        (None, None),
    ],
)
def test_times_are_exact(value: object, expected: int | None) -> None:
    assert time_ns(value) == expected


@pytest.mark.parametrize("value", ["1.5", "x", True, [], "99999999999999999999", 2**64, "-1", "1e18"])
def test_what_is_no_time_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"integer|negative"):
        time_ns(value)


def test_a_number_with_exponent_is_taken_only_when_it_is_whole() -> None:
    exact = json.dumps(request_json([root(), tool(2)])).replace('"1700000001000000000"', "1.700000001e18")
    assert read(exact.encode()).calls[0].attempts[0].start_ns == 1700000001000000000
    broken = exact.replace("1.700000001e18", "1.7000000010000000005e18")
    assert codes(read(broken.encode())) == ["span.unreadable"]
    assert codes(read(exact.replace("1.700000001e18", "1e999999999").encode())) == ["span.unreadable"]


def test_integers_beyond_2_to_the_53_keep_every_digit() -> None:
    assert exact_int("9007199254740993") == 9007199254740993
    plain = tool(2, arguments=None)
    spans = [root(), S(2, plain.name, attributes={**plain.attributes, "gen_ai.tool.call.arguments": {"n": 2**53 + 1}})]
    for encoding in ("json", "protobuf"):
        assert read(ENCODINGS[encoding]([spans])).calls[0].arguments.text == '{"n":9007199254740993}'


# --- ids


@pytest.mark.parametrize(
    ("value", "expected", "warns"),
    [
        ("0AF7651916CD43DD8448EB211C80319C", TRACE, False),
        ("0x" + TRACE, TRACE, True),
        ("CvdlGRbNQ92ESOshHIAxnA==", TRACE, True),
        ("0" * 32, None, False),
        ("", None, False),
    ],
)
def test_trace_ids(value: str, expected: str | None, warns: bool) -> None:
    found, warning = hex_id(value, 16)
    assert found == expected
    assert (warning is not None) == warns


@pytest.mark.parametrize("value", ["0af7", TRACE[:-1], TRACE + "0", 7, "g" * 32, "=" * 24, TRACE[:16]])
def test_ids_of_another_length_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"id"):
        hex_id(value, 16)


def test_a_span_with_a_bad_id_is_left_out_and_said() -> None:
    payload = read([root(), S(2, extra={"traceId": "abc"}), S(3, extra={"spanId": "0" * 16})])
    reason = payload.coverage.reasons[0]
    assert (str(reason.code), reason.count) == ("span.unreadable", 2)
    with pytest.raises(TraceError, match="none of its 1 spans can be used"):
        read([S(2, extra={"traceId": "abc"})])


# --- unknown fields, odd shapes


def test_unknown_fields_are_ignored_and_counted() -> None:
    plain = request_json([root(), S(2, extra={"futureField": {"x": 1}, "other": 2})])
    assert read(json.dumps({**plain, "more": 1}).encode()).sources[0].unknown_fields == 3
    message = request_protobuf([root()]) + b"\xfa\x07\x01x"
    assert read(message).sources[0].unknown_fields == 1


def test_old_names_and_other_signals() -> None:
    text = json.dumps(request_json([root()]))
    old = text.replace('"scopeSpans"', '"instrumentationLibrarySpans"').replace('"scope"', '"instrumentationLibrary"')
    assert content(read(old.encode())) == content(read([root()]))
    both = text.encode() + b'\n{"resourceLogs": []}\n'
    assert codes(read(both)) == []


def test_enum_names_are_read() -> None:
    named = json.dumps(request_json([root(), S(2, attributes=tool(2).attributes, status=2)])).replace(
        '"code": 2', '"code": "STATUS_CODE_ERROR"'
    )
    assert read(named.encode()).calls[0].failed is True
    assert read([root(), tool(2)]).calls[0].failed is None


def test_snake_case_is_read_and_never_complete() -> None:
    text = json.dumps(request_json([root(), tool(2)]))
    for camel in (
        "resourceSpans",
        "scopeSpans",
        "traceId",
        "spanId",
        "parentSpanId",
        "startTimeUnixNano",
        "endTimeUnixNano",
    ):
        snake = "".join("_" + c.lower() if c.isupper() else c for c in camel)
        text = text.replace(f'"{camel}"', f'"{snake}"')
    payload = read(text.replace("stringValue", "string_value").encode())
    assert [call.names for call in payload.calls] == [("send",)]
    assert codes(payload) == ["format.lossy"]


# --- damage


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
@pytest.mark.parametrize(
    "encoding", ["lines", "protobuf", "length-prefixed", "lines, gzip", "lines, zstd", "length-prefixed, zstd"]
)
def test_a_cut_source_keeps_what_stands_before_the_cut(encoding: str, kept: float) -> None:
    batches = [[s] for s in (root(), *(tool(n, start=n, end=n + 0.5) for n in range(2, 400)))]
    if "zstd" in encoding:
        # zstd gives out whole blocks, so a frame per flush as a collector writes it.
        data = b"".join(ENCODINGS[encoding](batches[at : at + 20]) for at in range(0, 400, 20))
    else:
        data = ENCODINGS[encoding](batches)
    data = data[: int(len(data) * kept)]
    payload = read(data)
    assert "file.cut" in codes(payload)
    assert len(payload.calls) > 398 * kept * 0.6
    assert len(payload.calls) < 398


def test_a_damaged_line_in_the_middle_is_said_and_the_rest_kept() -> None:
    first, second = lines([[root()]]), lines([[tool(2)]])
    payload = read(first + b'{"resourceSpans": oops}\n[1]\n' + second)
    assert (codes(payload), len(payload.calls)) == (["record.unreadable"], 1)
    assert payload.coverage.reasons[0].count == 2
    assert len(read(b'{"broken": }\n' + first + second).calls) == 1


def test_damage_inside_gzip_is_said() -> None:
    batches = [[root()], *([tool(n, f"t{n}", arguments={"x": random.Random(n).random()})] for n in range(2, 900))]
    data = bytearray(gzip.compress(lines(batches)))
    data[len(data) // 2] ^= 0xFF
    assert {"file.cut", "record.unreadable"} & set(codes(read(bytes(data))))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"hello",
        b"{}",
        b"[1, 2]",
        b'{"a": 1}\n{"b": 2}\n',
        b"\x0a",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x00\x00",
        b"\x00\x00\x00\x05ab",
        b'{"resourceSpans"',
        b"\x1f\x8b",
        b"\x1f\x8bjunkjunk",
        b"\x28\xb5\x2f\xfd",
        b"\xff\xfe{\x00}\x00",
        b'"x"',
        b"\xef\xbb\xbf",
    ],
)
def test_what_is_no_trace_is_a_clear_error(data: bytes) -> None:
    with pytest.raises(TraceError) as caught:
        read(data)
    assert caught.value.hint is not None
    assert "file 0" in str(caught.value)


def test_a_byte_order_mark_and_blank_lines_are_no_damage() -> None:
    assert content(read(b"\xef\xbb\xbf\n\n" + lines([SPANS]) + b"\n\n")) == EXPECTED


def test_an_empty_request_is_a_trace_without_spans() -> None:
    assert codes(read(b'{"resourceSpans": []}')) == ["trace.empty"]
    assert codes(read(framed([b""]))) == ["trace.empty"]


def test_deep_nesting_is_no_hang_and_no_crash() -> None:
    deep = '{"arrayValue":{"values":[' * 200 + "]}}" * 200
    text = json.dumps(request_json([root(), tool(2)])).replace('{"stringValue": "execute_tool"}', deep)
    payload = read(text.encode())
    assert payload.calls == () or payload.calls[0].names == ("send",)
    with pytest.raises(TraceError, match="nested too deeply"):
        read(b'{"resourceSpans":' + b"[" * 100_000)
    fine, bad = lines([[root()]]), b'{"resourceSpans":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    assert codes(read(fine + bad + fine)) == ["record.unreadable"]
    value = b"\x2a\x02\x2a\x00"
    for _ in range(3000):
        inner = b"\x0a" + _varint(len(value)) + value
        value = b"\x2a" + _varint(len(inner)) + inner
    attribute = b"\x0a\x15gen_ai.operation.name\x12" + _varint(len(value)) + value
    span = (
        b"\x0a\x10"
        + bytes.fromhex(TRACE)
        + b"\x12\x08"
        + bytes(7)
        + b"\x01"
        + b"\x4a"
        + _varint(len(attribute))
        + attribute
    )
    message = _wrap(1, _wrap(2, _wrap(2, span)))
    assert codes(read(message)) == ["root.unfinished", "tool.unnamed"]


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _wrap(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_a_decompression_bomb_is_not_read_to_its_end(
    compress: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.traces.compression.FREE_BYTES", 1 << 20)
    head = lines([[root()], [tool(2)]])
    data = compress(head + b"\n" * (16 << 20))
    payload = read(data)
    assert len(payload.calls) == 1
    assert "capacity" in codes(payload)


def test_limits_of_records_and_spans_are_reasons() -> None:
    small = ReadOptions(read_limits=ReadLimits(max_record_bytes=2000))
    long = lines([[tool(3, arguments={"x": "y" * 200_000})]])
    payload = read(lines([[root()]]) + long + lines([[tool(2)]]), options=small)
    assert (len(payload.calls), codes(payload)) == (1, ["record.unreadable"])
    with pytest.raises(TraceError, match="more than 2000 bytes"):
        read(json.dumps(request_json([root()] * 20), indent=1).encode(), options=small)
    few = ReadOptions(store_limits=StoreLimits(max_spans=3, max_tool_spans=1))
    assert codes(read([root(), tool(2), tool(3), tool(4)], options=few)) == ["capacity"]


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="No such file"):
        read_traces([TraceInput.of_path(tmp_path / "none")])


def test_calls_beyond_the_room_for_arguments_are_kept_without_them() -> None:
    spans = [root(), *(tool(n, f"t{n}", arguments={"x": "y" * 100}, start=n, end=n) for n in range(2, 6))]
    payload = read(spans, options=ReadOptions(store_limits=StoreLimits(max_argument_bytes=250)))
    assert [call.arguments.is_recorded for call in payload.calls] == [True, True, False, False]
    assert str(payload.calls[3].arguments.why) == "truncated"
    assert payload.calls[3].arguments.sha256 == payload.calls[0].arguments.sha256
    assert payload.coverage.is_complete
