"""Which files a folder stands for: all of them, in order, and nothing that could block or be left out in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.errors import TraceError
from grader.traces.files import trace_inputs


def names(folder: Path, *paths: Path) -> list[str]:
    return [str(Path(source.name).relative_to(folder)) for source in trace_inputs(paths)]


def test_files_as_named_and_folders_sorted(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.txt", "deep/er/c", "deep/a.pb", ".hidden", ".git/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    assert names(tmp_path, tmp_path / "b.jsonl", tmp_path / "a.txt") == ["b.jsonl", "a.txt"]
    assert names(tmp_path, tmp_path) == ["a.txt", "b.jsonl", "deep/a.pb", "deep/er/c"]
    assert names(tmp_path, tmp_path / ".hidden") == [".hidden"]
    assert names(tmp_path) == []


def test_an_empty_folder_has_no_file(tmp_path: Path) -> None:
    assert names(tmp_path, tmp_path) == []


@pytest.mark.parametrize("path", ["nowhere", "a\0b"])
def test_a_path_that_is_not_there(tmp_path: Path, path: str) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        trace_inputs([tmp_path / path])


def test_a_fifo_in_a_folder_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TraceError, match="is no regular file"):
        trace_inputs([tmp_path])


def test_links_to_files_are_followed_and_links_to_folders_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a").write_bytes(b"{}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "real" / "a")
    assert names(tmp_path, tmp_path / "folder") == ["folder/link"]
    (tmp_path / "folder" / "round").symlink_to(tmp_path / "folder")
    with pytest.raises(TraceError, match="is a link to a folder"):
        trace_inputs([tmp_path / "folder"])


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(TraceError, match="cannot be read"):
        trace_inputs([tmp_path])
