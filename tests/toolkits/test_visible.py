from pathlib import Path

import pytest

from lorimer.toolkits.execution.visible import DEFAULT_PATH, git_settings, programs


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home of ü"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def make(*paths: Path) -> None:
    for path in paths:
        path.mkdir(parents=True)


def shown(*path: Path) -> set[Path]:
    found, search = programs(":".join(map(str, path)))
    assert all(str(p) in search.split(":") for p in path if p.is_dir() and p.parent != p)
    return set(found)


def test_beside_programs_only_what_they_need_is_shown(home: Path) -> None:
    cargo = home / ".cargo"
    make(cargo / "bin", cargo / "lib", cargo / "registry")
    (cargo / "credentials.toml").write_text("token")
    found = shown(cargo / "bin")
    assert {cargo / "bin", cargo / "lib"} <= found
    assert not any(p in found for p in (cargo, cargo / "registry", home))


def test_version_managers_are_shown_whole(home: Path) -> None:
    make(home / ".pyenv" / "shims", home / ".nvm" / "versions" / "node" / "v20" / "bin")
    found = shown(home / ".pyenv" / "shims", home / ".nvm/versions/node/v20/bin")
    assert {home / ".pyenv", home / ".nvm"} <= found and home not in found


def test_links_lead_to_what_they_need(home: Path) -> None:
    real = home / "node-v20"
    make(real / "bin", real / "lib")
    (home / "current").symlink_to(real)
    assert {real / "bin", real / "lib", home / "current" / "bin"} <= shown(home / "current" / "bin")


def test_a_home_folder_is_never_shown(home: Path) -> None:
    make(home / "bin", home / "lib", home / ".local" / "bin", home / ".local" / "share")
    found, search = programs(f"{home}:{home}/bin:{home}/.local/bin:.:relative:/tmp:/:")
    assert home not in found and home / ".local" not in found
    assert home / ".local" / "share" not in found and home / "lib" not in found
    assert home / ".local" / "bin" in found and home / "bin" in found
    assert not {"", ".", "relative", "/tmp", "/", str(home)} & set(search.split(":"))
    assert set(DEFAULT_PATH) <= set(search.split(":"))


def test_git_gets_name_and_address_and_nothing_else(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    (home / ".gitconfig").write_text(
        "[user]\n\tname = A \\\\ B\n\temail = a@b\n\tsigningkey = K\n"
        "[credential]\n\thelper = store\n"
    )
    text = git_settings()
    assert 'name = "A \\\\ B"' in text and 'email = "a@b"' in text
    assert "helper" not in text and "signingkey" not in text
