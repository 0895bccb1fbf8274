"""Redaction of log records."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Any


class RedactingFilter(logging.Filter):
    """Redacts the message, the traceback and the stack of every record that passes.

    Put it on handlers (`handler.addFilter`), so that records of other libraries pass it, too.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception as fault:  # noqa: BLE001 - a record whose arguments do not fit its message
            message = f"{record.msg!r} ({type(fault).__name__}: its arguments do not fit)"
        record.msg, record.args = self._redact(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = self._formatter.formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self._redact(record.exc_text)
            record.exc_info = None
        if record.stack_info:
            record.stack_info = self._redact(record.stack_info)
        return True


_keepers: weakref.WeakSet[Any] = weakref.WeakSet()


def _redact(text: str) -> str:
    for keeper in tuple(_keepers):
        text = keeper.redact(text)
    return text


def guard_logs(keeper: Any) -> None:
    """What lorimer itself logs is redacted by `keeper`, as long as that is in use."""
    if not _keepers:
        logger = logging.getLogger("lorimer")
        if not any(isinstance(one, RedactingFilter) for one in logger.filters):
            logger.addFilter(RedactingFilter(_redact))
    _keepers.add(keeper)
