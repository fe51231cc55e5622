"""What is sent to the engine for a build."""

from __future__ import annotations

import io
import tarfile

from grader.sandbox.docker.builds import context_archive


def test_a_context_is_the_same_bytes_for_the_same_files() -> None:
    one = context_archive({"b": b"2", "a": b"1"}, executable={"b"})
    assert one == context_archive({"a": b"1", "b": b"2"}, executable=["b"])
    with tarfile.open(fileobj=io.BytesIO(one)) as archive:
        assert [(entry.name, entry.mode, entry.mtime) for entry in archive] == [("a", 0o644, 0), ("b", 0o755, 0)]
