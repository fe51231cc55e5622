"""An engine of the test's own, which may be killed: own socket, own folders, own containerd; nothing of it stays."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.e2e.crashes import becomes


class SecondEngine:
    """`start`, `kill` and `stop` it as often as needed; its images and containers stay in its folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        self._environment = environment
        self.address = f"unix://{folder}/docker.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self._log = open(folder / "log", "ab")  # noqa: SIM115 (closed by `end`)

    def start(self) -> None:
        command = [
            # A network namespace of its own: an engine without a bridge removes the host's docker0 when it starts.
            "unshare", "--net", "dockerd", "--host", self.address, "--data-root", str(self.folder / "data"),
            "--exec-root", str(self.folder / "exec"), "--pidfile", str(self.folder / "pid"),
            "--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-forward=false",
        ]  # fmt: skip
        (self.folder / "pid").unlink(missing_ok=True)  # what a killed one left would stop the next
        self._process = subprocess.Popen(
            command, stdout=self._log, stderr=self._log, start_new_session=True, env={**os.environ, **self._environment}
        )
        assert becomes(self.answers, 60), (self.folder / "log").read_text()[-3000:]

    def answers(self) -> bool:
        return self.docker("version").returncode == 0

    def docker(self, *arguments: str, stdin: int | None = None) -> subprocess.CompletedProcess[str]:
        command = ["docker", "--host", self.address, *arguments]
        return subprocess.run(command, stdin=stdin, capture_output=True, text=True, timeout=300, check=False)

    def kill(self) -> None:
        """As an out-of-memory or a crash does."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """As a service manager does."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
        self._process = None

    def load_images_of(self, profile: str) -> None:
        """Take over from the usual engine what runs of a profile need, as newest found there."""
        names: list[str] = []
        for name in ("base", "supervisor", f"runtime-{profile}", f"box-{profile}"):
            command = ["docker", "images", f"grader/{name}", "--format", "{{.Repository}}:{{.Tag}}"]
            listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()
            names += listed[:1]
        with subprocess.Popen(["docker", "save", *names], stdout=subprocess.PIPE) as saving:
            assert saving.stdout is not None
            loaded = self.docker("load", stdin=saving.stdout.fileno())
        assert loaded.returncode == 0, loaded.stderr

    def end(self) -> None:
        """Nothing of it is left: no process, no mount, no file."""
        if self._process is not None:
            self.stop()
        self._log.close()
        for process in self._processes():
            process.kill()
        assert becomes(lambda: not self._processes()), self._processes()
        for mount in reversed(mounts_below(self.folder)):
            subprocess.run(["umount", "--lazy", mount], check=False, timeout=60)
        assert mounts_below(self.folder) == []
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> list[psutil.Process]:
        """containerd and the shims: whatever has a path of this engine among its arguments."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter(["cmdline"]):
            arguments: list[str] = process.info["cmdline"] or []  # pyright: ignore[reportAttributeAccessIssue]
            if any(str(self.folder) in argument for argument in arguments) and "pytest" not in " ".join(arguments):
                found.append(process)
        return found


def mounts_below(folder: Path) -> list[str]:
    """Mount points below a folder, the outer ones first."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file]
    return sorted(point for point in points if point.startswith(f"{folder}/"))


@contextmanager
def second_engine(folder: Path, **environment: str) -> Generator[SecondEngine]:
    """A running engine with this in its environment; skipped, saying so, where none of one's own can be started."""
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("an engine of the test's own needs root and dockerd")
    folder.mkdir()
    engine = SecondEngine(folder, **environment)
    try:
        engine.start()
        yield engine
    finally:
        engine.end()
