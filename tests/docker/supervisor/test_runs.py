"""What the supervisor does with ordinary programs: everything as asked, byte for byte, and true measures."""

from __future__ import annotations

import hashlib

import pytest

from grader.core.submission_files import SubmissionFile
from grader.sandbox.supervisor.frames import Cleared, PutDone
from grader.sandbox.supervisor.results import RunResult

from .box import MIB, MS, SECOND, Box

pytestmark = pytest.mark.docker


def lines(result: RunResult) -> dict[str, str]:
    """Lines `name value` (or `name:\tvalue`) of what it printed."""
    text = result.stdout.captured.kept.decode()
    pairs = (line.replace(":\t", " ", 1).partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def test_the_handshake_says_what_is(box: Box) -> None:
    status = box.status()
    assert (status["Seccomp"], status["NoNewPrivs"]) == ("2", "1")
    for which in ("CapEff", "CapPrm", "CapBnd"):
        assert int(status[which], 16) == 0xE1, which  # CHOWN, KILL, SETGID, SETUID
    assert [line.split(":")[0].strip() for line in box.fact("/proc/net/dev").splitlines()[2:]] == ["lo"]
    memory = box.fact("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    assert int(memory) == 128 * MIB
    assert int(box.fact("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")) == 64
    assert box.fact("affinity.cpus") == "0"
    assert set(box.fact("scrub.mount").split()) == {"/tmp", "/work", "/dev/shm", "/dev/mqueue"}
    assert box.fact("/proc/sys/kernel/shmmni") == "0"
    (root,) = (line.split() for line in box.fact("/proc/self/mountinfo").splitlines() if line.split()[4] == "/")
    assert "ro" in root[5].split(",")
    assert box.fact("pty.closed") == "1"


def test_a_program_finds_exactly_what_it_should(box: Box) -> None:
    me = lines(box.probe("self", open_files=99, stack_bytes=4 * MIB, file_size_bytes=5000, processes=33))
    assert me["cwd"] == "/work"
    assert (me["nice"], me["umask"], me["leader"], me["parent"]) == ("10", "22", "1", "1")
    assert me["fds"] == "0 1 2"
    uids = me["Uid"].split()
    assert uids == me["Gid"].split() == uids[:1] * 4
    assert int(uids[0]) > 1 << 30
    assert me["Groups"] == ""
    assert {me[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
    assert {me[name] for name in ("SigBlk", "SigIgn", "SigCgt", "SigPnd")} == {"0" * 16}
    assert (me["NoNewPrivs"], me["Seccomp"], me["Seccomp_filters"]) == ("1", "2", "2")
    text = box.probe("self", open_files=99, stack_bytes=4 * MIB, file_size_bytes=5000, processes=33)
    limits = text.stdout.captured.kept.decode()
    for name, value in (
        *(("Max open files", 99), ("Max stack size", 4 * MIB), ("Max file size", 5000), ("Max processes", 33)),
        *(("Max core file size", 0), ("Max msgqueue size", 0), ("Max cpu time", 11)),
    ):
        (line,) = [line for line in limits.splitlines() if line.startswith(name)]
        assert line[len(name) :].split()[0] == str(value), line


def test_every_run_has_another_user(box: Box) -> None:
    assert len({lines(box.probe("self"))["Uid"] for _ in range(3)}) == 3


def test_arguments_and_environment_are_byte_exact(box: Box) -> None:
    arguments = (b"", b"-rf", b"a b", b"$(x)`y`", b"'\"\\", b"line\nline", b"\xff\xfe", b"x" * 100_000)
    environment = ((b"B", b""), (b"A", b"x=y\n"), (b"\xff", b"\x01"))
    result = box.probe("env", *arguments, environment=environment)
    expected = b"".join(b"[" + a + b"]\n" for a in arguments) + b"B=\nA=x=y\n\n\xff=\x01\n"
    assert result.stdout.captured.kept == expected
    assert box.probe("env").stdout.captured.kept == b""  # nothing is inherited


def test_two_megabytes_of_arguments(box: Box) -> None:
    result = box.probe("env", *[b"y" * 99_999] * 20, stdout_keep_bytes=3 * MIB)
    assert result.stdout.captured.kept == (b"[" + b"y" * 99_999 + b"]\n") * 20
    too_much = box.probe("env", *[b"y" * 200_000])
    assert (too_much.start_step, too_much.start_errno) == ("exec", 7)  # E2BIG: the kernel's own limit


def test_all_bytes_on_both_streams(box: Box) -> None:
    result = box.probe("bytes")
    assert result.stdout.captured.kept == result.stderr.captured.kept == bytes(range(256))


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 3 * MIB])
def test_stdin_comes_out_as_it_went_in(box: Box, size: int) -> None:
    data = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    result = box.probe("cat", stdin=data)
    assert result.exit_code == 0
    assert result.stdout.captured.kept == data
    assert result.numbers["stdin_taken_bytes"] == size


def test_stdin_beyond_the_buffer_is_streamed_and_waiting_for_it_is_not_charged(box: Box) -> None:
    data = bytes(20 * MIB)
    result = box.probe("count", stdin=data)
    assert result.stdout.captured.kept == b"%d\n" % len(data)
    assert result.numbers["stdin_taken_bytes"] == len(data)


def test_a_program_that_never_reads_17_mib_of_stdin(box: Box) -> None:
    result = box.probe("exit", "0", stdin=bytes(17 * MIB))
    assert result.exit_code == 0
    assert (result.numbers["stdin_taken_bytes"] or 0) <= 1 * MIB


def test_a_program_that_closes_everything_and_goes_on(box: Box) -> None:
    result = box.probe("close", "50", stdin=bytes(MIB))
    assert result.exit_code == 0
    assert result.stdout.closed_early
    assert result.stderr.closed_early
    assert result.wall_ns >= 50 * MS
    assert not box.probe("sleep", "1").stdout.closed_early


@pytest.mark.parametrize("code", [0, 1, 42, 124, 127, 137, 143, 255])
def test_exit_codes_are_the_programs_own(box: Box, code: int) -> None:
    result = box.probe("exit", str(code))
    assert (result.exit_code, result.signal, result.killed_for, result.start_step) == (code, None, "none", "")
    assert result.numbers["oom_kills"] == 0


@pytest.mark.parametrize("signal", [4, 6, 8, 9, 11, 15])
def test_signals_are_the_programs_own(box: Box, signal: int) -> None:
    result = box.probe("raise", str(signal))
    assert (result.exit_code, result.signal, result.killed_for) == (None, signal, "none")
    assert not result.core_dumped


def test_what_cannot_be_started(box: Box) -> None:
    for argv, errno in (("/nothing", 2), ("/text", 13), ("/", 13), ("/probe/x", 20), ("nothing", 2)):
        result = box.run(argv)
        assert (result.start_step, result.start_errno) == ("exec", errno), argv
        assert (result.exit_code, result.signal) == (None, None)
    executable = [
        SubmissionFile(b"odd", b"no program either\n", executable=True),
        SubmissionFile(b"bang", b"#!/missing\n", True),
    ]
    assert box.run("./odd", files=executable).start_errno == 8  # ENOEXEC: no shell comes to help
    assert box.run("./bang", files=executable).start_errno == 2


def test_a_name_is_looked_up_in_the_path_that_was_given(box: Box) -> None:
    assert box.run("probe", "exit", "3", environment=((b"PATH", b"/nowhere:/"),)).exit_code == 3
    assert box.run("probe", "exit", "3", environment=((b"PATH", b"/nowhere"),)).start_errno == 2
    assert box.run("probe", "exit", "3").start_errno == 2


def test_files_for_the_work_folder_are_the_programs_own(box: Box) -> None:
    files = [
        SubmissionFile(b"a/b/data", b"1\n"),
        SubmissionFile(b"a/run", b"2", executable=True),
        SubmissionFile(b"odd\n\xff", b"3"),
    ]
    result = box.probe("touch", "a/b/data", "a/new", "odd\n", files=files, collect=(b"a/run", b"odd\n\xff"))
    for name in ("a/b/data", "a/new"):
        for what in ("opened", "unlink done"):
            assert f"{name} {what}" in result.stdout.captured.kept.decode()
    assert [(f.content, f.mode) for f in result.files] == [(b"2", 0o755), (b"3", 0o644)]


def test_cpu_time_of_a_whole_tree_whose_parent_ignores_its_children(box: Box) -> None:
    """The children wait for nobody, so their time is in nobody's rusage: only the cgroup knows it."""
    result = box.probe("burn-tree", "4", "100")
    cpu, user, system = (result.numbers[name] or 0 for name in ("cpu_ns", "user_ns", "system_ns"))
    assert user + system < 100 * MS
    # 400 ms, and the forks; each child measures itself to the nanosecond.
    assert 400 * MS <= cpu <= 425 * MS


@pytest.mark.parametrize("milliseconds", [50, 300])
def test_cpu_time_is_within_two_percent_or_five_milliseconds(box: Box, milliseconds: int) -> None:
    wanted = milliseconds * MS
    assert abs((box.probe("burn", str(milliseconds)).cpu_ns or 0) - wanted) <= max(wanted // 50, 5 * MS)


def test_a_truncated_stream_has_prefix_length_and_digest_of_the_whole(box: Box) -> None:
    whole = b"x" * 200_000
    result = box.probe("write", "2", "200000", stderr_keep_bytes=1000)
    captured = result.stderr.captured
    assert (captured.kept, captured.total_bytes) == (whole[:1000], len(whole))
    assert captured.sha256 == hashlib.sha256(whole).hexdigest()
    assert result.killed_for == "none"


@pytest.mark.parametrize("stream", [1, 2])
def test_exactly_the_cap_and_one_byte_more(box: Box, stream: int) -> None:
    caps = {"stdout_kill_bytes": 70_000, "stderr_kill_bytes": 70_000, "stderr_keep_bytes": 70_000}
    at = box.probe("write", str(stream), "70000", **caps)
    assert (at.exit_code, at.killed_for) == (0, "none")
    over = box.probe("write", str(stream), "70001", **caps)
    captured = (over.stdout, over.stderr)[stream - 1].captured
    assert captured.total_bytes == 70_001


def test_cancelling(box: Box) -> None:
    box.begin("/probe", "sleep", "20000")
    box.send(box.talk.cancel())
    result = box.until(RunResult)
    assert (result.killed_for, result.signal) == ("cancelled", 9)
    assert result.wall_ns < 10 * SECOND


def test_a_submission_stays_and_is_read_only_until_it_is_cleared(box: Box) -> None:
    box.send(box.talk.put(b"lib/a/data", b"hello"))
    box.send(box.talk.put(b"lib/a/data", b"again"))
    box.send(box.talk.put(b"lib/a/data/x", b"again"))
    box.send(box.talk.put(b"big", bytes(17 * MIB)))
    answers = [(answer.step, answer.errno) for answer in (box.until(PutDone) for _ in range(4))]
    assert answers == [(0, 0), (3, 17), (2, 20), (4, 28)]  # EEXIST, ENOTDIR, ENOSPC
    assert box.probe("list", "/submission/lib/a").stdout.captured.kept.startswith(b"/submission/lib/a: data | 755")
    text = box.probe("touch", "/submission/lib/a/data", "/submission/new").stdout.captured.kept.decode()
    assert "opened" not in text
    assert "done" not in text
    box.send(box.talk.clear() + box.talk.put(b"lib", b"new"))  # without waiting: the file comes after
    box.until(Cleared)
    assert box.until(PutDone).step == 0
    assert box.probe("list", "/submission").stdout.captured.kept.startswith(b"/submission: lib |")
    box.send(box.talk.clear())
    box.until(Cleared)
    assert box.probe("list", "/submission").stdout.captured.kept.startswith(b"/submission: | 755")
