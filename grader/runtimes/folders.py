"""Where runtime profiles are found: a folder that was named, the user's own, the package's. Never the current folder or
the task's: a task must not be able to bring its own profile."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from grader.core.plan import ProfileInForce
from grader.errors import Place, Problem, TaskError, UsageError
from grader.runtimes.profile import RuntimeProfile
from grader.yaml_source import load

_PACKAGE = Path(__file__).resolve().parent.parent
LARGEST_PROFILE_BYTES = 1 << 20
_SUFFIX = ".yaml"


@dataclass(frozen=True)
class LoadedProfile:
    """A profile with its name, the file it came from, and where the image folder it names may be."""

    name: str
    profile: RuntimeProfile
    file: Path

    def image_folder(self) -> Path | None:
        """The folder with the Dockerfile that the profile names: beside its folder `runtimes`, else the package's.

        None if the profile names an image by digest. Raises TaskError if there is no such folder.
        """
        name = self.profile.image.dockerfile
        if name is None:
            return None
        for folder in self._image_folders():
            if (folder / name / "Dockerfile").is_file():
                return folder / name
        raise TaskError(
            f"there is no Dockerfiles/{name}/Dockerfile for the profile {self.name}",
            where=Place(str(self.file)),
            hint=f"make {self._image_folders()[0] / name / 'Dockerfile'}",
        )

    def _image_folders(self) -> tuple[Path, ...]:
        beside = self.file.parent.parent if self.file.parent.name == "runtimes" else self.file.parent
        return (beside / "Dockerfiles", data_folder("Dockerfiles"))

    def in_force(self, image_id: str) -> ProfileInForce:
        """What plan and record keep of this profile when it runs in the image with this id."""
        return self.profile.in_force(self.name, image_id)


def data_folder(name: str) -> Path:
    """`runtimes` or `Dockerfiles` as they came with grader: of the checkout, or inside the installed package."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / name).is_dir():
        return checkout / name
    return _PACKAGE / "_data" / name


def profile_folders(named: Path | None = None) -> tuple[Path, ...]:
    """The folders with profiles, the first to look in first. Raises UsageError if the named one is no folder."""
    if named is not None and not named.is_dir():
        raise UsageError(f"{named} is not a folder with runtime profiles", hint="name a folder with NAME.yaml files")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    folders = [Path(config) / "grader" / "runtimes", data_folder("runtimes")]
    return tuple(folder for folder in ([named] if named is not None else []) + folders if folder.is_dir())


def available(named: Path | None = None) -> Mapping[str, Path]:
    """Names and files of all profiles, sorted by name. A profile hides those of the same name in later folders."""
    found: dict[str, Path] = {}
    for folder in profile_folders(named):
        # Asked for with every submission: Path.glob would cost more than all the rest of it.
        for file in sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX)):
            found.setdefault(file.removesuffix(_SUFFIX), folder / file)
    return dict(sorted(found.items()))


def find_profile(name: str, named: Path | None = None) -> LoadedProfile:
    """The profile of this name. Raises TaskError: `profile.unknown`, or all that is wrong with its file."""
    files = available(named)
    if name not in files:
        known = ", ".join(files) or "none at all"
        raise TaskError(
            f"no runtime profile is called {name!r}; there are: {known}", code="profile.unknown",
            hint="grader runtimes list shows where they are looked for",
        )  # fmt: skip
    return load_profile(files[name])


def load_profiles(named: Path | None = None) -> tuple[LoadedProfile, ...]:
    """All profiles, sorted by name. Raises TaskError with all that is wrong with any of them."""
    loaded: list[LoadedProfile] = []
    problems: list[Problem] = []
    for file in available(named).values():
        try:
            loaded.append(load_profile(file))
        except TaskError as error:
            problems.extend(error.problems)
    if problems:
        raise TaskError(problems)
    return tuple(loaded)


def load_profile(file: Path) -> LoadedProfile:
    """The profile in a file. Raises TaskError with all that is wrong, each with its line and column."""
    try:
        if file.stat().st_size > LARGEST_PROFILE_BYTES:
            raise TaskError("larger than 1 MiB; this is no profile", where=Place(str(file)))
        content = file.read_bytes()
    except OSError as error:
        raise TaskError(f"cannot be read: {error.strerror}", where=Place(str(file))) from error
    return _parsed(file, content)


@functools.lru_cache(maxsize=256)
def _parsed(file: Path, content: bytes) -> LoadedProfile:
    """Every submission asks for all profiles, and they hardly ever change: each content is looked at once."""
    document = load(content, str(file))
    if not isinstance(document.value, dict):
        raise TaskError("a profile is a mapping: language, suffixes, image, run, ...", where=document.place())
    try:
        profile = RuntimeProfile.model_validate(document.value)
    except ValidationError as error:
        raise TaskError(document.problems(error)) from error
    return LoadedProfile(file.stem, profile, file)
