"""Debian's root file system, made here from Debian's packages where no image registry answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from grader.core.reasons import ReasonCode
from grader.errors import PrerequisiteError
from grader.sandbox.docker.builds import Progress
from grader.sandbox.docker.engine import Engine

SUITE = "bookworm"
DEBIAN_IMAGE = f"debian:{SUITE}-slim"
_MAKE_WITHIN_S = 900.0
_UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
INSTALL_HINT = "sudo apt-get install mmdebstrap debian-archive-keyring (scripts/setup-engine does it)"


async def make_debian(engine: Engine, tag: str, labels: Mapping[str, str], progress: Progress) -> str:
    """Make a minimal Debian and import it as an image; its id.

    Raises PrerequisiteError (`image.missing`) if neither mmdebstrap nor debootstrap is there, or it fails.
    """
    with tempfile.TemporaryDirectory(prefix="grader-debian-") as folder:
        archive = Path(folder) / "root.tar"
        for command in commands(archive, Path(folder) / "root"):
            progress(" ".join(command[:1] + command[-2:]))
            await run_command(command, progress)
        return await engine.import_image(archive, tag, labels)


def commands(archive: Path, root: Path) -> Sequence[list[str]]:
    """The commands that make the archive. Raises PrerequisiteError if this machine has none for it."""
    if shutil.which("mmdebstrap") is not None:
        without = [f"--dpkgopt=path-exclude={path}" for path in _UNWANTED]
        options = ["--variant=minbase", '--aptopt=Acquire::Languages "none"', "--dpkgopt=force-unsafe-io", *without]
        return [["mmdebstrap", "--quiet", *options, SUITE, str(archive)]]
    if shutil.which("debootstrap") is not None:
        return [
            ["debootstrap", "--variant=minbase", SUITE, str(root)],
            ["tar", "--create", "--numeric-owner", f"--file={archive}", f"--directory={root}", "."],
        ]
    raise PrerequisiteError(
        "no image registry answers, and neither mmdebstrap nor debootstrap is here to make a base image",
        code=ReasonCode.IMAGE_MISSING,
        hint=INSTALL_HINT,
    )


async def run_command(command: list[str], progress: Progress, within_s: float = _MAKE_WITHIN_S) -> None:
    """Run a command, handing on its lines. Raises PrerequisiteError if it fails or takes too long."""
    last: list[str] = []
    try:
        with anyio.fail_after(within_s):
            async with await anyio.open_process(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "LC_ALL": "C"},
            ) as process:  # fmt: skip
                if process.stdout is not None:
                    last = await _read_lines(process.stdout, progress)
                code = await process.wait()
    except TimeoutError as error:
        raise _failed(command, f"not done within {within_s:g} s", last) from error
    if code != 0:
        raise _failed(command, f"exit code {code}", last)


async def _read_lines(stream: ByteReceiveStream, progress: Progress) -> list[str]:
    """Hand on the lines; the last ten."""
    last: list[str] = []
    rest = b""
    async for chunk in stream:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if text:
                progress(text)
                last = [*last[-9:], text]
        rest = rest[-4096:]
    return last


def _failed(command: list[str], how: str, last: list[str]) -> PrerequisiteError:
    said = "\n".join([f"{command[0]} failed ({how})", *last])
    return PrerequisiteError(said, code=ReasonCode.IMAGE_MISSING, hint="are Debian's package servers reachable?")
