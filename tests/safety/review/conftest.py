from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness import paying
from lorimer.store import open_store


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    paying.ran.clear()


@pytest.fixture
def store() -> Iterator[Any]:
    opened = open_store(":memory:")
    yield opened
    opened.close()
