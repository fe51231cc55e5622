"""Which part of a task to run."""

from __future__ import annotations

from dataclasses import dataclass

from grader.core.expectation import Task
from grader.core.selection import Selection, select
from grader.errors import UsageError


@dataclass(frozen=True)
class Choice:
    """Which part of a task to run; the defaults are all of it, as it stands."""

    cases: str | None = None
    repetitions: int | None = None
    profiles: tuple[str, ...] | None = None

    @property
    def is_everything(self) -> bool:
        """Whether nothing was chosen."""
        return self == Choice()

    def of(self, task: Task) -> tuple[Task, Selection | None]:
        """The effective task, and how much less it asks than the whole one; None: nothing was chosen.

        Raises UsageError for what cannot be chosen of this task.
        """
        if self.is_everything:
            return task, None
        try:
            return select(task, cases=self.cases, repetitions=self.repetitions, profiles=self.profiles)
        except ValueError as error:
            raise UsageError(str(error)) from error


EVERYTHING = Choice()
