"""What the engine says of itself, of containers, images, events and builds, as values. Pure: no docker, no I/O."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from grader.core.reasons import ReasonCode

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

Raw = Mapping[str, Any]
"""An object of the engine's JSON."""

PODMAN = "Podman Engine"
"""What podman calls itself among the components of its version."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of the engine. Unknown texts are empty, unknown numbers 0."""

    version: str
    api_version: str
    name: str
    """`Docker Engine` or what else answers to the API, such as podman."""
    engine_id: str
    kernel: str
    architecture: str
    cpus: int
    memory_bytes: int
    cgroup_version: str
    runc: str
    runtimes: tuple[str, ...]
    security: tuple[str, ...]
    now_s: float | None
    """The engine's clock, seconds since 1970."""

    @property
    def is_podman(self) -> bool:
        """Whether it is podman behind its Docker-compatible socket."""
        return self.name == PODMAN


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """A container as a listing shows it."""

    container_id: str
    labels: Mapping[str, str]
    state: str
    """`created`, `running`, `exited`, ..."""
    created_s: float
    """By the engine's clock, seconds since 1970."""


@dataclass(frozen=True, slots=True)
class ContainerState:
    """The state of one container."""

    is_running: bool
    exit_code: int | None
    """None while it runs."""
    was_out_of_memory: bool
    error: str


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """An image, and what of it has to be undone in a box."""

    image_id: str
    tags: tuple[str, ...]
    labels: Mapping[str, str]
    volumes: tuple[str, ...]
    variables: tuple[str, ...]
    """Names of its environment variables."""
    architecture: str


@dataclass(frozen=True, slots=True)
class ContainerEvent:
    """What the engine says happened to a container: `create`, `start`, `oom`, `kill`, `die`, `destroy`."""

    container_id: str
    action: str
    time_ns: int


def engine_facts(info: Raw, version: Raw) -> EngineFacts:
    """From the answers of `info` and `version`."""
    components = {_text(component, "Name"): _text(component, "Version") for component in _list(version, "Components")}
    return EngineFacts(
        version=_text(version, "Version"),
        api_version=_text(version, "ApiVersion"),
        name=PODMAN if PODMAN in components else _text(_object(version, "Platform"), "Name") or "Docker Engine",
        engine_id=_text(info, "ID"),
        kernel=_text(info, "KernelVersion"),
        architecture=_text(info, "Architecture"),
        cpus=int(info.get("NCPU") or 0),
        memory_bytes=int(info.get("MemTotal") or 0),
        cgroup_version=_text(info, "CgroupVersion"),
        runc=components.get("runc", ""),
        runtimes=tuple(sorted(_object(info, "Runtimes"))),
        security=tuple(str(option) for option in _list(info, "SecurityOptions")),
        now_s=seconds_of(_text(info, "SystemTime")),
    )


def container_facts(entry: Raw) -> ContainerFacts:
    """From an entry of the listing of containers."""
    return ContainerFacts(
        _text(entry, "Id"), _labels(entry), _text(entry, "State").lower(), float(entry.get("Created") or 0)
    )


def container_state(found: Raw) -> ContainerState:
    """From the inspection of a container."""
    state = _object(found, "State")
    running = bool(state.get("Running"))
    return ContainerState(
        is_running=running,
        exit_code=None if running else state.get("ExitCode"),
        was_out_of_memory=bool(state.get("OOMKilled")),
        error=_text(state, "Error"),
    )


def image_facts(found: Raw) -> ImageFacts:
    """From the inspection of an image."""
    config = _object(found, "Config")
    return ImageFacts(
        image_id=_text(found, "Id"),
        tags=tuple(str(tag) for tag in _list(found, "RepoTags")),
        labels=_labels(config),
        volumes=tuple(sorted(_object(config, "Volumes"))),
        variables=tuple(str(entry).partition("=")[0] for entry in _list(config, "Env")),
        architecture=_text(found, "Architecture"),
    )


def listed_image(entry: Raw) -> ImageFacts:
    """From an entry of the listing of images, which knows no volumes, variables and architecture."""
    tags = tuple(str(tag) for tag in _list(entry, "RepoTags") if tag != "<none>:<none>")
    return ImageFacts(_text(entry, "Id"), tags, _labels(entry), (), (), "")


def container_event(event: Raw) -> ContainerEvent:
    """From an event; `exec_start: ...` and its like are cut at the colon."""
    action = _text(event, "Action").partition(":")[0]
    return ContainerEvent(_text(_object(event, "Actor"), "ID"), action, int(event.get("timeNano") or 0))


def seconds_of(text: str) -> float | None:
    """An RFC 3339 time with any number of decimals, as whole seconds since 1970; None if it is none."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)", text)
    if found is None:
        return None
    return datetime.datetime.fromisoformat(found[1] + found[2].replace("Z", "+00:00")).timestamp()


def code_of(said: str) -> ReasonCode | None:
    """The reason code of an engine's complaint; None if it is none of the known ones."""
    if "no space left on device" in said:
        return ReasonCode.HOST_DISK_FULL
    if any(words in said for words in ("No such image", "manifest unknown", "pull access denied", "no such image")):
        return ReasonCode.IMAGE_MISSING
    return None


class BuildLog:
    """Reads the answers of a build, one after the other."""

    def __init__(self) -> None:
        self.image_id: str | None = None
        """Set when the build has ended well."""
        self.failure: str | None = None
        """Why it failed, with the last lines before."""
        self.steps: list[str] = []
        """Images of the steps done, without the one that it starts from. After a failure they are left over."""
        self._lines: list[str] = []
        self._has_base = False
        self._is_reused = False

    def take(self, answer: Raw) -> list[str]:
        """Take an answer; the lines in it that people want to see: the steps. What they print is kept for a failure."""
        if answer.get("error") is not None:
            self.failure = "\n".join([*self._lines[-20:], str(answer["error"]).strip()])
            return []
        image = _object(answer, "aux").get("ID")
        if image is not None:
            self.image_id = str(image)
        shown: list[str] = []
        for line in _ANSI.sub("", _text(answer, "stream")).splitlines():
            if line.startswith(" ---> "):
                self._note_step(line[6:].strip())
            elif line.strip():
                self._lines = [*self._lines[-40:], line.rstrip()]
                self._is_reused = False
                if line.startswith("Step ") and " : LABEL grader." not in line:
                    shown.append(line.rstrip())
        return shown

    def _note_step(self, step: str) -> None:
        if step == "Using cache":
            self._is_reused = True
        elif re.fullmatch(r"[0-9a-f]{12,64}", step) is not None:
            # The first is what FROM names; one from the cache is another build's as well.
            if self._has_base and not self._is_reused:
                self.steps.append(step)
            self._has_base = True


def _object(raw: Raw, name: str) -> dict[str, Any]:
    value = raw.get(name)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(raw: Raw, name: str) -> list[Any]:
    value = raw.get(name)
    return cast("list[Any]", value) if isinstance(value, list) else []


def _text(raw: Raw, name: str) -> str:
    value = raw.get(name)
    return value if isinstance(value, str) else ""


def _labels(raw: Raw) -> dict[str, str]:
    return {str(name): str(value) for name, value in _object(raw, "Labels").items()}
