"""Plain data with its large strings taken out into blobs, and back.

A string above 4 KiB becomes `{"$blob": SHA-256, "bytes": SIZE, "as": "text"}`; a map `{"base64": ...}` above it becomes
the same with `"as": "base64"`, and the blob holds the bytes themselves, as it does for what a program wrote (`"as":
"bytes"`). A whole document can be a blob of JSON (`"as": "json"`). A map of the data that has a key `$blob` or `$map`
itself is written as `{"$map": {...}}`. Whatever the data, it comes back equal.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from grader.errors import RecordError
from grader.store.blobs import BlobReader
from grader.store.folder import corrupt

INLINE_BYTES: Final = 4096
MOST_TEXT_BYTES: Final = 2**30
"""How much text one document may hold when all its references are followed, each as often as it stands there."""

_ENCODE = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode
_BLOB, _MAP = "$blob", "$map"

Put = Callable[[bytes], str]
"""Stores bytes and gives the blob's name."""


class Reference(dict[str, object]):
    """Stands in place of a value that is a blob; told apart from data that happens to look like it."""


def body_text(value: object, put: Put, *, inline_bytes: int) -> str:
    """Data that is packed already as one line of JSON; a blob as a whole if that has more than `inline_bytes`."""
    text = _ENCODE(value)
    return _ENCODE(reference(text.encode("ascii"), put, "json")) if len(text) > inline_bytes else text


def packed_text(value: object, put: Put, *, inline_bytes: int) -> str:
    """`value` as one line of JSON; large strings are blobs, and the whole too if more than `inline_bytes` are left."""
    text = _ENCODE(value)
    if len(text) > INLINE_BYTES or '"$' in text:
        text = _ENCODE(pack(value, put))
    return _ENCODE(reference(text.encode("ascii"), put, "json")) if len(text) > inline_bytes else text


def packed(value: object, put: Put, *, inline_bytes: int = INLINE_BYTES) -> object:
    """Like `packed_text`, as plain data to be part of a larger document."""
    value = pack(value, put)
    text = _ENCODE(value)
    return reference(text.encode("ascii"), put, "json") if len(text) > inline_bytes else value


def reference(data: bytes, put: Put, kind: str) -> Reference:
    """What stands in place of a value that is a blob. `kind`: text, base64, bytes or json."""
    return Reference({_BLOB: put(data), "bytes": len(data), "as": kind})


def blob_name(value: object) -> str | None:
    """The name of the blob that stands in place of a whole value; None if none does."""
    name = cast("dict[str, object]", value).get(_BLOB) if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def pack(value: object, put: Put) -> object:
    """`value` with its large strings as blobs; lossless for any plain data."""
    if isinstance(value, str):
        # A character has at most four bytes: short strings need not be encoded to be known as small.
        data = value.encode() if len(value) * 4 > INLINE_BYTES else b""
        return reference(data, put, "text") if len(data) > INLINE_BYTES else value
    if isinstance(value, Reference):
        return value
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)
        encoded = entries.get("base64")
        if len(entries) == 1 and isinstance(encoded, str) and len(encoded) > INLINE_BYTES:
            data = _decoded(encoded)
            if data is not None:
                return reference(data, put, "base64")
        inner = {key: pack(item, put) for key, item in entries.items()}
        return {_MAP: inner} if _BLOB in inner or _MAP in inner else inner
    if isinstance(value, list | tuple):
        return [pack(item, put) for item in cast("Sequence[object]", value)]
    return value


class Unpacker:
    """Puts the blobs back into one document of a record. Nothing in the document is trusted."""

    def __init__(self, blobs: BlobReader, place: str, line: int | None = None) -> None:
        self._blobs = blobs
        self._place = place
        self._line = line
        self._text_bytes = 0

    def document(self, value: object) -> object:
        """The data that `packed` was given; `"as": "bytes"` comes back as bytes. Raises RecordError."""
        entries = cast("dict[str, object]", value if isinstance(value, dict) else {})
        if _BLOB not in entries or entries.get("as") != "json":
            return self.unpack(cast("object", value))
        data = self._blob(entries)
        document = decode_json(data, self._place, self._line)
        # Most documents have nothing in them that is to be put back: those are not copied.
        return self.unpack(document) if b'"$' in data else document

    def whole(self, value: object) -> object:
        """The JSON of a document that is a blob as a whole, not unpacked yet; anything else as it is."""
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value)
            if _BLOB in entries and entries.get("as") == "json":
                return decode_json(self._blob(entries), self._place, self._line)
        return cast("object", value)

    def unpack(self, value: object) -> object:
        """Like `document`, for data that is no blob as a whole."""
        if isinstance(value, dict):
            entries = cast("dict[str, object]", value)
            if _BLOB in entries:
                return self._large_value(entries)
            if _MAP in entries:
                inner = entries[_MAP]
                if len(entries) != 1 or not isinstance(inner, dict):
                    raise self._wrong("a $map stands beside other keys, or is none")
                entries = cast("dict[str, object]", inner)
            return {key: self.unpack(item) for key, item in entries.items()}
        if isinstance(value, list):
            return [self.unpack(item) for item in cast("list[object]", value)]
        return value

    def _large_value(self, entries: dict[str, object]) -> object:
        data = self._blob(entries)
        kind = entries["as"]
        if kind == "bytes":
            return data
        # Bytes are shared between all who name them; every text is a copy.
        self._text_bytes += len(data)
        if self._text_bytes > MOST_TEXT_BYTES:
            raise self._wrong(f"grows beyond {MOST_TEXT_BYTES:,} bytes when its blobs are put in")
        if kind == "base64":
            return {"base64": base64.b64encode(data).decode("ascii")}
        if kind != "text":
            raise self._wrong(f"a blob stands for {str(kind)[:40]!r} where text or bytes are expected")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._wrong("a blob that stands for text is not UTF-8") from error

    def _wrong(self, what: str) -> RecordError:
        return corrupt(self._place, what, line=self._line)

    def _blob(self, entries: dict[str, object]) -> bytes:
        if set(entries) != {_BLOB, "bytes", "as"}:
            raise self._wrong("a reference to a blob has other keys than $blob, bytes, as")
        return self._blobs.get(entries[_BLOB], entries["bytes"])


def decode_json(data: bytes, place: str, line: int | None = None) -> object:
    """JSON of a record as plain data. Doubled keys, NaN, absurd numbers, nesting and half characters are refused.

    Raises RecordError.
    """
    try:
        plain = _DECODE(data.decode("utf-8"))
        if _HALF.search(data) is not None:
            json.dumps(plain, ensure_ascii=False).encode("utf-8")
        return plain
    except (ValueError, RecursionError) as error:
        raise corrupt(place, f"is not the JSON of a record: {error}", line=line) from error


def _decoded(encoded: str) -> bytes | None:
    """The bytes of a base64 text, if it is exactly how they are written."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    return data if base64.b64encode(data).decode("ascii") == encoded else None


def _without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key is there twice")
    return entries


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a number")


def _finite(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise ValueError(f"{text[:40]} is beyond the range of numbers")
    return value


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""The escape of half a character; that of a whole one has two of them."""
_DECODE: Callable[[str], Any] = json.JSONDecoder(
    object_pairs_hook=_without_doubles, parse_constant=_no_constant, parse_float=_finite
).decode
