"""What the tests of local models share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lorimer.core.home import home
from lorimer.models.local.catalogue import MODELS, is_present, model_path


def _present(name: str) -> Path:
    if not is_present(name):
        pytest.skip(f"the model {name} is not on this machine: lorimer models pull {name}")
    pytest.importorskip("xllamacpp", reason="the extra 'local' is not installed")
    return model_path(MODELS[name])


@pytest.fixture(scope="session")
def smollm() -> Path:
    """The file of the smallest model."""
    return _present("smollm2-135m")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with nothing in it."""
    monkeypatch.setenv("LORIMER_HOME", str(tmp_path / "home"))
    return home()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
