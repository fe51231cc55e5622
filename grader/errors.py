"""The errors that grader raises, in two families that are never mixed.

*The caller's fault* (usage, task, submission, record, prerequisite): raised before anything ran, with the place, what
is wrong, and the mend. *Our own failure during a run* (sandbox, trace, judge): never leaves a run; the runner turns it
into a missing run with a reason code. What the *program* did is no error at all: it is an observation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, order=True)
class Place:
    """Where something stands: a file (or any name), and a line and column counted from 1."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with an input: where, what, and what would mend it."""

    message: str
    where: Place | None = None
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where is not None else self.message
        return f"{text}\n  mend: {self.hint}" if self.hint is not None else text


class GraderError(Exception):
    """Base of every error that grader raises on purpose.

    `code` is the reason code (kind E or M of the closed list), `hint` the mend, `where` the place.
    """

    default_code = "usage"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, where: Place | None = None
    ) -> None:
        self.message = message
        self.code = code if code is not None else self.default_code
        self.hint = hint
        self.where = where
        super().__init__(str(Problem(message, where, hint)))


class UsageError(GraderError):
    """A call or a command line that cannot be carried out as it was given."""

    default_code = "usage"


class TaskError(GraderError):
    """A task that is not valid. `problems` has all of them, not only the first."""

    default_code = "task.invalid"

    def __init__(
        self,
        problems: str | Problem | Iterable[Problem],
        *,
        code: str | None = None,
        hint: str | None = None,
        where: Place | None = None,
    ) -> None:
        if isinstance(problems, str):
            problems = [Problem(problems, where, hint)]
        elif isinstance(problems, Problem):
            problems = [problems]
        self.problems: tuple[Problem, ...] = tuple(problems)
        first = self.problems[0]
        super().__init__(first.message, code=code, hint=first.hint, where=first.where)
        self.args = ("\n".join(str(problem) for problem in self.problems),)


class SubmissionError(GraderError):
    """A submission that was refused before any of it ran (a bad archive, a link that leaves it, too large)."""

    default_code = "submission.refused"


class RecordError(GraderError):
    """A record that cannot be read, or does not answer what was asked of it."""

    default_code = "record.corrupt"


class PrerequisiteError(GraderError):
    """Something this machine needs is missing: the engine, an image, a runtime. Nothing was run."""

    default_code = "prerequisite"


class SandboxError(GraderError):
    """The sandbox failed us. Becomes a missing run; never says anything about the program."""

    default_code = "box.lost"


class TraceError(GraderError):
    """Reading or capturing a trace failed. Becomes a reason why the evidence is incomplete."""

    default_code = "evidence.incomplete"


class JudgeError(GraderError):
    """A judge could not be asked or gave no usable answer. Becomes an undetermined verdict."""

    default_code = "judge.unavailable"


def first_error(error: BaseException) -> BaseException:
    """The first error of a group that is no group itself."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
