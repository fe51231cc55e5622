"""Limits of a run: what a case may ask, what a profile allows, and what is in force."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

NS_PER_S = 1_000_000_000

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|kB|KB|MB|GB)?\s*$")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
_GREATEST = 2**62
"""No limit may be larger: sums of limits must fit the kernel's signed 64-bit numbers."""


def parse_size(value: object) -> int:
    """A number of bytes from an integer or a text such as `256 MiB`. Raises ValueError for zero, negative, NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | str):
        raise ValueError(f"expected a number of bytes such as 1048576 or '64 MiB', not {value!r}")
    if isinstance(value, str):
        found = _SIZE.match(value)
        if found is None:
            raise ValueError(f"expected a number of bytes such as 1048576 or '64 MiB', not {value!r}")
        exact = Decimal(found[1]) * _UNITS[found[2] or "B"]
    else:
        _refuse_not_positive(value)
        exact = Decimal(str(value))
    if exact != int(exact):
        raise ValueError(f"{value!r} is not a whole number of bytes")
    _refuse_not_positive(exact)
    return int(exact)


def parse_seconds(value: object) -> float:
    """A positive number of seconds, at least a nanosecond. Raises ValueError for zero, negative, NaN, text."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"expected a number of seconds, not {value!r}")
    _refuse_not_positive(value)
    if nanoseconds(float(value)) < 1:
        raise ValueError(f"{value!r} s is less than a nanosecond")
    return float(value)


def parse_count(value: object) -> int:
    """A positive whole number. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"expected a whole number, not {value!r}")
    _refuse_not_positive(value)
    return value


def nanoseconds(seconds: float) -> int:
    """Seconds as integer nanoseconds, through the decimal that was written (0.1 s is exactly 100,000,000 ns)."""
    return int((Decimal(repr(seconds)) * NS_PER_S).to_integral_value())


def _refuse_not_positive(value: float | Decimal) -> None:
    if math.isnan(value) or math.isinf(value):
        raise ValueError(f"a limit must be a finite number, not {value}")
    if value <= 0:
        raise ValueError(f"a limit must be greater than 0, not {value}")
    if value > _GREATEST:
        raise ValueError(f"a limit of {value} is beyond anything that can be enforced")


Seconds = Annotated[float, BeforeValidator(parse_seconds)]
Size = Annotated[int, BeforeValidator(parse_size)]
Count = Annotated[int, BeforeValidator(parse_count)]


class Limits(BaseModel):
    """Limits as somebody writes them: each may be left out. Times in seconds, sizes in bytes (or text: `64 MiB`)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_time_s: Seconds | None = None
    """CPU time of the program and all its children, user and system together."""
    wall_time_s: Seconds | None = None
    """Time by the clock from start to the end of the main process."""
    memory_bytes: Size | None = None
    """Memory of all processes together, files in memory included."""
    processes: Count | None = None
    """Processes and threads at the same time."""
    stdout_bytes: Size | None = None
    """Standard output: the run is ended at one byte more. All of it is kept."""
    stderr_bytes: Size | None = None
    """Standard error: the run is ended at one byte more."""
    stderr_kept_bytes: Size | None = None
    """How much of standard error is kept as evidence; length and digest are of all of it."""
    file_size_bytes: Size | None = None
    """The largest file that the program may write."""
    disk_bytes: Size | None = None
    """All files of the run together."""
    files: Count | None = None
    """Files and directories that may exist at the same time."""
    output_files_bytes: Size | None = None
    """The largest output file that is kept as evidence; of a larger one only the size is known."""
    open_files: Count | None = None
    """Open file descriptors of one process."""
    stack_bytes: Size | None = None
    """Stack of the main thread."""

    def over(self, base: Limits) -> Limits:
        """These limits, with those of `base` where these say nothing."""
        return Limits.model_construct(
            **{name: mine if mine is not None else theirs for (name, mine), (_, theirs) in zip(self, base, strict=True)}
        )


BUILT_IN_DEFAULTS = Limits(
    cpu_time_s=10,
    memory_bytes=256 * 2**20,
    processes=64,
    stdout_bytes=16 * 2**20,
    stderr_bytes=16 * 2**20,
    stderr_kept_bytes=64 * 2**10,
    file_size_bytes=16 * 2**20,
    disk_bytes=64 * 2**20,
    files=4096,
    output_files_bytes=16 * 2**20,
    open_files=256,
    stack_bytes=64 * 2**20,
)
"""What holds where neither the case, the task nor the profile says anything. Wall time follows from CPU time."""


class EffectiveLimits(BaseModel):
    """The limits in force for one run: all of them, in integer nanoseconds and bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cpu_time_ns: int
    wall_time_ns: int
    memory_bytes: int
    processes: int
    stdout_bytes: int
    stderr_bytes: int
    stderr_kept_bytes: int
    file_size_bytes: int
    disk_bytes: int
    files: int
    output_files_bytes: int
    open_files: int
    stack_bytes: int


class LimitRange(BaseModel):
    """What a profile says of limits: the default of each, and the most a case may ask for."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    defaults: Limits = Limits()
    maximum: Limits = Limits()
    """Where it says nothing, the default is the maximum: a case may then only lower it."""

    def refusals(self, asked: Limits) -> tuple[str, ...]:
        """Why the asked limits are refused: a sentence for each that is above the maximum. Empty if none is."""
        return tuple(
            f"{name} {most_named(value)} is above the profile's maximum of {most_named(most)}"
            for (name, value), (_, most) in zip(asked, self._ceiling(), strict=True)
            if value is not None and most is not None and value > most
        )

    def effective(self, asked: Limits) -> EffectiveLimits:
        """The limits in force when `asked` is laid over the defaults.

        Only a CPU limit given: the wall limit is 3 x CPU + 2 s, at most the maximum. Only a wall limit given: the CPU
        limit stays. Raises ValueError if a limit is above the maximum.
        """
        refused = self.refusals(asked)
        if refused:
            raise ValueError("; ".join(refused))
        limits = asked.over(self.defaults).over(BUILT_IN_DEFAULTS)
        cpu_time_s = _given(limits.cpu_time_s)
        wall_time_s = asked.wall_time_s
        if wall_time_s is None and asked.cpu_time_s is None:
            wall_time_s = self.defaults.wall_time_s
        if wall_time_s is None:
            wall_time_s = self._derived_wall_time_s(cpu_time_s)
        sizes = {name: value for name, value in limits if name in EffectiveLimits.model_fields and value is not None}
        return EffectiveLimits(cpu_time_ns=nanoseconds(cpu_time_s), wall_time_ns=nanoseconds(wall_time_s), **sizes)

    def _ceiling(self) -> Limits:
        ceiling = self.maximum.over(self.defaults).over(BUILT_IN_DEFAULTS)
        if ceiling.wall_time_s is None:
            ceiling = ceiling.model_copy(update={"wall_time_s": _wall_of(_given(ceiling.cpu_time_s))})
        return ceiling

    def _derived_wall_time_s(self, cpu_time_s: float) -> float:
        return min(_wall_of(cpu_time_s), _given(self._ceiling().wall_time_s))


def most_named(value: float) -> str:
    """A limit's number as a person writes it: no trailing zeros."""
    return f"{value:g}" if isinstance(value, float) else f"{value:,}"


def _wall_of(cpu_time_s: float) -> float:
    """A generous wall limit for a CPU limit: a busy machine stretches wall time several times over."""
    return 3 * cpu_time_s + 2


def _given(value: float | None) -> float:
    if value is None:
        raise ValueError("a limit that always has a default is missing")
    return value
