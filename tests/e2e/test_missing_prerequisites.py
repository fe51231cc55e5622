"""No engine, no image, an image that cannot be built: exit 4, in words, with what mends it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import EXAMPLES, Grader

ROT13 = EXAMPLES / "rot13"
GOOD = ROT13 / "submissions" / "good.py"
NOWHERE = ("unix:///nonexistent/docker.sock", "tcp://127.0.0.1:1", "nonsense")


@pytest.mark.parametrize("address", NOWHERE)
@pytest.mark.parametrize(
    "arguments",
    [("run", str(ROT13), str(GOOD)), ("clean",), ("runtimes", "build", "bash"), ("runtimes", "test", "bash")],
)
def test_without_an_engine_what_needs_one_is_4_with_the_mend(
    grader: Grader, tmp_path: Path, address: str, arguments: tuple[str, ...]
) -> None:
    ended = grader(*arguments, DOCKER_HOST=address)
    assert (ended.code, ended.out) == (4, "")
    assert f"error: no Docker engine answers at {address}: " in ended.err
    assert "  mend: start the engine" in ended.err
    assert "Traceback" not in ended.err
    assert len(ended.err) < 500
    records = tmp_path / ".grader" / "records"
    assert list(records.iterdir() if records.is_dir() else []) == []  # no empty folder of a record that never began


def test_without_an_engine_doctor_says_so_and_goes_on_with_what_it_can(grader: Grader) -> None:
    ended = grader("doctor", DOCKER_HOST=NOWHERE[0])
    assert ended.code == 4
    lines = ended.out.splitlines()
    assert [line for line in lines if line.startswith("FAIL")] == [
        f"FAIL     no Docker engine answers at {NOWHERE[0]}: No such file or directory"
    ]
    assert lines[-1].strip().startswith("mend: start the engine")
    assert lines[0].startswith(("ok", "caution"))


def test_what_needs_no_engine_works_without_one(grader: Grader) -> None:
    for arguments in (("runtimes", "list"), ("lint", str(ROT13)), ("--help",)):
        assert grader(*arguments, DOCKER_HOST=NOWHERE[0]).code == 0


FAILING = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo this is the last word; echo of the build; exit 9\n"


@pytest.fixture
def profile(tmp_path: Path) -> None:
    """A profile of one's own, whose image cannot be built."""
    (tmp_path / "Dockerfiles" / "failing").mkdir(parents=True)
    (tmp_path / "Dockerfiles" / "failing" / "Dockerfile").write_text(FAILING)
    (tmp_path / "runtimes").mkdir()
    text = "language: python\nsuffixes: [.py]\nimage: {dockerfile: failing}\nrun: [python3, '{entry}']\n"
    (tmp_path / "runtimes" / "failing.yaml").write_text(text)


@pytest.mark.docker
@pytest.mark.usefixtures("profile")
def test_an_image_that_cannot_be_built_is_4_with_the_builds_last_lines(grader: Grader, tmp_path: Path) -> None:
    for arguments in (
        ("run", ROT13, GOOD, "-p", "failing", "--runtimes", "runtimes"),
        ("runtimes", "build", "failing", "--runtimes", "runtimes"),
    ):
        ended = grader(*arguments)
        assert ended.code == 4, ended.err
        assert "the image of the runtime failing cannot be had" in ended.err
        assert [
            line.strip() for line in ended.err.splitlines() if line.strip() in {"this is the last word", "of the build"}
        ] == ["this is the last word", "of the build"]
        assert "returned a non-zero code: 9" in ended.err
        assert "mend: mend what it says, then: grader runtimes build failing" in ended.err
        assert "Traceback" not in ended.err
    records = tmp_path / ".grader" / "records"
    assert list(records.iterdir() if records.is_dir() else []) == []


@pytest.mark.docker
@pytest.mark.usefixtures("profile")
def test_doctor_names_the_image_that_is_not_built(grader: Grader) -> None:
    ended = grader("doctor", "--quick", "--runtimes", "runtimes")
    assert ended.code == 0, ended.out
    (line,) = [line for line in ended.out.splitlines() if "failing" in line]
    assert "the first run builds" in line
    assert "grader runtimes build" in line


@pytest.mark.docker
def test_an_image_that_no_registry_gives_is_4(grader: Grader, tmp_path: Path) -> None:
    digest = "0" * 64
    (tmp_path / "runtimes").mkdir()
    image = f"127.0.0.1:1/none@sha256:{digest}"
    text = f"language: python\nsuffixes: [.py]\nimage: {{reference: '{image}'}}\nrun: [python3, '{{entry}}']\n"
    (tmp_path / "runtimes" / "elsewhere.yaml").write_text(text)
    ended = grader("run", ROT13, GOOD, "-p", "elsewhere", "--runtimes", "runtimes")
    assert ended.code == 4, ended.err
    assert "the engine did not pull an image: " in ended.err
    assert "mend: check the image's name and digest in the profile" in ended.err


@pytest.mark.docker
def test_clean_says_what_it_removed_and_leaves_the_boxes_of_the_living(grader: Grader) -> None:
    ended = grader("clean")
    assert ended.code == 0, ended.err
    assert "of dead graders" in ended.err or "of a dead grader" in ended.err
    after = grader("run", ROT13, GOOD, "--format", "json")
    assert json.loads(after.out)["exit_code"] == 0
