"""Where profiles are found, and what is said about broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.errors import TaskError, UsageError
from grader.runtimes import available, data_folder, find_profile, load_profiles, profile_folders

GOOD = "language: x\nsuffixes: [.x]\nimage: {dockerfile: x}\nrun: [x, '{entry}']\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/grader/runtimes").mkdir(parents=True)
    return tmp_path


def test_a_named_folder_hides_the_users_which_hides_the_package(home: Path) -> None:
    named = home / "mine"
    named.mkdir()
    (home / "config/grader/runtimes/python.yaml").write_text(GOOD)
    assert find_profile("python").file == home / "config/grader/runtimes/python.yaml"
    (named / "python.yaml").write_text(GOOD)
    assert find_profile("python", named).file == named / "python.yaml"
    assert profile_folders(named)[0] == named
    assert available(named)["c"] == data_folder("runtimes") / "c.yaml"


def test_the_current_folder_is_never_looked_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "runtimes").mkdir()
    (home / "runtimes/python.yaml").write_text(GOOD)
    (home / "python.yaml").write_text(GOOD)
    monkeypatch.chdir(home)
    assert find_profile("python").file == data_folder("runtimes") / "python.yaml"


def test_an_unknown_profile_is_named_with_those_that_exist(home: Path) -> None:
    with pytest.raises(TaskError, match=r"bash, c, .*python") as caught:
        find_profile("cobol")
    assert caught.value.code == "profile.unknown"
    for name in ("../python", "/etc/passwd", ""):
        with pytest.raises(TaskError, match="no runtime profile"):
            find_profile(name)


def test_everything_wrong_with_a_profile_is_said_with_its_place(home: Path) -> None:
    file = home / "config/grader/runtimes/broken.yaml"
    file.write_text(GOOD + "cpus: many\nshoe_size: 43\nlimits:\n  defaults:\n    memory_bytes: 0 MiB\n")
    with pytest.raises(TaskError) as caught:
        find_profile("broken")
    said = [str(problem) for problem in caught.value.problems]
    assert [line.split(": ")[0] for line in said] == [f"{file}:9:19", f"{file}:5:7", f"{file}:6:1"]
    file.write_text("- a list\n")
    with pytest.raises(TaskError, match="a profile is a mapping"):
        find_profile("broken")
    with pytest.raises(TaskError, match="a profile is a mapping"):
        load_profiles()


def test_a_changed_file_is_read_again_though_profiles_are_kept(home: Path) -> None:
    file = home / "config/grader/runtimes/mine.yaml"
    file.write_text(GOOD)
    assert find_profile("mine").profile is find_profile("mine").profile
    file.write_text(GOOD.replace("language: x", "language: y"))
    assert find_profile("mine").profile.language == "y"
    file.write_text("language: x\n")
    for _ in range(2):
        with pytest.raises(TaskError, match="suffixes"):
            find_profile("mine")


def test_a_missing_image_folder_and_a_missing_named_folder_are_said(home: Path) -> None:
    (home / "config/grader/runtimes/mine.yaml").write_text(GOOD)
    with pytest.raises(TaskError, match="Dockerfiles/x/Dockerfile"):
        find_profile("mine").image_folder()
    own = home / "config/grader/Dockerfiles/x"
    own.mkdir(parents=True)
    (own / "Dockerfile").write_text("FROM scratch\n")
    assert find_profile("mine").image_folder() == own
    with pytest.raises(UsageError, match="not a folder"):
        available(home / "nowhere")
