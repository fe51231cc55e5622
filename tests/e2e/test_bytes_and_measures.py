"""Through command line and record: every byte as it was written, and CPU time and memory as they were used."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.store import open_record
from tests.e2e.conftest import Grader
from tests.e2e.recorded import Recorded, recorded_runs

pytestmark = pytest.mark.docker

CAP = 70_000
OUTPUTS: dict[str, tuple[str, bytes, str]] = {
    "all bytes": ("write(bytes(range(256)) * 3)", bytes(range(256)) * 3, "exited(0)"),
    "all bytes, large": ("write(bytes(range(256)) * 200)", bytes(range(256)) * 200, "exited(0)"),
    "empty": ("pass", b"", "exited(0)"),
    "exactly the cap": (f"write(b'x' * {CAP})", b"x" * CAP, "exited(0)"),
    "one more": (f"write(b'x' * {CAP + 1})", b"x" * CAP, "output_exceeded(stdout)"),
    "CRLF": ("write(b'one\\r\\ntwo\\rthree\\n\\r')", b"one\r\ntwo\rthree\n\r", "exited(0)"),
    "no newline at the end": ("write(b'a\\nb')", b"a\nb", "exited(0)"),
    "split character": ("write(b'\\xe2\\x82'); time.sleep(0.05); write(b'\\xac')", "€".encode(), "exited(0)"),
    "no text": ("write(b'\\xff\\xfe\\x00\\xed\\xa0\\x80')", b"\xff\xfe\x00\xed\xa0\x80", "exited(0)"),
    "looks like an engine's frame": ("write(b'\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x05later')",
                                     b"\x02\x00\x00\x00\x00\x00\x00\x05later", "exited(0)"),
}  # fmt: skip
WRITER = """\
import os, sys, time
def write(data):
    view = memoryview(data)
    for number in (1, 2) if sys.argv[1] == "file" else (1,):
        rest = view
        while rest:
            rest = rest[os.write(number, rest):]
    if sys.argv[1] == "file":
        with open("out.bin", "ab") as file:
            file.write(data)
"""


def test_every_byte_is_recorded_as_it_was_written(grader: Grader, tmp_path: Path) -> None:
    cases = "".join(
        f'      - {{name: "{name}", arguments: ["plain", "{name}"], limits: {{stdout_bytes: {CAP}}}, exit_code: any}}\n'
        for name in OUTPUTS
    )
    cases += (
        '      - {name: file, arguments: [file, "all bytes, large"], exit_code: any, stderr: {contains: a},'
        " output_files: {out.bin: {contains: a}}}\n"
    )
    head = "runtime_profiles: [python]\nconditions:\n  - condition_type: program_behaves\n    cases:\n"
    (tmp_path / "task.yaml").write_text(head + cases)
    branches = "".join(f"if sys.argv[2] == {name!r}: {code}\n" for name, (code, _, _) in OUTPUTS.items())
    (tmp_path / "main.py").write_text(WRITER + branches)
    assert grader("run", "task.yaml", "main.py", "--record", "record").code in {0, 1}
    runs = {run.case: run for run in recorded_runs(tmp_path / "record")}
    for name, (_, expected, ending) in OUTPUTS.items():
        assert (runs[name].stdout, runs[name].ending) == (expected, ending), name
    outcome = runs["file"].record.outcome
    assert outcome is not None
    expected = OUTPUTS["all bytes, large"][1]
    (file,) = outcome.files
    assert file.captured is not None
    assert outcome.stdout.captured.kept == outcome.stderr.captured.kept == file.captured.kept == expected
    blobs = {path.read_bytes() for path in (tmp_path / "record" / "blobs").iterdir()}
    assert {expected, b"x" * CAP} <= blobs  # in plain sight, for who reads records without grader
    assert open_record(tmp_path / "record")[0].submission is not None


# Each says on its standard error how much CPU time the whole tree used, by the kernel's clock of each process.
BURNERS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long *used; /* of processes that have ended */

static long long own(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void burn(long ms, clockid_t clock)
{
    while (own(clock) < ms * 1000000LL)
        ;
}

static void child(long ms, int depth)
{
    if (fork() != 0)
        return;
    if (depth > 0) {
        child(ms, depth - 1);
        __atomic_add_fetch(used, own(CLOCK_PROCESS_CPUTIME_ID), __ATOMIC_SEQ_CST);
        _exit(0);
    }
    burn(ms, CLOCK_PROCESS_CPUTIME_ID);
    __atomic_add_fetch(used, own(CLOCK_PROCESS_CPUTIME_ID), __ATOMIC_SEQ_CST);
    __atomic_add_fetch(used + 1, 1, __ATOMIC_SEQ_CST);
    _exit(0);
}

static void *thread(void *ms)
{
    burn((long)ms, CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

int main(int count, char **argument)
{
    const char *what = argument[1];
    used = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int children = 0;
    if (strcmp(what, "alone") == 0)
        burn(150, CLOCK_PROCESS_CPUTIME_ID);
    if (strcmp(what, "ignored") == 0) { /* nobody waits for them: their usage goes to no parent */
        signal(SIGCHLD, SIG_IGN);
        for (children = 0; children < 3; children++)
            child(60, 0);
    }
    if (strcmp(what, "orphans") == 0) /* twice forked: their parent is dead */
        for (children = 0; children < 3; children++)
            child(60, 1);
    if (strcmp(what, "threads") == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++)
            pthread_create(&threads[i], NULL, thread, (void *)40L);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    while (__atomic_load_n(used + 1, __ATOMIC_SEQ_CST) < children)
        usleep(1000);
    printf("%lld\n", *used + own(CLOCK_PROCESS_CPUTIME_ID));
    (void)count;
    return 0;
}
"""


@pytest.mark.parametrize("repetitions", [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(900)])])
def test_cpu_time_is_that_of_the_whole_tree(grader: Grader, tmp_path: Path, repetitions: int) -> None:
    names = ("alone", "ignored", "orphans", "threads")
    cases = "".join(f'      - {{name: {name}, arguments: [{name}], stdout: {{contains: "\\n"}}}}\n' for name in names)
    (tmp_path / "task.yaml").write_text(
        "runtime_profiles: [c]\nlimits: {cpu_time_s: 5, wall_time_s: 200}\nconditions:\n"
        f"  - condition_type: program_behaves\n    repetitions: {repetitions}\n    cases:\n{cases}"
    )
    (tmp_path / "main.c").write_text(BURNERS)
    ended = grader("run", "task.yaml", "main.c", "--record", "record")
    assert ended.code == 0, ended.err + ended.out
    errors: dict[str, list[float]] = {}
    for run in recorded_runs(tmp_path / "record"):
        truth_ns, measured_ns = int(run.stdout), cpu_of(run)
        errors.setdefault(run.case, []).append((measured_ns - truth_ns) / 1e6)
        assert abs(measured_ns - truth_ns) <= max(5_000_000, truth_ns * 0.02), (run.case, truth_ns, measured_ns)
    for name, found in errors.items():
        print(f"{name:10} measured CPU time is off by {min(found):+.2f} to {max(found):+.2f} ms")


def cpu_of(run: Recorded) -> int:
    assert run.record.outcome is not None
    cpu_time_ns = run.record.outcome.measures.cpu_time_ns
    assert cpu_time_ns is not None
    return cpu_time_ns


HOGS = """\
import subprocess, sys, time
MIB = 2**20
what = sys.argv[1]
if what == "alone":
    held = b"x" * (60 * MIB)
if what == "two children":
    code = f"held = b'x' * {40 * MIB}; import sys; print(flush=True); sys.stdin.read()"
    children = [subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1) for _ in range(2)]
    for child in children:
        child.stdout.readline()
    for child in children:
        child.communicate()
if what == "file":
    for number in range(10):
        with open(f"big-{number}", "wb") as file:
            file.write(bytes(2 * MIB))
print("right")
"""


def test_memory_is_that_of_all_processes_and_files_together(grader: Grader, tmp_path: Path) -> None:
    least = {"nothing": 0, "alone": 60, "two children": 80, "file": 20}
    cases = "".join(f'      - {{name: {name}, arguments: ["{name}"], stdout: {{contains: right}}}}\n' for name in least)
    (tmp_path / "task.yaml").write_text(
        "runtime_profiles: [python]\nconditions:\n  - condition_type: program_behaves\n    cases:\n" + cases
    )
    (tmp_path / "main.py").write_text(HOGS)
    ended = grader("run", "task.yaml", "main.py", "--record", "record", "--isolation", "run")
    assert ended.code == 0, ended.err + ended.out
    for run in recorded_runs(tmp_path / "record"):
        assert run.record.outcome is not None
        measures = run.record.outcome.measures
        assert measures.peak_memory_bytes is not None
        assert measures.peak_memory_source in {"rusage", "sampled", "cgroup"}
        mib = measures.peak_memory_bytes / 2**20
        print(f"{run.case:14} {mib:6.1f} MiB ({measures.peak_memory_source})")
        assert least[run.case] <= mib <= least[run.case] + 60  # and the interpreters themselves
        assert measures.oom_kills == 0
