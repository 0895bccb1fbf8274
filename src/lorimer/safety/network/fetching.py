"""Fetching a URL for a call: every hop checked, pinned and bounded.

Proxies and certificates named in the environment are not used; a proxy is one that the rules name.
There is no cookie jar: `Set-Cookie` is returned to the caller and never sent back. Nothing a server
says makes us send what was meant for one origin to another.
"""

from __future__ import annotations

import base64
import re
import urllib.parse
from collections.abc import Mapping
from typing import TYPE_CHECKING

import anyio

from lorimer.safety.network.decoding import accepted
from lorimer.safety.network.hosts import is_unseen
from lorimer.safety.network.records import Fetched, FetchLimits, Header, Hop, Reply
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.resolve import Resolver, resolve_checked
from lorimer.safety.network.rules import NetworkRules, parse_proxy
from lorimer.safety.network.urls import CheckedUrl, check_url

if TYPE_CHECKING:
    import ssl

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te",
                   "trailer", "keep-alive", "expect", "accept-encoding", "proxy-authorization",
                   "proxy-connection"})  # fmt: skip
_HARMLESS = frozenset({"accept", "accept-language", "user-agent", "range", "cache-control"})
_OF_BODY = frozenset({"content-type", "content-encoding", "content-language"})
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGENT = "lorimer"


async def fetch(
    url: str,
    *,
    rules: NetworkRules,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    limits: FetchLimits | None = None,
    resolver: Resolver | None = None,
    tls: ssl.SSLContext | None = None,
) -> Fetched:
    """Send a request and return the answer, whatever its status.

    A redirect is followed while the rules allow each hop. On the way to another origin (scheme,
    host or port) only harmless headers go along, and a body never does.

    Args:
        headers: without those that belong to the connection (`Host`, `Content-Length`, …).
        resolver: instead of the operating system's.
        tls: a context with more authorities; it must check certificates and names.

    Cancellation closes the connection; the server may have acted on the request by then.

    Raises:
        NetworkRefused: not allowed, not reached, or an answer beyond the limits; its `sent` says
            whether a request may have reached a server.
    """
    limits = limits or FetchLimits()
    _check_tls(tls)
    way = _Way(check_url(url, rules), rules, limits, resolver, tls)
    with anyio.move_on_after(limits.total_s):
        return await way.go(method.upper(), _checked_headers(method, headers or {}), body)
    raise NetworkRefused(
        f"The fetch from {way.url.host} took longer than {limits.total_s:g} s.",
        why=Why.TIME, host=way.url.host.name, sent=way.sent,
        next="Try again later, ask for less, or raise the limit.",
    )  # fmt: skip


class _Way:
    """From the first request to the answer that is not a redirect."""

    def __init__(
        self,
        url: CheckedUrl,
        rules: NetworkRules,
        limits: FetchLimits,
        resolver: Resolver | None,
        tls: ssl.SSLContext | None,
    ) -> None:
        self.url = url
        self.sent = False
        self._changes = url.changes
        self._rules, self._limits, self._resolver, self._tls = rules, limits, resolver, tls
        self._hops: list[Hop] = []
        self._dropped: tuple[str, ...] = ()

    async def go(self, method: str, headers: list[Header], body: bytes | None) -> Fetched:
        if self.url.userinfo is not None:
            headers = [*headers, ("Authorization", _basic(self.url.userinfo))]
        while True:
            reply = await self._ask(method, headers, body)
            self._hops.append(
                Hop(method, str(self.url), reply.status, reply.address, self._dropped)
            )
            where = reply.header("location")
            if reply.status not in _REDIRECTS or where is None:
                return Fetched(
                    str(self.url), reply.status, reply.headers, reply.body, reply.wire_bytes,
                    tuple(self._hops), self._changes,
                )  # fmt: skip
            after = self._next(where)
            if reply.status == 303 or (reply.status in (301, 302) and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
                headers = [one for one in headers if one[0].lower() not in _OF_BODY]
            if after.origin != self.url.origin:
                headers = self._for_another_origin(after, headers, body)
            if any((h.method, h.url) == (method, str(after)) for h in self._hops):
                raise self._stop("back to where it came from")
            self.url = after

    async def _ask(self, method: str, headers: list[Header], body: bytes | None) -> Reply:
        from lorimer.safety.network.exchange import Exchange

        try:
            proxy = parse_proxy(self._rules.proxy) if self._rules.proxy is not None else None
            host, port, rules = self.url.host, self.url.port, self._rules
            if proxy is not None:  # named by the rules themselves, so it may be private
                host, port = proxy
                rules = NetworkRules(private_hosts=(f"{host}:{port}",))
            addresses = await resolve_checked(
                host, port, rules, resolver=self._resolver, timeout_s=self._limits.resolve_s
            )
            if self._tls is None and self.url.scheme == "https":
                self._tls = _default_tls()
            exchange = Exchange(self.url, addresses, self._limits, self._tls, proxy)
            try:
                return await exchange.run(method, self._all_headers(method, headers, body), body)
            finally:
                self.sent = self.sent or exchange.sent
        except NetworkRefused as fault:
            fault.sent = fault.sent or self.sent
            raise

    def _all_headers(self, method: str, headers: list[Header], body: bytes | None) -> list[Header]:
        given = {name.lower() for name, _ in headers}
        out = [("Host", self.url.authority), ("Connection", "close")]
        out += [(k, v) for k, v in (("Accept", "*/*"), ("User-Agent", _AGENT))
                if k.lower() not in given]  # fmt: skip
        out.append(("Accept-Encoding", accepted()))
        if body is not None or method in ("POST", "PUT", "PATCH"):
            out.append(("Content-Length", str(len(body or b""))))
        return [*out, *headers]

    def _next(self, where: str) -> CheckedUrl:
        """The checked target of a redirect."""
        if len(self._hops) > self._rules.max_redirects:
            raise self._stop(f"on, after {self._rules.max_redirects} redirects")
        try:
            text = where.encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            raise self._stop("to a place that is not UTF-8") from None
        if any(char == "\\" or is_unseen(char) for char in text):
            raise self._stop("to a place with blanks, backslashes or unseen characters")
        try:
            after = check_url(joined(self.url, text), self._rules)
        except NetworkRefused as fault:
            raise self._stop(f"to a place that is refused: {fault.message}", fault) from fault
        if after.userinfo is not None:
            raise self._stop("to a URL with user and password")
        if self.url.scheme == "https" and after.scheme == "http":
            raise self._stop(f"from https to plain http ({after.host})")
        return after

    def _for_another_origin(
        self, after: CheckedUrl, headers: list[Header], body: bytes | None
    ) -> list[Header]:
        if body is not None:
            raise self._stop(f"with the request's body to another origin ({after.host})")
        dropped = [name for name, _ in headers if name.lower() not in _HARMLESS]
        self._dropped = (*self._dropped, *dropped)
        return [one for one in headers if one[0].lower() in _HARMLESS]

    def _stop(self, where: str, fault: NetworkRefused | None = None) -> NetworkRefused:
        return NetworkRefused(
            f"The server {self.url.host} redirects {where.rstrip('.')}.",
            why=Why.REDIRECT, host=fault.host if fault else self.url.host.name, sent=True,
            next=(fault.next if fault else "")
            or "Look at where it leads; if that place is right, ask for it directly.",
        )  # fmt: skip


def joined(base: CheckedUrl, text: str) -> str:
    """The URL that a `Location` means, not checked yet (RFC 3986 5.2.2, without its leniences)."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        return text
    if text.startswith("//"):
        return f"{base.scheme}:{text}"
    start = f"{base.scheme}://{base.authority}"
    path = base.target.partition("?")[0]
    if text.startswith("/"):
        return start + text
    if not text or text[0] == "#":
        return start + base.target
    return start + (path if text[0] == "?" else path[: path.rindex("/") + 1]) + text


def _checked_headers(method: str, headers: Mapping[str, str]) -> list[Header]:
    if method.upper() not in _METHODS:
        raise _bad_request(f"The method {method!r} is not allowed", f"Use {sorted(_METHODS)}.")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name) or name.lower() in _OURS:
            raise _bad_request(
                f"The header {name!r} cannot be set",
                "It is not a header name, or it belongs to the connection: leave it out.",
            )
        if re.search(r"[\x00-\x08\x0a-\x1f\x7f]|[^\x00-\xff]", value) or value != value.strip():
            raise _bad_request(
                f"The value of the header {name!r} has characters that no header may have",
                "Remove line breaks, control and non-Latin characters and blanks at the ends.",
            )
    return list(headers.items())


def _bad_request(message: str, what_next: str) -> NetworkRefused:
    return NetworkRefused(f"{message}.", why=Why.REQUEST, next=what_next)


def _basic(userinfo: str) -> str:
    user, _, password = userinfo.partition(":")
    plain = f"{urllib.parse.unquote(user)}:{urllib.parse.unquote(password)}"
    return "Basic " + base64.b64encode(plain.encode()).decode()


def _default_tls() -> ssl.SSLContext:
    """Verifies with the system's authorities; the environment has no say in it."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


def _check_tls(given: ssl.SSLContext | None) -> None:
    import ssl

    if given is None or (given.verify_mode is ssl.CERT_REQUIRED and given.check_hostname):
        return
    raise NetworkRefused(
        "The given TLS context does not check the server's certificate and name.",
        why=Why.TLS, next="Add your own authority to a context that checks both.",
    )  # fmt: skip
