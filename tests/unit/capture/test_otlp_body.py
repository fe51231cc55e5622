"""Bodies are bounded by what they cost to read, not by their length alone."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.capture import otlp_body
from grader.capture.http_body import Body, BodyBudget, BodyError, HttpLimits
from grader.capture.otlp_body import MOST_PARTS, OtlpEncoding, count_spans
from tests.otlp_client import field, protobuf, request

JSON, PROTOBUF = OtlpEncoding.JSON, OtlpEncoding.PROTOBUF
SPAN = protobuf(7)[4:]
"""The span of a request, as field 2 of its scope."""


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"\x0a\x00" * (MOST_PARTS + 1), PROTOBUF),
        (field(1, b"\x12\x00" * (MOST_PARTS + 1)), PROTOBUF),
        (field(1, field(2, b"\x12\x00" * (MOST_PARTS + 1))), PROTOBUF),
        (field(1, field(2, field(2, b"\x4a\x02\x0a\x00" * (MOST_PARTS // 2 + 1)))), PROTOBUF),
        (field(1, field(2, field(2, field(11, b"\x1a\x02\x0a\x00" * (MOST_PARTS // 2 + 1))))), PROTOBUF),
        (field(1, field(1, b"\x0a\x02\x0a\x00" * (MOST_PARTS // 2 + 1))), PROTOBUF),
        (b"\x18\x01" * (MOST_PARTS + 1), PROTOBUF),
        (b"\x1d\0\0\0\0" * (MOST_PARTS + 1), PROTOBUF),
        (b'{"resourceSpans":[' + b"{}," * MOST_PARTS + b"{}]}", JSON),
        (b'{"resourceSpans":[],"x":[' + b"1.5," * MOST_PARTS + b"1]}", JSON),
        (b"[" * (MOST_PARTS + 1), JSON),
    ],
)
def test_what_is_made_of_very_many_parts_is_refused_before_it_is_read(
    body: bytes, encoding: OtlpEncoding, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(otlp_body, "loads")
    monkeypatch.delattr(otlp_body.otlp_protobuf, "spans_of_message")
    with pytest.raises(BodyError, match="smaller batches") as caught:
        count_spans(body, encoding)
    assert caught.value.status == 413


def test_large_texts_are_no_parts() -> None:
    text = json.dumps({"messages": [{"n": [1, 2, 3]}] * 100_000})
    span = json.loads(request(2))
    span["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] = text
    assert count_spans(json.dumps(span).encode(), JSON) == 1
    assert count_spans(field(1, field(2, field(2, SPAN[2:] + field(5, text.encode())))), PROTOBUF) == 1


def test_five_thousand_spans_are_taken() -> None:
    numbers = range(2, 5_002)
    assert count_spans(request(*numbers), JSON) == 5_000
    assert count_spans(protobuf(*numbers), PROTOBUF) == 5_000


@given(st.binary(max_size=60), st.integers(0, 40))
def test_counting_raises_for_nothing_and_is_right(noise: bytes, most: int) -> None:
    has_more = otlp_body._has_more_fields  # pyright: ignore[reportPrivateUsage]
    has_more(noise, most)
    # request, resource, scope and span are one field each; a span of a child has five
    one = 3 + 5
    assert has_more(protobuf(7), one - 1)
    assert not has_more(protobuf(7), one)


def test_members_of_gzip_data_are_bounded() -> None:
    member = gzip.compress(b"")
    body = Body(HttpLimits(), BodyBudget(1 << 20), is_gzip=True)
    body.add(member * 1_000)
    with pytest.raises(BodyError, match="members"):
        body.add(member)
