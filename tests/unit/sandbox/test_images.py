"""What an image is made of, and what it is known by."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.errors import PrerequisiteError
from grader.sandbox.docker import debian
from grader.sandbox.docker.images import ImageRecipe, content_key, packages_dockerfile, read_context, supervisor_sources


def test_the_content_key_is_over_everything() -> None:
    base = content_key("runtime", {"Dockerfile": b"FROM x"}, base="sha256:1")
    assert content_key("runtime", {"Dockerfile": b"FROM x"}, base="sha256:1") == base
    others = {
        content_key("runtime", {"Dockerfile": b"FROM y"}, base="sha256:1"),
        content_key("runtime", {"Dockerfile": b"FROM x"}, base="sha256:2"),
        content_key("packages", {"Dockerfile": b"FROM x"}, base="sha256:1"),
        content_key("runtime", {"Dockerfile": b"FROM x", "more": b""}, base="sha256:1"),
    }
    assert base not in others
    assert len(others) == 4


def test_a_build_context_has_the_files_below_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/data").write_bytes(b"\x00")
    (tmp_path / "secret").symlink_to("/etc/shadow")
    assert read_context(tmp_path) == {"Dockerfile": b"FROM x\n", "sub/data": b"\x00"}
    (tmp_path / "Dockerfile").unlink()
    with pytest.raises(PrerequisiteError, match="there is no"):
        read_context(tmp_path)
    with pytest.raises(PrerequisiteError, match="there is no"):
        read_context(tmp_path / "nowhere")


def test_packages_are_installed_in_order_and_nothing_is_left_behind() -> None:
    text = packages_dockerfile(ImageRecipe("x", debian=("zip", "bc"), pypi=("numpy==1.26.4",)))
    assert text.startswith("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN apt-get update && ")
    assert "install --yes --no-install-recommends bc zip &&" in text
    assert "--only-binary :all: numpy==1.26.4 &&" in text
    assert text.count("rm -rf /var/lib/apt/lists/*") == 2
    assert packages_dockerfile(ImageRecipe("x", debian=("bc", "zip"))) == packages_dockerfile(
        ImageRecipe("y", debian=("zip", "bc"))
    )


def test_pip_trusts_the_machines_certificates_in_that_step_alone() -> None:
    recipe = ImageRecipe("x", pypi=("a",))
    text = packages_dockerfile(recipe, with_certificates=True)
    assert "COPY grader-certificates.pem /tmp/grader-certificates.pem\n" in text
    assert "--cert /tmp/grader-certificates.pem a &&" in text
    assert text.rstrip().endswith("/tmp/grader-certificates.pem"), "it is removed again"
    assert "COPY" not in packages_dockerfile(recipe)


def test_the_supervisors_sources_come_with_the_package() -> None:
    sources = supervisor_sources()
    assert "src/main.c" in sources
    assert "src/protocol.h" in sources


def test_debian_is_made_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there: set[str] = set()

    def which(name: str) -> str | None:
        return name if name in there else None

    monkeypatch.setattr(shutil, "which", which)
    with pytest.raises(PrerequisiteError, match="neither mmdebstrap nor debootstrap") as caught:
        debian.commands(Path("/a.tar"), Path("/root"))
    assert "apt-get install mmdebstrap" in str(caught.value)
    there.add("debootstrap")
    assert [command[0] for command in debian.commands(Path("/a.tar"), Path("/root"))] == ["debootstrap", "tar"]
    there.add("mmdebstrap")
    [command] = debian.commands(Path("/a.tar"), Path("/root"))
    assert command[0] == "mmdebstrap"
    assert command[-2:] == ["bookworm", "/a.tar"]


@pytest.mark.anyio
async def test_making_debian_says_why_it_failed_and_hands_on_its_lines() -> None:
    lines: list[str] = []
    with pytest.raises(PrerequisiteError, match="exit code 3"):
        await debian.run_command(["sh", "-c", "echo one; echo two >&2; exit 3"], lines.append)
    assert lines == ["one", "two"]
    with pytest.raises(PrerequisiteError, match="not done within"):
        await debian.run_command(["sleep", "60"], lines.append, within_s=0.05)
