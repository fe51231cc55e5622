"""Hostile programs against the supervisor: contained, measured, cleaned up after; the next run sees nothing."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from grader.core.submission_files import SubmissionFile
from grader.sandbox.supervisor.frames import Cleared, Fatal, PutDone
from grader.sandbox.supervisor.results import RunResult

from .box import MIB, MS, SECOND, Box, BoxLostError

pytestmark = pytest.mark.docker

NewBox = Callable[..., Box]


def said(result: RunResult) -> dict[str, str]:
    text = result.stdout.captured.kept.decode()
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if " " in line)


# ---- limits ----


@pytest.mark.parametrize(
    "program", [("burn", "60000"), ("stubborn",), ("threads", "8", "60000"), ("burn-tree", "8", "60000")]
)
def test_too_much_cpu(box: Box, program: tuple[str, ...]) -> None:
    result = box.probe(*program, cpu_time_ns=200 * MS)
    assert (result.killed_for, result.signal) == ("cpu", 9)
    # Over the limit by its final measure too, and by not much more than one poll.
    assert 200 * MS < (result.cpu_ns or 0) < 300 * MS


def test_right_output_of_one_that_ignores_every_signal_is_kept(box: Box) -> None:
    assert box.probe("stubborn", cpu_time_ns=100 * MS).stdout.captured.kept == b"right\n"


@pytest.mark.parametrize("program", [("sleep", "60000"), ("raise", "19"), ("close", "60000")])
def test_too_much_wall_time_without_any_cpu(box: Box, program: tuple[str, ...]) -> None:
    result = box.probe(*program, wall_time_ns=300 * MS)
    assert result.killed_for in ("wall", "starved")
    assert result.signal == 9
    assert 300 * MS < result.wall_ns < 5 * SECOND
    assert (result.cpu_ns or 0) < 100 * MS


@pytest.mark.parametrize(("stream", "name"), [(1, "stdout"), (2, "stderr")])
def test_endless_output(box: Box, stream: int, name: str) -> None:
    result = box.probe("write", str(stream), str(10**12), stdout_kill_bytes=MIB, stderr_kill_bytes=MIB)
    assert result.killed_for == name
    captured = (result.stdout, result.stderr)[stream - 1].captured
    assert MIB < captured.total_bytes < 4 * MIB
    assert (result.numbers["sampled_peak_bytes"] or 0) < 32 * MIB


def test_a_file_over_the_limit(box: Box) -> None:
    result = box.probe("grow", "10001", file_size_bytes=10_000)
    assert (result.killed_for, result.signal) == ("file_size", 25)
    exactly = box.probe("grow", "10000", file_size_bytes=10_000, collect=(b"grown",))
    assert (exactly.exit_code, exactly.files[0].size_bytes) == (0, 10_000)
    ignoring = box.probe("grow", "10001", "1", file_size_bytes=10_000, collect=(b"grown",))
    assert (ignoring.killed_for, ignoring.exit_code, ignoring.files[0].size_bytes) == ("none", 0, 10_000)


# ---- processes ----


@pytest.mark.parametrize("program", ["bomb", "vfork-bomb", "orphans"])
def test_process_bombs(box: Box, program: str) -> None:
    result = box.probe(program, wall_time_ns=500 * MS, cpu_time_ns=5 * SECOND)
    assert result.killed_for in ("wall", "starved")
    assert (result.numbers["kill_ns"] or 0) < 5 * SECOND
    if program == "bomb":
        assert (result.numbers["survivors"] or 0) > 20


def test_a_process_limit_of_the_run_itself(box: Box) -> None:
    result = box.probe("bomb", wall_time_ns=200 * MS, processes=10)
    assert 1 <= (result.numbers["survivors"] or 0) <= 10


def test_a_daemon_that_holds_stdout_is_not_waited_for(box: Box) -> None:
    result = box.probe("daemon", "0")
    assert (result.exit_code, result.stdout.captured.kept) == (0, b"main")
    assert result.numbers["survivors"] == 1
    assert result.wall_ns < 5 * SECOND
    assert not result.stdout.closed_early


def test_what_a_daemon_wrote_until_it_was_dead_is_evidence(box: Box) -> None:
    result = box.probe("daemon", "1", stdout_kill_bytes=64 * MIB)
    kept = result.stdout.captured.kept
    assert kept.replace(b"d", b"") == b"main"
    assert result.stdout.after_main_bytes is not None
    assert result.stdout.after_main_bytes <= len(kept) - kept.index(b"main") - 4


# ---- memory ----


def test_out_of_memory_is_seen_by_counters(new_box: NewBox) -> None:
    box = new_box(memory=64 * MIB)
    result = box.probe("take", "200")
    assert result.signal == 9
    assert (result.numbers["oom_kills"] or 0) >= 1
    assert (result.numbers["memory_limit_hits"] or 0) >= 1
    assert (result.numbers["sampled_peak_bytes"] or 0) > 32 * MIB
    assert result.box_usable
    child = box.probe("child-takes", "200")
    assert (child.exit_code, child.stdout.captured.kept) == (0, b"right\n")
    assert (child.numbers["oom_kills"] or 0) >= 1
    fine = box.probe("take", "20")
    assert (fine.exit_code, fine.numbers["oom_kills"]) == (0, 0)
    assert 20 * MIB < (fine.numbers["max_rss_bytes"] or 0) < 30 * MIB


def test_the_kernel_takes_the_canary_before_the_core(box: Box) -> None:
    """Who lowers its own score and holds its memory in no process has us killed: first whom we can do without."""
    scores = [line.split() for line in box.probe("scores").stdout.captured.kept.splitlines()]
    assert sorted(int(score) for score, _ in scores) == [0, 0, 900]
    (held_kib,) = [int(held) for score, held in scores if score == b"900"]
    assert held_kib >= 4096  # which is free then, for as long as the core needs to end the run


def test_a_run_that_makes_others_die_is_told_of(new_box: NewBox) -> None:
    told = 0
    for _ in range(5):
        box = new_box(memory=64 * MIB)
        with suppress(BoxLostError):  # that the core is killed as well stays possible
            result = box.probe("makes-others-die")
            assert (result.numbers["oom_kills"] or 0) >= 1
            assert (result.numbers["memory_limit_hits"] or 0) >= 1
            assert not result.box_usable  # the canary was the first to go
            told += 1
    assert told > 0


def test_memory_that_is_not_touched_costs_nothing(box: Box) -> None:
    box.probe("env", *[b"y" * 99_999] * 20, stdout_keep_bytes=0)  # a long one before leaves no mark on the next
    for _ in range(50):
        box.probe("env", b"y" * 60_000, stdout_keep_bytes=0)
    result = box.probe("reserve")
    assert (result.exit_code, result.numbers["oom_kills"]) == (0, 0)
    assert (result.numbers["max_rss_bytes"] or 0) < 2 * MIB  # nothing of the supervisor's own is inherited


def test_killing_oneself_is_no_out_of_memory(box: Box) -> None:
    result = box.probe("raise", "9")
    assert (result.signal, result.numbers["oom_kills"]) == (9, 0)


# ---- files ----

OUTPUTS = (
    "good",
    "none",
    "big",
    "closed",
    "link",
    "out",
    "etc/passwd",
    "fifo",
    "folder",
    "folder/inner",
    "socket",
    "sparse",
)


def test_output_files_of_every_kind(box: Box) -> None:
    names = tuple(name.encode() for name in OUTPUTS)
    result = box.probe("outputs", collect=names, collect_file_bytes=1000, file_size_bytes=1 << 41)
    assert result.stdout.captured.kept == b"truncate 0\n"
    found = {name: (file.status, file.kind) for name, file in zip(OUTPUTS, result.files, strict=True)}
    assert found == {
        "good": ("regular", "regular"),
        "none": ("missing", "none"),
        "big": ("too_large", "regular"),
        "closed": ("regular", "regular"),
        "link": ("not_regular", "symlink"),
        "out": ("not_regular", "symlink"),
        "etc/passwd": ("refused", "none"),
        "fifo": ("not_regular", "fifo"),
        "folder": ("not_regular", "directory"),
        "folder/inner": ("regular", "regular"),
        "socket": ("not_regular", "socket"),
        "sparse": ("too_large", "regular"),
    }
    assert [file.content for file in result.files if file.content is not None] == [b"xxxxx", b"xxx", b"xxxx"]
    assert result.files[OUTPUTS.index("sparse")].size_bytes == 1 << 40
    assert (result.numbers["scrub_ns"] or 0) < 5 * SECOND


def test_all_output_files_together_have_a_cap(box: Box) -> None:
    names = (b"big", b"good", b"folder/inner")
    result = box.probe("outputs", collect=names, collect_total_bytes=2004)
    assert [file.status for file in result.files] == ["regular", "refused", "regular"]


def test_nothing_is_left_for_the_next_run(box: Box) -> None:
    result = box.probe("litter")
    assert result.exit_code == 0
    assert (result.numbers["scrub"], result.box_usable) == (1, True)
    assert (result.numbers["scrub_removed"] or 0) > 1000
    # The fixture then lists every writable place, with mode, time and extended attributes.


@pytest.mark.parametrize("program", ["inodes", "fill"])
def test_a_full_disk_is_an_error_of_the_program(box: Box, program: str) -> None:
    result = box.probe(program)
    assert result.stdout.captured.kept.endswith(b"No space left on device\n")
    assert (result.exit_code, result.numbers["oom_kills"], result.box_usable) == (0, 0, True)


def test_a_compile_keeps_regular_files_and_nothing_else(new_box: NewBox) -> None:
    box = new_box()
    result = box.probe("compile", keep_files=10, keep_bytes=8 * MIB, send_kept=True)
    kept = result.kept
    assert kept is not None
    assert kept.complete
    files = {file.path: (file.executable, file.size_bytes) for file in kept.files}
    assert files.keys() == {b"bin/program", b"data", b"secret", b"closed/in"}
    assert files[b"data"] == (False, 3)
    assert files[b"bin/program"][0]
    assert {(skipped.path, skipped.kind) for skipped in kept.skipped} == {
        (b"main", "symlink"),
        (b"fifo", "fifo"),
        (b"data", "set-id bits dropped"),
    }
    assert all(len(file.content or b"") == file.size_bytes for file in kept.files)
    # It runs from where it was kept, and no program can change it.
    assert box.run("/submission/bin/program", "exit", "5").exit_code == 5
    text = box.probe("touch", "/submission/bin/program").stdout.captured.kept.decode()
    assert "done" not in text
    assert "opened" not in text
    assert box.probe("list", "/submission").stdout.captured.kept.startswith(b"/submission: ")


def test_a_second_compile_in_the_same_box_keeps_as_much_as_the_first(new_box: NewBox) -> None:
    box = new_box()
    kept: list[set[bytes]] = []
    for _ in range(2):
        result = box.probe("compile", keep_files=10, keep_bytes=8 * MIB)
        assert result.kept is not None
        kept.append({file.path for file in result.kept.files})
        box.send(box.talk.clear())
        box.until(Cleared)
    assert kept[0] == kept[1] == {b"bin/program", b"data", b"secret", b"closed/in"}


@pytest.mark.parametrize("caps", [{"keep_files": 3, "keep_bytes": 8 * MIB}, {"keep_files": 10, "keep_bytes": 1000}])
def test_a_compile_over_its_caps_is_not_complete(new_box: NewBox, caps: dict[str, int]) -> None:
    result = new_box().probe("compile", **caps)
    assert result.kept is not None
    assert not result.kept.complete
    assert "over the caps" in {skipped.kind for skipped in result.kept.skipped}


def test_a_compile_that_fails_keeps_nothing(box: Box) -> None:
    assert box.probe("compile", "1", keep_files=10, keep_bytes=8 * MIB).kept is None
    assert box.probe("list", "/submission").stdout.captured.kept.startswith(b"/submission: | 755")


# ---- walls ----


def test_the_supervisor_cannot_be_reached(box: Box) -> None:
    answers = said(box.probe("attack"))
    assert not [name for name in answers if name.startswith("killed")]
    assert {name: answer for name, answer in answers.items() if answer == "ok"} == {}
    for name in ("kill-1", "kill-parent", "ptrace-1", "renice-1", "setuid-0"):
        assert answers[name] in ("EPERM", "EACCES"), name


def test_the_filter_is_a_wall_of_its_own(new_box: NewBox) -> None:
    """Without the engine's own profile, so that every refusal is ours."""
    box = new_box(security_opt=["seccomp=unconfined"])
    answers = said(box.probe("filter"))
    allowed = {name for name, answer in answers.items() if answer == "ok"}
    assert allowed == {"unix", "inet", "inet6", "route", "unshare-files", "traceme"}
    # The handshake tells, whatever the supervisor puts on itself.
    assert (box.status()["Seccomp"], box.status()["NoNewPrivs"]) == ("0", "0")
    assert box.probe("int80").signal == 31


def test_the_filter_behind_the_engines(box: Box) -> None:
    answers = said(box.probe("filter"))
    allowed = {name for name, answer in answers.items() if answer == "ok"}
    assert allowed - {"unshare-files"} == {"unix", "inet", "inet6", "route", "traceme"}
    assert answers["clone3"] == answers["io_uring"] == "ENOSYS"
    assert answers["vsock"] == answers["alg"] == answers["netfilter"] == "EAFNOSUPPORT"


def test_calls_of_another_architecture_are_deadly(box: Box) -> None:
    assert box.probe("int80").signal == 31


def test_threads_of_the_program_do_not_make_the_host_look_busy(box: Box) -> None:
    """Twenty spinning threads keep the canary waiting, but what keeps it waiting is the box's own use of the CPU."""
    result = box.probe("threads", "20", "60000", wall_time_ns=SECOND, cpu_time_ns=20 * SECOND)
    wall, cpu = result.wall_ns, (result.cpu_ns or 0) + (result.numbers["own_cpu_ns"] or 0)
    # Whatever was counted as the host's fault is time in which this box did not have its CPU.
    assert (result.numbers["lateness_ns"] or 0) <= wall - cpu + 50 * MS


# ---- the end of a box ----


def test_a_client_that_hangs_up(new_box: NewBox) -> None:
    box = new_box()
    box.begin("/probe", "stubborn")
    start = time.monotonic()
    assert box.hang_up() == 0
    assert time.monotonic() - start < 10


def test_sigterm(new_box: NewBox) -> None:
    box = new_box()
    box.begin("/probe", "stubborn")
    start = time.monotonic()
    box.client.kill(box.id, "SIGTERM")
    assert box.wait() == 0
    assert time.monotonic() - start < 10


def test_a_run_longer_than_the_idle_limit(new_box: NewBox) -> None:
    box = new_box(arguments=("--idle-s", "1"))
    assert box.probe("sleep", "1500").exit_code == 0
    assert box.probe("exit", "4").exit_code == 4


@pytest.mark.parametrize(("option", "code"), [("--idle-s", 6), ("--lifetime-s", 5)])
def test_limits_of_the_box_itself(new_box: NewBox, option: str, code: int) -> None:
    box = new_box(arguments=(option, "1"))
    with pytest.raises(BoxLostError) as lost:
        box.until(RunResult)
    assert [event.code for event in lost.value.events if isinstance(event, Fatal)] == [code]


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff" * 64,
        b"\x02\x00\x00\x00\xff\xff\xff\xff" + bytes(8),  # a length that is none
        b"\x20\x00" + bytes(14),  # PORT_OPEN, reserved
        b"\x09\x00" + bytes(6) + b"\x01" + bytes(7),  # RUN_START out of nowhere
        b"\x05\x00\x00\x00\xa0\x00\x00\x00\x01" + bytes(7) + bytes(160),  # RUN_BEGIN of zeros
        b"\x01\x00" + bytes(14),  # a second hello
    ],
)
def test_a_client_that_breaks_the_protocol(new_box: NewBox, garbage: bytes) -> None:
    box = new_box()
    box.send(garbage)
    with pytest.raises(BoxLostError) as lost:
        box.until(RunResult)
    assert [event.code for event in lost.value.events if isinstance(event, Fatal)] == [1]


def test_work_files_that_do_not_fit_are_reported(box: Box) -> None:
    box.begin("/probe", "exit", "0", files=[SubmissionFile(b"big", bytes(17 * MIB)), SubmissionFile(b"small", b"x")])
    answers = [box.until(PutDone) for _ in range(2)]
    assert [(answer.step, answer.errno) for answer in answers] == [(4, 28), (4, 28)]
    box.until(RunResult)
