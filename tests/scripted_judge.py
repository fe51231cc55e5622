"""A real HTTP server that plays back answers of a judge: good ones, errors, stalls, garbage."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

Json = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """An answer with this text. `drip_s`: byte by byte, so long between two."""

    text: str
    model: str = "scripted-1"
    tokens: tuple[int, int] | None = (100, 20)
    finish: str = "stop"
    refusal: str | None = None
    drip_s: float = 0.0


@dataclass(frozen=True)
class Status:
    """An error."""

    code: int
    body: str = '{"error": {"message": "no"}}'
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Raw:
    """Status 200 with these bytes; `endless`: they never end."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    endless: bool = False


@dataclass(frozen=True)
class Stall:
    """Nothing, until the server is closed or the client gives up."""


@dataclass(frozen=True)
class Drop:
    """The connection is closed without a word."""


Script = Say | Status | Raw | Stall | Drop
Reaction = Callable[[Json], Script]


class ScriptedJudge:
    """Plays `script` in order, its last part again and again; or asks a function what to answer."""

    def __init__(self, script: Sequence[Script] | Reaction) -> None:
        self.script = script
        self.requests: list[Json] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.most_at_once = 0
        self.hung_up = threading.Event()
        """Set when a client gave up on a stalled or dripping answer."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._now = 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.judge = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def next(self, body: Json, headers: dict[str, str], path: str) -> Script:
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.headers.append(headers)
            self.paths.append(path)
        if callable(self.script):
            return self.script(body)
        return self.script[min(number, len(self.script) - 1)]

    @contextmanager
    def counted(self) -> Generator[None]:
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            yield
        finally:
            with self._lock:
                self._now -= 1

    def __enter__(self) -> ScriptedJudge:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """No answer any more, to nobody."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    judge: ScriptedJudge

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of the test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing."""

    def do_POST(self) -> None:
        judge = cast("_Server", self.server).judge
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with judge.counted():
            script = judge.next(body, dict(self.headers.items()), self.path)
            try:
                self._play(script, judge)
            except OSError:
                judge.hung_up.set()
                self.close_connection = True

    def _play(self, script: Script, judge: ScriptedJudge) -> None:
        if isinstance(script, Stall):
            self._wait_for_the_client(judge)
        elif isinstance(script, Drop):
            self.close_connection = True
        elif isinstance(script, Status):
            self._send(script.code, script.body.encode(), script.headers)
        elif isinstance(script, Raw):
            self._raw(script, judge)
        else:
            self._say(script, judge)

    def _say(self, script: Say, judge: ScriptedJudge) -> None:
        message: Json = {"role": "assistant", "content": script.text}
        if script.refusal is not None:
            message |= {"content": None, "refusal": script.refusal}
        answer: Json = {"model": script.model, "choices": [{"message": message, "finish_reason": script.finish}]}
        if script.tokens is not None:
            answer["usage"] = {"prompt_tokens": script.tokens[0], "completion_tokens": script.tokens[1]}
        body = json.dumps(answer).encode()
        if not script.drip_s:
            self._send(200, body, {})
            return
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        for byte in body:
            if judge.closing.wait(script.drip_s):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def _raw(self, script: Raw, judge: ScriptedJudge) -> None:
        if not script.endless:
            self._send(200, script.body, script.headers)
            return
        self.send_response(200)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        while not judge.closing.is_set():
            self.wfile.write(script.body)

    def _wait_for_the_client(self, judge: ScriptedJudge) -> None:
        self.connection.settimeout(0.02)
        while not judge.closing.is_set():
            try:
                if self.connection.recv(1) == b"":
                    judge.hung_up.set()
                    break
            except TimeoutError:
                continue
        self.close_connection = True

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
