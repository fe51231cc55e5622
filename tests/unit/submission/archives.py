"""Makes archives, hostile ones too, for the tests of submissions."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path


def write_folder(folder: Path, files: Mapping[bytes, tuple[bytes, bool]]) -> Path:
    for name, (content, executable) in files.items():
        path = Path(bytes_path(folder, name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)
    return folder


def bytes_path(folder: Path, name: bytes) -> str:
    return f"{folder}/{name.decode('utf-8', 'surrogateescape')}"


def write_zip(
    path: Path, members: Iterable[tuple[str, bytes]], *, mode: int = 0o644, kind: int = stat.S_IFREG, method: int = 8
) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            member = zipfile.ZipInfo(name)
            member.compress_type = method
            member.external_attr = (kind | mode) << 16
            member.create_system = 3
            archive.writestr(member, content)
    return path


def write_tar(path: Path, members: Iterable[tuple[tarfile.TarInfo, bytes]], *, mode: str = "w") -> Path:
    with tarfile.open(path, "w:gz") if mode == "w:gz" else tarfile.open(path, "w") as archive:
        for member, content in members:
            if member.type == tarfile.REGTYPE:
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def tar_member(name: str, kind: bytes = tarfile.REGTYPE, *, mode: int = 0o644, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.mode = mode
    member.linkname = link
    return member
