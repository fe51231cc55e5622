"""Submissions: the programs under test, read from a text, a file, a folder or an archive.

Whatever the form, the files are the same, and so is the digest: a file, a folder that holds only that file, and an
archive of that folder are one submission. What is read is hostile; everything doubtful is refused before any of it
runs, with the place, what is wrong, and the mend.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from grader.core.submission_files import SubmissionFile, submission_digest
from grader.core.traces.content import storable
from grader.submission.collecting import Collector, SubmissionLimits
from grader.submission.folders import read_file, read_folder, with_opened
from grader.submission.tar_archives import read_tar
from grader.submission.zip_archives import read_zip

__all__ = ["Submission", "SubmissionFile", "SubmissionLimits"]

_SUFFIXES = {
    "bash": ".sh",
    "c": ".c",
    "cpp": ".cpp",
    "go": ".go",
    "java": ".java",
    "lua": ".lua",
    "node": ".js",
    "perl": ".pl",
    "php": ".php",
    "python": ".py",
    "ruby": ".rb",
    "rust": ".rs",
}
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz")


@dataclass(frozen=True)
class Submission:
    """A program under test. Make one with `from_source`, `from_files` or `from_path`.

    Raises SubmissionError for files whose names cannot stand beside each other in one folder.
    """

    files: tuple[SubmissionFile, ...]
    """All files, sorted by path; at least one."""
    name: str
    """For people and reports; no part of the digest."""
    language: str | None = None
    """The language, if it is known; None: it follows from the files' suffixes."""
    entry: str | None = None
    """Path of the entry point, if it is known; None: the runtime profile's rule finds it."""
    ignored: tuple[str, ...] = ()
    """What was found and left out, in words: litter of desktops and version control, folders without files."""

    def __post_init__(self) -> None:
        """Names are checked however the submission came about; its own is made one that a record can hold."""
        object.__setattr__(self, "name", storable(self.name))
        collector = Collector(self.name, SubmissionLimits())
        for file in self.files:
            collector.claim(file.path)
        if not self.files:
            raise collector.refused("there is no file in it", "a submission has at least one file")
        if self.entry is not None and _as_path(self.entry) not in {file.path for file in self.files}:
            raise collector.refused(f"its entry point {self.entry!r} is not among its files", "name one of its files")

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) over path, executable bit and bytes of every file, sorted by path."""
        return submission_digest(self.files)

    @classmethod
    def from_source(
        cls, text: str | bytes, *, language: str = "python", name: str | None = None, path: str | None = None
    ) -> Submission:
        """A program of one source file. A `str` becomes UTF-8, line ends as they are.

        `path` is the file's name; without it `main` and the language's usual suffix (`main.py`). The name of the
        submission is `name`, or that of the file.
        """
        path = path if path is not None else f"main{_SUFFIXES.get(language, '')}"
        return cls.from_files({path: text}, language=language, name=name if name is not None else path, entry=path)

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, str | bytes],
        *,
        name: str = "submission",
        language: str | None = None,
        entry: str | None = None,
    ) -> Submission:
        """A program of several files, by path inside the submission. A `str` becomes UTF-8; none is executable."""
        collector = Collector(name, SubmissionLimits())
        for path, content in files.items():
            data = collector.encoded(content, path) if isinstance(content, str) else content
            collector.add(collector.encoded(path, path), data, executable=False)
        return cls(collector.finish(), name, language, entry)

    @classmethod
    def from_path(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        language: str | None = None,
        entry: str | None = None,
        limits: SubmissionLimits | None = None,
    ) -> Submission:
        """A submission from a file, a folder, or an archive (.zip, .tar, .tar.gz, .tgz).

        An archive whose only content is a folder of the archive's own name (`alice.zip` with `alice/...`) stands for
        that folder. Links are refused everywhere, special files too; only the path itself may be a link.

        Raises SubmissionError for anything that is refused, cannot be read, or does not exist.
        """
        source = Path(path)
        shown = name if name is not None else source.name or source.absolute().name or str(source)
        kind = _archive_kind(source)
        collector = Collector(str(source), limits if limits is not None else SubmissionLimits())

        def read(file: BinaryIO, size: int) -> None:
            if kind == ".zip":
                read_zip(file, size, collector)
            elif kind is not None:
                read_tar(file, size, collector, compressed=kind != ".tar")
            else:
                read_file(file, os.fsencode(source.name), collector)

        wrapper: bytes | None = None
        if not with_opened(source, collector, read):
            read_folder(source, collector)
        elif kind is not None:
            wrapper = os.fsencode(source.name[: -len(kind)])
        return cls(collector.finish(wrapper), shown, language, entry, tuple(collector.ignored))


def _as_path(entry: str) -> bytes:
    """The path as bytes; half a character that stands for no byte becomes text that is the path of no file."""
    try:
        return entry.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return storable(entry).encode()


def _archive_kind(path: Path) -> str | None:
    name = path.name.lower()
    return next((suffix for suffix in _ARCHIVES if name.endswith(suffix) and name != suffix), None)
