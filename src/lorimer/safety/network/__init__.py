"""The guard of everything of ours that connects: URLs, addresses, pinned and bounded fetches.

Public face: `check_url`, `hosts_of`, `resolve_checked`, `fetch`, and the records that they take and
give.
"""

from lorimer.safety.network.fetching import fetch
from lorimer.safety.network.records import Fetched, FetchLimits, Hop
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.resolve import Resolver, resolve_checked
from lorimer.safety.network.rules import NetworkRules
from lorimer.safety.network.urls import CheckedUrl, check_url, hosts_of

__all__ = [
    "CheckedUrl",
    "FetchLimits",
    "Fetched",
    "Hop",
    "NetworkRefused",
    "NetworkRules",
    "Resolver",
    "Why",
    "check_url",
    "fetch",
    "hosts_of",
    "resolve_checked",
]
