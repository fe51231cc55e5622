"""A model that says what it is told to say, behind a local HTTP server that speaks OpenAI's two APIs.

The n-th request gets the n-th turn, whatever was asked. Chat Completions (plain and streamed) and Responses (plain).
Listens on 127.0.0.1 only.
"""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call that the model asks for."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    number: int = 0
    """Tells calls apart that are the same in all else."""

    @property
    def id(self) -> str:
        """An id as models give them."""
        number = f" {self.number}" if self.number else ""
        return "call_" + hashlib.sha256(f"{self.name} {self.text}{number}".encode()).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(self.arguments, ensure_ascii=False)


Turn = str | tuple[Call, ...]
"""An answer, or calls that are asked for together."""
USAGE = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}


class ScriptedModel:
    """A context manager; `url` is the base address of the API, as clients want it (`.../v1`)."""

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        self.turns = turns
        self.requests: list[str] = []
        self._lock = threading.Lock()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
                kind, content = model.answer(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next_turn(self, path: str) -> tuple[int, Turn]:
        """The next turn and its number; after the last, plain words."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(path)
        return number, self.turns[number] if number < len(self.turns) else "There is nothing more to say."

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes]:
        """Content type and content of the answer to a request."""
        number, turn = self.next_turn(path)
        name = body.get("model", "scripted")
        if path.endswith("/responses"):
            return "application/json", json.dumps(responses(turn, number, name)).encode()
        if body.get("stream"):
            return "text/event-stream", streamed(turn, number, name)
        return "application/json", json.dumps(completion(turn, number, name)).encode()


def message(turn: Turn) -> dict[str, Any]:
    """A turn as a message of Chat Completions."""
    if isinstance(turn, str):
        return {"role": "assistant", "content": turn}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.text}} for call in turn
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def completion(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """A turn as an answer of Chat Completions."""
    reason = "stop" if isinstance(turn, str) else "tool_calls"
    choice = {"index": 0, "message": message(turn), "finish_reason": reason, "logprobs": None}
    return {
        "id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": model,
        "choices": [choice], "usage": USAGE,
    }  # fmt: skip


def streamed(turn: Turn, number: int, model: str) -> bytes:
    """A turn as a stream of Chat Completions."""
    delta = message(turn)
    for index, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = index
    frame = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 1, "model": model}
    reason = "stop" if isinstance(turn, str) else "tool_calls"
    frames = [
        {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
        {**frame, "choices": [], "usage": USAGE},
    ]
    return "".join(f"data: {json.dumps(item)}\n\n" for item in frames).encode() + b"data: [DONE]\n\n"


def responses(turn: Turn, number: int, model: str) -> dict[str, Any]:
    """A turn as an answer of the Responses API."""
    if isinstance(turn, str):
        text = {"type": "output_text", "text": turn, "annotations": []}
        output = [
            {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
        ]
    else:
        output = [
            {"type": "function_call", "id": f"fc_{number}_{place}", "call_id": call.id, "name": call.name,
             "arguments": call.text, "status": "completed"}
            for place, call in enumerate(turn)
        ]  # fmt: skip
    usage = {
        "input_tokens": 5, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 10,
    }  # fmt: skip
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed", "model": model,
        "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage,
    }  # fmt: skip
