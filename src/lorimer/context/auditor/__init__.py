"""The cache auditor: a hash chain over the real bytes of each request (G9). See README.md."""

from lorimer.context.auditor.chain import Auditor, Link
from lorimer.context.auditor.finding import CacheBreak, Cause, Finding
from lorimer.context.auditor.scan import Unreadable

__all__ = ["Auditor", "CacheBreak", "Cause", "Finding", "Link", "Unreadable"]
