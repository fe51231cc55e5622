"""What a runtime profile says: language, entry point, image, commands, environment, limits, self tests.

A profile is trusted: it is chosen by name, and no task or submission can bring its own image or raise a limit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from grader.core.limits import LimitRange, Limits
from grader.core.plan import ProfileInForce
from grader.core.reasons import ReasonCode, ReasonKind

SUBMISSION_FOLDER = "/submission"
"""Where a submission's files (and what was compiled from them) are while it runs: read-only."""
WORK_FOLDER = "/work"
"""The current folder of every run and of the compile command."""
COMPILED_NAME = "a.out"
"""What `{out}` names: the compiled program, made in the work folder and kept in the submission folder."""

BASE_ENVIRONMENT = {
    "HOME": WORK_FOLDER,
    "LANG": "C.UTF-8",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "TZ": "UTC",
}
"""What every run gets, before the profile's and the case's own variables. Nothing is inherited from anywhere else."""

TRACE_PORT = 4318
"""Where a program's trace endpoint listens on its own loopback: OTLP's own port over HTTP."""
TRACE_ENVIRONMENT = {
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{TRACE_PORT}",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
"""What a run gets beside `BASE_ENVIRONMENT` if the profile has `traces: otlp`: OpenTelemetry's own variables."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_IMAGE_BY_DIGEST = re.compile(r"[a-z0-9][A-Za-z0-9._:/-]*@sha256:[0-9a-f]{64}")
_FOLDER_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")
_DEBIAN_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+(=[A-Za-z0-9.+:~-]+)?")
_PYPI_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(\[[A-Za-z0-9,._-]+\])?(==[A-Za-z0-9.!+_-]+)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProfileImage(_Part):
    """Which image: built from a folder of `Dockerfiles/`, or any image by its digest."""

    dockerfile: str | None = None
    """A folder of `Dockerfiles/`, beside the folder of the profile or in the package."""
    reference: str | None = None
    """`name@sha256:...`; a tag alone could be another image tomorrow."""

    @model_validator(mode="after")
    def _one_of_both(self) -> ProfileImage:
        if (self.dockerfile is None) == (self.reference is None):
            raise ValueError("say either dockerfile: NAME or reference: IMAGE@sha256:...")
        if self.dockerfile is not None and _FOLDER_NAME.fullmatch(self.dockerfile) is None:
            raise ValueError(f"{self.dockerfile!r} is not the name of a folder of Dockerfiles/")
        if self.reference is not None and _IMAGE_BY_DIGEST.fullmatch(self.reference) is None:
            raise ValueError(f"{self.reference!r} does not name an image by its digest (name@sha256:...)")
        return self


class ProfilePackages(_Part):
    """Packages installed into the image once. A version makes it repeatable: `numpy==1.26.4`, `bc=1.07.1-3`."""

    debian: tuple[str, ...] = ()
    pypi: tuple[str, ...] = ()

    @field_validator("debian")
    @classmethod
    def _debian_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _all_match(value, _DEBIAN_PACKAGE, "the name of a Debian package, with =VERSION at most")

    @field_validator("pypi")
    @classmethod
    def _pypi_names(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _all_match(value, _PYPI_PACKAGE, "the name of a PyPI package, with ==VERSION at most")


Argv = Annotated[tuple[str, ...], Field(min_length=1)]


class CompileCommand(_Part):
    """How a submission is compiled, once for all its runs, in limits of its own.

    It runs in the work folder among the submission's files. In `argv`, `{entry}` is the entry point, `{sources}` all
    files with the profile's suffixes, and `{out}` the program to make.
    """

    argv: Argv
    limits: Limits = Limits()

    @field_validator("argv")
    @classmethod
    def _placeholders(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _check_placeholders(value, {"entry", "sources", "out"})


class SelfTest(_Part):
    """A small program with the verdict that it must get; run by `grader runtimes test`."""

    name: str
    files: Annotated[dict[str, str], Field(min_length=1)]
    """File names and contents of the submission."""
    stdin: str = ""
    stdout: str | None = None
    """Exactly what is expected."""
    limits: Limits = Limits()
    verdict: bool
    reason: ReasonCode | None = None
    """For `verdict: false`, why."""

    @model_validator(mode="after")
    def _reason_fits(self) -> SelfTest:
        if (self.reason is None) == (not self.verdict):
            raise ValueError("a self test whose verdict is false has a reason, one whose verdict is true has none")
        if self.reason is not None and self.reason.kind is not ReasonKind.FALSE:
            raise ValueError(f"{self.reason.value} is not a reason for a false verdict")
        return self

    def case_data(self) -> dict[str, object]:
        """The case that this test is, as it would stand in a task file."""
        data: dict[str, object] = {"name": self.name, "stdin": self.stdin}
        if self.stdout is not None:
            data["stdout"] = {"equals": self.stdout}
        limits = self.limits.model_dump(exclude_none=True)
        return {**data, "limits": limits} if limits else data


class RuntimeProfile(_Part):
    """A runtime profile, as `runtimes/NAME.yaml` says it. Its name is the file's."""

    language: str
    """What a user names: `python`, `c`. Several profiles may have the same language."""
    description: str = ""
    default: Annotated[bool, Field(strict=True)] = True
    """Whether a task that names no profile runs programs of the language under this one too; `false`: only by name."""
    suffixes: Annotated[tuple[str, ...], Field(min_length=1)]
    """Endings of source files, with the dot."""
    entry_points: tuple[str, ...] = ()
    """Names of files that are the entry point when a submission has several files, the first found."""
    image: ProfileImage
    packages: ProfilePackages = ProfilePackages()
    compile: CompileCommand | None = None
    run: Argv
    """argv of a run; a case's arguments follow. `{entry}` is the entry point, `{out}` the compiled program."""
    environment: dict[str, str] = {}
    """Added to (and put before) the variables that every run gets."""
    limits: LimitRange = LimitRange()
    cpus: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    """CPUs of a box."""
    executable_folders: tuple[Literal["/tmp", "/work", "/dev/shm"], ...] = ()
    """Folders beside /submission from which programs may be executed."""
    runtime: str | None = None
    """Another OCI runtime of the engine, such as `runsc`."""
    traces: Literal["otlp"] | None = None
    """`otlp`: programs get an OTLP/HTTP endpoint on their own loopback, and what they send there is kept."""
    trusts_exporter: Annotated[bool, Field(strict=True)] = False
    """Whether a program that ended by itself has sent all that it did, as far as checks of the trace can tell."""
    self_tests: tuple[SelfTest, ...] = ()

    @field_validator("suffixes")
    @classmethod
    def _suffixes_have_dots(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return _all_match(value, re.compile(r"\.[A-Za-z0-9_+-]+"), "a suffix such as .py")

    @field_validator("environment")
    @classmethod
    def _variables(cls, value: dict[str, str]) -> dict[str, str]:
        _all_match(tuple(value), _VARIABLE, "the name of an environment variable")
        return value

    @model_validator(mode="after")
    def _commands_fit(self) -> RuntimeProfile:
        _check_placeholders(self.run, {"entry", "out"} if self.compile is not None else {"entry"})
        if self.compile is not None and not any("{out}" in part for part in self.compile.argv):
            raise ValueError("compile.argv does not mention {out}: nothing would be there to run")
        return self

    @model_validator(mode="after")
    def _trusts_what_is_there(self) -> RuntimeProfile:
        if self.trusts_exporter and self.traces is None:
            raise ValueError("trusts_exporter without traces: otlp: there is no exporter to trust")
        return self

    @model_validator(mode="after")
    def _self_tests_say_something(self) -> RuntimeProfile:
        if not self.self_tests:
            return self
        verdicts = {test.verdict for test in self.self_tests}
        time_reasons = {ReasonCode.CPU_TIME_EXCEEDED, ReasonCode.WALL_TIME_EXCEEDED}
        if verdicts != {True, False} or not any(test.reason in time_reasons for test in self.self_tests):
            raise ValueError("self_tests need one that is true, one that is false, and one that exceeds its time")
        return self

    def entry_point(self, paths: Sequence[str]) -> str | None:
        """The entry point among a submission's files (relative paths); None if it has none, or more than one could be.

        The only file with one of the suffixes; else the first of `entry_points` that is there.
        """
        sources = self.sources(paths)
        if len(sources) == 1:
            return sources[0]
        for name in self.entry_points:
            if name in paths:
                return name
        return None

    def sources(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The files with one of the profile's suffixes, sorted."""
        return tuple(sorted(path for path in paths if path.endswith(self.suffixes)))

    def compile_command(self, entry: str, paths: Sequence[str]) -> tuple[str, ...] | None:
        """argv of the compile command for a submission with these files; None if the profile does not compile."""
        if self.compile is None:
            return None
        # The leading ./ keeps a file called -x from being an option.
        names = {"entry": f"./{entry}", "out": f"./{COMPILED_NAME}"}
        return _filled(self.compile.argv, names, tuple(f"./{path}" for path in self.sources(paths)))

    def run_command(self, entry: str) -> tuple[str, ...]:
        """argv of a run, without a case's arguments."""
        return _filled(
            self.run, {"entry": f"{SUBMISSION_FOLDER}/{entry}", "out": f"{SUBMISSION_FOLDER}/{COMPILED_NAME}"}, ()
        )

    @property
    def command_is_submission(self) -> bool:
        """Whether what is executed is the submission's own file: that it cannot start is then the program's fault."""
        return self.run[0].startswith(("{entry}", "{out}"))

    def _unset(self) -> set[str]:
        """Fields that came later and say nothing: without them a body is what it was before they came."""
        return {"traces", "trusts_exporter"} if self.traces is None else set()

    def in_force(self, name: str, image_id: str) -> ProfileInForce:
        """What plan and record keep of this profile when it runs in the image with this id."""
        compile_limits = None
        if self.compile is not None:
            compile_limits = LimitRange(defaults=self.compile.limits).effective(Limits())
        return ProfileInForce(
            name=name,
            image_id=image_id,
            environment={**BASE_ENVIRONMENT, **(TRACE_ENVIRONMENT if self.traces else {}), **self.environment},
            limits=self.limits,
            compile_limits=compile_limits,
            body=self.model_dump(mode="json", exclude={"description", "default", "self_tests", *self._unset()}),
        )


def _all_match(values: tuple[str, ...], pattern: re.Pattern[str], what: str) -> tuple[str, ...]:
    for value in values:
        if pattern.fullmatch(value) is None:
            raise ValueError(f"{value!r} is not {what}")
    return values


def _check_placeholders(argv: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    for part in argv:
        for name in _PLACEHOLDER.findall(part):
            if name not in known:
                allowed = ", ".join(f"{{{one}}}" for one in sorted(known))
                raise ValueError(f"{part!r} names {{{name}}}; known here: {allowed}")
        if "{sources}" in part and part != "{sources}":
            raise ValueError(f"{part!r}: {{sources}} stands for several arguments, so it must be one by itself")
        if "\x00" in part:
            raise ValueError("an argument cannot contain NUL")
    return argv


def _filled(argv: tuple[str, ...], names: dict[str, str], sources: tuple[str, ...]) -> tuple[str, ...]:
    filled: list[str] = []
    for part in argv:
        if part == "{sources}":
            filled.extend(sources)
        else:
            filled.append(_PLACEHOLDER.sub(lambda found: names.get(found[1], found[0]), part))
    return tuple(filled)
