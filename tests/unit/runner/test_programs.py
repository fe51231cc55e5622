"""Which profiles a submission runs under: never one too many, and never a guess."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.core.expectation import Task
from grader.errors import SubmissionError, TaskError
from grader.runner.programs import Profiles, profiles_for
from grader.submission import Submission


@pytest.fixture(autouse=True)
def nothing_of_the_persons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def chosen(
    *paths: str, language: str | None = None, entry: str | None = None, runtimes: Path | None = None
) -> list[str]:
    submission = Submission.from_files(dict.fromkeys(paths, "x"), language=language, entry=entry)
    return [profile.name for profile in profiles_for(Task.model_validate(ONE_CASE), submission, Profiles(runtimes))]


ONE_CASE = {"conditions": [{"condition_type": "program_behaves", "cases": [{"stdin": ""}]}]}


@pytest.mark.parametrize(
    ("path", "profile"),
    [
        ("a.py", "python"), ("a.c", "c"), ("a.cpp", "cpp"), ("a.cc", "cpp"), ("a.cxx", "cpp"), ("a.sh", "bash"),
        ("A.java", "java"), ("a.js", "node"), ("a.mjs", "node"), ("a.go", "go"), ("a.rs", "rust"), ("a.rb", "ruby"),
        ("a.pl", "perl"), ("a.php", "php"), ("a.lua", "lua"),
    ],
)  # fmt: skip
def test_a_single_file_runs_once_under_the_profile_of_its_suffix(path: str, profile: str) -> None:
    assert chosen(path) == [profile]
    assert chosen(path, entry=path) == [profile]


def test_a_python_program_runs_under_pypy_only_where_that_is_named() -> None:
    assert chosen("main.py") == ["python"]
    assert chosen("main.py", language="python") == ["python"]
    task = Task.model_validate({**ONE_CASE, "runtime_profiles": ["pypy", "python"]})
    named = profiles_for(task, Submission.from_files({"main.py": ""}), Profiles())
    assert [profile.name for profile in named] == ["pypy", "python"]


def test_a_profile_is_read_once_for_all_submissions_of_a_runner(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("language: x\nsuffixes: [.x]\nimage: {dockerfile: x}\nrun: [x]\n")
    known = Profiles(tmp_path)
    first, everything = known.named("mine"), known.all()
    file.write_text("no profile any more")
    assert known.named("mine") is first
    assert known.all() is everything
    with pytest.raises(TaskError):
        Profiles(tmp_path).named("mine")
    for _ in range(2):
        with pytest.raises(TaskError, match="no runtime profile is called 'other'"):
            known.named("other")


def test_a_given_language_decides_and_c_is_not_cpp() -> None:
    assert chosen("main.c", "main.cpp", language="c") == ["c"]
    assert chosen("main.c", "main.cpp", language="cpp") == ["cpp"]
    assert chosen("program", language="python", entry="program") == ["python"]
    with pytest.raises(TaskError, match="its language is fortran"):
        chosen("main.c", language="fortran")


@pytest.mark.parametrize(
    ("paths", "profile"),
    [
        (("main.py", "setup.sh"), "python"),
        (("main.cpp", "fast.c"), "cpp"),
        (("run.sh", "count.py"), "bash"),
        (("main.c", "table.c", "make.py"), "c"),
        (("a.py", "sub/main.c"), None),
        (("main.c", "main.cpp"), None),
        (("a.py", "b.sh"), None),
        (("main.py", "run.sh"), None),
    ],
)
def test_files_of_several_languages(paths: tuple[str, ...], profile: str | None) -> None:
    if profile is not None:
        assert chosen(*paths) == [profile]
        return
    with pytest.raises(SubmissionError, match="any of several languages") as caught:
        chosen(*paths)
    assert "-p" in str(caught.value.hint)


def test_the_entry_point_that_was_given_tells_the_language() -> None:
    assert chosen("main.c", "main.py", entry="main.py") == ["python"]
    with pytest.raises(TaskError, match="no file has a known suffix"):
        chosen("main.c", "program", entry="program")


OWN = "language: {language}\nsuffixes: [{suffix}]\nimage: {{dockerfile: bash}}\nrun: [x, '{{entry}}']\n"


def test_a_further_profile_of_a_language_runs_too_unless_it_says_otherwise(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(OWN.format(language="python", suffix=".py"))
    assert chosen("a.py", runtimes=tmp_path) == ["own", "python"]
    own.write_text(OWN.format(language="python", suffix=".py") + "default: false\n")
    assert chosen("a.py", runtimes=tmp_path) == ["python"]


def test_one_that_is_chosen_by_name_only_makes_no_program_doubtful_and_is_named_where_nothing_else_fits(
    tmp_path: Path,
) -> None:
    (tmp_path / "prolog.yaml").write_text(OWN.format(language="prolog", suffix=".pl") + "default: false\n")
    assert chosen("a.pl", runtimes=tmp_path) == ["perl"]
    (tmp_path / "prolog.yaml").write_text(OWN.format(language="prolog", suffix=".pro") + "default: false\n")
    with pytest.raises(TaskError, match="fits prolog, which is chosen by name only") as caught:
        chosen("a.pro", runtimes=tmp_path)
    assert "-p" in str(caught.value.hint)
