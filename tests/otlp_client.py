"""A client of a receiver of spans: requests of known spans, sent plainly over sockets; and what is in its files."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.traces.files import trace_inputs
from grader.traces.reader import read_traces
from grader.traces.span import Span

HOST = "127.0.0.1"
TRACE_ID = "0a" * 16
JSON, PROTOBUF = "application/json", "application/x-protobuf"
WITHIN_S = 30.0


@dataclass(frozen=True)
class Answer:
    """What a receiver answered; status 0: nothing, the connection ended."""

    status: int
    headers: dict[str, str]
    body: bytes


def request(*numbers: int, tool: str = "send") -> bytes:
    """A request in JSON with a root (number 1) or executions of a tool, whose ids are these numbers."""
    spans: list[dict[str, object]] = []
    for number in numbers:
        attributes = {"gen_ai.operation.name": "invoke_agent" if number == 1 else "execute_tool"}
        if number > 1:
            attributes["gen_ai.tool.name"] = tool
        spans.append(
            {
                "traceId": TRACE_ID,
                "spanId": f"{number:016x}",
                "parentSpanId": "" if number == 1 else f"{1:016x}",
                "name": "x",
                "startTimeUnixNano": str(number),
                "endTimeUnixNano": str(number + 1),
                "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
            }
        )
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}]}).encode()


def protobuf(*numbers: int) -> bytes:
    """The same ids without attributes, in protobuf."""
    spans = b""
    for number in numbers:
        ids = b"\x0a\x10" + bytes.fromhex(TRACE_ID) + b"\x12\x08" + number.to_bytes(8, "big")
        parent = b"" if number == 1 else b"\x22\x08" + (1).to_bytes(8, "big")
        times = b"\x39" + number.to_bytes(8, "little") + b"\x41" + (number + 1).to_bytes(8, "little")
        spans += field(2, ids + parent + times)
    return field(1, field(2, spans))


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message that holds bytes."""
    size, length = len(content), b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def head(size: int | None, path: str = "/v1/traces", content_type: str = JSON, *more: str) -> bytes:
    """The headers of a request with a body of that size, or (None) in chunks."""
    framing = "Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"
    lines = (f"POST {path} HTTP/1.1", f"Host: {HOST}", f"Content-Type: {content_type}", framing, *more, "", "")
    return "\r\n".join(lines).encode()


def post(body: bytes, path: str = "/v1/traces", content_type: str = JSON, *more: str) -> bytes:
    """A whole request."""
    return head(len(body), path, content_type, *more) + body


class Client:
    """One connection."""

    def __init__(self, port: int, within_s: float = WITHIN_S, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(within_s)
        if receive_bytes is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect((HOST, port))
        self._data = b""

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> Answer:
        """The next answer."""
        try:
            while b"\r\n\r\n" not in self._data:
                if not self._more():
                    return Answer(0, {}, self._data)
            top, _, self._data = self._data.partition(b"\r\n\r\n")
            first, *lines = top.decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
            size = int(headers.get("content-length", "0"))
            while len(self._data) < size:
                if not self._more():
                    return Answer(0, {}, self._data)
        except ConnectionError:
            return Answer(0, {}, b"")
        body, self._data = self._data[:size], self._data[size:]
        return Answer(int(first.split(" ")[1]), headers, body)

    def _more(self) -> bool:
        data = self.socket.recv(65536)
        self._data += data
        return bool(data)

    def is_closed(self) -> bool:
        """Wait for the end of the connection."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def ask(port: int, data: bytes) -> Answer:
    """The answer to one request, on a connection of its own."""
    with Client(port) as client:
        client.send(data)
        return client.answer()


def kept(folder: Path) -> list[int]:
    """The ids of the spans in a folder, as `grader score` reads them."""
    spans: list[Span] = []
    inputs: Sequence[object] = trace_inputs([folder])
    if inputs:
        read_traces(trace_inputs([folder]), also=spans.append)
    return sorted(int(span.span_id, 16) for span in spans)
