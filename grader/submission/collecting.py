"""Collects a submission's files, whatever they come from, and refuses those that cannot stand together.

Every name is checked before anything of the file is read; sizes are counted as they are read, not as they are
declared. Litter (`__MACOSX`, `._*` and `.DS_Store` of macOS, `.git`) is left out, and said to be.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from grader.core.cases import check_relative_path
from grader.core.submission_files import SubmissionFile
from grader.errors import Place, SubmissionError

_LITTER = {b".git", b".DS_Store"}
_MOST_IGNORED_NAMED = 20


@dataclass(frozen=True, slots=True)
class SubmissionLimits:
    """How large a submission may be."""

    total_bytes: int = 64 * 2**20
    """All files together, unpacked."""
    files: int = 4096
    """Files and folders, those that are left out among them."""
    depth: int = 32
    """Parts of a path."""
    archive_ratio: int = 250
    """How many times an archive may grow when it is unpacked, if it grows beyond `unsuspected_bytes`."""
    unsuspected_bytes: int = 8 * 2**20


class Collector:
    """Takes the files of one submission and keeps count. `source` is what the user named, for messages."""

    def __init__(self, source: str, limits: SubmissionLimits) -> None:
        self.limits = limits
        self.ignored: list[str] = []
        self._source = source
        self._files: list[SubmissionFile] = []
        self._total_bytes = 0
        self._entries = 0
        self._file_paths: set[bytes] = set()
        self._folders: set[bytes] = set()
        self._noted_folders: set[bytes] = set()
        self._spelled: dict[str, bytes] = {}
        self._not_named = 0

    @property
    def bytes_left(self) -> int:
        """How many bytes the next file may still have."""
        return self.limits.total_bytes - self._total_bytes

    def refused(self, what: str, mend: str, *, name: bytes | None = None) -> SubmissionError:
        """The error for a submission that is refused: what is wrong (with which of its files), and the mend."""
        message = what if name is None else f"{shown(name)} {what}"
        return SubmissionError(message, hint=mend, where=Place(self._source))

    def encoded(self, text: str, path: str) -> bytes:
        """A text as UTF-8. Raises SubmissionError for lone surrogates, which no file can hold."""
        try:
            return text.encode()
        except UnicodeEncodeError as error:
            raise self.refused(f"{path!r} is not valid Unicode at character {error.start}", "give bytes") from error

    def enter(self, name: bytes) -> bytes | None:
        """The path of an entry that was found, to be read next; None for litter, which is left out.

        Raises SubmissionError for a name that is not one, and for too many entries.
        """
        self._entries += 1
        if self._entries > self.limits.files:
            most = f"{self.limits.files:,}"
            raise self.refused(f"has more than {most} files and folders", "hand in the program's own files only")
        path = self._checked(name)
        parts = path.split(b"/")
        if parts[0] == b"__MACOSX" or any(part in _LITTER or part.startswith(b"._") for part in parts):
            self._ignore(f"{shown(path)}: litter")
            return None
        return path

    def enter_folder(self, name: bytes) -> bool:
        """Whether a folder that was found is to be looked into. It is kept only through the files in it."""
        path = self.enter(name)
        if path is None:
            return False
        self._claim_folders(path + b"/x")
        self._noted_folders.add(path)
        return True

    def claim(self, path: bytes) -> None:
        """Take a path for a file. Raises SubmissionError if it is no valid path or clashes with another."""
        self._checked(path)
        if path in self._file_paths:
            raise self.refused("is there twice", "keep one of them", name=path)
        if path in self._folders:
            raise self.refused("is both a file and a folder", "rename one of them", name=path)
        self._claim_folders(path)
        self._claim_spelling(path)
        self._file_paths.add(path)

    def add(self, path: bytes, content: bytes, *, executable: bool) -> None:
        """Take a file. Raises SubmissionError if its path clashes or the whole grows too large."""
        self.claim(path)
        if len(self._files) >= self.limits.files:
            raise self.refused(f"has more than {self.limits.files:,} files", "hand in the program's own files only")
        if len(content) > self.bytes_left:
            raise self.too_large()
        self._total_bytes += len(content)
        self._files.append(SubmissionFile(path, content, executable))

    def too_large(self) -> SubmissionError:
        """The error for a submission beyond the limit on its size."""
        most = f"{self.limits.total_bytes:,}"
        return self.refused(f"is larger than {most} bytes when unpacked", "leave out what the program does not need")

    def check_growth(self, unpacked_bytes: int, archive_bytes: int) -> None:
        """Raises SubmissionError for an archive that grows too much when it is unpacked."""
        if (
            unpacked_bytes > self.limits.unsuspected_bytes
            and unpacked_bytes > self.limits.archive_ratio * archive_bytes
        ):
            grown = f"more than {self.limits.archive_ratio} times its size"
            raise self.refused(f"grows to {grown} when unpacked", "hand in the folder itself, not the archive")

    def finish(self, wrapper: bytes | None = None) -> tuple[SubmissionFile, ...]:
        """All files, sorted by path; without the folder `wrapper` if everything is in it. Raises SubmissionError."""
        if not self._files:
            raise self.refused("there is no file in it", "a submission has at least one file")
        for folder in sorted(self._noted_folders - self._folders_of_files()):
            self._ignore(f"{shown(folder)}: a folder without files")
        if self._not_named:
            self.ignored.append(f"and {self._not_named} more")
            self._not_named = 0
        files = self._files
        prefix = wrapper + b"/" if wrapper else b""
        if prefix and all(file.path.startswith(prefix) for file in files):
            files = [SubmissionFile(f.path[len(prefix) :], f.content, f.executable) for f in files]
        return tuple(sorted(files, key=lambda file: file.path))

    def _folders_of_files(self) -> set[bytes]:
        return {folder for path in self._file_paths for folder in _parents(path)}

    def _checked(self, name: bytes) -> bytes:
        try:
            check_relative_path(name)
        except ValueError as error:
            raise self.refused(f"has a file whose name is refused: {error}", "rename the file") from error
        if b"\\" in name:
            raise self.refused("has a backslash in its name", "separate folders by /", name=name)
        if name.count(b"/") >= self.limits.depth:
            raise self.refused(f"is more than {self.limits.depth} folders deep", "flatten the folders", name=name)
        return name

    def _claim_folders(self, path: bytes) -> None:
        for folder in _parents(path):
            if folder in self._file_paths:
                raise self.refused("is both a file and a folder", "rename one of them", name=folder)
            if folder not in self._folders:
                self._claim_spelling(folder)
                self._folders.add(folder)

    def _claim_spelling(self, path: bytes) -> None:
        """Two names that some file systems take for one would give a program another meaning there."""
        text = path.decode("utf-8", "surrogateescape")
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
        known = self._spelled.setdefault(folded, path)
        if known != path:
            clash = f"differs from {shown(known)} only in upper and lower case or in how its letters are composed"
            raise self.refused(clash, "rename one of them", name=path)

    def _ignore(self, what: str) -> None:
        if len(self.ignored) < _MOST_IGNORED_NAMED:
            self.ignored.append(what)
        else:
            self._not_named += 1


def shown(name: bytes) -> str:
    """A name from a submission, safe to print: quoted, everything but printable text escaped."""
    text = name[:200].decode("utf-8", "backslashreplace")
    return ascii(text) if not text.isprintable() else repr(text)


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]
