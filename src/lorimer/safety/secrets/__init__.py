"""Secrets: kept in a vault, named by handles in arguments, taken out of everything that is told.

`handles_in` and `SecretKeeper` are what other packages need; see `README.md`.
"""

from __future__ import annotations

from lorimer.safety.secrets.handles import check_name, handles_in
from lorimer.safety.secrets.vault import MemoryVault, Secret, UnknownSecret, Vault, VaultError

__all__ = [
    "MemoryVault",
    "Secret",
    "UnknownSecret",
    "Vault",
    "VaultError",
    "check_name",
    "handles_in",
]
