"""The supervisor's unprivileged front under random acts of client, program, core and hand, with ASan and UBSan.

`fuzz_front.c` says what one input is. Without libFuzzer the inputs are random, biased so that they get as deep: about
nine tenths of the code that parses, relays and streams is reached. The same target runs under libFuzzer where there is
a clang.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grader.sandbox import supervisor

HERE = Path(__file__).parent
SOURCES = Path(supervisor.__file__).parent / "src"
LINKED = ("session.c", "frames.c", "streams.c", "relay.c", "sha256.c")
SANITIZED = (
    *("-g", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable"),
    "-fno-sanitize-recover=all",
)
ENVIRONMENT = {
    **os.environ,
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0",
}  # no leaks are sought: nothing is allocated


def compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def build(folder: Path, cc: str, sanitizers: str, *more: Path, sources: Path = SOURCES) -> Path:
    target = folder / "target"
    files = [HERE / "fuzz_front.c", *more, *(sources / name for name in LINKED)]
    command = [cc, *SANITIZED, f"-fsanitize={sanitizers}", f"-I{sources}", "-o", str(target), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    return target


def run(*command: str, within_s: float, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=within_s, cwd=cwd, env=ENVIRONMENT
    )


def test_random_acts_break_nothing(tmp_path: Path) -> None:
    target = build(tmp_path, compiler("gcc"), "address,undefined", HERE / "inputs.c")
    for seed in range(2):
        done = run(str(target), "30000", str(seed), within_s=120, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-4000:]
        assert done.stdout == "30000 inputs\n"


@pytest.mark.parametrize(
    ("file", "bound", "without"),
    [
        ("frames.c", "|| frame->length > PAYLOAD_MAX", ""),
        ("frames.c", "if (have - HEADER_BYTES < frame->length)", "if (0)"),
        ("relay.c", "item.path_bytes > sizeof path", "0"),
        ("relay.c", "left < sizeof block ? (size_t)left : sizeof block", "(size_t)left"),
        ("streams.c", "STDIN_BUFFER - at < size ? STDIN_BUFFER - at : size", "size"),
        ("ports.c", "if (size > PORT_QUEUE - connection->have)", "if (0)"),
        ("ports.c", "if ((uint64_t)got > ports->most_bytes - ports->bytes)", "if (0)"),
        ("session.c", "if (frame->length > front->request.field[Q_STRINGS] - front->strings_have)", "if (0)"),
        ("streams.c", "room > 0 && room < READ_AT_ONCE ? (size_t)room : READ_AT_ONCE", "READ_AT_ONCE"),
    ],
)
def test_a_bound_that_is_taken_away_is_missed(tmp_path: Path, file: str, bound: str, without: str) -> None:
    """The fuzzing finds what it is for: each of these makes it fail."""
    sources = tmp_path / "src"
    shutil.copytree(SOURCES, sources)
    text = (sources / file).read_text()
    assert bound in text, f"{file} has changed: name another bound here"
    (sources / file).write_text(text.replace(bound, without))
    target = build(tmp_path, compiler("gcc"), "address,undefined", HERE / "inputs.c", sources=sources)
    try:
        done = run(str(target), "30000", "1", within_s=60, cwd=tmp_path)
    except subprocess.TimeoutExpired:
        return  # it hangs: found as well
    assert done.returncode != 0


@pytest.mark.slow
def test_libfuzzer_finds_nothing_in_a_minute(tmp_path: Path) -> None:
    target = build(tmp_path, compiler("clang"), "fuzzer,address,undefined")
    (tmp_path / "corpus").mkdir()
    options = ("-max_total_time=60", "-max_len=4000", "-timeout=10", "corpus")
    done = run(str(target), *options, within_s=180, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr
