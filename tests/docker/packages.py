"""The packages of tests/packages: hostile programs as data, each with the verdict and reasons that it must get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from grader import ProgramBehaves, Submission, Task
from grader.formats.task_file import load_task
from grader.sandbox.base import ISOLATIONS, Isolation
from grader.yaml_source import load

PACKAGES = Path(__file__).resolve().parents[1] / "packages"
RUNTIMES = PACKAGES / "runtimes"
"""Profiles that only the packages use."""
_BOX_LIMITS = {
    "memory_bytes", "processes", "disk_bytes", "files", "stdout_bytes", "stderr_bytes", "stderr_kept_bytes",
}  # fmt: skip
_LOOKS = {
    "python": "look.py", "bash": "look.sh", "c": "look.c", "direct": "look.run", "made": "look.build",
    "traced": "look.py",
}  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """What a submission must get: verdict, reason codes in order, and words that its rationale must have."""

    verdict: str
    reasons: tuple[str, ...] = ()
    says: str = ""
    otherwise: Expected | None = None
    """What it may get as well, where the kernel's choice decides which."""


@dataclass(frozen=True)
class Entry:
    """A submission of a package."""

    package: str
    task: Task
    submission: Path
    by_isolation: Mapping[Isolation, Expected]

    @property
    def name(self) -> str:
        return f"{self.package}/{self.submission.name}"


def packages() -> list[Path]:
    """The folders of all packages, in order of name."""
    return sorted(file.parent for file in PACKAGES.glob("*/task.yaml"))


def entries(package: Path) -> list[Entry]:
    """All submissions of a package. Raises AssertionError if one has no expectation, or the other way round."""
    task = load_task(package / "task.yaml")
    expected = cast(
        "dict[str, dict[str, object]]", load((package / "expected.yaml").read_bytes(), "expected.yaml").value
    )
    names = {path.name for path in (package / "submissions").iterdir()}
    assert names == set(expected), f"{package.name}: {names ^ set(expected)}"
    return [
        Entry(package.name, task, package / "submissions" / name, _by_isolation(said))
        for name, said in expected.items()
    ]


def _by_isolation(said: Mapping[str, object]) -> dict[Isolation, Expected]:
    """`{verdict, reasons, says}`, and under the name of an isolation level what is different there."""
    general = _expected(said)
    return {
        level: _expected({**said, **cast("dict[str, object]", said[level])}) if level in said else general
        for level in ISOLATIONS
    }


def _expected(said: Mapping[str, object]) -> Expected:
    unknown = set(said) - {"verdict", "reasons", "says", "or", *ISOLATIONS}
    assert not unknown, unknown
    reasons = tuple(cast("list[str]", said.get("reasons", [])))
    otherwise = _expected(cast("dict[str, object]", said["or"])) if "or" in said else None
    return Expected(cast("str", said["verdict"]), reasons, cast("str", said.get("says", "")), otherwise)


def clean_run(entry: Entry) -> tuple[Task, Submission]:
    """A task and a program that looks for what is left, for a box of the same kind as the entry's."""
    (profile,) = entry.task.runtime_profiles or ("",)
    program = entry.task.programs()[0]
    limits = program.cases[0].limits.over(entry.task.limits)
    same_box = {name: value for name, value in limits if name in _BOX_LIMITS and value is not None}
    condition = ProgramBehaves.model_validate({"cases": [{"stdout": {"equals": "clean\n"}, "limits": same_box}]})
    task = Task(objective="Nothing is left", runtime_profiles=(profile,), conditions=(condition,))
    look = PACKAGES / "clean" / _LOOKS[profile]
    if profile == "made":
        script = (PACKAGES / "clean" / "look.sh").read_bytes()
        return task, Submission.from_files({look.name: look.read_bytes(), "look.sh": script}, name="look")
    return task, Submission.from_path(look, name="look")
