"""The mark of a study that this user ran on this machine; what a study made elsewhere asks for is not done unasked."""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path


def seal(text: str) -> str:
    """The seal of an expanded run file; empty where the user's home cannot be written to."""
    secret = _secret()
    return hmac.digest(secret, text.encode("utf-8", "replace"), "sha256").hex() if secret else ""


def _secret() -> bytes:
    """The user's secret, made when it is needed first."""
    with suppress(OSError, RuntimeError):
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "madplug"
        path = folder / "secret"
        with suppress(FileExistsError):
            folder.mkdir(parents=True, exist_ok=True)
            made = path.with_name(f"secret.{secrets.token_hex(8)}")
            if not path.exists():
                with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(secrets.token_bytes(32))
                try:
                    os.link(made, path)  # whole, and by one process only
                finally:
                    made.unlink()
        found = path.read_bytes()
        return found if len(found) == 32 else b""
    return b""
