"""Images of a row: an address as it is, a file or bytes as a `data:` address.

Rows are data from elsewhere, and an image is sent to a model's provider and stored with the study. So a path in a row
is read only below one folder, and only if the file is an image.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")
_SIGNATURES = ((b"\x89PNG\r\n\x1a\n", KINDS[0]), (b"\xff\xd8\xff", KINDS[1]), (b"GIF87a", KINDS[2]),
               (b"GIF89a", KINDS[2]))
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)
_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,([A-Za-z0-9+/]+={0,2})", re.ASCII)
KNOWN = "expected PNG, JPEG, GIF, WebP or BMP"


@dataclass(frozen=True)
class Images:
    """Where image files may be, and how large an image may be."""

    folder: Path | None
    """The folder that files are read below; None: no file is read."""
    most: int = 20 * 2**20
    """Bytes of one image."""
    option: str | None = "image_mb"
    """The option that sets `most`, if there is one."""

    def address(self, value: Any) -> str:
        """An image as an `http:`, `https:` or `data:` address. Raises `ValueError` for everything else.

        value: an address, a file's path, bytes, or a table with `bytes`, `path` or `url`.
        """
        if isinstance(value, Mapping):
            value = value.get("bytes") or value.get("path") or value.get("url")
        if isinstance(value, bytes):
            return self._encoded(value, "the image")
        if not isinstance(value, str):
            raise ValueError(f"the image is {value!r:.80}; expected an address, a file's path or bytes")
        if value[:5].lower() == "data:":
            return self._checked_data(value)
        if is_address(value):
            return _checked_address(value)
        return self._encoded(self._read(value), f"the image '{value:.200}'")

    def _encoded(self, data: bytes, name: str) -> str:
        kind = kind_of(data)
        if kind is None:
            raise ValueError(f"{name} is not an image by its first bytes; {KNOWN}")
        if len(data) > self.most:
            raise ValueError(self._too_large(name))
        return f"data:{kind};base64,{base64.b64encode(data).decode()}"

    def _checked_data(self, address: str) -> str:
        found = _DATA.fullmatch(address)
        name = f"the address '{address:.40}...'"
        if not found:
            raise ValueError(f"{name} is not of the form data:image/png;base64,...")
        if len(found[2]) * 3 // 4 > self.most + 2:
            raise ValueError(self._too_large(name))
        try:
            kind = kind_of(base64.b64decode(found[2], validate=True))
        except binascii.Error as error:
            raise ValueError(f"{name} is not base64: {error}") from None
        if kind is None:
            raise ValueError(f"{name} is not an image by its first bytes; {KNOWN}")
        if kind != found[1].lower():
            raise ValueError(f"{name} says {found[1]}, but the image is {kind}")
        return address

    def _too_large(self, name: str) -> str:
        hint = f"; {self.option} sets the limit" if self.option else ""
        return f"{name} is larger than {self.most // 2**20} MB{hint}"

    def _read(self, name: str) -> bytes:
        """A regular file below the folder, links resolved; one byte more than the limit at most."""
        if self.folder is None:
            raise ValueError(f"the image '{name:.200}' is a file's path, and these rows have no folder; name one with "
                             "image_folder")
        try:
            folder, path = self.folder.resolve(strict=True), (self.folder / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ValueError(f"the image '{name:.200}' cannot be read below {self.folder}: {reason}") from None
        if not path.is_relative_to(folder):
            raise ValueError(f"the image '{name:.200}' is not below {self.folder}, and files elsewhere are not read; "
                             "image_folder names another folder")
        return self._opened(path, name)

    def _opened(self, path: Path, name: str) -> bytes:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
        try:
            with open(os.open(path, flags), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise ValueError(f"the image '{name:.200}' is not a regular file")
                return file.read(self.most + 1)
        except OSError as error:
            raise ValueError(f"the image '{name:.200}' cannot be read: {error.strerror}") from None


def is_address(value: str) -> bool:
    """Whether a text is an address, and not a file's path."""
    return re.match(r"(?i)(https?|data):", value) is not None


def kind_of(data: bytes) -> str | None:
    """The media type of an image by its first bytes, or None if it is not one of `KINDS`."""
    for signature, kind in _SIGNATURES:
        if data.startswith(signature):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    # Two letters prove little, so the size of the header behind them must be a known one.
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BITMAP_HEADERS:
        return "image/bmp"
    return None


def _checked_address(address: str) -> str:
    """An address that a model's provider fetches; it is not fetched here."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host or re.search(r"[\s\x00-\x1f]", address):
        raise ValueError(f"the image '{address:.200}' is not an address")
    return address
