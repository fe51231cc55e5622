"""Makes the recordings: runs every program of `programs/` with the newest releases of its libraries, and keeps its trace.

    python tests/producers/record.py [PROGRAM...] [--into FOLDER] [--python PYTHON]

For each program a virtual environment is made in a temporary folder, with what its header asks for, and each scenario
is one process in an empty folder. FOLDER/PROGRAM/ gets `SCENARIO.jsonl.gz`, the OTLP export as the library wrote it,
and `truth.json`: versions, and of each scenario what the model asked for and what the tools themselves wrote down.
Paths of this machine in the export are replaced, nothing else. Standard library only.
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
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORDED = HERE / "recorded"
INSTALL_WITHIN_S = 900
RUN_WITHIN_S = 180
FOLDER_SHOWN = "/home/you"
_HEADER = re.compile(r"^# dependencies = (\[.*\])$", re.MULTILINE)
_NODE_HEADER = re.compile(r"^// dependencies: (\[.*\])$", re.MULTILINE)


class RecordingError(Exception):
    """A recording could not be made: nothing is known of the library then."""


def programs() -> list[Path]:
    """The programs that make a recording: those with a header that says what they need."""
    return sorted(
        path for path in PROGRAMS.iterdir() if path.suffix in {".py", ".mjs"} and dependencies(path) is not None
    )


def dependencies(program: Path) -> list[str] | None:
    """What a program needs, as its header says; None for one without a header."""
    found = (_HEADER if program.suffix == ".py" else _NODE_HEADER).search(program.read_text(encoding="utf-8"))
    return json.loads(found[1]) if found is not None else None


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
        wanted = dependencies(self.program) or []
        if self.program.suffix == ".mjs":
            self._run(
                ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", self.folder, *wanted]
            )
        elif self.python is None:
            self.python = self.folder / "venv" / "bin" / "python"
            self._run([sys.executable, "-m", "venv", self.folder / "venv"])
            self._run([self.python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted])

    def _run(self, command: list[Any]) -> None:
        # The package client keeps its settings: how a registry is reached is this machine's business.
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, timeout=INSTALL_WITHIN_S, check=False
        )
        if done.returncode != 0:
            raise RecordingError(f"{' '.join(map(str, command[:4]))} ...: {done.stderr.strip()[-500:]}")

    def versions(self) -> dict[str, str]:
        """The versions of what was installed by name, and of the language."""
        if self.program.suffix == ".mjs":
            found = {}
            for wanted in dependencies(self.program) or []:
                name = wanted if wanted.count("@") == wanted.startswith("@") else wanted.rsplit("@", 1)[0]
                package = self.folder / "node_modules" / name / "package.json"
                found[name] = json.loads(package.read_text(encoding="utf-8"))["version"]
            return {"node": self._output(["node", "--version"]).strip().lstrip("v"), **found}
        names = [re.split(r"[\[<>=~!; ]", wanted)[0] for wanted in dependencies(self.program) or []]
        code = (
            "import json, sys, platform, importlib.metadata as m; "
            "print(json.dumps({'python': platform.python_version(), **{n: m.version(n) for n in sys.argv[1:]}}))"
        )
        return json.loads(self._output([self.python, "-c", code, *names]))

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
        program = self.folder / "programs" / self.program.name
        return ["node" if self.program.suffix == ".mjs" else self.python, program, *arguments]

    def scenarios(self) -> list[str]:
        """The scenarios that the program has."""
        return self._output(self.command("--list")).split()

    def play(self, scenario: str) -> tuple[bytes, dict[str, Any]]:
        """The export of one scenario, and its truth."""
        folder = self.folder / "runs" / scenario
        folder.mkdir(parents=True)
        with open(folder / "output.txt", "wb") as output:
            done = subprocess.run(
                [str(part) for part in self.command(scenario)],
                env=self.variables, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=RUN_WITHIN_S, check=False,
            )  # fmt: skip
        ended = json.loads(_read(folder / "ended.json") or b"{}")
        if done.returncode not in (0, 9) or not ended or (done.returncode == 9) is not (scenario == "cut_short"):
            said = _read(folder / "output.txt").decode(errors="replace")[-2000:]
            raise RecordingError(f"{self.program.name} {scenario}: exit code {done.returncode}\n{said}")
        export = _read(folder / "trace.jsonl")
        libraries = [] if self.python is None else [(self.python.parents[1], f"{FOLDER_SHOWN}/venv")]
        for here, shown in [*libraries, (self.folder, FOLDER_SHOWN)]:
            export = export.replace(str(here).encode(), shown.encode())
        return export, {**ended, "calls": _calls(_read(folder / "calls.jsonl").decode())}


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


def record(program: Path, into: Path, python: Path | None = None) -> dict[str, Any]:
    """Make the recording of a program, replacing an older one; its truth. Raises RecordingError when it cannot be made."""
    with tempfile.TemporaryDirectory(prefix="grader-producers-") as folder:
        environment = Environment(program, Path(folder) / "it", python)
        environment.install()
        exports: dict[str, bytes] = {}
        truth: dict[str, Any] = {"versions": environment.versions(), "scenarios": {}}
        for scenario in environment.scenarios():
            exports[scenario], truth["scenarios"][scenario] = environment.play(scenario)
    target = into / program.stem
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for scenario, export in exports.items():
        (target / f"{scenario}.jsonl.gz").write_bytes(gzip.compress(export, mtime=0))
    (target / "truth.json").write_text(json.dumps(truth, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return truth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("program", nargs="*", help="names without .py; default: all")
    parser.add_argument("--into", type=Path, default=RECORDED)
    parser.add_argument("--python", type=Path, help="an interpreter that has the libraries: nothing is installed")
    chosen = parser.parse_args()
    for program in programs():
        if not chosen.program or program.stem in chosen.program:
            truth = record(program, chosen.into, chosen.python.absolute() if chosen.python else None)
            print(program.stem, truth["versions"], *truth["scenarios"], flush=True)


if __name__ == "__main__":
    main()
