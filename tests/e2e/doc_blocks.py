"""Reads the fenced blocks of a page, and compares what a command printed with what the page says it prints.

What stands after the language says how a block is checked:

    console                 every `$ command` is run, its output is what follows; a line `...` stands for any lines
    console excerpt         every line that is shown is among the lines that were printed, in any order
    python                  is run; a `text output` block that follows is what it prints
    yaml / yaml case / yaml profile     is a task, a case, a runtime profile
    LANGUAGE file=PATH      is written to PATH in the folder where the page's commands run
    LANGUAGE from=PATH      stands in the file PATH of this repository, which another test runs
    text                    is no command: a layout, a sketch
    LANGUAGE not run: WHY   cannot be run in a test
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```([a-z]+)[ ]?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    language: str
    how: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """Where it is to be written; None if it is no file."""
        return self.how.removeprefix("file=") if self.how.startswith("file=") else None

    @property
    def source(self) -> str | None:
        """The file that it is a part of; None if it is no part of one."""
        return self.how.removeprefix("from=") if self.how.startswith("from=") else None

    @property
    def why_not_run(self) -> str | None:
        """Why it is not run; None if it is."""
        return self.how.removeprefix("not run:").strip() if self.how.startswith("not run:") else None


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [Block(m[1], m[2].strip(), m[3], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]
    assert len(found) * 2 == len(re.findall(r"^ *```", text, re.MULTILINE)), f"{page}: a fence without a language"
    return found


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown below it."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert parts[0] == "", f"line {block.line}: a console block begins with a command"
    for part in parts[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            more, _, shown = shown.partition("\n")
            command = f"{command}\n{more}"
        yield command, shown


VARYING: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), shown)
    for pattern, shown in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"\b[0-9a-f]{64}\b", "DIGEST"),
        (r"\b[0-9]{8}T[0-9]{6}Z\b", "STAMP"),
        (r"\b[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z\b", "TIME"),
        (r"\b[0-9.:]+( s)? (wall|in sandboxes)\b", r"TIME \2"),
        (r"( +[0-9.]+ m?s){2} +[0-9.]+ MiB ", "  MEASURES  "),
        # How often a flaky program is right is its own business.
        (r"✓[0-9]+ ✗[0-9]+", "✓N ✗N"),
        (r"\b[0-9]+ true, [0-9]+ false \(run [0-9]+:", "N true, N false (run N:"),
        (r"\([0-9]+ of [0-9]+ failed\)", "(N of N failed)"),
        (r"^( *group) [0-9]+: runs [0-9, -]*[0-9]", r"\1 N: runs N"),
        (r" {2,}", "  "),
        (r" +$", ""),
    )
)


def normal(line: str) -> str:
    """A line without what differs from run to run: times, digests, counts of a flaky program, columns."""
    for pattern, shown in VARYING:
        line = pattern.sub(shown, line)
    return line


def differences(block: Block, shown: str, printed: str) -> str | None:
    """How what was printed differs from what the page shows; None if it does not."""
    wanted = [normal(line) for line in shown.splitlines()]
    got = [normal(line) for line in printed.splitlines()]
    if block.how == "excerpt":
        missing = [line for line in wanted if line not in {*got, "..."}]
        return f"not printed: {missing}\nprinted:\n{printed}" if missing else None
    if re.fullmatch("".join(_pattern(wanted)), "".join(f"{line}\n" for line in got)) is not None:
        return None
    return f"the page shows:\n{shown}\nprinted was:\n{printed}"


def _pattern(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield "(?:.*\n)*?" if line == "..." else re.escape(line) + "\n"
