"""Vaults: what is kept comes back exactly, and nothing is lost when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.folders import open_to_all
from lorimer.core.errors import ConfigError, UsageFault
from lorimer.safety.secrets import MemoryVault, UnknownSecret, Vault, VaultError
from lorimer.safety.secrets.sealing import PASSPHRASE
from lorimer.safety.secrets.stored import StoredVault
from lorimer.safety.secrets.system_keyring import SystemKeyring, system_keyring

VALUES = ["tok-12345678", "pä ß\n\tw ", '"\\${x}', "🔑" * 9, "x", " lead and trail ", "a\r\nb\0c"]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    monkeypatch.setenv("LORIMER_SECRETS_BACKEND", "file")


def stored(tmp_path: Path) -> StoredVault:
    return StoredVault(tmp_path / "secrets")


@pytest.mark.parametrize("make", [stored, lambda _: MemoryVault()])
def test_values_come_back_exactly(make: Callable[[Path], Vault], tmp_path: Path) -> None:
    vault = make(tmp_path)
    for number, value in enumerate(VALUES):
        vault.set(f"s{number}", value, tools=["b", "a"] if number else None)
    again = vault if isinstance(vault, MemoryVault) else make(tmp_path)
    assert [again.get(f"s{n}").value for n in range(len(VALUES))] == VALUES
    assert again.names() == tuple(f"s{n}" for n in range(len(VALUES)))
    assert again.get("s0").tools == () and sorted(again.get("s1").tools) == ["a", "b"]
    assert VALUES[0] not in repr(again.get("s0"))
    again.set("s1", "another", tools=None)
    assert sorted(again.get("s1").tools) == ["a", "b"], "a new value keeps the tools"
    again.remove("s1")
    with pytest.raises(UnknownSecret, match="s1"):
        again.get("s1")
    with pytest.raises(UnknownSecret):
        again.remove("s1")


@pytest.mark.parametrize("value", ["", "  \n", "\ud800abc", "x" * 65537])
def test_what_is_no_value_is_refused_and_the_old_one_stays(value: str, tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "old value")
    with pytest.raises(UsageFault):
        vault.set("a", value)
    assert vault.get("a").value == "old value"


def test_the_file_shows_no_value_and_others_cannot_read_it(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("github", "tok-12345678", tools=["fetch"])
    for file in vault.folder.iterdir():
        assert b"tok-1234" not in file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600, file
    assert vault.folder.stat().st_mode & 0o777 == 0o700
    assert vault.protection == "key-file"


def test_names_need_neither_key_nor_decryption(tmp_path: Path) -> None:
    stored(tmp_path).set("github", "tok-12345678", tools=["fetch"])
    code = (
        "import sys; from pathlib import Path\n"
        "from lorimer.safety.secrets.stored import StoredVault\n"
        f"v = StoredVault(Path({str(tmp_path / 'secrets')!r}))\n"
        "assert v.names() == ('github',) and v.tools_of('github') == ('fetch',)\n"
        "assert not {'cryptography', 'keyring'} & set(sys.modules)"
    )
    (tmp_path / "secrets" / "secrets.key").unlink()
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_lost_key_file_is_said_and_nothing_is_overwritten(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678")
    key, before = vault.key_file.read_bytes(), vault.file.read_bytes()
    vault.key_file.unlink()
    for act in (lambda v: v.get("a"), lambda v: v.set("b", "new value")):
        with pytest.raises(VaultError, match="is gone"):
            act(stored(tmp_path))
    assert vault.file.read_bytes() == before and not vault.key_file.exists()
    vault.key_file.write_bytes(key)
    vault.key_file.chmod(0o600)
    assert stored(tmp_path).get("a").value == "tok-12345678"


@pytest.mark.parametrize("key", [b"x" * 32, b"short", b"x" * 40])
def test_another_key_file_is_said(key: bytes, tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678")
    before = vault.file.read_bytes()
    vault.key_file.write_bytes(key)
    for act in (lambda v: v.get("a"), lambda v: v.set("a", "new value")):
        with pytest.raises(VaultError, match=r"not the one|damaged"):
            act(stored(tmp_path))
    assert vault.file.read_bytes() == before


def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678")
    vault.key_file.chmod(0o640)
    with pytest.raises(VaultError, match="read by others"):
        stored(tmp_path).get("a")


def test_a_key_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678")
    vault.key_file.rename(tmp_path / "elsewhere")
    vault.key_file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(VaultError, match="cannot be read"):
        stored(tmp_path).get("a")


def test_with_a_passphrase_nothing_opens_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSPHRASE, "correct horse")
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678")
    assert vault.protection == "passphrase" and not vault.key_file.exists()
    assert stored(tmp_path).get("a").value == "tok-12345678"
    before = vault.file.read_bytes()
    monkeypatch.setenv(PASSPHRASE, "wrong horse")
    for act in (lambda v: v.get("a"), lambda v: v.set("b", "new value")):
        with pytest.raises(VaultError, match="This passphrase is not the one"):
            act(stored(tmp_path))
    monkeypatch.delenv(PASSPHRASE)
    with pytest.raises(VaultError, match="none is given"):
        stored(tmp_path).get("a")
    assert vault.file.read_bytes() == before


def change(vault: StoredVault, how: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(vault.file.read_text("utf-8"))
    how(content)
    vault.file.write_text(json.dumps(content), "utf-8")


def test_values_cannot_be_swapped_and_tools_not_widened_in_the_file(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "value of a", tools=["fetch"])
    vault.set("b", "value of b")

    def swap(content: dict[str, Any]) -> None:
        one, two = content["secrets"]["a"], content["secrets"]["b"]
        one["sealed"], two["sealed"] = two["sealed"], one["sealed"]

    def widen(content: dict[str, Any]) -> None:
        content["secrets"]["a"]["tools"] = ["*"]

    before = vault.file.read_bytes()
    for how in (swap, widen):
        change(vault, how)
        with pytest.raises(VaultError, match="changed or damaged"):
            stored(tmp_path).get("a")
        vault.file.write_bytes(before)
    assert stored(tmp_path).get("a").value == "value of a"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a secrets file"),
        (b'{"format": "else", "version": 1, "secrets": {}}', "not a secrets file"),
        (b'{"format": "lorimer-secrets", "version": "1", "secrets": {}}', "version"),
        (b'{"format": "lorimer-secrets", "version": 2, "secrets": {}}', "newer lorimer"),
        (b'{"format": "lorimer-secrets", "version": 1}', "entries"),
        (b'{"format": "lorimer-secrets", "version": 1, "secrets": {"a": {}}}', "entries"),
        (b'{"format": "lorimer-secrets", "version": 1, "secrets": {"A!": 1}}', "entries"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is(
    data: bytes, words: str, tmp_path: Path
) -> None:
    vault = stored(tmp_path)
    vault.folder.mkdir()
    vault.file.write_bytes(data)
    for act in (
        lambda v: v.names(),
        lambda v: v.get("a"),
        lambda v: v.set("a", "new value"),
        lambda v: v.remove("a"),
    ):
        with pytest.raises(VaultError, match=words):
            act(stored(tmp_path))
    assert vault.file.read_bytes() == data
    assert sorted(f.name for f in vault.folder.iterdir()) == ["lock", "secrets.json"]


def test_every_byte_that_changes_is_found_or_harmless(tmp_path: Path) -> None:
    vault = stored(tmp_path)
    vault.set("a", "tok-12345678", tools=["t"])
    data = vault.file.read_bytes()
    for at in range(len(data)):
        vault.file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            found = stored(tmp_path).get("a")
        except (VaultError, UnknownSecret):
            continue
        assert (found.value, found.tools) == ("tok-12345678", ("t",)), at


WRITER = """
import sys
from pathlib import Path
from lorimer.safety.secrets.stored import StoredVault
for n in range(10):
    StoredVault(Path(sys.argv[1]), backend="file").set(f"{sys.argv[2]}{n}", "value-of-this-one")
"""


def test_two_writers_lose_nothing_of_each_other(tmp_path: Path) -> None:
    folder = str(tmp_path / "secrets")
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, folder, letter]) for letter in "abc"]
    assert [w.wait() for w in writers] == [0, 0, 0]
    vault = stored(tmp_path)
    assert len(vault.names()) == 30
    assert {vault.get(name).value for name in vault.names()} == {"value-of-this-one"}
    assert sorted(f.name for f in vault.folder.iterdir()) == ["lock", "secrets.json", "secrets.key"]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("a file, not a folder")
    with pytest.raises(VaultError, match="cannot be kept"):
        stored(tmp_path).set("a", "tok-12345678")


def test_an_unknown_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LORIMER_SECRETS_BACKEND", "cloud")
    with pytest.raises(ConfigError, match="cloud"):
        StoredVault()


# --- the system keyring --------------------------------------------------------------------------


def use(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import keyring

    monkeypatch.setattr(keyring, "get_keyring", lambda: backend)


def real_backend(**more: Any) -> Any:
    """A back end of the library's own kind that keeps everything in memory."""
    from keyring.backend import KeyringBackend

    class InMemory(KeyringBackend):
        priority = 5
        kept: dict[tuple[str, str], str]

        def get_password(self, service: str, username: str) -> str | None:
            return self.kept.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.kept[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.kept[service, username]

    made = InMemory()
    made.kept = {}
    return made


@pytest.fixture(autouse=True)
def no_registered_test_backends(monkeypatch: pytest.MonkeyPatch) -> Any:
    from keyring.backend import KeyringBackend

    before = set(KeyringBackend._classes)
    yield
    KeyringBackend._classes.intersection_update(before)


def test_back_ends_that_keep_nothing_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    from keyring.backends import chainer, fail, null

    for backend in (fail.Keyring(), null.Keyring(), chainer.ChainerBackend()):
        if isinstance(backend, chainer.ChainerBackend):
            monkeypatch.setattr(chainer.ChainerBackend, "backends", [null.Keyring()])
        use(backend, monkeypatch)
        assert system_keyring() is None, backend
    use(real_backend(), monkeypatch)
    assert system_keyring() is not None


def test_auto_takes_the_keyring_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = real_backend()
    use(backend, monkeypatch)
    vault = StoredVault(tmp_path / "secrets", backend="auto")
    kept = vault.set("github", "tok-12345678", tools=["fetch"])
    assert kept.backend == "keyring" and not vault.key_file.exists()
    assert b"tok-" not in vault.file.read_bytes()
    assert vault.listed()[0]["backend"] == "keyring"
    again = StoredVault(tmp_path / "secrets").get("github")
    assert (again.value, again.tools) == ("tok-12345678", ("fetch",))
    change(vault, lambda c: c["secrets"]["github"].update(tools=["*"]))
    assert StoredVault(vault.folder).get("github").tools == ("fetch",), "the keyring says so"
    StoredVault(tmp_path / "secrets", backend="file").set("github", "tok-new-5678")
    assert backend.kept == {}, "the older value does not stay behind"
    assert StoredVault(tmp_path / "secrets").get("github").backend == "file"


def test_secrets_of_two_homes_do_not_meet_in_one_keyring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(real_backend(), monkeypatch)
    one, two = (StoredVault(tmp_path / n, backend="keyring") for n in ("one", "two"))
    one.set("a", "value of one")
    two.set("a", "value of two")
    one.remove("a")
    assert two.get("a").value == "value of two"


def test_a_locked_or_emptied_keyring_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = real_backend()
    use(backend, monkeypatch)
    vault = StoredVault(tmp_path / "secrets", backend="keyring")
    vault.set("a", "tok-12345678")
    backend.kept.clear()
    with pytest.raises(VaultError, match="gone from the system keyring"):
        vault.get("a")
    backend.kept["lorimer", f"{vault.folder}:a"] = "something else"
    with pytest.raises(VaultError, match="not one of lorimer's"):
        vault.get("a")

    def locked(*_: str) -> None:
        raise RuntimeError("locked: tok-12345678")

    monkeypatch.setattr(type(backend), "get_password", locked)
    with pytest.raises(VaultError, match="cannot read from the system keyring") as caught:
        SystemKeyring(backend).read("a")
    assert "tok-" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="it becomes another user")
def test_another_user_can_read_neither_file(tmp_path: Path) -> None:
    stored(tmp_path).set("a", "tok-12345678")
    open_to_all(tmp_path)
    code = f"import os; print(os.listdir({str(tmp_path / 'secrets')!r}))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import os; os.setgid(65534); os.setuid(65534); {code}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0 and "PermissionError" in done.stderr


def test_file_tools_know_both_files_for_secrets_wherever_they_lie(tmp_path: Path) -> None:
    from lorimer.safety.sensitive import kind

    vault = stored(tmp_path)
    for file in (vault.file, vault.key_file):
        assert kind(str(file), "/home/ada") in ("ask", "forbidden")


NORMAL = """
import os, sys
from pathlib import Path
import cryptography.exceptions, tempfile
import cryptography.hazmat.primitives.ciphers.aead
import lorimer.safety.secrets.stored as stored
from lorimer.safety.secrets.vault import VaultError
os.setgroups([]); os.setgid(65534); os.setuid(65534)
vault = stored.StoredVault(Path(sys.argv[1]), backend="file")
vault.set("a", "tok-12345678", tools=["t"])
assert stored.StoredVault(Path(sys.argv[1])).get("a").value == "tok-12345678"
modes = {f.name: (f.stat().st_mode & 0o777, f.stat().st_uid) for f in vault.folder.iterdir()}
assert set(modes.values()) == {(0o600, 65534)}, modes
vault.key_file.chmod(0o644)
try:
    stored.StoredVault(Path(sys.argv[1])).get("a")
except VaultError as fault:
    assert "read by others" in str(fault)
else:
    raise AssertionError("a key file that others can read was used")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="it becomes another user; else the others show it")
def test_it_is_the_same_for_a_normal_user(tmp_path: Path) -> None:
    open_to_all(tmp_path)
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", NORMAL, str(tmp_path / "theirs" / "secrets")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
