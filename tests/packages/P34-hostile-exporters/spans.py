"""What a program needs to send spans without any package: enough to send them right, and wrong."""

import json
import os
import socket
import time
import urllib.parse

WHERE = urllib.parse.urlparse(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
TRACE = "0af7651916cd43dd8448eb211c80319c"


def span(number, tool=None, parent=1, trace=TRACE, **arguments):
    """A span; number 1 is the root, and without a tool it is the agent's own."""
    now = time.time_ns()
    said = {"gen_ai.operation.name": "execute_tool" if tool else "invoke_agent"}
    if tool:
        said |= {"gen_ai.tool.name": tool, "gen_ai.tool.call.arguments": json.dumps(arguments)}
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        **({} if number == parent else {"parentSpanId": f"{parent:016x}"}),
        "name": tool or "agent",
        "startTimeUnixNano": str(now),
        "endTimeUnixNano": str(now + 1000),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in said.items()],
    }


def body(*spans):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "p"}, "spans": spans}]}]}).encode()


def request(content, *headers):
    head = ["POST /v1/traces HTTP/1.1", "Host: x", "Content-Type: application/json", *headers]
    if not any(header.lower().startswith("transfer") for header in headers):
        head.append(f"Content-Length: {len(content)}")
    return "\r\n".join([*head, "", ""]).encode() + content


def connect():
    return socket.create_connection((WHERE.hostname, WHERE.port))


def answer(connection):
    """The status of the next answer; 0 if the connection is closed."""
    got = b""
    try:
        while b"\r\n\r\n" not in got and (part := connection.recv(65536)):
            got += part
    except ConnectionError:
        pass
    return int(got.split()[1]) if got else 0


def post(content, *headers):
    with connect() as connection:
        connection.sendall(request(content, *headers))
        return answer(connection)


def good():
    """All that the task asks for, and acknowledged."""
    assert post(body(span(1), span(2, "book"))) == 200
