"""The page on the architecture shows the rooms that there are, in the order that import-linter holds them to."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "explanation" / "architecture.md"


def exists(room: str) -> bool:
    return (ROOT / "grader" / room).is_dir() or (ROOT / "grader" / f"{room}.py").is_file()


def layers() -> list[set[str]]:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (ordered,) = (contract["layers"] for contract in contracts if contract["id"] == "layers")
    found = [{room for room in re.findall(r"grader\.(\w+)", layer) if exists(room)} for layer in ordered]
    return [layer for layer in found if layer]


def shown() -> list[set[str]]:
    (block,) = re.findall(r"## Rooms\n.*?```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    columns = [re.split(r" {2,}", line.strip()) for line in block.splitlines()]
    return [set(rooms) for *rooms, _ in columns[:-1]] + [set(columns[-1])]


def test_the_rooms_of_the_page_are_those_of_the_import_rules() -> None:
    assert shown() == layers()


def test_every_package_is_a_room() -> None:
    packages = {file.parent.name for file in (ROOT / "grader").glob("*/__init__.py")}
    assert packages <= set[str]().union(*layers())
