"""What `grader runtimes` does: listing profiles, building their images, running their self tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import grader.matchers  # noqa: F401  # pyright: ignore[reportUnusedImport] - registers the matchers
from grader.cli import sandboxes
from grader.cli.console import Console
from grader.cli.exit_codes import ALL_TRUE, PREREQUISITE
from grader.cli.interrupts import InterruptedBySignalError, run_interruptible
from grader.core.expectation import Task
from grader.core.tri import Tri
from grader.core.verdict import Verdict
from grader.errors import PrerequisiteError, UsageError
from grader.reports.sanitize import safe_line
from grader.runner.choice import Choice
from grader.runner.grading import Watcher
from grader.runner.programs import image_of
from grader.runner.runner import Runner
from grader.runtimes import LoadedProfile, SelfTest, find_profile, load_profiles, profile_folders
from grader.submission import Submission


def profile_lines(runtimes: Path | None) -> Iterator[str]:
    """A line a profile, then the folders that were looked at."""
    profiles = load_profiles(runtimes)
    width = max((len(profile.name) for profile in profiles), default=0)
    for loaded in profiles:
        profile = loaded.profile
        image = profile.image.dockerfile or profile.image.reference or ""
        yield safe_line(f"{loaded.name:<{width}}  {profile.language:<10}  {image:<12}  {loaded.file}")
        if profile.description:
            yield safe_line(f"{'':<{width}}  {profile.description}")
    yield "looked for in " + safe_line(", ".join(str(folder) for folder in profile_folders(runtimes)))


def build_images(names: Sequence[str], runtimes: Path | None, console: Console) -> int:
    """Build what is not there; the exit code: 4 if an image cannot be had."""
    profiles = _chosen(names, runtimes)

    async def main() -> int:
        failed = 0
        async with sandboxes.make_sandbox("submission", None) as sandbox:
            for profile in profiles:
                console.note(f"{profile.name}: looking for its image")
                try:
                    force = await image_of(profile, sandbox, console.note)
                except PrerequisiteError as error:
                    failed += 1
                    console.say(f"FAIL  {profile.name}")
                    console.error(error)
                else:
                    console.result(safe_line(f"ok    {profile.name}  {force.image_id}") + "\n")
        return PREREQUISITE if failed else ALL_TRUE

    return _run(main, console)


def run_self_tests(names: Sequence[str], runtimes: Path | None, console: Console) -> int:
    """Run the self tests; 4 if a profile does not do what it promises."""
    profiles = _chosen(names, runtimes)

    async def main() -> int:
        failed = 0
        sandbox = sandboxes.make_sandbox("submission", None)
        async with Runner(sandbox=sandbox, runtimes=runtimes, watcher=_Steps(console)) as runner:
            for profile in profiles:
                for test in profile.profile.self_tests:
                    failed += not await _test(runner, profile, test, console)
                if not profile.profile.self_tests:
                    console.result(f"caution  {safe_line(profile.name)}  has no self tests\n")
        return PREREQUISITE if failed else ALL_TRUE

    return _run(main, console)


class _Steps(Watcher):
    """Shows the steps of building an image."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def image_step(self, line: str) -> None:
        self._console.note(line)


async def _test(runner: Runner, profile: LoadedProfile, test: SelfTest, console: Console) -> bool:
    task = Task.model_validate(
        {
            "runtime_profiles": [profile.name],
            "conditions": [{"condition_type": "program_behaves", "cases": [test.case_data()]}],
        }
    )
    submission = Submission.from_files(test.files, name=test.name, language=profile.profile.language)
    graded = await runner.grade(task, submission, Choice())
    assert graded.verdict is not None
    wrong = difference(test, graded.verdict)
    mark = "ok" if wrong is None else "FAIL"
    said = "" if wrong is None else f"  {wrong}"
    console.result(safe_line(f"{mark:<5} {profile.name}  {test.name}{said}", 600) + "\n")
    return wrong is None


def difference(test: SelfTest, verdict: Verdict) -> str | None:
    """In what a verdict is not the one that a self test must get; None if it is."""
    codes = [finding.code for finding in verdict.findings]
    if verdict.value is not Tri.of(test.verdict):
        return f"expected {str(test.verdict).lower()}, got {verdict.value}: {verdict.rationale}"
    if test.reason is not None and codes[:1] != [test.reason]:
        return f"expected the reason {test.reason}, got {', '.join(codes) or 'none'}"
    return None


def _chosen(names: Sequence[str], runtimes: Path | None) -> tuple[LoadedProfile, ...]:
    profiles = tuple(find_profile(name, runtimes) for name in names) if names else load_profiles(runtimes)
    if not profiles:
        raise UsageError("there are no runtime profiles", hint="name a folder with them: --runtimes")
    return profiles


def _run(main: Callable[[], Awaitable[int]], console: Console) -> int:
    try:
        return run_interruptible(main, console.say)
    except InterruptedBySignalError as stopped:
        return stopped.exit_code
