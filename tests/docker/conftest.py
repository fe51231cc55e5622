"""An engine that answers the first questions and then hangs."""

from __future__ import annotations

import http.server
import socketserver
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def hanging_engine(tmp_path: Path) -> Generator[Callable[[], Path]]:
    """Starts such an engine; the path of its socket."""
    over = threading.Event()
    questions: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            questions.append(self.path)
            if len(questions) > 2:
                over.wait(20)
                return
            body = b'{"ApiVersion": "1.41", "Version": "1"}' if self.path.endswith("/version") else b"OK"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Nothing."""

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    path = tmp_path / "engine.sock"
    server = Server(str(path), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})

    def begin() -> Path:
        thread.start()
        return path

    yield begin
    over.set()
    if thread.is_alive():
        server.shutdown()
        thread.join(5)
    time.sleep(0)
    server.server_close()
