"""The keyring of the system (Secret Service, KWallet, macOS Keychain, Windows), when there is one.

A secret is kept there with the tools it was given to, so that nobody can widen that from outside.
"""

from __future__ import annotations

import json
from typing import Any

from lorimer.safety.secrets.vault import VaultError

SERVICE = "lorimer"
_NOT_REAL = ("keyring.backends.fail", "keyring.backends.null", "keyrings.alt", "keyring.testing")


class SystemKeyring:
    """One usable keyring. Calls may wait for a person who unlocks it."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    @property
    def kind(self) -> str:
        """What it is, for people."""
        name = getattr(self._backend, "name", "") or type(self._backend).__qualname__
        return str(name)

    def read(self, account: str) -> dict[str, Any] | None:
        """What `write` has kept; `None` when it holds nothing of that name."""
        text = self._do("read from", self._backend.get_password, SERVICE, account)
        if text is None:
            return None
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not isinstance(found.get("value"), str):
            raise VaultError(
                f"The keyring entry {SERVICE}/{account} is not one of lorimer's.",
                next="Remove it in the keyring's own program, and set the secret again.",
            )
        return found

    def write(self, account: str, content: dict[str, Any]) -> None:
        text = json.dumps(content, ensure_ascii=False)
        self._do("write to", self._backend.set_password, SERVICE, account, text)

    def remove(self, account: str) -> None:
        """Forget it; nothing happens when it is not there."""
        if self._do("read from", self._backend.get_password, SERVICE, account) is not None:
            self._do("write to", self._backend.delete_password, SERVICE, account)

    def _do(self, what: str, call: Any, *arguments: str) -> Any:
        try:
            return call(*arguments)
        except Exception as fault:  # back ends raise errors of their own libraries, too
            raise VaultError(
                f"lorimer cannot {what} the system keyring ({self.kind}): {type(fault).__name__}.",
                next="Unlock it; or use the encrypted file: LORIMER_SECRETS_BACKEND=file.",
            ) from fault


def system_keyring() -> SystemKeyring | None:
    """The keyring of this system; `None` when there is none that really protects."""
    import keyring

    try:
        backend: Any = keyring.get_keyring()
    except Exception:  # noqa: BLE001 - a broken configuration of keyring itself: none can be had
        return None
    return SystemKeyring(backend) if _is_real(backend) else None


def _is_real(backend: Any) -> bool:
    kind = type(backend)
    if kind.__module__.startswith("keyring.backends.chainer"):
        return any(_is_real(one) for one in backend.backends)
    if kind.__module__.startswith(_NOT_REAL):
        return False
    try:
        return float(backend.priority) > 0
    except Exception:  # noqa: BLE001 - a back end that cannot work here raises its own errors
        return False
