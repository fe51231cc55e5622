"""Every shipped runtime on the real engine: its self tests, and programs that do the same in every language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from grader import Graded, Runner, Submission, Task
from grader.cli.console import Console
from grader.cli.profiles import run_self_tests
from grader.runner.programs import image_source
from grader.runtimes import data_folder, find_profile
from grader.sandbox.docker.engine import Engine
from grader.sandbox.docker.images import ImageRecipe, Images
from grader.yaml_source import load

PROGRAMS = Path(__file__).parent / "runtime_programs.yaml"
STDIN = "two words\n\nümläut, no line end"
USUAL = {"bash", "c", "python"}
"""The runtimes that the other tests need: their images are there."""
TRIES = 3
"""How often a program is graded at most while all that comes of it is that this machine is too busy."""


def names() -> list[str]:
    return sorted(file.stem for file in data_folder("runtimes").glob("*.yaml"))


def programs() -> Mapping[str, Mapping[str, str]]:
    return cast("Mapping[str, Mapping[str, str]]", load(PROGRAMS.read_bytes(), "runtime_programs.yaml").value)


each = pytest.mark.parametrize("name", names())


def cases(name: str) -> dict[str, dict[str, Any]]:
    """By the name of a program: its case."""
    return {
        "echo": {"stdin": STDIN, "stdout": {"equals": STDIN}, "stderr": {"equals": ""}},
        "exits": {"exit_code": 7, "stdout": {"equals": ""}},
        "errs": {"stderr": {"contains": programs()[name]["says"]}},
        "deep": {"stdout": {"equals": "1000\n" if name == "bash" else "20000\n"}},
        "hogs": {"limits": {"memory_bytes": "192 MiB"}},
        "busy": {"limits": {"cpu_time_s": 0.5}},
    }


def expected(name: str) -> dict[str, tuple[str, str]]:
    """By the name of a program: its verdict, and the first reason."""
    return {
        "echo": ("true", ""),
        "exits": ("true", ""),
        "errs": ("false", programs()[name]["reason"]),
        "deep": ("true", ""),
        "hogs": ("false", "memory.exceeded"),
        "busy": ("false", "cpu_time.exceeded"),
    }


def test_there_is_a_program_of_each_kind_for_every_shipped_runtime() -> None:
    assert sorted(programs()) == names()
    for name, said in programs().items():
        assert set(said) == {"file", "reason", "says", *cases(name)}


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(900)
@each
async def test_programs_that_do_the_same_get_the_same_verdicts(name: str, tmp_path: Path) -> None:
    said = programs()[name]
    found: dict[str, tuple[str, str]] = {}
    texts: list[str] = []
    async with Runner(record=tmp_path / "record") as runner:
        for kind, case in cases(name).items():
            condition = {"condition_type": "program_behaves", "cases": [case], "repetitions": 2}
            task = Task.model_validate({"runtime_profiles": [name], "conditions": [condition]})
            graded = await _graded(runner, task, Submission.from_files({said["file"]: said[kind]}, name=kind))
            assert graded.verdict is not None, graded.error
            reason = graded.verdict.findings[0].code.value if graded.verdict.findings else ""
            found[kind] = (str(graded.verdict.value), reason)
            texts.append(f"{kind}: {graded.verdict.rationale} {graded.verdict.findings}")
    assert found == expected(name), "\n".join(texts)


async def _graded(runner: Runner, task: Task, submission: Submission) -> Graded:
    for _ in range(TRIES - 1):
        graded = await runner.grade(task, submission)
        if graded.verdict is None or "host.starved" not in {f.code.value for f in graded.verdict.findings}:
            return graded
    return await runner.grade(task, submission)


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(900)
@each
def test_self_tests(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = run_self_tests((name,), None, Console(color="never", quiet=True))
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    assert said.out.count(f"ok    {name}") == said.out.count("\n") >= 3


def test_the_usual_run_of_the_tests_builds_the_usual_images_only() -> None:
    script = (PROGRAMS.parents[2] / "scripts" / "test").read_text()
    assert f"runtimes=({' '.join(sorted(USUAL))})" in script


PACKAGES_PROFILE = """\
language: python
default: false
suffixes: [.py]
image: {dockerfile: python}
packages: {debian: [bc], pypi: [numpy==1.26.4, pytest==8.3.4]}
run: [python3, -B, -s, "{entry}"]
"""
USES_PACKAGES = """\
import subprocess, sys
import numpy, pytest

def test_product():
    assert numpy.arange(6).reshape(2, 3).sum(axis=0).tolist() == [3, 5, 7]

if __name__ == "__main__":
    print(numpy.__version__, pytest.__version__, flush=True)
    subprocess.run(["bc"], input=b"2 ^ 64\\n", check=True)
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", __file__]))
"""


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.timeout(900)
async def test_packages_of_a_profile_are_in_its_image_and_only_there(tmp_path: Path) -> None:
    (tmp_path / "with-packages.yaml").write_text(PACKAGES_PROFILE)
    uses = Submission.from_files({"main.py": USES_PACKAGES}, name="uses packages")
    case = {"stdout": {"regex": r"1\.26\.4 8\.3\.4\n18446744073709551616\n(?s:.*)1 passed in .*\n"}}
    conditions = [{"condition_type": "program_behaves", "cases": [case]}]
    try:
        async with Runner(runtimes=tmp_path, record=tmp_path / "record") as runner:
            task = Task.model_validate({"runtime_profiles": ["with-packages"], "conditions": conditions})
            with_packages = await runner.grade(task, uses)
            without = await runner.grade(task.model_copy(update={"runtime_profiles": ("python",)}), uses)
    finally:
        await _remove_image_of("with-packages", tmp_path)
    assert with_packages.verdict is not None
    assert str(with_packages.verdict.value) == "true", with_packages.verdict.findings
    assert without.verdict is not None
    assert str(without.verdict.value) == "false", "numpy is in the image of another profile"


async def _remove_image_of(profile: str, runtimes: Path) -> None:
    """Remove what was built for a profile. Fails if it was not built, or is not found again."""
    loaded = find_profile(profile, runtimes)
    recipe = ImageRecipe.of(loaded.name, image_source(loaded))
    engine = await Engine.connect()
    try:
        image = await Images(engine, data_folder("Dockerfiles"), lambda _: None).runtime(recipe, build=False)
        for image_id in (image.box_image_id, image.image_id):
            found = await engine.image(image_id)
            assert found is not None
            await engine.remove_image(found.tags[0])
            assert await engine.image(image_id) is None
    finally:
        await engine.close()
