"""A box for testing the supervisor alone: built from its sources and the probe, driven with docker-py."""

from __future__ import annotations

import io
import os
import random
import shutil
import socket
import struct
import subprocess
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import docker
import pytest

from grader.core.submission_files import SubmissionFile
from grader.sandbox import supervisor
from grader.sandbox.supervisor.dialogue import Dialogue, Event, Hello
from grader.sandbox.supervisor.requests import RunRequest
from grader.sandbox.supervisor.results import RunResult

SOURCES = Path(supervisor.__file__).parent / "src"
HERE = Path(__file__).parent
LABEL = "grader.test.supervisor"
MIB = 1 << 20
SECOND = 1_000_000_000
MS = 1_000_000
EventT = TypeVar("EventT")


def compile_static(target: Path, *arguments: str) -> Path:
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("no gcc on this machine: the supervisor cannot be built for its tests")
    done = subprocess.run(
        [gcc, *arguments, "-o", str(target)], capture_output=True, text=True, check=False, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return target


def build_image(client: Any, folder: Path) -> str:
    """An image that holds nothing but the supervisor and the probe. Gives its id."""
    sources = [str(path) for path in sorted(SOURCES.glob("*.c"))]
    flags = (SOURCES / "gcc-flags").read_text().split()
    files = {
        "supervisor": compile_static(folder / "supervisor", *flags, *sources).read_bytes(),
        "probe": compile_static(folder / "probe", "-O1", "-static", str(HERE / "probe.c")).read_bytes(),
        "text": b"no program\n",
        "Dockerfile": b"FROM scratch\nCOPY supervisor probe text /\n",
    }
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644 if name == "text" else 0o755
            tar.addfile(entry, io.BytesIO(content))
    context.seek(0)
    # A label of its own gives each session an image of its own: two at once must not remove each other's.
    own = {LABEL: random.randbytes(8).hex()}
    lines = list(client.build(fileobj=context, custom_context=True, decode=True, rm=True, labels=own))
    built = [line["aux"]["ID"] for line in lines if "aux" in line]
    assert built, lines
    return str(built[-1])


class BoxLostError(Exception):
    """The box closed the connection; `code` is the exit code of PID 1."""

    def __init__(self, code: int, events: list[Event]) -> None:
        super().__init__(f"the box ended with {code}; {events}")
        self.code = code
        self.events = events


class Box:
    """One container with one supervisor. `client` is docker-py's low-level client."""

    def __init__(
        self, client: Any, image: str, *, memory: int = 128 * MIB, arguments: Sequence[str] = (), **changes: Any
    ):
        self.client = client
        tmpfs = "rw,nosuid,nodev,size=16m,nr_inodes=2048"
        host = client.create_host_config(
            **{
                "network_mode": "none",
                "read_only": True,
                "cap_drop": ["ALL"],
                "cap_add": ["SETUID", "SETGID", "KILL", "CHOWN"],
                "security_opt": ["no-new-privileges"],
                "ipc_mode": "none",
                "log_config": {"Type": "none"},
                "pids_limit": 64,
                "mem_limit": memory,
                "memswap_limit": memory + MIB,
                "cpuset_cpus": "0",
                "sysctls": {"kernel.shmmni": "0", "kernel.msgmni": "0", "fs.mqueue.queues_max": "0"},
                "tmpfs": {
                    **{"/tmp": f"noexec,{tmpfs}", "/dev/shm": f"noexec,{tmpfs}"},
                    **{"/work": f"exec,{tmpfs}", "/submission": f"exec,{tmpfs}"},
                },
                **changes,
            }
        )
        command = ["--idle-s", "120", "--lifetime-s", "600", *arguments]
        created = client.create_container(
            image,
            command,
            entrypoint=["/supervisor"],
            user="0:0",
            stdin_open=True,
            host_config=host,
            labels={LABEL: "1"},
        )
        self.id: str = created["Id"]
        stream = client.attach_socket(self.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1})
        self.socket: socket.socket = getattr(stream, "_sock", stream)
        self._stream = stream
        self.socket.settimeout(60)
        client.start(self.id)
        self.talk = Dialogue(os.urandom(16))
        self.events: list[Event] = []
        self._waiting: list[Event] = []
        self._held = b""
        self.stderr = b""
        self.send(self.talk.hello())
        self.hello = self.until(Hello)

    def fact(self, *names: str) -> str:
        """What the box read about itself, by the first of these names that it has (cgroup versions differ)."""
        return next(self.hello.files[name] for name in names if name in self.hello.files).decode().strip()

    def status(self) -> dict[str, str]:
        """The fields of its /proc/1/status, before the supervisor changed anything."""
        pairs = (line.partition(":") for line in self.fact("/proc/1/status").splitlines())
        return {name: value.strip() for name, _, value in pairs}

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> list[Event]:
        """What the box says next. The engine wraps it in frames of its own: stream, three zero bytes, length."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise BoxLostError(self.wait(), self.events)
        self._held += data
        events: list[Event] = []
        while len(self._held) >= 8:
            stream, size = struct.unpack(">BxxxI", self._held[:8])
            if len(self._held) < 8 + size:
                break
            content, self._held = self._held[8 : 8 + size], self._held[8 + size :]
            if stream == 2:
                self.stderr += content
            else:
                events += self.talk.feed(content)
        self.events += events
        return events

    def until(self, kind: type[EventT]) -> EventT:
        """The next event of a kind; what came before it is passed over."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            while self._waiting:
                event = self._waiting.pop(0)
                if isinstance(event, kind):
                    return event
            self._waiting += self.receive()
            self.send(self.talk.stdin_to_send())
        raise TimeoutError(f"no {kind.__name__}: {self.events}")

    def begin(
        self, *argv: str | bytes, stdin: bytes = b"", files: Sequence[SubmissionFile] = (), **limits: Any
    ) -> None:
        arguments = tuple(a if isinstance(a, bytes) else a.encode() for a in argv)
        options: dict[str, Any] = {"wall_time_ns": 20 * SECOND} | limits
        request = RunRequest(arguments, **options)
        self.send(self.talk.begin(random.getrandbits(63) + 1, request, stdin, files))

    def run(
        self, *argv: str | bytes, stdin: bytes = b"", files: Sequence[SubmissionFile] = (), **limits: Any
    ) -> RunResult:
        self.begin(*argv, stdin=stdin, files=files, **limits)
        return self.until(RunResult)

    def probe(self, *argv: str | bytes, **more: Any) -> RunResult:
        return self.run("/probe", *argv, **more)

    def hang_up(self) -> int:
        """Close our end of its stdin, as a killed client does. Gives the exit code."""
        self.socket.shutdown(socket.SHUT_WR)
        return self.wait()

    def wait(self) -> int:
        return int(self.client.wait(self.id, timeout=30)["StatusCode"])

    def remove(self) -> None:
        self._stream.close()
        self.socket.close()
        self.client.remove_container(self.id, force=True, v=True)


def connect() -> Any:
    return docker.APIClient(version="auto", timeout=60)  # pyright: ignore
