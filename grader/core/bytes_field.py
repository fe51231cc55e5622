"""Bytes in tasks and records: text where it is strict UTF-8, base64 for everything else."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import BeforeValidator, PlainSerializer


def parse_bytes(value: object) -> bytes:
    """Bytes from a string (UTF-8), from bytes, or from `{text: ...}` / `{base64: ...}`.

    Raises ValueError for anything else: a YAML scalar such as `no`, `010` or a date has already lost what was written,
    so it must be quoted.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        if set(entries) == {"text"} and isinstance(entries["text"], str):
            return _from_text(entries["text"])
        if set(entries) == {"base64"} and isinstance(entries["base64"], str):
            return _from_base64(entries["base64"])
        raise ValueError("expected a string or {base64: ...}")
    raise ValueError(f"expected text, not {type(value).__name__} ({value!r}); put it in quotes")


def plain_bytes(data: bytes) -> str | dict[str, str]:
    """The plain form of bytes: a string if they are strict UTF-8, else `{"base64": ...}`."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _from_text(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"not valid Unicode: {error.reason} at character {error.start}; use {{base64: ...}}"
        ) from error


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"not valid base64: {error}") from error


Bytes = Annotated[bytes, BeforeValidator(parse_bytes), PlainSerializer(plain_bytes)]
"""A pydantic field of bytes that is written as text or base64."""
