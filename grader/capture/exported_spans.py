"""Hears what a program in a box sends to its trace endpoint: OTLP over HTTP, kept as it is or refused with a reason.

The program is hostile. Everything is bounded, for each run: bytes that are kept, requests, refusals (each may have cost
the decompression of a whole body). Beyond a bound every connection is closed, and the outcome says which it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.capture.http_body import BodyBudget, HttpLimits
from grader.capture.otlp_body import OtlpEncoding, one_line
from grader.capture.otlp_http import Batch, OtlpConnection, Refused
from grader.core.captured import Captured
from grader.core.outcomes import TraceOutcome
from grader.sandbox.base import Port, PortSeen, Reply

MIB = 2**20
_HTTP = HttpLimits(body_bytes=8 * MIB, decompressed_bytes=8 * MIB)


@dataclass(frozen=True, slots=True)
class SpanLimits:
    """How much of one run is taken."""

    kept_bytes: int = 32 * MIB
    """Of bodies, decompressed."""
    requests: int = 5_000
    """Each costs a millisecond of this process, whatever is in it."""
    spans: int = 10_000
    """Each costs about as much again when it is judged."""
    refused: int = 32
    """Requests that are answered with an error; beyond, none is taken any more."""
    http: HttpLimits = _HTTP


class ExportedSpans:
    """The ear of one run; `outcome` says what it has heard."""

    def __init__(self, port: Port, limits: SpanLimits | None = None) -> None:
        self.port = port
        self._limits = limits if limits is not None else SpanLimits()
        self._budget = BodyBudget(2 * self._limits.http.decompressed_bytes)
        self._open: dict[int, OtlpConnection | None] = {}
        """None: closed from this side, and what is still on its way is passed over."""
        self._messages = bytearray()
        self._lines = bytearray()
        self._batches = self._spans = self._refused = self._cut = 0
        self._refused_detail = self._full = ""
        self._heard_bytes = self._connections = 0
        self._seen: PortSeen | None = None

    def hear(self, connection: int, data: bytes) -> Reply:
        """The next bytes of a connection, `b""` for its end; what is answered. Never raises for what was sent."""
        self._connections = max(self._connections, connection)
        self._heard_bytes += len(data)
        has_ended = len(data) == 0
        if connection not in self._open and not has_ended:
            self._open[connection] = OtlpConnection(limits=self._limits.http, budget=self._budget, is_private=True)
        http = self._open.get(connection)
        if http is None or self._full:
            if has_ended:
                self._open.pop(connection, None)
            return Reply(closes=True)
        http.receive(data)
        self._take(http, has_ended=has_ended)
        answer = http.take_output()
        closes = http.is_closed or has_ended or bool(self._full)
        if closes:
            http.abandon()
            self._open[connection] = None
        if has_ended:
            del self._open[connection]
        return Reply(answer, closes, ends_port=bool(self._full))

    def finish(self, seen: PortSeen) -> None:
        """Nothing more comes: what is not whole by now was cut off."""
        self._seen = seen
        if seen.is_full and not self._full:
            self._full = f"the program sent more than {self.port.most_bytes:,} bytes to its trace endpoint"
        self._end_all()

    def outcome(self) -> TraceOutcome:
        """What was heard and kept. Of a lost box, as far as it came."""
        self._end_all()
        seen = self._seen if self._seen is not None else PortSeen(self._connections, 0, self._heard_bytes)
        return TraceOutcome(
            messages=Captured.whole(bytes(self._messages)),
            lines=Captured.whole(bytes(self._lines)),
            batches=self._batches,
            refused=self._refused,
            refused_detail=self._refused_detail,
            cut=self._cut,
            connections=seen.connections,
            connections_refused=seen.refused,
            received_bytes=seen.received_bytes,
            full=self._full,
        )

    def _take(self, http: OtlpConnection, *, has_ended: bool) -> None:
        while not self._full and (event := http.next_event()) is not None:
            if isinstance(event, Batch):
                self._keep(http, event)
            elif event.loses_spans and has_ended:
                self._cut += 1
            elif event.loses_spans:
                self._note(event)

    def _keep(self, http: OtlpConnection, batch: Batch) -> None:
        limits = self._limits
        if len(self._messages) + len(self._lines) + len(batch.body) > limits.kept_bytes:
            self._full = f"the program sent more than {limits.kept_bytes:,} bytes of spans"
        elif self._batches >= limits.requests:
            self._full = f"the program sent spans in more than {limits.requests:,} requests"
        elif self._spans + batch.spans > limits.spans:
            self._full = f"the program sent more than {limits.spans:,} spans"
        if self._full:
            # 507, not 429: an exporter that tried again would only be held up until its end.
            self._note(http.refuse(507, self._full))
            return
        if batch.spans > 0:
            if batch.encoding is OtlpEncoding.PROTOBUF:
                self._messages += len(batch.body).to_bytes(4, "big") + batch.body
            else:
                self._lines += one_line(batch.body) + b"\n"
        self._batches += 1
        self._spans += batch.spans
        http.kept()

    def _note(self, refused: Refused) -> None:
        self._refused += 1
        self._refused_detail = self._refused_detail or f"{refused.why[:300]} (status {refused.status})"
        if self._refused > self._limits.refused and not self._full:
            self._full = f"more than {self._limits.refused} requests to the trace endpoint were refused"

    def _end_all(self) -> None:
        for http in self._open.values():
            if http is None:
                continue
            http.receive(b"")
            self._take(http, has_ended=True)
            http.abandon()
        self._open.clear()
