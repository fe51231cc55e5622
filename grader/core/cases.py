"""`ProgramBehaves`: what a program is given, and what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator, model_validator

from grader.core.bytes_field import Bytes, plain_bytes
from grader.core.conditions import Condition, register_condition
from grader.core.limits import Limits
from grader.core.matching import AnyMatcher
from grader.core.reasons import ReasonCode

_MOST_NAME_BYTES = 1023
_MOST_NAME_PARTS = 32
_MOST_PART_BYTES = 255
"""What the protocol between grader and a box takes (grader/sandbox/supervisor/PROTOCOL.md)."""
_MOST_OUTPUT_FILES = 256
_MOST_STRING_BYTES = 131_071
"""The kernel's MAX_ARG_STRLEN without the final NUL: of one argument, or one variable with its name."""
_MOST_STRINGS_BYTES = 1_900_000
"""Of all arguments and variables: 2 MiB (the kernel's, for a stack of 8 MiB), less room for command and profile."""
_STRING_COST_BYTES = 9
"""What each string costs beside its bytes: its NUL and a pointer."""


def check_relative_path(name: bytes) -> bytes:
    """A relative path that stays inside its folder. Raises ValueError for absolute, empty, `..`, NUL, or too long."""
    if not name or b"\x00" in name:
        raise ValueError("a file name must not be empty or contain NUL")
    if name.startswith(b"/"):
        raise ValueError(f"{name!r} is absolute; files are named relative to the work folder")
    parts = name.split(b"/")
    if any(part in {b"", b".", b".."} for part in parts):
        raise ValueError(f"{name!r} must not contain empty parts, '.' or '..'")
    if len(parts) > _MOST_NAME_PARTS:
        raise ValueError(f"a file name may be {_MOST_NAME_PARTS} parts deep, not {len(parts)}")
    if len(name) > _MOST_NAME_BYTES or any(len(part) > _MOST_PART_BYTES for part in parts):
        raise ValueError("a file name may have 255 bytes a part and 1,023 in all")
    return name


class InputFile(BaseModel):
    """A file that is in the work folder before the program starts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Bytes
    content: Bytes
    executable: bool = False

    _name_is_relative = field_validator("name")(check_relative_path)


class OutputFile(BaseModel):
    """A file that the program must leave in its work folder, and what is expected of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Bytes
    expected: AnyMatcher

    _name_is_relative = field_validator("name")(check_relative_path)


def _listed(value: object, content: str) -> object:
    """`{name: content}` as a list of entries; a list (for names that are not text) as it is."""
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return [{"name": name, content: item} for name, item in entries.items()]
    return value


def _input_files(value: object) -> object:
    return _listed(value, "content")


def _output_files(value: object) -> object:
    return _listed(value, "expected")


def _plain_input_files(files: tuple[InputFile, ...]) -> object:
    names = [plain_bytes(file.name) for file in files]
    if all(isinstance(name, str) for name in names) and not any(file.executable for file in files):
        return {name: plain_bytes(file.content) for name, file in zip(names, files, strict=True)}
    return [file.model_dump(mode="json", exclude_defaults=True) for file in files]


def _plain_output_files(files: tuple[OutputFile, ...]) -> object:
    names = [plain_bytes(file.name) for file in files]
    if all(isinstance(name, str) for name in names):
        return {name: file.expected.to_plain() for name, file in zip(names, files, strict=True)}
    return [file.model_dump(mode="json", exclude_defaults=True) for file in files]


def _exit_codes(value: object) -> object:
    """0, [0, 1] or `any` (None inside: every code is allowed)."""
    if value == "any":
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    return value


def _plain_exit_codes(codes: tuple[int, ...] | None) -> object:
    if codes is None:
        return "any"
    return codes[0] if len(codes) == 1 else list(codes)


ExitCode = Annotated[int, Field(ge=0, le=255, strict=True)]


class ProgramCase(BaseModel):
    """One invocation of the program and what is expected of it.

    Without any expectation of its output it still expects that the program ends by itself with an allowed exit code.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    arguments: tuple[Bytes, ...] = ()
    stdin: Bytes = b""
    environment: dict[str, Bytes] = {}
    files: Annotated[tuple[InputFile, ...], BeforeValidator(_input_files), PlainSerializer(_plain_input_files)] = ()
    stdout: AnyMatcher | None = None
    stderr: AnyMatcher | None = None
    exit_code: Annotated[
        tuple[ExitCode, ...] | None, BeforeValidator(_exit_codes), PlainSerializer(_plain_exit_codes)
    ] = (0,)
    """The exit codes that are allowed; None (written `any`) allows all."""
    output_files: Annotated[
        tuple[OutputFile, ...], BeforeValidator(_output_files), PlainSerializer(_plain_output_files)
    ] = ()
    limits: Limits = Limits()
    """May only lower the profile's maxima."""

    @field_validator("arguments")
    @classmethod
    def _arguments_have_no_nul(cls, value: tuple[bytes, ...]) -> tuple[bytes, ...]:
        if any(b"\x00" in argument for argument in value):
            raise ValueError("an argument cannot contain NUL: the kernel ends it there")
        longest = max((len(argument) for argument in value), default=0)
        if longest > _MOST_STRING_BYTES:
            raise ValueError(f"an argument of {longest:,} bytes: the kernel takes {_MOST_STRING_BYTES:,}")
        return value

    @field_validator("environment")
    @classmethod
    def _environment_is_possible(cls, value: dict[str, bytes]) -> dict[str, bytes]:
        for name, content in value.items():
            if not name or "=" in name or "\x00" in name or b"\x00" in content:
                raise ValueError(f"environment variable {name!r}: a name has no '=' and neither part has NUL")
            size = len(name.encode()) + 1 + len(content)
            if size > _MOST_STRING_BYTES:
                raise ValueError(
                    f"environment variable {name!r}: the kernel takes {_MOST_STRING_BYTES:,} bytes with its name"
                )
        return value

    @field_validator("exit_code")
    @classmethod
    def _some_exit_code(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and len(value) == 0:
            raise ValueError("an empty list of exit codes allows none; write any to allow all")
        return value

    @field_validator("output_files")
    @classmethod
    def _not_too_many_output_files(cls, value: tuple[OutputFile, ...]) -> tuple[OutputFile, ...]:
        if len(value) > _MOST_OUTPUT_FILES:
            raise ValueError(f"{len(value)} output files: at most {_MOST_OUTPUT_FILES} are read back from a run")
        return value

    @model_validator(mode="after")
    def _strings_fit(self) -> ProgramCase:
        """What no kernel would take is the task's mistake, and must not become a program that cannot be started."""
        sizes = [len(argument) for argument in self.arguments]
        sizes += [len(name.encode()) + 1 + len(value) for name, value in self.environment.items()]
        size = sum(sizes) + _STRING_COST_BYTES * len(sizes)
        if size > _MOST_STRINGS_BYTES:
            most = f"{_MOST_STRINGS_BYTES:,}"
            raise ValueError(f"arguments and environment take {size:,} bytes, more than {most}: use stdin or files")
        return self

    @model_validator(mode="after")
    def _names_are_distinct(self) -> ProgramCase:
        for kind, names in (
            ("files", [file.name for file in self.files]),
            ("output_files", [file.name for file in self.output_files]),
        ):
            if len(set(names)) != len(names):
                raise ValueError(f"{kind}: a file is named twice")
        names = {file.name for file in self.files}
        for name in names:
            parts = name.split(b"/")
            if any(b"/".join(parts[:depth]) in names for depth in range(1, len(parts))):
                raise ValueError(f"files: {name!r} is in a folder that is a file")
        return self


MOST_REPETITIONS = 10_000
"""Of a case under a profile."""


def _repetitions(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"repetitions is a whole number, at least 1, not {value!r}")
    return value


@register_condition
class ProgramBehaves(Condition):
    """True when every case is, in every repetition under every profile.

    `repetitions`: how often each case runs under each profile (at least 1); runs that disagree leave it undetermined.
    """

    condition_type: ClassVar[str] = "program_behaves"
    cases: tuple[ProgramCase, ...] = Field(min_length=1)
    repetitions: Annotated[int, BeforeValidator(_repetitions), Field(ge=1, le=MOST_REPETITIONS)] = 1

    @property
    def code_if_negated(self) -> ReasonCode:
        """That of what its cases look at, as for a `not` inside a matcher; of several the first, always the ending."""
        if any(case.stdout is not None for case in self.cases):
            return ReasonCode.STDOUT_DIFFERS
        if any(case.stderr is not None for case in self.cases):
            return ReasonCode.STDERR_DIFFERS
        if any(case.output_files for case in self.cases):
            return ReasonCode.FILE_DIFFERS
        return ReasonCode.EXIT_CODE
