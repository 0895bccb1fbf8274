"""Encryption of the secrets file: AES-256-GCM, with a key from a key file or a passphrase.

The key file protects a copy of the secrets file that is taken alone (a backup, a synchronised
folder); whoever can read both as this user can read the secrets. The passphrase also protects
against that, as long as it is not in reach itself.
"""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path
from typing import Any

from lorimer.safety.secrets.vault import VaultError

PASSPHRASE = "LORIMER_SECRETS_PASSPHRASE"
_KEY_BYTES = 32
_NONCE_BYTES = 12
_SCRYPT = {"n": 2**15, "r": 8, "p": 1}
"""RFC 7914; about 0.1 s and 32 MB, once a process."""
_MOST_SCRYPT = {"n": 2**20, "r": 32, "p": 16}
_CHECKED = b"lorimer secrets"


class Sealed:
    """Seals and opens with one key. `aad` is what a sealed text is bound to."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)

    def seal(self, data: bytes, aad: bytes) -> str:
        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, data, aad)).decode("ascii")

    def open(self, sealed: str, aad: bytes) -> bytes:
        """Raises `ValueError` when the key is another, or the text or `aad` was changed."""
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(sealed, validate=True)
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], aad)
        except InvalidTag as fault:
            raise ValueError("another key, or changed") from fault

    def check(self) -> str:
        """A text by which `fits` knows the key again."""
        return self.seal(_CHECKED, b"check")

    def fits(self, check: str) -> bool:
        try:
            return self.open(check, b"check") == _CHECKED
        except ValueError:
            return False


def new_protection() -> dict[str, Any]:
    """How a new file is protected: by the passphrase, if one is in the environment."""
    if os.environ.get(PASSPHRASE):
        salt = base64.b64encode(os.urandom(16)).decode("ascii")
        return {"by": "passphrase", "kdf": "scrypt", "salt": salt, **_SCRYPT}
    return {"by": "key-file"}


def key_for(protection: dict[str, Any], key_file: Path, *, make: bool) -> bytes:
    """The key; with `make` a key file that does not exist is made.

    Raises:
        VaultError: when there is none, or it cannot be used.
    """
    match protection.get("by"):
        case "passphrase":
            return _from_passphrase(protection)
        case "key-file":
            return _from_file(key_file, make=make)
        case other:
            raise VaultError(
                f"The secrets file is protected by {other!r}, which this lorimer does not know.",
                next="It may be from a newer lorimer: update, or move the file away.",
            )


def _from_passphrase(protection: dict[str, Any]) -> bytes:
    words = os.environ.get(PASSPHRASE, "")
    if not words:
        raise VaultError(
            "The secrets file is protected by a passphrase, and none is given.",
            next=f"Set {PASSPHRASE} in the environment.",
        )
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    cost = {name: protection.get(name) for name in _SCRYPT}
    for name, value in cost.items():
        if not isinstance(value, int) or not 1 <= value <= _MOST_SCRYPT[name]:
            raise VaultError(f"The secrets file is damaged: scrypt {name} is {value!r}.")
    try:
        salt = base64.b64decode(str(protection.get("salt")), validate=True)
        kdf = Scrypt(salt=salt, length=_KEY_BYTES, **cost)  # type: ignore[arg-type]
    except ValueError as fault:
        raise VaultError(f"The secrets file is damaged: {fault}.") from fault
    return kdf.derive(words.encode("utf-8", "surrogateescape"))


def _from_file(path: Path, *, make: bool) -> bytes:
    if make and not os.path.lexists(path):
        _make_key(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError as fault:
        raise VaultError(
            f"The key file {path} is gone; without it the secrets cannot be read.",
            next="Put it back from a backup; or move the secrets file away and set them again.",
        ) from fault
    except OSError as fault:
        raise VaultError(f"The key file {path} cannot be read: {fault.strerror}.") from fault
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise VaultError(f"{path} is not a file.", next="Move it away and set secrets again.")
        if about.st_mode & 0o077 or about.st_uid not in (0, os.geteuid()):
            raise VaultError(
                f"The key file {path} can be read by others (mode {about.st_mode & 0o777:o}, "
                f"owner {about.st_uid}).",
                next=f"If nobody has read it: chmod 600 {path}. Else set every secret again.",
            )
        key = file.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise VaultError(
            f"The key file {path} is damaged: it holds {len(key)} bytes, not {_KEY_BYTES}.",
            next="Put it back from a backup; or move it and the secrets file away.",
        )
    return key


def _make_key(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as fault:
        raise VaultError(f"The key file {path} cannot be made: {fault.strerror}.") from fault
