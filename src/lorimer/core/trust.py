"""Trust labels: where a piece of content came from and what it may influence."""

from __future__ import annotations

from enum import StrEnum


class Trust(StrEnum):
    """`TRUSTED` may steer the agent, `USER_DATA` is the user's own material, `EXTERNAL` is anything
    a stranger could have written: it is information, never an instruction."""

    TRUSTED = "trusted"
    USER_DATA = "user_data"
    EXTERNAL = "external"
