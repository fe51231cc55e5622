"""The generated pages, and what stands at the top of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scripts.generate_docs import cli, library, profiles, reasons, task_file

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"
NOTE = "<!-- Made from the code by scripts/generate-docs. Change the code, not this page. -->\n"

PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli.page,
    "library.md": library.page,
    "profiles.md": profiles.page,
    "reasons.md": reasons.page,
    "task-file.md": task_file.page,
}


def text_of(name: str) -> str:
    """The whole text of a generated page."""
    return f"{NOTE}{PAGES[name]().rstrip()}\n"


def stale() -> list[str]:
    """The pages whose committed text is not what the code says now."""
    return [name for name in PAGES if not _is_current(REFERENCE / name, text_of(name))]


def _is_current(file: Path, text: str) -> bool:
    return file.is_file() and file.read_text(encoding="utf-8") == text
