"""README and docs do what they say: commands are run, output is compared, programs and task files are tried."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.formats.task_file import load_task
from grader.runtimes.folders import load_profile
from tests.e2e.conftest import EXAMPLES, ROOT, WITHIN_S, environment
from tests.e2e.doc_blocks import Block, blocks_of, commands_of, differences, normal

ELSEWHERE = {
    "docs/explanation/evidence.md": "tests/unit/docs/test_tool_conditions_pages.py",
    "docs/explanation/matchers.md": "tests/unit/matchers/test_matcher_docs.py",
    "docs/explanation/order.md": "tests/unit/docs/test_tool_conditions_pages.py",
    "docs/reference/matchers.md": "tests/unit/matchers/test_matcher_docs.py",
    "docs/reference/tool-conditions.md": "tests/unit/docs/test_tool_conditions_pages.py",
    "docs/reference/cli.md": "tests/unit/docs/test_generated_pages.py",
    "docs/reference/library.md": "tests/unit/docs/test_generated_pages.py",
    "docs/reference/profiles.md": "tests/unit/docs/test_generated_pages.py",
    "docs/reference/reasons.md": "tests/unit/docs/test_generated_pages.py",
    "docs/reference/task-file.md": "tests/unit/docs/test_generated_pages.py",
}
"""Pages whose blocks another test checks."""
SHAPES_ONLY = {"docs/reference/record.md", "docs/reference/traces.md"}
"""Pages whose blocks show the shape of a file."""

PAGES = sorted(
    page
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if str(page.relative_to(ROOT)) not in {*ELSEWHERE, *SHAPES_ONLY} and blocks_of(page)
)
NEEDS_ENGINE = re.compile(
    r"grader (run|doctor|clean|runtimes build|runtimes test) |Runner\(|grade_sync\(|grade_many\.py"
)

LANGUAGES = {"bash", "c", "console", "javascript", "python", "text", "yaml", "json"}
HOW = re.compile(r"|excerpt|case|profile|output|file=[^ ]+|from=[^ ]+|not run: .{10,}")


def _cases() -> list[object]:
    found: list[object] = []
    for page in PAGES:
        used = any(NEEDS_ENGINE.search(block.text) for block in blocks_of(page) if block.why_not_run is None)
        marks = [pytest.mark.docker] if used else []
        found.append(pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks))
    return found


def test_every_page_is_checked_here_or_elsewhere() -> None:
    assert {"README.md", "docs/tutorial.md"} <= {str(page.relative_to(ROOT)) for page in PAGES}
    for page, test in ELSEWHERE.items():
        assert (ROOT / page).is_file(), page
        assert (ROOT / test).is_file(), test


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_how_it_is_checked(page: Path) -> None:
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{page}:{block.line}: {block.language}"
        assert HOW.fullmatch(block.how), f"{page}:{block.line}: {block.how!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_not_run_names_what_is_there(page: Path) -> None:
    for block in blocks_of(page):
        if block.language != "console" or block.why_not_run is None:
            continue
        for path in re.findall(r"(?<![^ ])(?:scripts|tests)/[a-z0-9_./-]*[a-z0-9]", block.text):
            assert (ROOT / path).exists(), f"{page}:{block.line}: {path}"


@pytest.mark.parametrize("page", _cases())
def test_page(page: Path, tmp_path: Path) -> None:
    """All blocks of a page, in order, in one folder that has the examples in it."""
    reader = Reader(tmp_path)
    blocks = blocks_of(page)
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        wrong = reader.check(block, following)
        assert wrong is None, f"{page}:{block.line}: {wrong}"


class Reader:
    """Somebody who does what a page says, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        shutil.copytree(EXAMPLES, self.folder / "examples")
        (self.folder / "tests").mkdir()
        (self.folder / "tests" / "producers").symlink_to(ROOT / "tests" / "producers")
        commands = folder / "bin"
        commands.mkdir()
        for name, more in (("grader", ' -c "from grader.cli.app import main; main()"'), ("python", "")):
            (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{more} "$@"\n')
            (commands / name).chmod(0o755)
        self.environment = environment(folder, PATH=f"{commands}{os.pathsep}{os.environ['PATH']}", COLUMNS="100")

    def check(self, block: Block, following: Block | None) -> str | None:
        """Do what a block says; what is wrong with it, or None."""
        if block.why_not_run is not None:
            return None
        if block.source is not None:
            whole = (ROOT / block.source).read_text(encoding="utf-8")
            return None if block.text in whole else f"it is no part of {block.source}"
        if block.file is not None:
            return self._write(block, self.folder / block.file)
        if block.language == "console":
            return self._console(block)
        if block.language == "python":
            return self._python(block, following)
        return self._yaml(block) if block.language == "yaml" else None

    def _write(self, block: Block, file: Path) -> str | None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text, encoding="utf-8")
        if file.name == "task.yaml":
            load_task(file)
        elif file.parent.name == "runtimes":
            load_profile(file)
        return None

    def _console(self, block: Block) -> str | None:
        commands = list(commands_of(block))
        lines = [
            f"{{ {command}\n}} >../{number}.out 2>../{number}.err </dev/null\n(exit $?)"
            for number, (command, _) in enumerate(commands)
        ]
        subprocess.run(
            ["bash", "-c", "\n".join(lines)],
            cwd=self.folder, env=self.environment, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        for number, (command, shown) in enumerate(commands):
            out, err = (
                (self.folder.parent / f"{number}.{kind}")
                .read_text(encoding="utf-8")
                .replace(str(ROOT), "/home/you/grader")
                for kind in ("out", "err")
            )
            wrong = differences(block, shown, out + _errors(err))
            if wrong is not None:
                return f"$ {command}\n{wrong}\nstandard error:\n{err}"
        return None

    def _python(self, block: Block, following: Block | None) -> str | None:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", block.text],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=WITHIN_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return f"exit code {done.returncode}\n{done.stderr}"
        shown = following.text if following is not None and following.how == "output" else ""
        return differences(block, shown, done.stdout)

    def _yaml(self, block: Block) -> str | None:
        file = self.folder / "block.yaml"
        if block.how == "profile":
            file.write_text(block.text, encoding="utf-8")
            load_profile(file)
            return None
        text = block.text
        if block.how == "case":
            lines = "".join(f"    {line}\n" for line in text.splitlines())
            text = f"conditions:\n- condition_type: program_behaves\n  cases:\n  -\n{lines}"
        file.write_text(text, encoding="utf-8")
        load_task(file)
        return None


def _errors(err: str) -> str:
    """What a user sees on standard error apart from progress: errors with their mends."""
    found = re.search(r"^error: .*", err, re.MULTILINE | re.DOTALL)
    return found[0] if found is not None else ""


def test_a_page_that_lies_is_found_out(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    assert reader.check(Block("console", "", "$ echo one; echo two\none\ntwo\n", 1), None) is None
    assert reader.check(Block("console", "", "$ echo one; echo two\none\n", 1), None) is not None
    assert reader.check(Block("console", "", "$ echo one; echo two\n...\ntwo\n", 1), None) is None
    assert reader.check(Block("console", "excerpt", "$ echo one; echo two\ntwo\none\n", 1), None) is None
    assert reader.check(Block("console", "excerpt", "$ echo one\nthree\n", 1), None) is not None
    assert reader.check(Block("console", "", "$ false\n$ echo $?\n1\n", 1), None) is None
    assert reader.check(Block("console", "", "$ echo error: no >&2\nerror: no\n", 1), None) is None
    assert reader.check(Block("python", "", "print(1)\n", 1), Block("text", "output", "1\n", 2)) is None
    assert reader.check(Block("python", "", "print(1)\n", 1), Block("text", "output", "2\n", 2)) is not None
    assert reader.check(Block("python", "", "raise SystemExit(3)\n", 1), None) is not None
    assert reader.check(Block("python", "from=tests/e2e/doc_blocks.py", "class Block:\n", 1), None) is None
    assert reader.check(Block("python", "from=tests/e2e/doc_blocks.py", "class Blocks:\n", 1), None) is not None
    with pytest.raises(Exception, match="unknown key"):
        reader.check(Block("yaml", "case", "stdinn: a\n", 1), None)


def test_only_what_varies_is_passed_over() -> None:
    assert normal("TRUE    cases 4: ✓ 4    runs 12    14.9 s wall, 0.5 s in sandboxes    exit 0") == normal(
        "TRUE    cases 4: ✓ 4    runs 12    1:02 wall, 0.6 s in sandboxes    exit 0"
    )
    assert normal("runs 12    exit 0") != normal("runs 12    exit 1")
    assert normal("✗ letters  ✗✗✗   stdout.differs") != normal("✗ letters  ✗✗   stdout.differs")
    assert normal("the memory limit of 64 MiB") != normal("the memory limit of 32 MiB")
