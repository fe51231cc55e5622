"""OTLP over HTTP without I/O: what is taken, what is refused, how it is answered, and the bounds."""

from __future__ import annotations

import gzip
import json
import zlib

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.capture.http_body import BodyBudget, HttpLimits
from grader.capture.otlp_body import OtlpEncoding, error_body
from grader.capture.otlp_http import Batch, OtlpConnection, Phase, Refused

REQUEST = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "0a" * 16, "spanId": "0b" * 8, "name": "a"}]}]}]}
JSON_BODY = json.dumps(REQUEST, indent=1).encode()
PROTOBUF_BODY = bytes.fromhex("0a20121e121c0a10" + "0a" * 16 + "1208" + "0b" * 8)
JSON, PROTOBUF = "application/json", "application/x-protobuf"


def post(body: bytes, content_type: str = JSON, path: str = "/v1/traces", method: str = "POST", **more: str) -> bytes:
    headers = {"Host": "127.0.0.1", "Content-Type": content_type, "Content-Length": str(len(body))} | {
        name.replace("_", "-"): value for name, value in more.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def chunked(body: bytes, size: int, content_type: str = JSON, ending: bytes = b"0\r\n\r\n") -> bytes:
    head = f"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    pieces = (body[at : at + size] for at in range(0, len(body), size))
    return head.encode() + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + ending


def events(connection: OtlpConnection, data: bytes) -> list[Batch | Refused]:
    """What comes of these bytes, every batch kept."""
    connection.receive(data)
    found: list[Batch | Refused] = []
    while (event := connection.next_event()) is not None:
        found.append(event)
        if isinstance(event, Batch):
            connection.kept()
    return found


def answers(output: bytes, methods: tuple[str, ...] = ("POST",)) -> list[tuple[int, dict[str, str], bytes]]:
    """The answers, as a client of HTTP reads them."""
    found: list[tuple[int, dict[str, str], bytes]] = []
    rest = output
    for method in methods:
        client = h11.Connection(h11.CLIENT)
        client.send(h11.Request(method=method, target="/", headers=[("Host", "h"), ("Content-Length", "0")]))
        client.send(h11.EndOfMessage())
        client.receive_data(rest)
        status, headers, body = 0, dict[str, str](), b""
        while not isinstance(event := client.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            else:
                assert isinstance(event, h11.InformationalResponse), event
        found.append((status, headers, body))
        rest = client.trailing_data[0]
    assert rest == b""
    return found


def refused(data: bytes, limits: HttpLimits | None = None) -> tuple[Refused, int, OtlpConnection]:
    """The only refusal that comes of these bytes, and the status that the peer sees."""
    connection = OtlpConnection(limits=limits)
    (event,) = events(connection, data)
    assert isinstance(event, Refused)
    method = data.split(b" ")[0].decode("latin-1")
    ((status, _, body),) = answers(
        connection.take_output(), (method if method.isalpha() and method.isascii() else "POST",)
    )
    assert status == event.status
    assert method == "HEAD" or event.why.encode() in body or event.why in json.loads(body)["message"]
    return event, status, connection


@pytest.mark.parametrize(
    ("body", "content_type", "answer"),
    [
        (JSON_BODY, JSON, b"{}"),
        (JSON_BODY, "Application/JSON; charset=utf-8", b"{}"),
        (PROTOBUF_BODY, PROTOBUF, b""),
        (b"{}", JSON, b"{}"),
        (b"", PROTOBUF, b""),
    ],
)
def test_a_request_is_taken_and_answered_once_kept(body: bytes, content_type: str, answer: bytes) -> None:
    connection = OtlpConnection()
    connection.receive(post(body, content_type))
    batch = connection.next_event()
    assert isinstance(batch, Batch)
    assert (batch.body, batch.spans) == (body, 1 if len(body) > 2 else 0)
    assert connection.take_output() == b""
    assert connection.phase is Phase.ANSWER
    assert connection.next_event() is None
    connection.kept()
    ((status, headers, sent),) = answers(connection.take_output())
    assert (status, sent) == (200, answer)
    assert headers["content-type"] == content_type.partition(";")[0].lower()
    assert (connection.phase, connection.is_closed) == (Phase.IDLE, False)


def test_what_shrank_a_thousandfold_comes_out_whole_however_it_is_cut() -> None:
    body = JSON_BODY + b" " * 1_000_000
    zipped = gzip.compress(body)
    sent = post(zipped, Content_Encoding="gzip")
    for size in (len(sent), 1, 13):
        connection = OtlpConnection()
        found = [event for at in range(0, len(sent), size) for event in events(connection, sent[at : at + size])]
        assert [event.body for event in found if isinstance(event, Batch)] == [body]


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_however_the_bytes_are_cut_the_same_comes_of_them(size: int) -> None:
    zipped = gzip.compress(JSON_BODY[:20]) + gzip.compress(JSON_BODY[20:])
    sent = post(zipped, Content_Encoding="gzip") + chunked(JSON_BODY, 3) + post(PROTOBUF_BODY, PROTOBUF)
    connection = OtlpConnection()
    found = [event for at in range(0, len(sent), size) for event in events(connection, sent[at : at + size])]
    assert [event.body for event in found if isinstance(event, Batch)] == [JSON_BODY, JSON_BODY, PROTOBUF_BODY]
    assert [status for status, _, _ in answers(connection.take_output(), ("POST",) * 3)] == [200, 200, 200]


def test_a_peer_that_waits_with_its_body_is_told_to_send_it() -> None:
    connection = OtlpConnection()
    head, _, body = post(JSON_BODY, Expect="100-continue").partition(b"\r\n\r\n")
    assert events(connection, head + b"\r\n\r\n") == []
    assert connection.take_output().startswith(b"HTTP/1.1 100 ")
    assert len(events(connection, body)) == 1


@pytest.mark.parametrize(
    ("data", "status", "word", "loses"),
    [
        (post(b"", path="/v1/metrics"), 404, "OTEL_METRICS_EXPORTER=none", False),
        (post(b"", path="/"), 404, "/v1/traces", False),
        (post(b"", path="/other/v1/traces"), 404, "'other'", False),
        (post(b"", method="GET"), 405, "POST", False),
        (post(b"", method="HEAD"), 405, "POST", False),
        (post(JSON_BODY, "text/plain"), 415, "text/plain", True),
        (post(JSON_BODY, Content_Encoding="br"), 415, "gzip", True),
        (post(JSON_BODY, Origin="http://evil.example"), 403, "web pages", False),
        (post(b"{nonsense"), 400, "JSON", True),
        (post(b'{"a": 1}'), 400, "resourceSpans", True),
        (post(b"[" * 100_000), 400, "nested", True),
        (post(b"\xff\xfe"), 400, "JSON", True),
        (post(b"\x07garbage", PROTOBUF), 400, "protobuf", True),
        (post(PROTOBUF_BODY[:-3], PROTOBUF), 400, "ends in the middle", True),
        (post(b"\x10\x01", PROTOBUF), 400, "no span", True),
        (post(JSON_BODY.replace(b"0b", b"00")), 400, "none of its 1 spans", True),
        (post(gzip.compress(JSON_BODY)[:-9], Content_Encoding="gzip"), 400, "middle", True),
    ],
)
def test_what_is_no_request_for_traces_is_refused_with_words(data: bytes, status: int, word: str, loses: bool) -> None:
    event, seen, connection = refused(data)
    assert (seen, event.loses_spans) == (status, loses)
    assert word in event.why
    assert not connection.is_closed
    assert len(events(connection, post(JSON_BODY))) == 1


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"nonsense\r\n\r\n", 400),
        (b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: snappy\r\n\r\n", 501),
        (b"POST /v1/traces HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 20_000, 431),
        (chunked(b"ab", 1, ending=b"not a size\r\n"), 400),
        (post(b"not gzip", Content_Encoding="gzip"), 400),
        (post(gzip.compress(JSON_BODY) + b"more", Content_Encoding="gzip"), 400),
    ],
)
def test_what_breaks_off_a_request_is_refused_and_the_connection_ends(data: bytes, status: int) -> None:
    event, seen, connection = refused(data)
    assert (seen, event.loses_spans, connection.is_closed) == (status, True, True)


@pytest.mark.parametrize("claims_length", [True, False])
def test_a_body_over_the_limit_is_refused_before_it_is_read(claims_length: bool) -> None:
    limits = HttpLimits(body_bytes=1000)
    head = post(b"x" * 1001).partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    event, status, connection = refused(head if claims_length else chunked(b"x" * 1001, 100, ending=b""), limits)
    assert (status, event.loses_spans, connection.is_closed) == (413, True, True)


def test_a_body_that_nobody_wants_is_passed_over_up_to_the_limit_only() -> None:
    limits = HttpLimits(body_bytes=1000)
    sent = chunked(b"x" * 1001, 100, ending=b"").replace(b"/v1/traces", b"/v1/other1")
    assert refused(sent, limits)[1:2] == (404,)


def test_a_bomb_is_stopped_at_the_cap() -> None:
    limits = HttpLimits(decompressed_bytes=1 << 20)
    budget = BodyBudget(8 << 20)
    bomb = gzip.compress(b" " * (64 << 20))
    connection = OtlpConnection(limits=limits, budget=budget)
    (event,) = events(connection, post(bomb, Content_Encoding="gzip"))
    assert isinstance(event, Refused)
    assert event.status == 413
    assert (connection.is_closed, budget.used_bytes) == (True, 0)


def test_connections_share_a_budget_and_give_it_back() -> None:
    budget = BodyBudget(len(JSON_BODY) + 10)
    first, second = (OtlpConnection(budget=budget) for _ in range(2))
    first.receive(post(JSON_BODY))
    assert isinstance(first.next_event(), Batch)
    (event,) = events(second, post(JSON_BODY))
    assert isinstance(event, Refused)
    assert event.status == 429
    assert b"retry-after: 1" in second.take_output().lower()
    first.kept()
    assert budget.used_bytes == 0
    third = OtlpConnection(budget=budget)
    third.receive(post(JSON_BODY)[:-5])
    assert third.next_event() is None
    assert budget.used_bytes > 0
    third.abandon()
    assert budget.used_bytes == 0


def test_a_refusal_by_the_owner_asks_to_send_again() -> None:
    connection = OtlpConnection()
    connection.receive(post(PROTOBUF_BODY, PROTOBUF))
    assert isinstance(connection.next_event(), Batch)
    event = connection.refuse(429, "the queue is full", retry_after_s=2)
    assert (event.status, event.loses_spans) == (429, True)
    ((status, headers, body),) = answers(connection.take_output())
    assert (status, headers["retry-after"]) == (429, "2")
    assert body == error_body(OtlpEncoding.PROTOBUF, "the queue is full")
    assert not connection.is_closed


def test_bytes_of_following_requests_are_held_to_a_bound() -> None:
    connection = OtlpConnection()
    connection.receive(post(JSON_BODY))
    assert isinstance(connection.next_event(), Batch)
    assert not connection.wants_data
    for _ in range(40):
        connection.receive(b"x" * (64 << 10))
    assert connection.is_closed


@pytest.mark.parametrize(
    ("sent", "phase", "output"),
    [
        (b"", Phase.IDLE, b""),
        (b"POST /v1", Phase.HEADERS, b"HTTP/1.1 408 "),
        (post(JSON_BODY)[:-1], Phase.BODY, b"HTTP/1.1 408 "),
    ],
)
def test_waits_have_a_phase_and_an_end(sent: bytes, phase: Phase, output: bytes) -> None:
    connection = OtlpConnection()
    if sent:
        assert events(connection, sent) == []
    assert connection.phase is phase
    event = connection.time_out("slow")
    assert (event is not None and event.loses_spans) == (phase is not Phase.IDLE)
    assert connection.take_output().startswith(output)
    assert connection.phase is Phase.CLOSED


@pytest.mark.parametrize(("sent", "refusals"), [(b"", 0), (b"POST /v1", 1), (post(JSON_BODY)[:-1], 1)])
def test_an_end_in_the_middle_is_a_refusal_and_one_between_is_none(sent: bytes, refusals: int) -> None:
    connection = OtlpConnection()
    if sent:
        events(connection, sent)
    assert len(events(connection, b"")) == refusals
    assert connection.is_closed


def test_a_peer_that_closes_its_half_still_gets_its_answer() -> None:
    connection = OtlpConnection()
    connection.receive(post(JSON_BODY))
    connection.receive(b"")
    assert isinstance(connection.next_event(), Batch)
    connection.kept()
    assert connection.take_output().startswith(b"HTTP/1.1 200 ")
    assert connection.next_event() is None
    assert connection.is_closed


def test_sources_are_told_by_their_path() -> None:
    connection = OtlpConnection(is_source=lambda name: name in {"", "mine"})
    found = events(connection, post(JSON_BODY, path="/mine/v1/traces") + post(JSON_BODY, path="/v1/traces"))
    assert [event.source for event in found] == ["mine", ""]


@given(st.binary(max_size=300), st.booleans(), st.integers(1, 50))
def test_no_bytes_whatever_raise_or_are_held_without_bound(noise: bytes, is_after_a_request: bool, size: int) -> None:
    budget = BodyBudget(1 << 20)
    connection = OtlpConnection(budget=budget, limits=HttpLimits(header_bytes=200, body_bytes=500))
    sent = (post(JSON_BODY) if is_after_a_request else b"") + noise
    for at in range(0, len(sent), size):
        events(connection, sent[at : at + size])
    events(connection, b"")
    connection.abandon()
    assert budget.used_bytes == 0


@given(st.binary(max_size=200), st.sampled_from([JSON, PROTOBUF]), st.booleans())
def test_no_body_whatever_raises(body: bytes, content_type: str, is_zipped: bool) -> None:
    sent = zlib.compress(body, wbits=31) if is_zipped else body
    found = events(OtlpConnection(), post(sent, content_type, Content_Encoding="gzip" if is_zipped else "identity"))
    assert len(found) == 1
