"""The supervisor's unprivileged front under random acts of client, program, core and hand, with ASan and UBSan.

`fuzz_front.c` says what one input is. Without libFuzzer the inputs are random, biased so that they get as deep: about
nine tenths of the code that parses, relays and streams is reached. The same target runs under libFuzzer where there is
a clang.
"""

from pathlib import Path

import pytest

from .fuzzing import build_libfuzzer, build_random, find_nothing, fuzz_for, is_missed, sources_without

TARGET = "fuzz_front.c"
LINKED = ("session.c", "frames.c", "streams.c", "relay.c", "sha256.c")


def test_random_acts_break_nothing(tmp_path: Path) -> None:
    find_nothing(build_random(tmp_path, TARGET, LINKED), 30_000, seeds=(0, 1))


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
    sources = sources_without(tmp_path, file, bound, without)
    assert is_missed(build_random(tmp_path, TARGET, LINKED, sources), 30_000)


@pytest.mark.slow
def test_libfuzzer_finds_nothing_in_a_minute(tmp_path: Path) -> None:
    fuzz_for(build_libfuzzer(tmp_path, TARGET, LINKED), 60)
