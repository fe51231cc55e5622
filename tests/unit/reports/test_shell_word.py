"""Commands that a report suggests can be copied into a shell, whatever the names in them, and do nothing on the way."""

from __future__ import annotations

import os
import subprocess

import pytest

from grader.reports.text import shell_word

NAMES = [
    b"latest",
    b"a b",
    b"it's",
    b"",
    b"\xff",
    b"a\x1b[31mb",
    b"a\nb'\\",
    "e\u0301\u202e".encode(),
    b"\\x41",
    b"$(id)",
    b"x" * 3000,
]


@pytest.mark.parametrize("name", NAMES)
def test_a_shell_reads_the_name_that_was_meant(name: bytes) -> None:
    word = shell_word(os.fsdecode(name))
    assert word.isprintable()
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True, timeout=20)
    assert read.stdout == name


def test_half_a_character_is_harmless_too() -> None:
    assert shell_word("a\ud800") == "$'a\\xED\\xA0\\x80'"
