"""Building a fuzz target of this folder with the host's compiler, and running it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from grader.sandbox import supervisor

HERE = Path(__file__).parent
SOURCES = Path(supervisor.__file__).parent / "src"
RANDOM_INPUTS = HERE / "inputs.c"
"""The main function where there is no libFuzzer: random inputs, biased so that they get deep."""
_FLAGS = (
    *("-g", "-O0", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable", "-Wno-unused-value"),
    "-fno-sanitize-recover=all",
)
_ENVIRONMENT = {
    **os.environ,
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
}  # no leaks are sought: nothing is allocated


def build_random(folder: Path, target: str, linked: Sequence[str], sources: Path = SOURCES) -> Path:
    """A target that takes the number of inputs and a seed; skip, saying so, without gcc."""
    return _build(folder, "gcc", "address,undefined", [HERE / target, RANDOM_INPUTS], linked, sources)


def build_libfuzzer(folder: Path, target: str, linked: Sequence[str]) -> Path:
    """The same target under libFuzzer; skip, saying so, without clang."""
    return _build(folder, "clang", "fuzzer,address,undefined", [HERE / target], linked, SOURCES)


def _build(folder: Path, cc: str, sanitizers: str, files: Sequence[Path], linked: Sequence[str], sources: Path) -> Path:
    found = shutil.which(cc)
    if found is None:
        pytest.skip(f"no {cc} on this machine")
    target = folder / "target"
    every = [str(file) for file in (*files, *(sources / name for name in linked))]
    command = [found, *_FLAGS, f"-fsanitize={sanitizers}", f"-I{sources}", "-o", str(target), *every]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    return target


def run(*command: str, within_s: float, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a target in a folder of its own."""
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=within_s, cwd=cwd, env=_ENVIRONMENT
    )


def sources_without(folder: Path, file: str, bound: str, without: str) -> Path:
    """The supervisor's sources with one bound taken away."""
    sources = folder / "src"
    shutil.copytree(SOURCES, sources)
    text = (sources / file).read_text()
    assert bound in text, f"{file} has changed: name another bound here"
    (sources / file).write_text(text.replace(bound, without))
    return sources


def is_missed(target: Path, inputs: int, *, seeds: Sequence[int] = (1,), within_s: float = 60) -> bool:
    """Whether the target fails, or hangs, within so many random inputs: what was taken away is found."""
    for seed in seeds:
        try:
            done = run(str(target), str(inputs), str(seed), within_s=within_s, cwd=target.parent)
        except subprocess.TimeoutExpired:
            return True
        if done.returncode != 0:
            return True
    return False


def find_nothing(target: Path, inputs: int, seeds: Sequence[int]) -> None:
    """Random inputs, none of which breaks anything."""
    for seed in seeds:
        done = run(str(target), str(inputs), str(seed), within_s=120, cwd=target.parent)
        assert done.returncode == 0, done.stderr[-4000:]
        assert done.stdout == f"{inputs} inputs\n"


def fuzz_for(target: Path, seconds: int) -> None:
    """libFuzzer for so long, with a corpus of its own, finds nothing."""
    corpus = target.parent / "corpus"
    corpus.mkdir()
    options = (f"-max_total_time={seconds}", "-max_len=4000", "-timeout=10", str(corpus))
    done = run(str(target), *options, within_s=seconds + 120, cwd=target.parent)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
