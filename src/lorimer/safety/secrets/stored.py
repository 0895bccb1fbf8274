"""The vault of this user: an encrypted file in lorimer's home, or the system keyring.

`$LORIMER_HOME/secrets/secrets.json` lists every secret with where it is kept; those kept in the
file stand in it sealed, each bound to its name, its tools and its time. It is changed under a lock
and replaced as a whole, or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lorimer.core.canonical import canonical_json
from lorimer.core.clock import from_rfc3339, to_rfc3339
from lorimer.core.errors import ConfigError
from lorimer.core.home import home
from lorimer.safety.secrets.handles import NAME, check_name
from lorimer.safety.secrets.sealing import Sealed, key_for, new_protection
from lorimer.safety.secrets.system_keyring import SystemKeyring, system_keyring
from lorimer.safety.secrets.vault import Secret, VaultError, check_value, unknown

BACKEND = "LORIMER_SECRETS_BACKEND"
_FORMAT = "lorimer-secrets"
_VERSION = 1
_LARGEST = 16 * 1024 * 1024


class StoredVault:
    """The secrets in `folder` (default: in lorimer's home). Nothing is opened before it is needed.

    Args:
        folder: where `secrets.json` and `secrets.key` lie.
        backend: where new secrets go: `auto` (the system keyring where there is one), `keyring` or
            `file`; `None`: as `LORIMER_SECRETS_BACKEND` says, else `auto`.
    """

    def __init__(self, folder: Path | None = None, *, backend: str | None = None) -> None:
        self.folder = home() / "secrets" if folder is None else folder
        self.file = self.folder / "secrets.json"
        self.key_file = self.folder / "secrets.key"
        chosen = backend or os.environ.get(BACKEND) or "auto"
        if chosen not in ("auto", "keyring", "file"):
            raise ConfigError(
                f"{BACKEND} is {chosen!r}.", next="Use auto, keyring or file, or leave it out."
            )
        self._chosen = chosen
        self._seen: tuple[tuple[int, int, int], dict[str, Any]] | None = None
        self._sealed: tuple[str, Sealed] | None = None
        self._keyring: SystemKeyring | None = None

    # --- reading ---

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._content()["secrets"]))

    def listed(self) -> list[dict[str, Any]]:
        """Name, backend, tools and time of each, as the list says; no value is opened."""
        secrets = self._content()["secrets"]
        return [
            {"name": name, "set_at": secrets[name]["set_at"],
             "backend": secrets[name]["backend"], "tools": list(secrets[name]["tools"])}
            for name in sorted(secrets)
        ]  # fmt: skip

    @property
    def protection(self) -> str:
        """What protects the values in the file: `key-file`, `passphrase`, or `` without any."""
        return str(self._content().get("protection", {}).get("by", ""))

    def tools_of(self, name: str) -> tuple[str, ...]:
        entry = self._content()["secrets"].get(name)
        if entry is None:
            raise unknown(name, self.names())
        return tuple(entry["tools"])

    def get(self, name: str) -> Secret:
        content = self._content()
        entry = content["secrets"].get(name)
        if entry is None:
            raise unknown(name, self.names())
        set_at = from_rfc3339(entry["set_at"])
        if entry["backend"] == "keyring":
            found = self._system_keyring().read(self._account(name))
            if found is None:
                raise VaultError(
                    f"The secret {name!r} is gone from the system keyring.",
                    next=f"Set it again: lorimer secrets set {name}",
                )
            return Secret(name, found["value"], tuple(found.get("tools", ())), set_at, "keyring")
        sealed = self._key(content, make=False)
        try:
            value = sealed.open(entry["sealed"], _bound_to(name, entry)).decode("utf-8")
        except ValueError as fault:
            raise VaultError(
                f"The entry of the secret {name!r} in {self.file} was changed or damaged.",
                next="Put the file back from a backup, or set the secret again.",
            ) from fault
        return Secret(name, value, tuple(entry["tools"]), set_at, "file")

    def _content(self) -> dict[str, Any]:
        try:
            about = os.stat(self.file)
        except FileNotFoundError:
            return {"format": _FORMAT, "version": _VERSION, "secrets": {}}
        except OSError as fault:
            raise VaultError(f"{self.file} cannot be read: {fault.strerror}.") from fault
        mark = (about.st_mtime_ns, about.st_size, about.st_ino)
        if self._seen is None or self._seen[0] != mark:
            self._seen = (mark, _read(self.file))
        return self._seen[1]

    # --- writing ---

    def set(self, name: str, value: str, *, tools: Sequence[str] | None = None) -> Secret:
        check_name(name)
        check_value(value)
        with self._writing() as content:
            old = content["secrets"].get(name)
            if tools is None and old is not None:
                with contextlib.suppress(VaultError):  # it cannot be read: no tool has the new one
                    tools = self.get(name).tools
            given = tuple(sorted(set(tools or ())))
            now = datetime.now(UTC)
            entry: dict[str, Any] = {"backend": self._place(), "tools": list(given)}
            entry["set_at"] = to_rfc3339(now)
            if entry["backend"] == "keyring":
                kept = {"value": value, "tools": list(given)}
                self._system_keyring().write(self._account(name), kept)
            else:
                if "protection" not in content:
                    content["protection"] = new_protection()
                sealed = self._key(content, make=True)
                content.setdefault("check", sealed.check())
                entry["sealed"] = sealed.seal(value.encode("utf-8"), _bound_to(name, entry))
            content["secrets"][name] = entry
            self._replace(content)
            if old is not None and old["backend"] == "keyring" and entry["backend"] == "file":
                self._system_keyring().remove(self._account(name))
        return Secret(name, value, given, now, entry["backend"])

    def remove(self, name: str) -> None:
        with self._writing() as content:
            entry = content["secrets"].pop(name, None)
            if entry is None:
                raise unknown(name, tuple(sorted(content["secrets"])))
            if entry["backend"] == "keyring":
                self._system_keyring().remove(self._account(name))
            self._replace(content)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[dict[str, Any]]:
        """The content, under the lock; one who waits for it waits for a moment only."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            lock = os.open(self.folder / "lock", flags, 0o600)
        except OSError as fault:
            raise VaultError(
                f"Secrets cannot be kept in {self.folder}: {fault.strerror}.",
                next="Check the folder's permissions, or set LORIMER_HOME to another.",
            ) from fault
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._seen = None
            yield json.loads(json.dumps(self._content()))
        finally:
            self._seen = None
            os.close(lock)

    def _replace(self, content: dict[str, Any]) -> None:
        text = json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        temporary = ""
        try:
            descriptor, temporary = tempfile.mkstemp(dir=self.folder, prefix=".new-")
            with os.fdopen(descriptor, "wb") as out:  # mkstemp makes it with mode 0600
                out.write(text.encode("utf-8"))
                out.flush()
                os.fsync(out.fileno())
            os.replace(temporary, self.file)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as fault:
            if temporary:
                Path(temporary).unlink(missing_ok=True)
            raise VaultError(
                f"{self.file} cannot be written: {fault.strerror}. The old one is as it was."
            ) from fault

    # --- keys and keyrings ---

    def _place(self) -> str:
        if self._chosen == "auto":
            self._keyring = self._keyring or system_keyring()
            return "file" if self._keyring is None else "keyring"
        return self._chosen

    def _account(self, name: str) -> str:
        """Names of different homes do not meet in the one keyring."""
        return f"{self.folder.absolute()}:{name}"

    def _system_keyring(self) -> SystemKeyring:
        self._keyring = self._keyring or system_keyring()
        if self._keyring is None:
            raise VaultError(
                "There is no system keyring here that could be used.",
                next="Start it (e.g. gnome-keyring), or use LORIMER_SECRETS_BACKEND=file.",
            )
        return self._keyring

    def _key(self, content: dict[str, Any], *, make: bool) -> Sealed:
        check = content.get("check", "")
        if self._sealed is not None and self._sealed[0] == check and check:
            return self._sealed[1]
        protection = content.get("protection")
        if not isinstance(protection, dict):
            raise VaultError(f"{self.file} is damaged: it does not say how it is protected.")
        new = make and not check
        sealed = Sealed(key_for(protection, self.key_file, make=new))
        if check and not sealed.fits(check):
            by = protection.get("by")
            what = "passphrase" if by == "passphrase" else f"key file {self.key_file}"
            raise VaultError(
                f"This {what} is not the one that {self.file} was made with.",
                next="Give the right one. Nothing was changed.",
            )
        if check:
            self._sealed = (check, sealed)
        return sealed


def _bound_to(name: str, entry: dict[str, Any]) -> bytes:
    return canonical_json([_FORMAT, _VERSION, name, sorted(entry["tools"]), entry["set_at"]])


def _read(file: Path) -> dict[str, Any]:
    """The content of the secrets file.

    Raises:
        VaultError: when it is not one, is damaged, or from a newer lorimer.
    """
    step = f"Put it back from a backup, or move {file} away and set the secrets again."
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as fault:
        raise VaultError(f"{file} cannot be read: {fault.strerror}.") from fault
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise VaultError(f"{file} is damaged: it is not JSON.", next=step) from fault
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise VaultError(f"{file} is not a secrets file of lorimer.", next=step)
    version = content.get("version")
    if not isinstance(version, int) or version < 1:
        raise VaultError(f"{file} is damaged: its version is {version!r}.", next=step)
    if version > _VERSION:
        raise VaultError(
            f"{file} was written by a newer lorimer (version {version}; this one reads "
            f"{_VERSION}).",
            next="Update lorimer. The file was left as it is.",
        )
    secrets = content.get("secrets")
    if not isinstance(secrets, dict) or not all(_is_entry(n, e) for n, e in secrets.items()):
        raise VaultError(f"{file} is damaged: its entries cannot be read.", next=step)
    return content


def _is_entry(name: str, entry: Any) -> bool:
    if not isinstance(entry, dict) or not NAME.fullmatch(name):
        return False
    tools = entry.get("tools")
    try:
        from_rfc3339(entry["set_at"])
    except (KeyError, TypeError, ValueError):
        return False
    return (
        isinstance(tools, list)
        and all(isinstance(one, str) for one in tools)
        and (
            entry.get("backend") == "keyring"
            or (entry.get("backend") == "file" and isinstance(entry.get("sealed"), str))
        )
    )
