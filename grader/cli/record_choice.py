"""Which record a command keeps: `--record`, `--no-record`, or else a new one in `.grader`, which is then `latest`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader.errors import UsageError
from grader.store import DEFAULT_ROOT, new_record_folder, set_latest

LATEST = "latest"


@dataclass(frozen=True)
class RecordPlace:
    """Where a record is, and what a user types to name it."""

    folder: Path
    name: str

    def has_begun(self) -> None:
        """Let `latest` name the record, if that is its name. Raises PrerequisiteError if it cannot be written."""
        if self.name == LATEST:
            set_latest(DEFAULT_ROOT, self.folder)


@dataclass(frozen=True)
class RecordChoice:
    """What the command line says of the record."""

    folder: Path | None = None
    """None: a new one in `.grader`."""
    keeps_one: bool = True

    def check(self) -> None:
        """Raises UsageError for a folder of a record that is not to be kept."""
        if not self.keeps_one and self.folder is not None:
            raise UsageError("--record and --no-record contradict each other", hint="leave one of them out")

    def place(self, name: str) -> RecordPlace | None:
        """Where the record goes, or None if none is kept; a new folder is named after `name`, and made.

        Raises UsageError as `check` does, PrerequisiteError if the folder cannot be made.
        """
        self.check()
        if not self.keeps_one:
            return None
        if self.folder is not None:
            return RecordPlace(self.folder, str(self.folder))
        return RecordPlace(new_record_folder(DEFAULT_ROOT, name), LATEST)


NEW_RECORD = RecordChoice()
"""A new one in `.grader`: what is meant where nothing is said."""
