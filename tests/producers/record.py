"""Makes the recordings: runs every program of `programs/` with the newest releases of its libraries, keeps its trace.

    python tests/producers/record.py [PROGRAM...] [--into FOLDER] [--python PYTHON]

For each program a virtual environment is made in a temporary folder, with what its header asks for, and each scenario
is one process in an empty folder. FOLDER/PROGRAM/ gets `SCENARIO.jsonl.gz` (or `.pb.gz`, from programs that send OTLP
over HTTP), the export as the library wrote it, and `truth.json`: versions, and of each scenario what the model asked
for and what the tools themselves wrote down. Paths of this machine in the export are replaced, nothing else. Standard
library only.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORDED = HERE / "recorded"
INSTALL_WITHIN_S = 900
RUN_WITHIN_S = 180
FOLDER_SHOWN = "/home/you"
_HEADER = re.compile(r"^# (dependencies|npm) = (\[.*\])$", re.MULTILINE)
SENDS_TO = "opentelemetry-exporter-otlp-proto-http"
"""Programs that need this send to where the environment says; the others write trace.jsonl."""


class RecordingError(Exception):
    """A recording could not be made: nothing is known of the library then."""


def programs() -> list[Path]:
    """The programs that make a recording: those with a header that says what they need."""
    return sorted(path for path in PROGRAMS.glob("*.py") if needs(path))


def needs(program: Path) -> dict[str, list[str]]:
    """What a program needs from each registry (`dependencies` of Python, `npm`), as its header says."""
    return {kind: json.loads(wanted) for kind, wanted in _HEADER.findall(program.read_text(encoding="utf-8"))}


class Receiver:
    """Keeps what is sent to it by OTLP over HTTP: JSON a line each, protobuf with the length before each message."""

    def __init__(self) -> None:
        self.json, self.protobuf = b"", b""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = b"".join(self.parts())
                body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
                kind = self.headers.get("Content-Type") or ""
                if self.path == "/v1/traces" and "json" in kind:
                    receiver.json += body + b"\n"
                elif self.path == "/v1/traces":
                    receiver.protobuf += len(body).to_bytes(4, "big") + body
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", "2" if "json" in kind else "0")
                self.end_headers()
                self.wfile.write(b"{}" if "json" in kind else b"")

            def parts(self) -> Iterator[bytes]:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    yield self.rfile.read(int(self.headers.get("Content-Length") or 0))
                    return
                while (length := int(self.rfile.readline(), 16)) > 0:
                    yield self.rfile.read(length)
                    self.rfile.readline()
                self.rfile.readline()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Receiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Environment:
    """Where programs run: a folder of its own, the libraries installed in it, and no variables of this machine."""

    def __init__(self, program: Path, folder: Path, python: Path | None = None) -> None:
        self.program, self.folder = program, folder
        self.python = python
        (folder / "home").mkdir(parents=True)
        shutil.copytree(PROGRAMS, folder / "programs", ignore=shutil.ignore_patterns("__pycache__"))
        self.variables = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def install(self) -> None:
        """Install the newest releases of what the program needs."""
        wanted = needs(self.program)
        if "npm" in wanted:
            npm = [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                self.folder / "programs",
            ]
            self._run([*npm, *wanted["npm"]])
        if self.python is None:
            self.python = self.folder / "venv" / "bin" / "python"
            self._run([sys.executable, "-m", "venv", self.folder / "venv"])
            if wanted.get("dependencies"):
                pip = [self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
                uv = ["uv", "pip", "install", "-q", "--python", self.python]  # minutes faster, where it is there
                self._run([*(uv if shutil.which("uv") else pip), *wanted["dependencies"]])

    def _run(self, command: list[Any]) -> None:
        # The package client keeps its settings: how a registry is reached is this machine's business.
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
        )
        if done.returncode != 0:
            raise RecordingError(f"{' '.join(map(str, command[:4]))} ...: {done.stderr.strip()[-500:]}")

    def versions(self) -> dict[str, str]:
        """The versions of what was installed by name, and of the language."""
        wanted = needs(self.program)
        code = (
            "import json, sys, platform, importlib.metadata as m; "
            "print(json.dumps({'python': platform.python_version(), **{n: m.version(n) for n in sys.argv[1:]}}))"
        )
        names = [_name(one) for one in wanted.get("dependencies", [])]
        found: dict[str, str] = json.loads(self._output([self.python, "-c", code, *names]))
        if "npm" in wanted:
            found["node"] = self._output(["node", "--version"]).strip().lstrip("v")
            for name in wanted["npm"]:
                package = self.folder / "programs" / "node_modules" / name / "package.json"
                found[name] = json.loads(package.read_text(encoding="utf-8"))["version"]
        return found

    def _output(self, command: list[Any]) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            env=self.variables, cwd=self.folder, capture_output=True, text=True, timeout=RUN_WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RecordingError(f"{self.program.name}: {done.stderr.strip()[-2000:]}")
        return done.stdout

    def command(self, *arguments: str) -> list[Any]:
        """The command that runs the program."""
        return [self.python, self.folder / "programs" / self.program.name, *arguments]

    def scenarios(self) -> list[str]:
        """The scenarios that the program has."""
        return self._output(self.command("--list")).split()

    def play(self, scenario: str) -> tuple[bytes, dict[str, Any]]:
        """The export of one scenario, and its truth."""
        folder = self.folder / "runs" / scenario
        folder.mkdir(parents=True)
        with Receiver() as receiver, open(folder / "output.txt", "wb") as output:
            sends = SENDS_TO in needs(self.program).get("dependencies", []) or "npm" in needs(self.program)
            address = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url} if sends else {}
            done = subprocess.run(
                [str(part) for part in self.command(scenario)],
                env={**self.variables, **address}, cwd=folder, timeout=RUN_WITHIN_S, check=False,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            )  # fmt: skip
        ended = json.loads(_read(folder / "ended.json") or b"{}")
        if done.returncode not in (0, -9) or not ended or (done.returncode == -9) is not (scenario == "cut_short"):
            said = _read(folder / "output.txt").decode(errors="replace")[-2000:]
            raise RecordingError(f"{self.program.name} {scenario}: exit code {done.returncode}\n{said}")
        export = receiver.json or receiver.protobuf or _read(folder / "trace.jsonl")
        if not export and scenario != "cut_short":
            raise RecordingError(f"{self.program.name} {scenario}: nothing was exported")
        language = self._output([self.python, "-c", "import sys; print(sys.base_prefix)"]).strip()
        places = [(str(self.folder), FOLDER_SHOWN), (language, "/usr")]
        if self.python is not None:
            places.insert(0, (str(self.python.parents[1]), f"{FOLDER_SHOWN}/venv"))
        for here, shown in places:
            # As long as before in protobuf, where lengths stand before texts.
            length = len(here) if receiver.protobuf else len(shown)
            export = export.replace(here.encode(), shown.ljust(length, "_")[:length].encode())
        return export, {**ended, "calls": _calls(_read(folder / "calls.jsonl").decode())}


def _name(wanted: str) -> str:
    return re.split(r"[\[<>=~!; ]", wanted)[0]


def _read(file: Path) -> bytes:
    return file.read_bytes() if file.is_file() else b""


def _calls(lines: str) -> list[dict[str, Any]]:
    """What the tools wrote down: one entry per execution, in order of start."""
    calls: dict[int, dict[str, Any]] = {}
    for line in lines.splitlines():
        entry = json.loads(line)
        number = entry.pop("call")
        calls.setdefault(number, {"outcome": "killed"}).update(entry)
    return sorted(calls.values(), key=lambda call: call["started_ns"])


def record(program: Path, into: Path, python: Path | None = None, only: str | None = None) -> dict[str, Any]:
    """Make the recording of a program; its truth. Raises RecordingError if that fails.

    It replaces an older one, or adds the scenario `only` to it, when that was made with the same versions.
    """
    target = into / program.stem
    with tempfile.TemporaryDirectory(prefix="grader-producers-") as folder:
        environment = Environment(program, Path(folder) / "it", python)
        environment.install()
        exports: dict[str, bytes] = {}
        truth: dict[str, Any] = {"versions": environment.versions(), "scenarios": {}}
        for scenario in environment.scenarios() if only is None else [only]:
            export, played = environment.play(scenario)
            if export:  # A process that was killed may have sent nothing.
                exports[scenario], truth["scenarios"][scenario] = export, played
    if only is None:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
    else:
        known = json.loads((target / "truth.json").read_text(encoding="utf-8"))
        if known["versions"] != truth["versions"]:
            raise RecordingError(f"{target.name} was made with {known['versions']}: make all of it again")
        truth["scenarios"] = {**known["scenarios"], **truth["scenarios"]}
    for scenario, export in exports.items():
        kind = "jsonl" if export[:1] == b"{" else "pb"
        (target / f"{scenario}.{kind}.gz").write_bytes(gzip.compress(export, mtime=0))
    (target / "truth.json").write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("program", nargs="*", help="names without .py; default: all")
    parser.add_argument("--into", type=Path, default=RECORDED)
    parser.add_argument("--python", type=Path, help="an interpreter that has the libraries: nothing is installed")
    parser.add_argument("--only", metavar="SCENARIO", help="add this scenario to what is recorded")
    chosen = parser.parse_args()
    for program in programs():
        if not chosen.program or program.stem in chosen.program:
            truth = record(program, chosen.into, chosen.python.absolute() if chosen.python else None, chosen.only)
            print(program.stem, truth["versions"], *truth["scenarios"], flush=True)


if __name__ == "__main__":
    main()
