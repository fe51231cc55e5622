"""Which profiles a submission runs under, and what a sandbox needs to know to run it there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from grader.core.expectation import Task
from grader.core.plan import ProfileInForce
from grader.errors import SubmissionError, TaskError
from grader.runtimes import LoadedProfile, find_profile, load_profiles
from grader.sandbox.base import ImageSource, Program, Sandbox
from grader.submission import Submission


class Profiles:
    """The runtime profiles of a runner, each read once: no submission of a stream is run under another than the rest.

    `folder`: where they are looked for first, or None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._named: dict[str, LoadedProfile] = {}
        self._all: tuple[LoadedProfile, ...] | None = None

    def named(self, name: str) -> LoadedProfile:
        """The profile of this name. Raises TaskError."""
        if name not in self._named:
            self._named[name] = find_profile(name, self._folder)
        return self._named[name]

    def all(self) -> tuple[LoadedProfile, ...]:
        """All of them, sorted by name. Raises TaskError with all that is wrong with any of them."""
        if self._all is None:
            self._all = load_profiles(self._folder)
        return self._all


def profiles_for(task: Task, submission: Submission, known: Profiles) -> tuple[LoadedProfile, ...]:
    """The profiles that the task names, or else every default one whose language fits the submission, sorted by name.

    Raises TaskError for an unknown profile or if none fits, SubmissionError if the submission has no entry point for a
    profile that the task names, or if the task names none and the submission could be in several languages.
    """
    if task.runtime_profiles is not None:
        named = tuple(known.named(name) for name in task.runtime_profiles)
        for profile in named:
            _entry(profile, submission)
        return named
    profiles = known.all()
    fitting = [profile for profile in profiles if _fits(profile, submission)]
    chosen = _of_one_language([profile for profile in fitting if profile.profile.default], submission)
    if not chosen:
        raise _nothing_fits(profiles, fitting, submission)
    return tuple(chosen)


def _of_one_language(fitting: Sequence[LoadedProfile], submission: Submission) -> Sequence[LoadedProfile]:
    """The profiles of the language that the submission is in. Where suffixes do not decide, a file that is an entry
    point by its name does: `main.py` beside `setup.sh` is Python. Raises SubmissionError where that does not decide
    either: a program run in the wrong language would be called false."""
    if len(_languages(fitting)) <= 1:
        return fitting
    paths = _paths(submission)
    by_name = [profile for profile in fitting if set(profile.profile.entry_points).intersection(paths)]
    if len(_languages(by_name)) == 1:
        return by_name
    could = ", ".join(f"{profile.profile.language} ({_entry(profile, submission)})" for profile in by_name or fitting)
    raise SubmissionError(
        f"{submission.name} could be a program in any of several languages: {could}",
        hint="name the profile in the task (runtime_profiles: [python]) or with -p",
    )


def _languages(profiles: Sequence[LoadedProfile]) -> set[str]:
    return {profile.profile.language for profile in profiles}


def _nothing_fits(
    profiles: Sequence[LoadedProfile], by_name_only: Sequence[LoadedProfile], submission: Submission
) -> TaskError:
    if by_name_only:
        names = ", ".join(profile.name for profile in by_name_only)
        return TaskError(
            f"the submission {submission.name} fits {names}, which is chosen by name only",
            hint=f"name it in the task (runtime_profiles: [{by_name_only[0].name}]) or with -p",
        )
    languages = ", ".join(sorted(_languages(profiles)))
    return TaskError(
        f"no runtime profile fits the submission {submission.name}: "
        + (f"its language is {submission.language}" if submission.language else "no file has a known suffix"),
        hint=f"name one in the task (runtime_profiles: [python]) or with -p; known languages: {languages}",
    )


def make_program(profile: LoadedProfile, in_force: ProfileInForce, submission: Submission) -> Program:
    """What a sandbox needs to run the submission under the profile."""
    entry = _entry(profile, submission)
    paths = _paths(submission)
    compile_command = profile.profile.compile_command(entry, paths)
    return Program(
        submission_digest=submission.digest,
        files=submission.files,
        entry=entry.encode("utf-8", "surrogateescape"),
        profile=in_force,
        compile_command=None if compile_command is None else _argv(compile_command),
        run_command=_argv(profile.profile.run_command(entry)),
        command_is_submission=profile.profile.command_is_submission,
    )


async def image_of(profile: LoadedProfile, sandbox: Sandbox, progress: Callable[[str], None]) -> ProfileInForce:
    """The profile with the image that it runs in. Raises PrerequisiteError if the image cannot be had."""
    return profile.in_force(await sandbox.image(image_source(profile), progress))


def image_source(profile: LoadedProfile) -> ImageSource:
    """Where the profile's image comes from."""
    return ImageSource(
        folder=profile.image_folder(),
        reference=profile.profile.image.reference,
        debian_packages=profile.profile.packages.debian,
        pypi_packages=profile.profile.packages.pypi,
    )


def _fits(profile: LoadedProfile, submission: Submission) -> bool:
    if submission.language is not None:
        if submission.language != profile.profile.language:
            return False
        return submission.entry is not None or profile.profile.entry_point(_paths(submission)) is not None
    if submission.entry is not None:
        return submission.entry.endswith(profile.profile.suffixes)
    return profile.profile.entry_point(_paths(submission)) is not None


def _entry(profile: LoadedProfile, submission: Submission) -> str:
    if submission.entry is not None:
        return submission.entry
    entry = profile.profile.entry_point(_paths(submission))
    if entry is None:
        suffixes = ", ".join(profile.profile.suffixes)
        wanted = " or ".join(profile.profile.entry_points) or f"exactly one file ending in {suffixes}"
        raise SubmissionError(
            f"{submission.name} has no entry point for the profile {profile.name}",
            hint=f"it needs {wanted}",
        )
    return entry


def _paths(submission: Submission) -> tuple[str, ...]:
    return tuple(file.path.decode("utf-8", "surrogateescape") for file in submission.files)


def _argv(command: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(part.encode("utf-8", "surrogateescape") for part in command)
