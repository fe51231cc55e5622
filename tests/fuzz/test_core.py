"""The supervisor's privileged core under random acts of a front, a hand and a program that were taken over.

`fuzz_core.c` says what one input is, and what must hold. It runs with ASan and UBSan, on real messages, descriptors
and folders; what only root may do is checked in place of being done. Nearly all of what the core does with what it is
told is reached. The same target runs under libFuzzer where there is a clang.
"""

from pathlib import Path

import pytest

from .fuzzing import build_libfuzzer, build_random, find_nothing, fuzz_for, is_missed, sources_without

TARGET = "fuzz_core.c"
LINKED = ("frames.c", "scrub.c")


def test_random_acts_break_nothing(tmp_path: Path) -> None:
    find_nothing(build_random(tmp_path, TARGET, LINKED), 4_000, seeds=(0, 1))


@pytest.mark.parametrize(
    ("file", "bound", "without"),
    [
        # what comes with a message
        ("messages.c", "if (count > most - taken)", "if (0)"),
        ("messages.c", "|| message->text_bytes > TEXT_MAX", ""),
        ("messages.c", "message->text[TEXT_MAX - 1] = 0;", ""),
        ("core.c", "if (message->kind != M_START && fds[0] >= 0)", "if (0)"),
        ("run.c", "&& S_ISFIFO(s.st_mode)", ""),
        ("run.c", "&& (seals & STRINGS_SEALS) == STRINGS_SEALS", ""),
        ("run.c", "return count == START_FDS_COUNT || fds[count] < 0;", "return 1;"),
        # when it may come
        ("core.c", "if (core->state != CORE_IDLE)", "if (0)"),
        ("core.c", "if (!core->is_usable || core->canary == 0)", "if (0)"),
        # what it says
        ("child.c", "arguments == 0 || arguments > COUNT_MAX || environment > COUNT_MAX", "0"),
        ("child.c", "count <= sizeof few / sizeof *few", "1"),
        ("child.c", "*size == strings->text_bytes", "1"),
        ("tree.c", "if (!path_allowed((const uint8_t *)path, strlen(path)))", "if (0)"),
        ("tree.c", "(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW", "(folder, name, O_RDONLY | O_DIRECTORY"),
        # what the hand leaves, and how long anything may take
        ("end.c", "if (!nobody_left(core)) {", "if (0) {"),
        ("end.c", "(!scrubbed || mounts_are_empty(&core->mounts) == 1)", "1"),
        ("end.c", "clean && core->canary != 0 ?", "clean ?"),
        ("end.c", "> HAND_BUDGET_NS", "> UNKNOWN - 1"),
        ("end.c", "> KILL_BUDGET_NS", "> UNKNOWN - 1"),
        ("end.c", "if (clean && mounts_reset(&core->mounts) != 0)", "if (0)"),
        ("run.c", "if (!plan->is_copy && oom_end() != 0)", "if (0)"),
        ("run.c", "if (wall > 3 * core->request[Q_WALL_NS])", "if (0)"),
    ],
)  # fmt: skip
def test_a_bound_that_is_taken_away_is_missed(tmp_path: Path, file: str, bound: str, without: str) -> None:
    """The fuzzing finds what it is for: each of these makes it fail."""
    sources = sources_without(tmp_path, file, bound, without)
    assert is_missed(build_random(tmp_path, TARGET, LINKED, sources), 20_000, seeds=(1, 2))


@pytest.mark.slow
def test_libfuzzer_finds_nothing_in_a_minute(tmp_path: Path) -> None:
    fuzz_for(build_libfuzzer(tmp_path, TARGET, LINKED), 60)
