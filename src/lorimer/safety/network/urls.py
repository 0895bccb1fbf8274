"""URLs, read once and strictly: what was checked is what is connected to.

Whatever programs read differently (backslashes, blanks, unseen characters, odd address spellings,
a second `@`) is refused and named. The checked parts go to the connection as they are; no second
parser sees the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lorimer.safety.network.addresses import check_address
from lorimer.safety.network.hosts import Host, is_unseen, named, parse_host
from lorimer.safety.network.refused import NetworkRefused, Why
from lorimer.safety.network.rules import NetworkRules, check_host

MAX_URL_CHARACTERS = 8192
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PORTS = {"http": 80, "https": 443}
_PLAIN = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~:/?[]@!$&'()*+,;=%"
)
_DOT = {".", "%2e"}
_DOTS = {"..", ".%2e", "%2e.", "%2e%2e"}


@dataclass(frozen=True, slots=True)
class CheckedUrl:
    """A URL in the one form that is used.

    Attributes:
        target: path and query, as they go over the wire.
        userinfo: `user:password` as it was written, only where the rules allow it.
        changes: what is not as it was written, in words.
    """

    scheme: str
    host: Host
    port: int
    target: str
    userinfo: str | None = field(default=None, repr=False)
    changes: tuple[str, ...] = ()

    @property
    def authority(self) -> str:
        """Host, and port where it is not the scheme's own: the `Host` header."""
        return str(self.host) if self.port == _PORTS[self.scheme] else f"{self.host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return (self.scheme, self.host.name, self.port)

    def __str__(self) -> str:
        """The URL without user and password."""
        return f"{self.scheme}://{self.authority}{self.target}"


def check_url(url: str, rules: NetworkRules) -> CheckedUrl:
    """Read an http or https URL and check scheme, host, port and a literal address by the rules.

    Names are not looked up: `resolve_checked` does that.

    Raises:
        NetworkRefused: the URL cannot be read without doubt, or the rules do not allow it.
    """
    if not isinstance(url, str) or not url:
        raise _bad("The URL is empty.", "Give a URL such as https://example.com/.")
    if len(url) > MAX_URL_CHARACTERS:
        raise _bad(
            f"The URL has {len(url):,} characters; at most {MAX_URL_CHARACTERS:,} are taken.",
            "Send long content in the body.",
        )
    for place, char in enumerate(url):
        if char == "\\" or is_unseen(char):
            raise _bad(
                f"The URL has {named(char)} at character {place + 1}; programs read that "
                "differently.",
                "Remove it, or write it percent-encoded (%20 for a blank) if it belongs there.",
            )
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    if scheme not in rules.schemes:
        what = f"The scheme {scheme!r} is not allowed." if scheme else "The URL has no scheme."
        raise _bad(what, f"Use {' or '.join(f'{s}://' for s in rules.schemes)}.")
    rest = url[len(scheme) + 1 :]
    if not rest.startswith("//") or rest.startswith("///"):
        raise _bad(
            "After the scheme there are not exactly two slashes.", f"Write {scheme}://host/…"
        )
    end = next((i for i, char in enumerate(rest) if i > 1 and char in "/?#"), len(rest))
    userinfo, host, port, changes = _authority(rest[2:end], scheme, rules)
    if host.odd:
        raise NetworkRefused(
            f"The host {host.given!r} is an unusual spelling of the address {host}.",
            why=Why.URL, host=host.name, next=f"Write {host} if that is meant.",
        )  # fmt: skip
    target, target_changes = _target(rest[end:])
    check_host(host, port, rules)
    if host.address is not None:
        check_address(host.address, host, port, rules)
    return CheckedUrl(scheme, host, port, target, userinfo, (*changes, *target_changes))


def hosts_of(value: str) -> str | None:
    """The `host` or `host:port` that a URL or host argument means, lower case and ASCII.

    Takes URLs of every scheme, `host`, `host:port`, `host/path`, `user@host`, `user@host:path` (as
    scp does) and IPv6 with or without brackets. An unusual spelling of an address becomes that
    address; a port that is the scheme's own is left out.

    Returns:
        `None` when it cannot be known: not a host, a pattern, something to be expanded, or a scheme
        without a host (`file:`, `data:`).
    """
    if not value or "\\" in value or any(is_unseen(char) for char in value):
        return None
    found = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", value)
    scheme = found.group(1).lower() if found else ""
    if scheme == "file":
        return None
    rest = value[found.end() :] if found else value.removeprefix("//")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if authority.count("@") > 1:
        return None
    authority = authority.rpartition("@")[2]
    try:
        if not found and authority.count(":") > 1 and not authority.startswith("["):
            return str(parse_host(f"[{authority}]"))
        name, port = _split_port(authority)
        host = parse_host(name)
    except NetworkRefused:
        return None
    if port is None or (port.isascii() and port.isdigit()):
        number = int(port) if port else 0
        if number > 65535:
            return None
        return str(host) if number in (0, _PORTS.get(scheme)) else f"{host}:{number}"
    if found or _no_host_scheme(value):
        return None
    return str(host)  # scp: host:path


def _no_host_scheme(value: str) -> bool:
    """Whether it is `scheme:…` of a known scheme and not `host:path`."""
    scheme = value.partition(":")[0].lower()
    return scheme in {"http", "https", "ftp", "ws", "wss", "file", "data", "mailto", "javascript",
                      "about", "blob", "urn", "tel", "ssh", "git"}  # fmt: skip


def _split_port(authority: str) -> tuple[str, str | None]:
    """Host text and port text; `None` without a colon."""
    if authority.startswith("["):
        host, bracket, tail = authority.partition("]")
        if tail and not tail.startswith(":"):
            raise _bad(f"After the bracket of {host}] comes {tail!r}.", "Write [address]:port.")
        return host + bracket, tail[1:] if tail else None
    host, colon, port = authority.partition(":")
    return host, port if colon else None


def _authority(
    text: str, scheme: str, rules: NetworkRules
) -> tuple[str | None, Host, int, tuple[str, ...]]:
    userinfo, at, hostport = text.rpartition("@")
    if at and ("@" in userinfo or not rules.userinfo):
        raise _bad(
            "The URL holds a user or password before an `@`.",
            "Write the host directly behind the slashes; give credentials as a header or secret.",
        )
    name, port_text = _split_port(hostport)
    host = parse_host(name)
    changes = [host.change] if host.change else []
    port = _PORTS[scheme]
    if port_text is not None and port_text != "":
        if not re.fullmatch(r"[0-9]{1,5}", port_text) or not 0 < int(port_text) < 65536:
            raise _bad(
                f"{port_text!r} is not a port.", "Write a number from 1 to 65535.", host.name
            )
        port = int(port_text)
    return (userinfo if at else None), host, port, tuple(changes)


def _target(text: str) -> tuple[str, tuple[str, ...]]:
    """Path and query for the wire; the fragment is for the reader only and left out."""
    text, mark, _fragment = text.partition("#")
    changes = ["the fragment is not sent"] if mark else []
    path, question, query = text.partition("?")
    clean = _without_dots(path)
    if path and clean != path:
        changes.append("`.` and `..` in the path are worked out")
    target = (clean or "/") + question + query
    encoded = "".join(c if c in _PLAIN else _percent(c) for c in target)
    if encoded != target:
        changes.append("characters are percent-encoded")
    return encoded, tuple(changes)


def _without_dots(path: str) -> str:
    """As RFC 3986 5.2.4, and with percent-encoded dots, as browsers and servers do."""
    out: list[str] = []
    segments = path.split("/")[1:]
    for place, segment in enumerate(segments):
        low, last = segment.lower(), place == len(segments) - 1
        if low in _DOTS and out:
            out.pop()
        if low in _DOT or low in _DOTS:
            if last:
                out.append("")
        else:
            out.append(segment)
    return "/" + "/".join(out) if segments else ""


def _percent(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8"))


def _bad(message: str, what_next: str, host: str = "") -> NetworkRefused:
    return NetworkRefused(message, why=Why.URL, host=host, next=what_next)
