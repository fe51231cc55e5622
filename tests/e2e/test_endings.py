"""Every ending, many times: the same cause always gives the same ending and reason, and a busy machine gives none."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.crashes import Process, no_process_stays
from tests.e2e.load import busy_cpus
from tests.e2e.recorded import endings, recorded_runs

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures(no_process_stays.__name__)]
WITHIN_S = 1500

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *spin(void *unused)
{
    for (volatile long n = 0;; n++)
        ;
    return unused;
}

static void hog(void)
{
    for (;;) {
        char *page = malloc(1 << 20);
        if (page == NULL)
            exit(3);
        memset(page, 1, 1 << 20);
    }
}

static void burn(long milliseconds)
{
    struct timespec t;
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < milliseconds);
}

static void flood(FILE *file)
{
    static char block[65536];
    while (fwrite(block, 1, sizeof block, file) > 0)
        ;
}

int main(int count, char **argument)
{
    const char *what = count > 1 ? argument[1] : "";
    if (strcmp(what, "exit") == 0)
        exit(137);
    if (strcmp(what, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(what, "hog") == 0)
        hog();
    if (strcmp(what, "child") == 0) {
        if (fork() == 0)
            hog();
        wait(NULL);
    }
    if (strcmp(what, "spin") == 0)
        spin(NULL);
    if (strcmp(what, "sleep") == 0)
        sleep(600);
    if (strcmp(what, "flood") == 0)
        flood(stdout);
    if (strcmp(what, "file") == 0)
        flood(fopen("big", "w"));
    if (strcmp(what, "burn") == 0)
        burn(atol(argument[2]));
    if (strcmp(what, "threads") == 0) {
        pthread_t thread;
        for (int i = 0; i < 40; i++)
            pthread_create(&thread, NULL, spin, NULL);
        sleep(600);
    }
    puts("right");
    return 0;
}
"""

# name -> arguments, limits, ending, verdict, reason. CPU limits where a run ends for another cause are out of the way.
ENDINGS: dict[str, tuple[str, str, str, str, str | None]] = {
    "exit(137)": ("exit", "{}", "exited(137)", "false", "exit.code"),
    "kills itself": ("kill", "{}", "signaled(9)", "false", "signal"),
    "out of memory": ("hog", "{memory_bytes: 32 MiB}", "memory_exceeded", "false", "memory.exceeded"),
    "child out of memory": ("child", "{memory_bytes: 32 MiB}", "memory_exceeded", "false", "memory.exceeded"),
    "CPU limit": ("spin", "{cpu_time_s: 0.1, wall_time_s: 30}", "cpu_time_exceeded", "false", "cpu_time.exceeded"),
    "wall limit": ("sleep", "{wall_time_s: 0.2}", "wall_time_exceeded", "false", "wall_time.exceeded"),
    "output limit": ("flood", "{stdout_bytes: 100000}", "output_exceeded(stdout)", "false", "output.exceeded"),
    "file size": ("file", "{file_size_bytes: 100000}", "file_size_exceeded", "false", "file_size.exceeded"),
    "right": ("right", "{}", "exited(0)", "true", None),
}


def task(cases: list[str], repetitions: int) -> str:
    lines = "".join(f"      - {case}\n" for case in cases)
    head = "runtime_profiles: [c]\nconditions:\n  - condition_type: program_behaves\n"
    return f"{head}    repetitions: {repetitions}\n    cases:\n{lines}"


def case(name: str, arguments: str, limits: str) -> str:
    words = ", ".join(f'"{word}"' for word in arguments.split())
    return f'{{name: "{name}", arguments: [{words}], limits: {limits}, stdout: {{equals: "right\\n"}}}}'


def run(folder: Path, text: str) -> dict[str, Any]:
    """Grade PROGRAM; the cells of the report by case name."""
    (folder / "task.yaml").write_text(text)
    (folder / "main.c").write_text(PROGRAM)
    process = Process(folder, "run", "task.yaml", "main.c", "--record", "record", "--format", "json")
    assert process.end(WITHIN_S) in {0, 1, 3}, process.err
    (submission,) = json.loads(process.out)["submissions"]
    return {cell["name"]: cell for cell in submission["cells"]}


def table(counts: dict[str, Counter[str]]) -> None:
    for name, seen in counts.items():
        print(f"{name:24} " + ", ".join(f"{ending} x{count}" for ending, count in sorted(seen.items())))


@pytest.mark.parametrize("repetitions", [2, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_each_cause_always_gives_its_own_ending_and_reason(tmp_path: Path, repetitions: int) -> None:
    cases = [case(name, words, limits) for name, (words, limits, _, _, _) in ENDINGS.items()]
    cells = run(tmp_path, task(cases, repetitions))
    seen = endings(tmp_path / "record")
    table(seen)
    for name, (_, _, ending, verdict, reason) in ENDINGS.items():
        assert seen[name] == {ending: repetitions}, name
        assert (cells[name]["verdict"], cells[name]["reasons"][:1]) == (verdict, [reason] if reason else []), name


@pytest.mark.parametrize(
    ("repetitions", "hogs"), [(2, 3), pytest.param(20, 4, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_on_a_busy_machine_the_right_program_is_never_false_and_the_sleeper_never_anything_else(
    tmp_path: Path, repetitions: int, hogs: int
) -> None:
    cases = [
        case("right", "burn 100", "{cpu_time_s: 5, wall_time_s: 120}"),
        case("right and tight", "burn 100", "{cpu_time_s: 5, wall_time_s: 0.15}"),
        case("sleeper", "sleep", "{cpu_time_s: 5, wall_time_s: 0.3}"),
        case("many threads", "threads", "{cpu_time_s: 20, wall_time_s: 0.3}"),
        case("too much CPU", "spin", "{cpu_time_s: 0.1, wall_time_s: 120}"),
    ]
    with busy_cpus(hogs):
        cells = run(tmp_path, task(cases, repetitions))
    seen = endings(tmp_path / "record")
    table(seen)
    assert seen["right"] == {"exited(0)": repetitions}
    assert set(seen["right and tight"]) <= {"exited(0)", "host.starved"}
    assert cells["right and tight"]["verdict"] in {"true", "undetermined"}
    assert seen["sleeper"] == {"wall_time_exceeded": repetitions}
    assert set(seen["many threads"]) <= {"wall_time_exceeded", "host.starved"}
    assert seen["too much CPU"] == {"cpu_time_exceeded": repetitions}


def test_threads_of_its_own_excuse_nobody(tmp_path: Path) -> None:
    run(tmp_path, task([case("many threads", "threads", "{cpu_time_s: 60, wall_time_s: 0.4}")], 3))
    table(endings(tmp_path / "record"))
    for attempt in recorded_runs(tmp_path / "record"):
        assert attempt.record.outcome is not None
        measures = attempt.record.outcome.measures
        assert measures.cpu_time_ns is not None
        if (
            attempt.ending == "host.starved"
        ):  # then others had the CPU for most of the time, which no program can bring about
            assert measures.cpu_time_ns < measures.wall_time_ns // 2
        else:
            assert attempt.ending == "wall_time_exceeded"
