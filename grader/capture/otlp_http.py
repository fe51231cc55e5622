"""OTLP over HTTP without I/O: bytes of one connection in, batches of spans out, and the bytes to answer with.

Theory of operation. Whoever owns the socket (or a stream out of a box) does this, in one thread:

    connection = OtlpConnection(is_source=lambda name: name == "")
    while not connection.is_closed:
        event = connection.next_event()
        if isinstance(event, Batch):
            connection.kept() once its bytes are kept, or connection.refuse(429, "...", retry_after_s=1)
        elif isinstance(event, Refused):
            note it: if `loses_spans`, the evidence is no longer complete
        else:                             # nothing more without more bytes
            send connection.take_output(), then connection.receive(data), b"" at the end of the stream

A batch is answered before the next request of its connection is looked at: `wants_data` is False meanwhile, and bytes
that are received all the same are held up to a bound. Waits are the owner's: `phase` says what is waited for, and
`time_out()` ends a wait. Nothing here raises for what a peer sends.

HTTP is parsed by h11. Status codes and content types: the OTLP specification, "OTLP/HTTP Response".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from grader.capture.http_body import Body, BodyBudget, BodyError, HttpLimits, too_large
from grader.capture.otlp_body import OtlpEncoding, count_spans, error_body, success_body
from grader.errors import PrerequisiteError

try:
    import h11
except ImportError:
    raise PrerequisiteError(
        "spans cannot be received over HTTP: the package h11 is not installed", hint="pip install 'grader[receive]'"
    ) from None

TRACES_PATH = "/v1/traces"
_OTHER_SIGNALS = ("/v1/metrics", "/v1/logs", "/v1development/profiles")
_MOST_HELD_BYTES = 1 << 20
"""Bytes of following requests that are held while one is not answered; more of them closes the connection."""
_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    408: b"Request Timeout",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    503: b"Service Unavailable",
    507: b"Insufficient Storage",
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Spans of one request, decompressed and read once as a check; not acknowledged yet.

    `source` is what stands before `/v1/traces` in the path, without slashes around it; empty for none.
    """

    source: str
    encoding: OtlpEncoding
    body: bytes
    spans: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A request, or what should have become one, that was answered with an error (status 0: could not be answered).

    `loses_spans`: it was one with spans, or may have been: the sender may have spans that are nowhere now.
    """

    status: int
    why: str
    source: str = ""
    loses_spans: bool = False


class Phase(Enum):
    """What a connection waits for."""

    IDLE = "a request"
    HEADERS = "the rest of the headers"
    BODY = "the rest of the body"
    ANSWER = "an answer by its owner"
    CLOSED = "nothing"


class OtlpConnection:
    """One connection, from the side of the receiver; see the top of this file."""

    def __init__(
        self,
        *,
        is_source: Callable[[str], bool] = lambda name: not name,
        limits: HttpLimits | None = None,
        budget: BodyBudget | None = None,
        is_private: bool = False,
    ) -> None:
        """`is_private`: only the one whose spans are wanted can connect, so whatever it posts anywhere may be spans."""
        self._is_private = is_private
        self.limits = limits if limits is not None else HttpLimits()
        self._budget = budget if budget is not None else BodyBudget(2 * self.limits.decompressed_bytes)
        self._is_source = is_source
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=self.limits.header_bytes)
        self._output = bytearray()
        self._request: _Request | None = None
        self._body: Body | None = None
        self._waits_for_answer = False
        self._has_begun = False
        self.is_closed = False
        """Nothing more is read or answered: send what `take_output` still has, and close."""

    @property
    def wants_data(self) -> bool:
        """Whether bytes of the peer can be of use now."""
        return not self.is_closed and not self._waits_for_answer

    @property
    def phase(self) -> Phase:
        """What is waited for, so that the owner can bound the wait."""
        if self.is_closed:
            return Phase.CLOSED
        if self._waits_for_answer:
            return Phase.ANSWER
        if self._request is not None:
            return Phase.BODY
        return Phase.HEADERS if self._has_begun else Phase.IDLE

    def receive(self, data: bytes) -> None:
        """Take in what the peer sent; `b""` is the end of its stream."""
        if self.is_closed:
            return
        if len(data) > 0:
            self._has_begun = True
            held = len(self._h11.trailing_data[0]) if self._waits_for_answer else 0
            if held + len(data) > _MOST_HELD_BYTES and self._waits_for_answer:
                self.abandon()
                return
        self._h11.receive_data(data)

    def take_output(self) -> bytes:
        """What is to be sent to the peer now."""
        output = bytes(self._output)
        self._output.clear()
        return output

    def next_event(self) -> Batch | Refused | None:
        """The next batch or refusal; None: nothing before more bytes come, or an answer to the last batch."""
        while self.wants_data:
            try:
                event = self._h11.next_event()
                if event is h11.NEED_DATA:
                    self._go_ahead()
                    return None
                found = self._take(event)
            except BodyError as error:
                found = self._end(error.status, error.why)
            except h11.RemoteProtocolError as error:
                found = self._broken(error)
            if found is not None:
                return found
        return None

    def kept(self) -> None:
        """Acknowledge the last batch: its bytes are kept."""
        assert self._request is not None
        assert self._waits_for_answer
        encoding = self._request.encoding
        self._answer(200, success_body(encoding), encoding.value)

    def refuse(self, status: int, why: str, *, retry_after_s: int | None = None) -> Refused:
        """Answer the last batch with an error. 429 and 503 (with `retry_after_s`) make exporters send it again."""
        assert self._request is not None
        assert self._waits_for_answer
        source = self._request.source
        self._answer_error(status, why, retry_after_s)
        return Refused(status, why, source, loses_spans=True)

    def time_out(self, why: str) -> Refused | None:
        """End a wait for the peer: with status 408 when a request has begun (which is given), else without a word."""
        if self.phase is Phase.IDLE:
            self.abandon()
            return None
        return self._end(408, why)

    def abandon(self) -> None:
        """Close without another word; nothing that is not answered is acknowledged."""
        self._release()
        self.is_closed = True

    # --- one request

    def _take(self, event: object) -> Batch | Refused | None:
        if isinstance(event, h11.Request):
            self._begin(event)
        elif isinstance(event, h11.Data):
            assert self._request is not None
            self._add(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return self._finish()
        elif event is h11.PAUSED:
            self._h11.start_next_cycle()
            self._has_begun = len(self._h11.trailing_data[0]) > 0
        else:
            self.abandon()
        return None

    def _begin(self, event: h11.Request) -> None:
        request = self._request = _Request.of(event, self._is_source, is_private=self._is_private)
        self._body = Body(self.limits, self._budget, is_gzip=request.is_gzip)
        if request.length > self.limits.body_bytes:
            raise too_large(self.limits)

    def _add(self, data: bytes) -> None:
        assert self._request is not None
        assert self._body is not None
        if self._request.status == 0:
            self._body.add(data)
            return
        self._body.sent_bytes += len(data)  # a body nobody wants: passed over, so that its sender reads the answer
        if self._body.sent_bytes > self.limits.body_bytes:
            raise BodyError(self._request.status, self._request.why)

    def _finish(self) -> Batch | Refused:
        assert self._request is not None
        assert self._body is not None
        request = self._request
        if request.status != 0:
            return self._refused(request.status, request.why)
        try:
            body = self._body.finish()
            spans = count_spans(body, request.encoding)
        except BodyError as error:
            return self._refused(error.status, error.why)
        self._waits_for_answer = True
        return Batch(request.source, request.encoding, body, spans)

    # --- answers

    def _go_ahead(self) -> None:
        """Tell a peer that waits with its body (`Expect: 100-continue`) to send it."""
        if self._h11.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    def _refused(self, status: int, why: str) -> Refused:
        assert self._request is not None
        refused = Refused(status, why, self._request.source, self._request.is_for_spans)
        self._answer_error(status, why, 1 if status == 429 else None)
        return refused

    def _end(self, status: int, why: str) -> Refused:
        """Answer with an error in the middle of a request, if that is still possible, and close."""
        request = self._request
        can_answer = self._h11.our_state in {h11.IDLE, h11.SEND_RESPONSE}
        if can_answer:
            self._answer_error(status, why, 1 if status == 429 else None, closes=True)
        self.abandon()
        return Refused(
            status if can_answer else 0,
            why,
            request.source if request is not None else "",
            loses_spans=request is None or request.is_for_spans,
        )

    def _broken(self, error: h11.RemoteProtocolError) -> Refused | None:
        if self._h11.their_state is h11.ERROR and self.phase is Phase.IDLE and not self._has_begun:
            self.abandon()
            return None
        return self._end(error.error_status_hint, f"this is no HTTP request that can be read: {str(error)[:200]}")

    def _answer_error(self, status: int, why: str, retry_after_s: int | None, *, closes: bool = False) -> None:
        request = self._request
        encoding = request.encoding if request is not None else OtlpEncoding.JSON
        more = [(b"Retry-After", str(retry_after_s).encode())] if retry_after_s is not None else []
        if status == 405:
            more.append((b"Allow", b"POST"))
        elif status == 415:
            more.append((b"Accept-Encoding", b"gzip"))
        if closes:
            more.append((b"Connection", b"close"))
        self._answer(status, error_body(encoding, why), encoding.value, more)

    def _answer(
        self, status: int, body: bytes, content_type: str, more: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        is_head = self._request is not None and self._request.method == "HEAD"
        headers = [
            (b"Content-Type", content_type.encode()),
            (b"Content-Length", str(len(body)).encode()),
            *(more if more is not None else ()),
        ]
        self._send(h11.Response(status_code=status, headers=headers, reason=_REASONS.get(status, b"Error")))
        if body and not is_head:
            self._send(h11.Data(data=body))
        self._send(h11.EndOfMessage())
        self._release()
        self._waits_for_answer = False
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._has_begun = len(self._h11.trailing_data[0]) > 0
        elif self._h11.our_state is not h11.DONE:
            self.is_closed = True

    def _send(self, event: h11.Event) -> None:
        data = self._h11.send(event)
        if data is not None:
            self._output += data

    def _release(self) -> None:
        if self._body is not None:
            self._body.release()
        self._request = self._body = None
        self._waits_for_answer = False


@dataclass(frozen=True, slots=True)
class _Request:
    """What the headers of a request say; `status` is not 0 when it is to be refused whatever its body is."""

    method: str
    source: str
    encoding: OtlpEncoding
    is_gzip: bool
    length: int
    is_for_spans: bool
    status: int = 0
    why: str = ""

    @classmethod
    def of(cls, event: h11.Request, is_source: Callable[[str], bool], *, is_private: bool) -> _Request:
        headers = {bytes(name).lower(): bytes(value).decode("latin-1").strip() for name, value in event.headers}
        method = bytes(event.method).decode("latin-1")
        path = bytes(event.target).decode("latin-1").partition("?")[0]
        content_type = headers.get(b"content-type", "").partition(";")[0].strip().lower()
        coding = headers.get(b"content-encoding", "identity").lower()
        source = path.removesuffix(TRACES_PATH).strip("/") if path.endswith(TRACES_PATH) else ""
        is_for_spans = method == "POST" and path.endswith(TRACES_PATH) and is_source(source)
        is_for_spans = is_for_spans or (is_private and method == "POST" and not path.endswith(_OTHER_SIGNALS))
        encoding = OtlpEncoding.PROTOBUF if content_type == OtlpEncoding.PROTOBUF.value else OtlpEncoding.JSON
        problem = (0, "")
        if b"origin" in headers and not is_private:
            problem = (403, "requests of web pages are not taken: spans come from exporters")
            is_for_spans = False
        elif not path.endswith(TRACES_PATH) or not is_source(source):
            problem = (404, _not_found(path, source))
        elif method != "POST":
            problem = (405, f"{method[:20]} is not taken: exporters send spans with POST")
        elif content_type not in {OtlpEncoding.PROTOBUF.value, OtlpEncoding.JSON.value}:
            problem = (415, f"the content type is {content_type[:100] or 'missing'}: {_CONTENT_TYPES}")
        elif coding not in {"identity", "gzip"}:
            problem = (415, f"the content encoding is {coding[:100]}: send gzip, or none")
        return cls(
            method=method,
            source=source[:100],
            encoding=encoding,
            is_gzip=coding == "gzip",
            length=int(headers.get(b"content-length", "0")),
            is_for_spans=is_for_spans,
            status=problem[0],
            why=problem[1],
        )


_CONTENT_TYPES = "send application/x-protobuf or application/json (OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf)"


def _not_found(path: str, source: str) -> str:
    if path.endswith(_OTHER_SIGNALS):
        return "only spans are kept: set OTEL_METRICS_EXPORTER=none and OTEL_LOGS_EXPORTER=none"
    if path.endswith(TRACES_PATH):
        return f"no source has the name {source[:100]!r}" if source else "a source has to be named before /v1/traces"
    return f"nothing is at {path[:100]}: spans are posted to /v1/traces"
