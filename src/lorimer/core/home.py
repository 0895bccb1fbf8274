"""Where lorimer keeps what is its own: models, stores, caches."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The home folder: `LORIMER_HOME`, else the user data folder of this system.

    The folder may not exist yet; whoever writes into it makes it.
    """
    given = os.environ.get("LORIMER_HOME")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_dir

    return Path(user_data_dir("lorimer", appauthor=False))
