from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .box import Box, build_image, connect


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="session")
def image(engine: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built = build_image(engine, tmp_path_factory.mktemp("supervisor"))
    yield built
    engine.remove_image(built, force=True)


@pytest.fixture
def new_box(engine: Any, image: str) -> Iterator[Callable[..., Box]]:
    """Makes boxes of one's own; they are removed at the end."""
    boxes: list[Box] = []

    def make(**options: Any) -> Box:
        boxes.append(Box(engine, image, **options))
        return boxes[-1]

    yield make
    for box in boxes:
        box.remove()


@pytest.fixture(scope="session")
def shared_box(engine: Any, image: str) -> Iterator[Box]:
    box = Box(engine, image)
    yield box
    box.remove()


@pytest.fixture
def box(shared_box: Box) -> Iterator[Box]:
    """The box that most tests share. After each it must run a program as if nothing had been."""
    yield shared_box
    places = ("/work", "/tmp", "/dev/shm", "/dev/mqueue")
    after = shared_box.probe("list", *places)
    assert after.exit_code == 0
    assert after.box_usable
    assert after.stdout.captured.kept == (
        b"/work: | 700 0\n/tmp: | 1777 0\n/dev/shm: | 1777 0\n/dev/mqueue: | 1777 0\n"
    )
    assert after.numbers["survivors"] == 0
