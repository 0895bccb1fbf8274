"""Who may have which secret, and that the vault stays shut until it is needed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lorimer.core.secrets import SecretRefused
from lorimer.safety.secrets import MemoryVault, Secret, VaultError
from lorimer.safety.secrets.keeper import SecretKeeper, secrets_note
from lorimer.safety.secrets.stored import StoredVault

pytestmark = pytest.mark.anyio
VALUE = "tok-12345678"


def vault() -> MemoryVault:
    made = MemoryVault()
    made.set("github", VALUE, tools=["fetch"])
    made.set("db", "p4ssw0rd-of-db", tools=["*"])
    made.set("lonely", "nobody-may-have-it")
    return made


async def resolve(
    tool: str, arguments: dict[str, Any], declared: Sequence[str] = (), shell: str = ""
) -> dict[str, Any]:
    keeper = SecretKeeper(vault())
    keeper.check(tool, arguments, declared, shell)
    return await keeper.resolve(tool, arguments, declared, shell)


async def test_a_tool_gets_what_it_was_given() -> None:
    given = {"h": {"A": "Bearer ${secret:github}"}, "n": 1}
    assert await resolve("fetch", given) == {"h": {"A": f"Bearer {VALUE}"}, "n": 1}
    assert given["h"] == {"A": "Bearer ${secret:github}"}


async def test_a_tool_gets_what_its_author_declared_and_what_is_for_all() -> None:
    assert await resolve("other", {"t": "secret:lonely"}, ["lonely"]) == {"t": "nobody-may-have-it"}
    assert await resolve("other", {"t": "secret:db"}) == {"t": "p4ssw0rd-of-db"}


@pytest.mark.parametrize("text", ["secret:github", "x ${secret:github}"])
async def test_another_tool_is_refused_and_told_who_can_allow_it(text: str) -> None:
    with pytest.raises(SecretRefused, match="send_mail may not use secret:github") as caught:
        await resolve("send_mail", {"body": text})
    assert "lorimer secrets allow github send_mail" in caught.value.next


async def test_one_that_is_not_allowed_spoils_the_whole_call() -> None:
    with pytest.raises(SecretRefused, match="lonely"):
        await resolve("fetch", {"a": "secret:github", "b": "secret:lonely"})


async def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SecretRefused, match="no secret 'gihub'") as caught:
        await resolve("fetch", {"a": "secret:gihub", "b": "secret:github"})
    assert "Did you mean secret:github" in caught.value.next
    with pytest.raises(SecretRefused) as caught:
        await resolve("fetch", {"a": "secret:zzz"}, ["db"])
    assert "secret:db, secret:github, secret:lonely" in caught.value.next


async def test_inside_a_text_an_unknown_handle_is_text_for_a_tool_without_secrets() -> None:
    keeper = SecretKeeper(MemoryVault({"github": VALUE}, tools=["fetch"]))
    given = {"content": "write ${secret:name} or $${secret:name}", "whole": "secret: name"}
    keeper.check("write_file", given, (), "")
    assert await keeper.resolve("write_file", given, (), "") is given


@pytest.mark.parametrize(
    "given",
    [{"t": "secret:nope"}, {"h": {"A": "Bearer ${secret:nope}"}}, {"n": [1, ["secret:nope"]]}],
)
@pytest.mark.parametrize("tools", [["fetch"], ["other", "fetch"], ["*"]])
async def test_an_unknown_name_is_refused_to_a_tool_that_may_use_another(
    given: dict[str, Any], tools: list[str]
) -> None:
    keeper = SecretKeeper(MemoryVault({"github": VALUE}, tools=tools))
    with pytest.raises(SecretRefused, match="no secret 'nope'") as caught:
        keeper.check("fetch", given, (), "")
    assert "secret:github" in caught.value.next
    with pytest.raises(SecretRefused, match="no secret 'nope'"):
        await keeper.resolve("fetch", given, (), "")


@pytest.mark.parametrize("text", ["secret:nope", "secret:GitHub", "secret:a.b"])
@pytest.mark.parametrize(
    "made", [lambda: None, MemoryVault, lambda: MemoryVault({"github": VALUE}, tools=["fetch"])]
)
async def test_a_whole_value_that_looks_like_a_handle_is_never_passed_on_as_it_stands(
    text: str, made: Any
) -> None:
    for tool in ("write_file", "fetch"):
        keeper = SecretKeeper(made())
        with pytest.raises(SecretRefused, match="There is no secret"):
            keeper.check(tool, {"a": [{"b": text}]}, (), "")
        with pytest.raises(SecretRefused, match="There is no secret"):
            await keeper.resolve(tool, {"a": [{"b": text}]}, (), "")


async def test_no_value_is_put_into_shell_text() -> None:
    given = {"command": 'curl -H "$T"', "env": {"T": "secret:github"}}
    assert (await resolve("fetch", given, (), "command"))["env"] == {"T": VALUE}
    with pytest.raises(SecretRefused, match="never put into the text of 'command'") as caught:
        await resolve("fetch", {"command": "curl ${secret:github}"}, (), "command")
    assert "env" in caught.value.next


async def test_a_value_that_was_used_is_taken_out_of_text_also_after_it_changed() -> None:
    secrets = vault()
    keeper = SecretKeeper(secrets)
    await keeper.resolve("fetch", {"t": "secret:github"}, (), "")
    secrets.set("github", "tok-of-tomorrow")
    await keeper.resolve("fetch", {"t": "secret:github"}, (), "")
    secrets.remove("github")
    assert keeper.redact(f"{VALUE} tok-of-tomorrow") == "[secret:github] [secret:github]"


async def test_values_are_known_in_results_without_having_been_used() -> None:
    keeper = SecretKeeper(vault())
    await keeper.ready()
    assert keeper.redact(f"found {VALUE} in .env") == "found [secret:github] in .env"
    assert SecretKeeper(vault()).redact(f"x {VALUE}") == "x [secret:github]", "also at once"


async def test_a_secret_that_is_set_meanwhile_is_known() -> None:
    secrets = vault()
    keeper = SecretKeeper(secrets)
    assert keeper.redact("fresh-value-1") == "fresh-value-1"
    secrets.set("fresh", "fresh-value-1")
    assert keeper.redact("fresh-value-1") == "[secret:fresh]"


async def test_a_copied_value_is_named() -> None:
    keeper = SecretKeeper(vault())
    assert keeper.copied({"a": [f"Bearer {VALUE}"]}) == ("github",)
    assert keeper.copied({"a": "secret:github"}) == ()
    assert SecretKeeper().copied({"a": VALUE}) == ()


class Shut(MemoryVault):
    """Has names, opens nothing."""

    def get(self, name: str) -> Secret:
        raise VaultError("The keyring is locked.", next="Unlock it.")

    def tools_of(self, name: str) -> tuple[str, ...]:
        return ("fetch",)

    def names(self) -> tuple[str, ...]:
        return ("github",)


async def test_a_vault_that_does_not_open_is_told_once_and_refuses() -> None:
    told: list[str] = []
    keeper = SecretKeeper(Shut(), on_problem=told.append)
    await keeper.ready()
    assert keeper.redact(VALUE) == VALUE and keeper.redact(VALUE) == VALUE
    assert len(told) == 1 and "github" in told[0] and "locked" in told[0]
    keeper.check("fetch", {"t": "secret:github"}, (), "")
    with pytest.raises(SecretRefused, match="cannot be opened"):
        await keeper.resolve("fetch", {"t": "secret:github"}, (), "")


async def test_a_damaged_vault_is_told_and_refuses(tmp_path: Path) -> None:
    stored = StoredVault(tmp_path / "secrets", backend="file")
    stored.folder.mkdir()
    stored.file.write_text("{")
    told: list[str] = []
    keeper = SecretKeeper(stored, on_problem=told.append)
    assert keeper.redact("some text") == "some text" and "damaged" in told[0]
    with pytest.raises(SecretRefused, match="damaged"):
        keeper.check("fetch", {"t": "secret:github"}, (), "")


def test_keys_of_our_own_environment_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-own-key-0815")
    monkeypatch.setenv("LORIMER_SECRETS_PASSPHRASE", "correct horse 1")
    monkeypatch.setenv("SHORT_TOKEN", "abc123")
    monkeypatch.setenv("KEY_FILE", "/home/ada/key")
    clean = SecretKeeper().redact("very-own-key-0815 correct horse 1 abc123 /home/ada/key")
    assert clean == (
        "[redacted: environment SOME_API_KEY] "
        "[redacted: environment LORIMER_SECRETS_PASSPHRASE] abc123 /home/ada/key"
    )


def test_without_secrets_nothing_is_opened_or_imported(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from lorimer.safety.secrets.keeper import SecretKeeper\n"
        "from lorimer.safety.secrets.stored import StoredVault\n"
        "k = SecretKeeper(StoredVault())\n"
        "async def go():\n"
        "    await k.ready()\n"
        "    k.check('fetch', {'a': '${secret:x}'}, (), '')\n"
        "    await k.resolve('fetch', {'a': '${secret:x}'}, (), '')\n"
        "asyncio.run(go())\n"
        "assert k.redact('some text') == 'some text'\n"
        "assert not {'keyring', 'cryptography'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"LORIMER_HOME": str(tmp_path / "home")}, check=False
    )
    assert done.returncode == 0 and not (tmp_path / "home").exists()


async def test_a_slow_vault_does_not_hold_up_the_loop() -> None:
    class Slow(MemoryVault):
        def get(self, name: str) -> Secret:
            assert not asyncio_runs_here()
            return super().get(name)

    def asyncio_runs_here() -> bool:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return False
        return True

    slow = Slow()
    MemoryVault.set(slow, "github", VALUE, tools=["fetch"])
    keeper = SecretKeeper(slow)
    await keeper.ready()
    assert (await keeper.resolve("fetch", {"t": "secret:github"}, (), "")) == {"t": VALUE}


def test_the_note_for_the_model_names_handles_only() -> None:
    assert secrets_note(()) == ""
    note = secrets_note(vault().names())
    assert "secret:github" in note and VALUE not in note
