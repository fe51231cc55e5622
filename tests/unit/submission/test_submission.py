from __future__ import annotations

import errno
import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.errors import SubmissionError
from grader.submission import Submission, SubmissionFile, SubmissionLimits
from tests.unit.submission.archives import bytes_path, tar_member, write_folder, write_tar, write_zip

MAIN = {b"main.py": (b"print(1)\n", False)}
DIGEST_OF_MAIN = "75f76fbc6ad87acbf66a371c7f0766b87157f98b9eae080e94558ad75ace2caa"


def refusal(make: Callable[[], object]) -> str:
    with pytest.raises(SubmissionError) as caught:
        make()
    assert caught.value.code == "submission.refused"
    assert caught.value.hint
    assert caught.value.where is not None
    return caught.value.message


def refusal_or_none(path: Path) -> SubmissionError | None:
    try:
        Submission.from_path(path)
    except SubmissionError as error:
        return error
    return None


def test_a_file_a_folder_and_archives_of_it_are_one_submission(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "alice", MAIN)
    write_zip(tmp_path / "flat.zip", [("main.py", b"print(1)\n")])
    write_zip(tmp_path / "alice.zip", [("alice/main.py", b"print(1)\n")])
    write_tar(tmp_path / "alice.tar", [(tar_member("./main.py"), b"print(1)\n")])
    write_tar(tmp_path / "alice.tar.gz", [(tar_member("alice/main.py"), b"print(1)\n")], mode="w:gz")
    write_tar(tmp_path / "b.TGZ", [(tar_member("main.py"), b"print(1)\n")], mode="w:gz")
    paths = [folder, folder / "main.py", *sorted(tmp_path.glob("*.*"))]
    assert len(paths) == 7
    digests = {Submission.from_path(path).digest for path in paths}
    digests.add(Submission.from_source("print(1)\n").digest)
    digests.add(Submission.from_files({"main.py": b"print(1)\n"}).digest)
    assert digests == {DIGEST_OF_MAIN}


def test_the_digest_is_over_path_executable_bit_and_bytes(tmp_path: Path) -> None:
    base = SubmissionFile(b"main.py", b"x")
    others = [
        SubmissionFile(b"main.py", b"y"),
        SubmissionFile(b"main2.py", b"x"),
        SubmissionFile(b"main.py", b"x", executable=True),
    ]
    digests = {Submission((file,), "n").digest for file in [base, *others]}
    assert len(digests) == 4
    assert Submission((base,), "another name", "python", "main.py").digest == Submission((base,), "n").digest
    two = (SubmissionFile(b"a", b"1"), SubmissionFile(b"b", b"2"))
    assert Submission(two, "n").digest == Submission(two[::-1], "n").digest
    assert (
        Submission((SubmissionFile(b"b\xff", b"\x00", executable=True), *two), "n").digest
        == "d0974702282179152931287493ff6d2895d02e89b583a2aa808c75691dd1ada8"
    )


def test_from_source_names_the_file_by_its_language() -> None:
    submission = Submission.from_source("int main;", language="c")
    assert [(file.path, file.content) for file in submission.files] == [(b"main.c", b"int main;")]
    assert (submission.name, submission.language, submission.entry) == ("main.c", "c", "main.c")
    assert Submission.from_source("x", language="cobol").entry == "main"
    assert Submission.from_source("x", language="java", path="Hello.java", name="n").entry == "Hello.java"
    assert Submission.from_source("a\r\nb").files[0].content == b"a\r\nb"
    with pytest.raises(FrozenInstanceError):
        submission.name = "other"  # pyright: ignore[reportAttributeAccessIssue]


def test_executable_bits_come_from_folder_zip_and_tar(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", {b"run": (b"#!/bin/sh\n", True)})
    write_zip(tmp_path / "a.zip", [("run", b"#!/bin/sh\n")], mode=0o755)
    write_tar(tmp_path / "a.tar", [(tar_member("run", mode=0o755), b"#!/bin/sh\n")])
    for name in ("a", "a.zip", "a.tar"):
        assert [file.executable for file in Submission.from_path(tmp_path / name).files] == [True], name


NAMES = st.lists(
    st.binary(min_size=1, max_size=6).filter(
        lambda b: not set(b) & set(b"/\\\0") and b not in {b".", b"..", b".git", b".DS_Store"} and b[:2] != b"._"
    ),
    min_size=1,
    max_size=3,
).map(b"/".join)


@settings(max_examples=40, deadline=None)
@given(
    files=st.dictionaries(NAMES, st.tuples(st.binary(max_size=40), st.booleans()), min_size=1, max_size=5),
)
def test_any_files_that_can_stand_together_come_out_of_folder_zip_and_tar_alike(
    files: dict[bytes, tuple[bytes, bool]],
) -> None:
    with tempfile.TemporaryDirectory() as place:
        expected = tuple(SubmissionFile(name, *files[name]) for name in sorted(files))
        try:
            direct = Submission(expected, "n")
        except SubmissionError:
            return  # names that clash; tested by themselves
        folder = write_folder(Path(place) / "s", files)
        members = [
            (tar_member(os.fsdecode(name), mode=0o755 if executable else 0o644), content)
            for name, (content, executable) in files.items()
        ]
        tar = write_tar(Path(place) / "t.tar.gz", members, mode="w:gz")
        for source in (folder, tar):
            found = Submission.from_path(source)
            assert found.files == expected
            assert found.digest == direct.digest


def test_zip_names_are_their_bytes_with_and_without_the_utf8_flag(tmp_path: Path) -> None:
    with_flag = write_zip(tmp_path / "a.zip", [("ä.py", b"1")])
    assert Submission.from_path(with_flag).files[0].path == "ä.py".encode()
    data = with_flag.read_bytes()
    # Drop the flag in both headers, as many programs that write UTF-8 do.
    local, central = data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8
    plain = bytearray(data)
    for place in (local, central):
        plain[place : place + 2] = b"\0\0"
    (tmp_path / "b.zip").write_bytes(plain)
    assert Submission.from_path(tmp_path / "b.zip").files[0].path == "ä.py".encode()


def test_an_archive_folder_of_another_name_is_part_of_the_paths(tmp_path: Path) -> None:
    write_zip(tmp_path / "alice.zip", [("com/Main.java", b"x")])
    assert Submission.from_path(tmp_path / "alice.zip").files[0].path == b"com/Main.java"
    write_zip(tmp_path / "bob.zip", [("bob/Main.java", b"x"), ("b.txt", b"")])
    assert [file.path for file in Submission.from_path(tmp_path / "bob.zip").files] == [b"b.txt", b"bob/Main.java"]
    folder = write_folder(tmp_path / "c.zip", {b"c/main.py": (b"", False)})
    assert Submission.from_path(folder).files[0].path == b"c/main.py"


def test_litter_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    write_zip(
        tmp_path / "alice.zip",
        [("alice/main.py", b"print(1)\n"), ("__MACOSX/alice/._main.py", b"\0"), ("alice/.DS_Store", b"\0")],
    )
    zipped = Submission.from_path(tmp_path / "alice.zip")
    assert zipped.digest == DIGEST_OF_MAIN
    assert len(zipped.ignored) == 2
    assert "._main.py" in zipped.ignored[0]
    folder = write_folder(tmp_path / "f", {**MAIN, b".git/HEAD": (b"x", False)})
    (folder / "logs").mkdir()
    found = Submission.from_path(folder)
    assert found.digest == DIGEST_OF_MAIN
    assert found.ignored == ("'.git': litter", "'logs': a folder without files")


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "a//b", "..", "a/./b", "a\\b", "x" * 256])
def test_names_that_leave_or_confuse_are_refused_everywhere(tmp_path: Path, name: str) -> None:
    assert refusal(lambda: Submission.from_path(write_zip(tmp_path / "a.zip", [("ok", b""), (name, b"")])))
    assert refusal(lambda: Submission.from_path(write_tar(tmp_path / "a.tar", [(tar_member(name), b"")])))
    assert refusal(lambda: Submission.from_files({"ok": "", name: ""}))
    assert refusal(lambda: Submission((SubmissionFile(name.encode(), b""),), "n"))


def test_nul_in_a_zip_name_is_refused_although_the_parser_hides_it(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.pyXevil", b"")])
    path.write_bytes(path.read_bytes().replace(b"main.pyXevil", b"main.py\0evil"))
    assert "NUL" in refusal(lambda: Submission.from_path(path))


def test_paths_too_deep_are_refused(tmp_path: Path) -> None:
    deep = "/".join("d" * 33)
    assert "deep" in refusal(lambda: Submission.from_files({deep: ""}))
    folder = write_folder(tmp_path / "s", {deep.encode(): (b"", False)})
    assert "deep" in refusal(lambda: Submission.from_path(folder))
    assert "deep" in refusal(lambda: Submission.from_path(write_zip(tmp_path / "a.zip", [(deep, b"")])))
    assert Submission.from_files({"/".join("d" * 32): ""})


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("A.py", "a.py", "upper and lower case"),
        ("Lib/a.py", "lib/b.py", "upper and lower case"),
        ("\u00e9", "e\u0301", "composed"),
        ("a", "a/b", "both a file and a folder"),
        ("a/b", "a", "both a file and a folder"),
        ("a", "a", "twice"),
    ],
)
def test_names_that_clash_are_refused(tmp_path: Path, first: str, second: str, words: str) -> None:
    members = [(tar_member(first), b""), (tar_member(second), b"")]
    assert words in refusal(lambda: Submission.from_path(write_tar(tmp_path / "a.tar", members)))
    files = tuple(SubmissionFile(name.encode(), b"") for name in (first, second))
    assert words in refusal(lambda: Submission(files, "n"))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names_in_a_zip_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.py", b"1"), ("main.py", b"2")])
    assert "twice" in refusal(lambda: Submission.from_path(path))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.SYMTYPE, "is a link"),
        (tarfile.LNKTYPE, "is a link"),
        (tarfile.FIFOTYPE, "not a regular file"),
        (tarfile.CHRTYPE, "not a regular file"),
        (tarfile.BLKTYPE, "not a regular file"),
        (tarfile.GNUTYPE_SPARSE, ""),
    ],
)
def test_links_and_special_files_in_a_tar_are_refused(tmp_path: Path, kind: bytes, words: str) -> None:
    members = [(tar_member("main.py"), b""), (tar_member("x", kind, link="main.py"), b"")]
    assert words in refusal(lambda: Submission.from_path(write_tar(tmp_path / "a.tar", members)))


@pytest.mark.parametrize(
    ("kind", "words"), [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "not a regular"), (stat.S_IFCHR, "not a regular")]
)
def test_links_and_special_files_in_a_zip_are_refused(tmp_path: Path, kind: int, words: str) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.py", b"/etc/passwd")], kind=kind)
    assert words in refusal(lambda: Submission.from_path(path))


def test_links_and_special_files_in_a_folder_are_refused_and_never_opened(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "s", MAIN)
    (folder / "x").symlink_to("main.py")
    assert "'x' is a link" in refusal(lambda: Submission.from_path(folder))
    (folder / "x").unlink()
    os.mkfifo(folder / "x")
    assert "'x' is a FIFO" in refusal(lambda: Submission.from_path(folder))
    assert "is a FIFO" in refusal(lambda: Submission.from_path(folder / "x"))
    assert "is a device" in refusal(lambda: Submission.from_path("/dev/zero"))
    (folder / "x").unlink()
    (folder / "x").symlink_to("/etc", target_is_directory=True)
    assert "'x' is a link" in refusal(lambda: Submission.from_path(folder))


def test_the_named_path_itself_may_be_a_link(tmp_path: Path) -> None:
    write_folder(tmp_path / "s", MAIN)
    (tmp_path / "link").symlink_to("s")
    assert Submission.from_path(tmp_path / "link").digest == DIGEST_OF_MAIN


def test_what_is_not_there_or_unreadable_or_empty_is_refused(tmp_path: Path) -> None:
    assert refusal(lambda: Submission.from_path(tmp_path / "none")) == "does not exist"
    assert "cannot be read" in refusal(lambda: Submission.from_path("a\0b"))
    (tmp_path / "empty").mkdir()
    assert "no file in it" in refusal(lambda: Submission.from_path(tmp_path / "empty"))
    assert "no file in it" in refusal(lambda: Submission.from_files({}))
    assert "no file in it" in refusal(lambda: Submission.from_path(write_zip(tmp_path / "e.zip", [])))
    assert "entry point" in refusal(lambda: Submission.from_files({"a": ""}, entry="b"))
    assert "not valid Unicode" in refusal(lambda: Submission.from_source("\ud800"))


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_folder(tmp_path / "s", MAIN)
    really_open = os.open

    def refusing(path: str | bytes, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == b"main.py":
            raise PermissionError(errno.EACCES, "Permission denied")
        return really_open(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refusing)
    assert "'main.py' cannot be read: Permission denied" in refusal(lambda: Submission.from_path(folder))


SMALL = SubmissionLimits(total_bytes=1000, files=5, unsuspected_bytes=500, archive_ratio=20)


def test_sizes_and_counts_are_limited_in_every_form(tmp_path: Path) -> None:
    def read(path: Path) -> str:
        return refusal(lambda: Submission.from_path(path, limits=SMALL))

    noise = os.urandom(1001)
    folder = write_folder(tmp_path / "s", {b"a": (noise[:500], False), b"b": (noise[:501], False)})
    assert "larger than 1,000 bytes" in read(folder)
    assert "larger than 1,000 bytes" in read(write_zip(tmp_path / "a.zip", [("a", noise[:500]), ("b", noise[:501])]))
    tar = write_tar(tmp_path / "a.tar", [(tar_member("a"), noise[:500]), (tar_member("b"), noise[:501])])
    assert "larger than 1,000 bytes" in read(tar)
    (folder / "b").write_bytes(noise[:500])
    assert len(Submission.from_path(folder, limits=SMALL).files) == 2
    many = {f"{number}".encode(): (b"", False) for number in range(6)}
    assert "more than 5 files" in read(write_folder(tmp_path / "m", many))
    assert "more than 5 files" in read(write_zip(tmp_path / "m.zip", [(name.decode(), b"") for name in many]))
    members = [(tar_member(name.decode()), b"") for name in many]
    assert "more than 5 files" in read(write_tar(tmp_path / "m.tar", members))
    assert "more than 5 files" in read(write_tar(tmp_path / "f.tar", [(tar_member(f"{n}", b"5"), b"") for n in many]))


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    zeros = bytes(20 * 2**20)
    bomb = write_zip(tmp_path / "bomb.zip", [("a", zeros), ("b", zeros)])
    assert "250 times its size" in refusal(lambda: Submission.from_path(bomb))
    tar = write_tar(tmp_path / "bomb.tgz", [(tar_member("a"), zeros)], mode="w:gz")
    assert "250 times its size" in refusal(lambda: Submission.from_path(tar))


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.py", b"x" * 400)], method=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    for declared in (399, 401, 2**31):
        lied = data.copy()
        lied[central + 24 : central + 28] = declared.to_bytes(4, "little")
        path.write_bytes(lied)
        assert refusal(lambda: Submission.from_path(path))


def test_a_zip_directory_beyond_measure_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.py", b"x")])
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 12 : end + 16] = (2**31).to_bytes(4, "little")
    path.write_bytes(data)
    assert "beyond measure" in refusal(lambda: Submission.from_path(path))
    locator = b"PK\x06\x07" + bytes(16)
    sound = write_zip(tmp_path / "b.zip", [("main.py", b"x")]).read_bytes()
    end = sound.rindex(b"PK\x05\x06")
    path.write_bytes(sound[:end] + locator + sound[end:])
    assert "beyond measure" in refusal(lambda: Submission.from_path(path))


def test_encrypted_and_oddly_compressed_zips_are_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", [("main.py", b"x")])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refusal(lambda: Submission.from_path(path))
    lzma = write_zip(tmp_path / "l.zip", [("main.py", b"x")], method=zipfile.ZIP_LZMA)
    assert "method 14" in refusal(lambda: Submission.from_path(lzma))


def archive_bytes(tmp_path: Path, suffix: str) -> bytes:
    content = b"print('a program of some length')\n" * 3
    if suffix == ".zip":
        return write_zip(tmp_path / "x.zip", [("main.py", content), ("b.py", content)]).read_bytes()
    mode = "w:gz" if suffix == ".tgz" else "w"
    members = [(tar_member("main.py"), content), (tar_member("b.py"), content)]
    return write_tar(tmp_path / f"x{suffix}", members, mode=mode).read_bytes()


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tgz"])
def test_a_cut_archive_is_refused_at_every_length(tmp_path: Path, suffix: str) -> None:
    data = archive_bytes(tmp_path, suffix)
    path = tmp_path / f"cut{suffix}"
    # A tar is padded with zeros to its record size: only the first block of its end counts.
    sound = -(-len(data.rstrip(b"\0")) // 512) * 512 + 512 if suffix == ".tar" else len(data)
    for length in range(0, sound, 97 if suffix == ".tar" else 1):
        path.write_bytes(data[:length])
        assert refusal(lambda: Submission.from_path(path)), length


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tgz"])
def test_a_damaged_archive_is_refused_or_read_but_never_anything_else(tmp_path: Path, suffix: str) -> None:
    data = archive_bytes(tmp_path, suffix)
    path = tmp_path / f"damaged{suffix}"
    for place in range(0, min(len(data), 2048), 5):
        for value in (0x00, data[place] ^ 0x10):
            damaged = bytearray(data)
            damaged[place] = value
            path.write_bytes(damaged)
            error = refusal_or_none(path)
            assert error is None or (error.hint and error.message.isprintable())


def test_a_tar_whose_later_header_is_damaged_does_not_silently_lose_files(tmp_path: Path) -> None:
    members = [(tar_member("main.py"), bytes(1024)), (tar_member("b.py"), b"x")]
    path = write_tar(tmp_path / "a.tar", members)
    data = bytearray(path.read_bytes())
    assert data[1536:1540] == b"b.py"
    path.write_bytes(data[:1536])  # cut after a file that ends in zeros
    assert "its end is missing" in refusal(lambda: Submission.from_path(path))
    data[1536] ^= 1
    path.write_bytes(data)
    assert "its end is missing" in refusal(lambda: Submission.from_path(path))


@pytest.mark.parametrize("suffix", [".zip", ".tar", ".tar.gz"])
def test_something_else_under_the_name_of_an_archive_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    for data in (b"", b"print(1)\n" * 100, bytes(1024)):
        path.write_bytes(data)
        assert refusal(lambda: Submission.from_path(path))


def test_a_tar_with_a_name_of_megabytes_is_refused_within_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    header = tar_member("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    header.size = 2**33
    path.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(4096))
    assert refusal(lambda: Submission.from_path(path))


def test_messages_show_hostile_names_quoted(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", [(tar_member("\x1b[31mred", tarfile.SYMTYPE, link="x"), b"")])
    message = refusal(lambda: Submission.from_path(path))
    assert message.isprintable()
    assert "\\x1b" in message


def test_a_name_that_is_not_utf8_is_kept_byte_for_byte(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "s", {b"caf\xe9.py": (b"", False)})
    assert os.path.exists(bytes_path(folder, b"caf\xe9.py"))
    assert Submission.from_path(folder).files[0].path == b"caf\xe9.py"
